//! `weir place advise`: which objects of a program may live on a slower tier.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use weir_lab::levels::allowed_loss;
use weir_lab::study::lists;
use weir_lab::view::{Axis, View, col};
use weir_lab::{
    About, Lab, LabError, Outcome, Placed, Study, Verdict, WorkloadOptions, check_threads,
};
use weir_model::frame::Frame;
use weir_model::number::percent;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_model::workload::Workload;

use super::{doubt, note};
use crate::objects::choose::{
    Choice, Goal, ROUND, best, best_measured, candidates, object_level, pareto, sets, uniform,
    within, within_of,
};
use crate::objects::ends::{Crossed, Ends, Phase};
use crate::objects::{ObjectAdvice, PlaceAdvice, Placing, Tradeoff};
use crate::two_tiers::{Tiers, options};

/// Say which objects of a workload may live on a slower tier, and what that costs.
///
/// The workload runs with everything on local memory, with everything on the slower tier, and with each object there alone
/// that is expected to cost more than a percent. What the cores waited for each object, and what it read and wrote, tells
/// the run time of every other placement. Those that promise most run, and the best of them is advised.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  weir place advise gpt2-decode --on emr2s+cxl-a
  weir place advise my-service.toml --on emr2s+cxl-a --free 50% --verify
  weir place advise engine.toml --on emr2s+cxl-a --policy policy.toml \\
      --class pages=buffer
  weir place advise --on ./my-server.toml+cxl-a --max-loss 2 -- ./job
  weir place advise --on ./my-server.toml+cxl-a --tag -- ./job
  weir place advise --pid 4711 --free 16G --for 60s

A command runs on this host under a tracer first, as `weir workload record` runs
it; the advice is about the description of it, for the model that --on names.
A process of this host (--pid) is looked at while it runs: which objects are
touched how often. Then no loss is predicted.")]
pub struct AdviseObjects {
    /// A name from `weir workload list`, or a TOML file.
    #[arg(value_name = "NAME|FILE")]
    pub workload: Option<String>,
    /// A command that is recorded first, and its arguments, after `--`.
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["workload", "threads"])]
    pub command: Vec<String>,
    /// End the command after this time; observe a process for this time [default: 10s].
    #[arg(long = "for", value_name = "TIME")]
    pub lasts: Option<Nanos>,
    /// The description of the command; without it NAME.toml here, which must not be there.
    #[arg(short, long, value_name = "FILE", requires = "command")]
    pub out: Option<PathBuf>,
    /// The tier that takes objects.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// The tier that keeps the others.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub from: TierName,
    /// The loss of run time that is allowed, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, allow_negative_numbers = true, value_parser = allowed_loss)]
    pub max_loss: f64,
    /// Free this much local memory instead, with the least loss: a size, or a share of all objects.
    #[arg(long, value_name = "SIZE|SHARE%", conflicts_with = "max_loss", value_parser = Part::read)]
    pub free: Option<Part>,
    /// Move whole objects only; otherwise one of them may be split.
    #[arg(long)]
    pub whole: bool,
    /// Run the other placements that are shown, too, and say what they cost.
    #[arg(long)]
    pub verify: bool,
    /// Threads of the workload, instead of those that its description names.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// The description of the workload.
    #[arg(skip)]
    pub described: Option<Workload>,
}

/// An amount of memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part {
    /// This many bytes.
    Bytes(Bytes),
    /// A share of all.
    Share(f64),
}

impl Part {
    /// The amount, of this much memory.
    pub fn of(self, all: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => Bytes((all.get() as f64 * share).ceil() as u64),
        }
    }

    /// Reads `16G` or `50%`.
    ///
    /// # Errors
    /// It is neither, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            return match text.parse() {
                Ok(Bytes(0)) => Err("memory that is to be freed is more than 0 bytes".into()),
                Ok(size) => Ok(Self::Bytes(size)),
                Err(why) => Err(why.to_string()),
            };
        };
        match percent.trim().parse::<f64>() {
            Ok(share) if share > 0.0 && share <= 100.0 => Ok(Self::Share(share / 100.0)),
            _ => Err("a share is above 0 % and at most 100 %".into()),
        }
    }
}

impl Study for AdviseObjects {
    const VERB: &'static str = "place advise";
    type Output = PlaceAdvice;

    fn run(&self, lab: &Lab<'_>) -> Result<PlaceAdvice, LabError> {
        let tiers = Tiers::of(lab.topology(), &self.from, &self.tier)?;
        let workload = self.described.as_ref().ok_or_else(|| {
            LabError::Nothing("place advise needs the description of a workload".into())
        })?;
        check_threads(workload, lab.topology())?;
        let options = WorkloadOptions {
            accesses: ACCESSES,
            ..options(lab.seed())
        };
        let ends = ends(lab, workload, &tiers, &options)?;
        let goal = match self.free {
            // What sums are rounded by is no loss.
            None => Goal::Loss(self.max_loss / 100.0 + 1e-9),
            Some(Part::Bytes(bytes)) => Goal::Free(bytes.get() as f64),
            Some(Part::Share(share)) => Goal::Free(ends.all() * share),
        };
        let sets = sets(&ends);
        let curve = pareto(&sets);
        let expected = best(&ends, &curve, goal, self.whole).ok_or_else(|| {
            LabError::Nothing(format!(
                "all objects of `{}` together have {}, less than is to be freed",
                workload.name,
                Bytes(ends.all() as u64)
            ))
        })?;
        let tries = candidates(&ends, &sets, goal, self.whole, TRIES);
        let tried = tried(lab, workload, &tiers, &options, &ends, tries)?;
        let within = within_of(&tried);
        let within_pct = |choice: &Choice| {
            let unknown = within.filter(|_| !ends.is_known(&choice.shares));
            unknown.map(|within| within * 100.0)
        };
        let advised = match best_measured(&tried, goal) {
            Some((advised, _)) => advised.clone(),
            None => expected,
        };
        let mut choices = vec![("advised", advised.clone())];
        if let Some(uniform) = uniform(&ends, goal) {
            choices.push(("every object spread alike", uniform));
        }
        choices.push(("object-level interleaving", object_level(&ends)));
        choices.push(("everything", everything(&ends)));
        let measured = match self.verify {
            true => measure(lab, workload, &tiers, &options, &ends, &choices)?,
            false => choices
                .iter()
                .map(|(_, choice)| known(&tried, choice))
                .collect(),
        };
        let placing = |((method, choice), measured): (&(&str, Choice), Option<f64>)| Placing {
            method: (*method).to_owned(),
            moved: moved(&ends, choice),
            bytes: Bytes(choice.bytes as u64),
            expected_pct: choice.loss * 100.0,
            within_pct: within_pct(choice),
            measured_pct: measured.map(|loss| loss * 100.0),
        };
        Ok(PlaceAdvice {
            workload: workload.name.clone(),
            from: tiers.from,
            to: tiers.to,
            max_loss_pct: self.free.is_none().then_some(self.max_loss),
            free: match goal {
                Goal::Free(bytes) => Some(Bytes(bytes.ceil() as u64)),
                Goal::Loss(_) => None,
            },
            objects: objects(&ends, &advised, goal, within),
            placings: choices.iter().zip(measured).map(placing).collect(),
            curve: (curve.iter())
                .map(|choice| Tradeoff {
                    moved: moved(&ends, choice),
                    bytes: Bytes(choice.bytes as u64),
                    bytes_pct: choice.bytes / ends.all() * 100.0,
                    loss_pct: choice.loss * 100.0,
                    within_pct: within_pct(choice),
                })
                .collect(),
        })
    }
}

/// Lines that each thread touches in a run: placements are apart by less than runs that are shorter.
const ACCESSES: u64 = 100_000;

/// Placements that are run before one is advised.
const TRIES: usize = 10;

/// Objects that are expected to cost more than this alone, as a share of run time, are measured alone: of less, a run says
/// little.
const WORTH: f64 = 0.01;
/// This many at most, those first that cost least for their bytes.
const MEASURED_ALONE: usize = 10;

/// Runs a workload at both ends, and with single objects on the slower tier.
///
/// # Errors
/// The machine refuses, or does not say what objects are waited for; or the user stopped it.
pub fn ends(
    lab: &Lab<'_>,
    workload: &Workload,
    tiers: &Tiers,
    options: &WorkloadOptions,
) -> Result<Ends, LabError> {
    let ends = Ends::measure(lab, workload, tiers, options)?;
    let price = |o: usize| ends.loss_alone(o) / ends.objects[o].bytes.get().max(1) as f64;
    let mut single: Vec<usize> = (0..ends.objects.len())
        .filter(|&o| ends.loss_alone(o) > WORTH)
        .collect();
    single.sort_by(|&a, &b| price(a).total_cmp(&price(b)));
    single.truncate(MEASURED_ALONE);
    let asks: Vec<Placed<'_>> = (single.iter())
        .map(|&o| placed(workload, tiers, options, &ends, &ends.only(o)))
        .collect();
    let losses = losses(lab, &ends, &asks)?;
    let measured: Vec<(usize, f64)> = single.into_iter().zip(losses).collect();
    Ok(ends.alone(&measured))
}

/// Runs placements: each with how much longer it takes than with everything on local memory.
///
/// # Errors
/// The machine refuses, or the user stopped it.
pub fn tried(
    lab: &Lab<'_>,
    workload: &Workload,
    tiers: &Tiers,
    options: &WorkloadOptions,
    ends: &Ends,
    choices: Vec<Choice>,
) -> Result<Vec<(Choice, f64)>, LabError> {
    let named: Vec<(&str, Choice)> = choices.into_iter().map(|choice| ("", choice)).collect();
    let measured = measure(lab, workload, tiers, options, ends, &named)?;
    let each = named.into_iter().zip(measured);
    Ok(each
        .filter_map(|((_, choice), loss)| Some((choice, loss?)))
        .collect())
}

fn known(tried: &[(Choice, f64)], choice: &Choice) -> Option<f64> {
    let same = tried.iter().find(|(one, _)| one.shares == choice.shares);
    same.map(|(_, loss)| *loss)
}

fn everything(ends: &Ends) -> Choice {
    let shares = vec![1.0; ends.objects.len()];
    Choice {
        bytes: ends.bytes(&shares),
        loss: ends.loss(&shares),
        shares,
    }
}

/// The objects of a placement that are on the slower tier, in words.
fn moved(ends: &Ends, choice: &Choice) -> String {
    let each = ends.objects.iter().zip(&choice.shares);
    let names: Vec<String> = each
        .filter(|(_, share)| **share > 0.0)
        .map(|(object, share)| match share {
            share if *share < 1.0 => format!("{:.0} % of {}", share * 100.0, object.name),
            _ => object.name.clone(),
        })
        .collect();
    match names.len() {
        0 => "nothing".into(),
        n if n == ends.objects.len() && choice.shares.iter().all(|s| *s == 1.0) => {
            "everything".into()
        }
        _ => names.join(", "),
    }
}

/// Objects that change the run time by less than this alone, as a share, are free to move: it prints as 0.0 %, and twenty of
/// them cost less than a pair of runs differs by chance. Whether such an object is in the advised placement says nothing.
const FREE: f64 = 0.0005;

fn objects(
    ends: &Ends,
    advised: &Choice,
    goal: Goal,
    placements: Option<f64>,
) -> Vec<ObjectAdvice> {
    let local = ends.local();
    // A wait that is expected is off by a part of itself.
    let measured = (0..ends.objects.len()).filter(|&o| ends.is_measured(o));
    let parts = within(measured.map(|o| ends.beyond[o] / (ends.loss_alone(o) - ends.beyond[o])));
    let mut all: Vec<ObjectAdvice> = (ends.objects.iter().enumerate())
        .map(|(o, object)| {
            let alone = ends.loss_alone(o);
            let share = advised.shares[o];
            let never = matches!(goal, Goal::Loss(most) if alone > most);
            let advice = match share {
                share if alone.abs() < FREE && (share == 0.0 || share >= 1.0) => {
                    "free to move".into()
                }
                share if share >= 1.0 => "move".into(),
                share if share > 0.0 => format!("move {:.0} %", share * 100.0),
                _ if never => "never move".into(),
                _ => "keep".into(),
            };
            let sum = |of: &dyn Fn(&Phase) -> f64| -> f64 { ends.phases.iter().map(of).sum() };
            let gbps = |of: fn(&Crossed) -> Bytes| {
                GbPerSec(sum(&|p| of(&p.traffic[o][0]).get() as f64) / local.get())
            };
            let order: Vec<&str> = object.orders.iter().map(|order| order.name()).collect();
            ObjectAdvice {
                object: object.name.clone(),
                bytes: object.bytes,
                order: order.join(", "),
                read_gbps: gbps(|c| c.read),
                write_gbps: gbps(|c| c.written),
                waits_pct: sum(&|p| p.waited[o][0].get()) / local.get() * 100.0,
                alone_pct: alone * 100.0,
                alone_within_pct: (parts.map(|part| part * alone.abs()))
                    .or(placements)
                    .filter(|_| !ends.is_measured(o))
                    .map(|within| within * 100.0),
                // Without what a share of ROUND parts lacks as a number.
                share_pct: (share * 1e11).round() / 1e9,
                advice,
            }
        })
        .collect();
    let price = |object: &ObjectAdvice| object.alone_pct / object.bytes.get().max(1) as f64;
    all.sort_by(|a, b| price(a).total_cmp(&price(b)));
    all
}

/// Runs placements, and says how much longer each takes than with everything on local memory.
fn measure(
    lab: &Lab<'_>,
    workload: &Workload,
    tiers: &Tiers,
    options: &WorkloadOptions,
    ends: &Ends,
    choices: &[(&str, Choice)],
) -> Result<Vec<Option<f64>>, LabError> {
    let ask = |choice: &Choice| placed(workload, tiers, options, ends, &choice.shares);
    let asks: Vec<Placed<'_>> = choices.iter().map(|(_, choice)| ask(choice)).collect();
    Ok(losses(lab, ends, &asks)?.into_iter().map(Some).collect())
}

/// How much longer each run takes than with everything on local memory, as a share.
fn losses(lab: &Lab<'_>, ends: &Ends, asks: &[Placed<'_>]) -> Result<Vec<f64>, LabError> {
    let runs = lab.ask_all(asks)?;
    Ok((runs.iter())
        .map(|run| run.time / ends.local() - 1.0)
        .collect())
}

/// A workload with these shares of its objects on the slower tier.
pub fn placed<'a>(
    workload: &'a Workload,
    tiers: &Tiers,
    options: &'a WorkloadOptions,
    ends: &Ends,
    shares: &[f64],
) -> Placed<'a> {
    let of = |share: f64| match (share * f64::from(ROUND)).round() as u32 {
        0 => Placement::Bind(tiers.from.clone()),
        ROUND => Placement::Bind(tiers.to.clone()),
        slow => Placement::Interleave(vec![
            (tiers.from.clone(), ROUND - slow),
            (tiers.to.clone(), slow),
        ]),
    };
    let each = ends.objects.iter().zip(shares);
    let placements: BTreeMap<String, Placement> = each
        .filter(|(_, share)| **share > 0.0)
        .flat_map(|(object, share)| object.regions.iter().map(move |region| (region, *share)))
        .map(|(region, share)| (region.clone(), of(share)))
        .collect();
    Placed {
        placement: Placement::Bind(tiers.from.clone()),
        placements,
        ..Placed::local(workload, options)
    }
}

/// By how much a placement may cost more than expected before the table doubts it, in percent of run time.
const MISSED_PCT: f64 = 5.0;

impl Outcome for PlaceAdvice {
    const SCHEMA: &'static str = "weir/place-advice/1";
    const TITLE: &'static str = "Objects";
    const WORDS: &'static str = "Which objects may live on the slower tier. The loss of each placement follows from runs with \
                                 everything on either tier, and with single objects on the slower one.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let Some(advised) = self.placings.first() else {
            return Vec::new();
        };
        let all: Bytes = self.objects.iter().map(|object| object.bytes).sum();
        let within = advised.within_pct.map(|within| format!(" ±{within:.1}"));
        let expected = format!(
            "{}{} %",
            percent(advised.expected_pct),
            within.unwrap_or_default()
        );
        let cost = match advised.measured_pct {
            Some(measured) => format!("{} % of run time ({expected} expected)", percent(measured)),
            None => format!("{expected} of run time expected"),
        };
        let to = &self.to;
        let text = match advised.bytes {
            Bytes(0) => format!(
                "keep everything on {}: no object may move to {to} for a loss of {} %",
                self.from,
                self.max_loss_pct.unwrap_or_default()
            ),
            bytes => format!(
                "move {} to {to}: {bytes} of {all} for {cost}",
                advised.moved
            ),
        };
        let mut verdicts = vec![note(&self.workload, text)];
        if let Some(measured) = advised.measured_pct
            && measured - advised.expected_pct > MISSED_PCT
        {
            verdicts.push(doubt(
                &self.workload,
                "it costs more than expected: objects wait for each other, which these runs do not show",
            ));
        }
        verdicts
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let (from, to) = (&self.from, &self.to);
        vec![
            View::table(
                "objects",
                format!(
                    "Objects of {} with everything on {from}; the loss with one alone on {to}",
                    self.workload
                ),
                vec![
                    col("object"),
                    col("bytes").head("size"),
                    col("order"),
                    col("read_gbps").head("read").small(),
                    col("write_gbps").head("write").small(),
                    col("waits_pct").head("waits"),
                    col("alone_pct").head("alone").signed(),
                    col("alone_within_pct").head("±").if_any(),
                    col("advice"),
                ],
            ),
            View::table(
                "placings",
                format!(
                    "Placements, and how much longer the run takes than with everything on {from}"
                ),
                vec![
                    col("method"),
                    col("bytes").head("moved"),
                    col("expected_pct").head("expected").signed(),
                    col("within_pct").head("±").if_any(),
                    col("measured_pct").head("measured").signed(),
                ],
            ),
            View::lines(
                "tradeoff",
                format!("What it costs to have objects of {} on {to}", self.workload),
                ("bytes_pct", &format!("bytes on {to} [% of all]")),
                ("loss_pct", "longer run [%], below zero is faster"),
                &["series"],
            )
            .axes(Axis::Linear, Axis::Signed),
        ]
    }

    fn frames(&self) -> Vec<Frame> {
        let all: Bytes = self.objects.iter().map(|object| object.bytes).sum();
        let mut rows: Vec<TradeoffRow> = (self.curve.iter())
            .map(|at| TradeoffRow {
                series: "whole objects".into(),
                bytes_pct: at.bytes_pct,
                loss_pct: at.loss_pct,
            })
            .collect();
        rows.extend(self.placings.iter().map(|at| TradeoffRow {
            series: at.method.clone(),
            bytes_pct: at.bytes.get() as f64 / all.get().max(1) as f64 * 100.0,
            loss_pct: at.measured_pct.unwrap_or(at.expected_pct),
        }));
        let mut frames = lists(self);
        frames.push(Frame::of("tradeoff", &rows));
        frames
    }
}

/// A placement, by what is on the slower tier and what it costs.
#[derive(Serialize, JsonSchema)]
struct TradeoffRow {
    /// The curve, or the method.
    series: String,
    /// Bytes on the slower tier, in percent of all objects.
    bytes_pct: f64,
    /// How much longer the run takes, in percent: measured, else expected.
    loss_pct: f64,
}
