//! `weir tune interleave`: which share of a workload's pages belongs on a slower tier.

use schemars::JsonSchema;
use serde::Serialize;
use weir_lab::study::lists;
use weir_lab::view::{Axis, Limit, View, col};
use weir_lab::{
    About, Lab, LabError, Outcome, Study, Verdict, WorkloadOptions, WorkloadRun, check_threads,
};
use weir_model::frame::Frame;
use weir_model::insight::{Bound, InterleaveFit, SlowdownModel};
use weir_model::number::percent;
use weir_model::topology::TierName;
use weir_model::units::Cycles;
use weir_model::workload::Workload;

use super::note;
use crate::Run;
use crate::bound::classify;
use crate::documents::{Advice, Tried, Tuned};
use crate::interleave::best_shot::{self, Load};
use crate::interleave::caption::Settings;
use crate::interleave::{self, Weights, closed_form};
use crate::slowdown::predict;
use crate::tune::{self, Climb};
use crate::two_tiers::{Tiers, options, unloaded};

/// Spread a workload's pages over two tiers by weights.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  weir tune interleave scan --on skx2s --tier remote
  weir tune interleave my-service.toml --on emr2s+cxl-a --verify
  weir tune interleave --tier cxl0 --verify -- ./job")]
pub struct Interleave {
    /// The name of a workload that comes with Weir, or a file that describes one.
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub workload: Option<String>,
    /// A command of this host and its arguments, after `--`; it is run several times.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
    /// The tier that takes a share of the pages.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// The tier that keeps the other pages.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub from: TierName,
    /// Measure every twentieth share, and what each advice is worth. For a command on a kernel without
    /// weighted interleave: none, half and all of the pages.
    #[arg(long)]
    pub verify: bool,
    /// Threads of the workload, instead of those that its description names.
    #[arg(long, value_name = "N", requires = "workload", conflicts_with = "command",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// The description of the workload.
    #[arg(skip)]
    pub described: Option<Workload>,
    /// The model of slowdown that was calibrated for the two tiers, if there is one.
    #[arg(skip)]
    pub model: Option<Box<SlowdownModel>>,
    /// Why there is no model, and how to make one; said where best-shot would need it.
    #[arg(skip)]
    pub without_model: Option<String>,
}

/// A workload on a machine.
struct Tuning<'a, 'l> {
    lab: &'a Lab<'l>,
    options: WorkloadOptions,
    workload: &'a Workload,
    tiers: &'a Tiers,
    model: Option<&'a SlowdownModel>,
    without_model: Option<&'a str>,
}

impl Study for Interleave {
    const VERB: &'static str = "tune interleave";
    type Output = Tuned;

    fn run(&self, lab: &Lab<'_>) -> Result<Tuned, LabError> {
        let tiers = Tiers::of(lab.topology(), &self.from, &self.tier)?;
        let workload = self.described.as_ref().ok_or_else(|| {
            LabError::Nothing("tune interleave needs the description of a workload".into())
        })?;
        check_threads(workload, lab.topology())?;
        let tuning = Tuning {
            lab,
            options: options(lab.seed()),
            workload,
            tiers: &tiers,
            model: self.model.as_deref(),
            without_model: self.without_model.as_deref(),
        };
        let mut tuned = tuning.advise()?;
        if self.verify {
            tuning.verify(&mut tuned)?;
        }
        Ok(tuned)
    }

    fn programs(&self) -> Option<Vec<&str>> {
        Some(self.workload.as_deref().into_iter().collect())
    }
}

impl Outcome for Tuned {
    const SCHEMA: &'static str = "weir/tune/1";
    const TITLE: &'static str = "Interleaving";
    const WORDS: &'static str = "Run time with a share of the pages on the slower tier, against none. Best-shot needs one \
                                 run, the closed form two, Caption climbs step by step, and the proportion of \
                                 bandwidths needs no run.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let bound = match self.bound {
            Some(Bound::Latency) => "waits for latency: do not interleave it",
            Some(Bound::Bandwidth) => "waits for bandwidth",
            None => "the counters do not say what it waits for",
        };
        let evidence = &self.evidence;
        let mut all = vec![note(&self.workload, format!("{bound} ({evidence})"))];
        for advice in &self.advice {
            let mut text = format!("{:.0} % of the pages on {}", advice.share_pct, self.to);
            for (what, change) in [
                ("expects", advice.change_pct),
                ("measured", advice.measured_pct),
            ] {
                if let Some(change) = change {
                    text.push_str(&format!(", {what} {change:+.1} % of run time"));
                }
            }
            if !advice.note.is_empty() {
                text.push_str(&format!("; {}", advice.note));
            }
            all.push(note(&advice.method, text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let Self {
            from, to, workload, ..
        } = self;
        // What is only known to the right is a mark all the way up.
        let walls = self
            .advice
            .iter()
            .filter(|advice| change_of(advice).is_none());
        let walls = walls.map(|advice| Limit {
            tier: None,
            on_x: true,
            at: advice.share_pct,
            name: format!("{}: {:.0} %", advice.method, advice.share_pct),
        });
        let local = Limit {
            tier: None,
            on_x: false,
            at: 0.0,
            name: format!("all on {from}"),
        };
        vec![
            View::table(
                "advice",
                format!(
                    "What each method says: pages on {to}, weights {from}:{to}, change of run time"
                ),
                vec![
                    col("method"),
                    col("runs"),
                    col("share_pct").head("pages"),
                    col("weights"),
                    col("change_pct").head("expected").signed(),
                    col("measured_pct").head("measured").signed(),
                ],
            ),
            View::table(
                "curve",
                format!("Change of run time by the share of pages on {to}"),
                vec![
                    col("share_pct").head("pages"),
                    col("change_pct").head("measured").signed(),
                    col("predicted_pct").head("closed form").signed(),
                ],
            ),
            View::lines(
                "shares",
                format!("Interleaving of {workload} over {from} and {to}"),
                (
                    "share_pct",
                    &format!("pages on {to} [%], the others on {from}"),
                ),
                ("change_pct", "change of run time [%], below zero is faster"),
                &["series"],
            )
            .axes(Axis::Linear, Axis::Signed)
            .limits(walls.chain([local]).collect()),
        ]
    }

    fn frames(&self) -> Vec<Frame> {
        let mut rows: Vec<ShareRow> = Vec::new();
        for (series, change) in [
            (
                "measured",
                (|t| Some(t.change_pct)) as fn(&Tried) -> Option<f64>,
            ),
            ("closed form's curve", |t| t.predicted_pct),
        ] {
            rows.extend(self.curve.iter().filter_map(|tried| {
                Some(ShareRow {
                    series: series.into(),
                    share_pct: tried.share_pct,
                    change_pct: change(tried)?,
                })
            }));
        }
        rows.extend(self.advice.iter().filter_map(|advice| {
            let (change_pct, how) = change_of(advice)?;
            let (method, share_pct) = (&advice.method, advice.share_pct);
            let change = percent(change_pct);
            Some(ShareRow {
                series: format!("{method}: {share_pct:.0} %, {change} % {how}"),
                share_pct,
                change_pct,
            })
        }));
        let mut all = lists(self);
        all.push(Frame::of("shares", &rows));
        all
    }
}

/// The change of run time at a share of the pages, on a curve or as a method has it.
#[derive(Serialize, JsonSchema)]
struct ShareRow {
    /// The curve, or the method with what it says.
    series: String,
    /// Share of pages on the slower tier, in percent.
    share_pct: f64,
    /// The change of run time, in percent.
    change_pct: f64,
}

/// The change of run time at the share of a method: measured, else as the method expects it.
fn change_of(advice: &Advice) -> Option<(f64, &'static str)> {
    let measured = advice.measured_pct.map(|change| (change, "measured"));
    measured.or_else(|| advice.change_pct.map(|change| (change, "expected")))
}

impl Tuning<'_, '_> {
    fn at(&self, weights: &[Weights]) -> Result<Vec<WorkloadRun>, LabError> {
        tune::sweep(self.lab, self.workload, self.tiers, weights, &self.options)
    }

    fn one(&self, local: u32, slow: u32) -> Result<WorkloadRun, LabError> {
        let weights = Weights { local, slow };
        tune::run_at(self.lab, self.workload, self.tiers, weights, &self.options)
    }

    fn unloaded(&self) -> Result<[Cycles; 2], LabError> {
        unloaded(self.lab, self.tiers, &self.options)
    }

    fn advise(&self) -> Result<Tuned, LabError> {
        let local = self.one(1, 0)?;
        let counted = Run::of(&local.counters)?;
        let unloaded = self.unloaded()?;
        LabError::unless_slower(
            [&self.tiers.from, &self.tiers.to],
            unloaded.map(Cycles::get),
        )?;
        let bound = classify(&counted, Some(unloaded[0]));
        let mut advice = Vec::new();
        if bound.bound == Some(Bound::Latency) {
            advice.push(self.stay(&counted)?);
        } else if let Some(fit) = self.model.and_then(|model| model.interleave.as_ref()) {
            advice.push(aimed(fit, &Load::of(&counted, local.time)?));
        } else if let Some(why) = self.without_model {
            self.lab.warn(why.to_owned());
        }
        advice.push(self.closed_form(&local, unloaded)?);
        advice.push(self.caption(&local)?);
        advice.extend(self.proportional());
        Ok(Tuned {
            workload: self.workload.name.clone(),
            from: self.tiers.from.clone(),
            to: self.tiers.to.clone(),
            bound: bound.bound,
            evidence: bound.evidence,
            advice,
            curve: Vec::new(),
        })
    }

    /// The advice to a workload that waits for latency.
    fn stay(&self, local: &Run<'_>) -> Result<Advice, LabError> {
        let all_slow = self.model.map(|model| predict(model, local)).transpose()?;
        let to = &self.tiers.to;
        let note = match all_slow.map(|p| p.total()) {
            Some(all_slow) => format!(
                "it waits for latency: a fifth of its pages on {to} would cost {:.1} %",
                best_shot::latency_bound_slowdown(all_slow, 0.2) * 100.0
            ),
            None => format!("it waits for latency, which {to} has more of"),
        };
        Ok(Advice {
            method: "best-shot".into(),
            note,
            ..advice(1, 0.0, Some(0.0))
        })
    }

    fn closed_form(&self, local: &WorkloadRun, unloaded: [Cycles; 2]) -> Result<Advice, LabError> {
        let classes = tune::classes(local, &self.one(0, 1)?, unloaded)?;
        let (share, change) = closed_form::best(&classes);
        Ok(Advice {
            method: "closed form".into(),
            ..advice(2, share, Some(change))
        })
    }

    fn caption(&self, local: &WorkloadRun) -> Result<Advice, LabError> {
        let speed = |weights| -> Result<f64, LabError> {
            let runs = self.at(&[weights])?;
            let time = runs.first().map_or(local.time, |run| run.time);
            Ok(local.time / time)
        };
        let climb = tune::climb_by(Settings::default(), &|_| true, speed)?;
        Ok(climbed(&climb))
    }

    fn proportional(&self) -> Option<Advice> {
        let total = |name: &TierName| {
            let tier = self.lab.topology().tier(name)?;
            Some(tier.limits.as_ref()?.total)
        };
        let share = interleave::proportional(total(&self.tiers.from)?, total(&self.tiers.to)?)?;
        Some(Advice {
            method: "bandwidth-proportional".into(),
            note: "by what the buses and links allow".into(),
            ..advice(0, share, None)
        })
    }

    /// The curve over all shares, and what each advice is worth on it.
    fn verify(&self, tuned: &mut Tuned) -> Result<(), LabError> {
        let shares = tune::shares(tune::ROUND);
        let runs = self.at(&shares)?;
        let (Some(local), Some(slow)) = (runs.first(), runs.last()) else {
            return Ok(());
        };
        let classes = tune::classes(local, slow, self.unloaded()?)?;
        let tried = |(weights, run): (&Weights, &WorkloadRun)| Tried {
            share_pct: weights.share_pct(),
            change_pct: tune::change(local, run) * 100.0,
            predicted_pct: Some(closed_form::change(&classes, weights.share()) * 100.0),
        };
        tuned.curve = shares.iter().zip(&runs).map(tried).collect();
        for advice in &mut tuned.advice {
            let [from, to] = advice.weights;
            let run = self.one(from, to)?;
            advice.measured_pct = Some(tune::change(local, &run) * 100.0);
        }
        Ok(())
    }
}

/// Advice of a method that its caller names.
pub fn advice(runs: u32, share: f64, change: Option<f64>) -> Advice {
    let weights = Weights::nearest(share, tune::ROUND);
    Advice {
        method: String::new(),
        runs,
        share_pct: share * 100.0,
        weights: [weights.local, weights.slow],
        change_pct: change.map(|c| c * 100.0),
        measured_pct: None,
        note: String::new(),
    }
}

/// What best-shot says of a load: no interleaving where the gain is less than its own error.
pub fn aimed(fit: &InterleaveFit, load: &Load) -> Advice {
    let aim = best_shot::aim(fit, load, tune::ROUND);
    let (gain, error) = (aim.gain * 100.0, aim.error * 100.0);
    let method = "best-shot".to_owned();
    if aim.is_worth_it() {
        let change = 1.0 / (1.0 + aim.gain) - 1.0;
        Advice {
            method,
            weights: [aim.weights.local, aim.weights.slow],
            note: format!("a gain of {gain:.1} %, and perhaps {error:.1} points less"),
            ..advice(1, aim.weights.share(), Some(change))
        }
    } else {
        let share = aim.weights.share() * 100.0;
        Advice {
            method,
            note: format!(
                "with {share:.0} % it would gain {gain:.1} %, and perhaps {error:.1} points less"
            ),
            ..advice(1, 0.0, Some(0.0))
        }
    }
}

/// What Caption's climb says, by the speed at the shares that it tried.
pub fn climbed(climb: &Climb) -> Advice {
    const LOCAL: (Weights, f64) = (Weights { local: 1, slow: 0 }, 1.0);
    let (weights, speed) = climb.settled().unwrap_or(LOCAL);
    let path: Vec<String> = (climb.tried.iter())
        .map(|(weights, _)| format!("{:.0}", weights.share() * 100.0))
        .collect();
    Advice {
        method: "caption".into(),
        runs: climb.tried.len() as u32,
        share_pct: weights.share_pct(),
        weights: [weights.local, weights.slow],
        change_pct: None,
        measured_pct: Some((1.0 / speed - 1.0) * 100.0),
        note: format!("tried {} %", path.join(", ")),
    }
}
