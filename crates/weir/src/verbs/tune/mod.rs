//! `weir tune`: what share of a workload's pages should lie on a slower tier.

mod host;

use std::time::Instant;

use clap::Subcommand;
use weir_insight::bound::classify;
use weir_insight::interleave::best_shot::{self, Load};
use weir_insight::interleave::{self, Weights, closed_form};
use weir_insight::slowdown::predict;
use weir_insight::tune::Climb;
use weir_insight::two_tiers::{Tiers, lone_chase};
use weir_insight::{Run, tune};
use weir_lab::{WorkloadOptions, WorkloadRun};
use weir_model::insight::{Advice, Bound, InterleaveFit, SlowdownModel, Tried, TuneDocument};
use weir_model::machine::{Identity, MachineKind};
use weir_model::topology::TierName;
use weir_model::units::{Cycles, Nanos};
use weir_model::workload::Workload;

use super::workload::find_for;
use crate::cli::Format;
use crate::context::{Context, say};
use crate::counting;
use crate::failure::{Failure, Result};
use crate::insight::{self, Going, model_path, origin, read_model, run_options};
use crate::keeping::Keeping;
use crate::machine::{self, Chosen};
use crate::nodes::pair_here;
use crate::output::{self, print, to_csv, to_json};

/// The verb as the store has it.
pub const VERB: &str = "tune interleave";

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tune interleave scan --on skx2s --tier remote
  weir tune interleave my-service.toml --on emr2s+cxl-a --verify
  weir tune interleave --tier cxl0 --verify -- ./job")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Spread a workload's pages over two tiers by weights.
    Interleave(Interleave),
}

/// Arguments of the interleaving.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tune interleave scan --on skx2s --tier remote
  weir tune interleave my-service.toml --on emr2s+cxl-a --verify
  weir tune interleave --tier cxl0 --verify -- ./job")]
pub struct Interleave {
    /// The name of a workload that comes with Weir, or a file that describes one.
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    workload: Option<String>,
    /// A command of this host and its arguments, after `--`; it is run again and again.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
    /// The tier that takes a share of the pages.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    tier: String,
    /// The tier that keeps the others.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    from: String,
    /// Measure every twentieth share, and what each advice is worth; of a command where the kernel has no
    /// weighted interleave, none, half and all.
    #[arg(long)]
    verify: bool,
    /// Threads of the workload in place of those that it says.
    #[arg(long, value_name = "N", requires = "workload", conflicts_with = "command",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
}

/// Advises, keeps and prints.
///
/// # Errors
/// The machine runs no workloads or has not these tiers, or the work failed.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let What::Interleave(args) = &args.what;
    let began = Instant::now();
    let keeping = Keeping::begin(context, VERB)?;
    let (from, to) = (TierName::named(&args.from), TierName::named(&args.tier));
    let going = Going::on(context, "tune");
    let mut document = match &args.workload {
        None => {
            counting::on_this_host(context, "weir tune interleave -- CMD")?;
            let (host, tiers) = pair_here(context, &from, &to)?;
            let model = model_of(context, &host.identity, &tiers)?;
            host::advise(
                args,
                context,
                model.as_ref(),
                (&host, &tiers),
                &going,
                began,
            )?
        }
        Some(name) => on_model(args, name, context, (&from, &to), &going, began)?,
    };
    going.end();
    document.origin.elapsed_s = began.elapsed().as_secs_f64();
    document.origin.partial |= context.stop.requested();
    for warning in &document.origin.warnings {
        say(&format!("weir: warning: {warning}"));
    }
    let list = ("advice", document.advice.as_slice());
    let printed = print(&match context.global.format {
        Format::Table => output::tune(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(&document.advice)?,
    });
    let run = keeping.keep(&document.origin, &document, list, printed)?;
    context.note(&format!("stored as run {run}"));
    Ok(())
}

/// The model that was calibrated for a pair, if one was.
fn model_of(context: &Context, machine: &Identity, tiers: &Tiers) -> Result<Option<SlowdownModel>> {
    let path = model_path(context, machine, tiers)?;
    path.exists().then(|| read_model(&path)).transpose()
}

/// Advises about a description that a model runs.
fn on_model(
    args: &Interleave,
    name: &str,
    context: &Context,
    (from, to): (&TierName, &TierName),
    going: &Going<'_>,
    began: Instant,
) -> Result<TuneDocument> {
    let workload = find_for(name, args.threads)?;
    let chosen = machine::choose(&context.global.on)?;
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::Missing(anyhow::anyhow!(
            "a description runs on a model; name one with --on, or a command of this host after `--`"
        )));
    }
    let tiers = insight::tiers(&chosen.topology, from, to)?;
    let model = model_of(context, &chosen.identity, &tiers)?;
    let tuning = Tuning {
        context,
        chosen: &chosen,
        workload: &workload,
        tiers: &tiers,
        model: model.as_ref(),
        options: run_options(context),
        going,
    };
    let mut document = tuning.document(began)?;
    if args.verify {
        tuning.verify(&mut document)?;
    }
    if model.is_none() {
        let path = model_path(context, &chosen.identity, &tiers)?;
        let told = format!(
            "no model of this pair is calibrated ({}), and so there is no best-shot; `weir calibrate --on {} \
             --tier {} --interleave` makes one",
            path.display(),
            chosen.identity.name,
            tiers.to
        );
        document.origin.warnings.push(told);
    }
    Ok(document)
}

struct Tuning<'a> {
    context: &'a Context,
    chosen: &'a Chosen,
    workload: &'a Workload,
    tiers: &'a Tiers,
    model: Option<&'a SlowdownModel>,
    options: WorkloadOptions,
    going: &'a Going<'a>,
}

impl Tuning<'_> {
    fn at(&self, weights: Weights) -> Result<WorkloadRun> {
        let testbed = &*self.chosen.testbed;
        Ok(tune::run_at(
            testbed,
            self.workload,
            self.tiers,
            weights,
            &self.options,
        )?)
    }

    fn local(&self) -> Result<WorkloadRun> {
        self.at(Weights { local: 1, slow: 0 })
    }

    fn unloaded(&self, tier: &TierName) -> Result<Cycles> {
        Ok(lone_chase(&*self.chosen.testbed, tier, &self.options)?)
    }

    fn document(&self, began: Instant) -> Result<TuneDocument> {
        let local = self.local()?;
        let counted = Run::of(&local.counters)?;
        let unloaded = [
            self.unloaded(&self.tiers.from)?,
            self.unloaded(&self.tiers.to)?,
        ];
        let bound = classify(&counted, Some(unloaded[0]));
        let mut advice = Vec::new();
        if bound.bound == Some(Bound::Latency) {
            advice.push(self.stay(&counted)?);
        } else {
            advice.extend(self.best_shot(&counted, local.time)?);
        }
        advice.push(self.closed_form(&local, unloaded)?);
        advice.push(self.caption(&local)?);
        advice.extend(self.proportional());
        let processor = &self.chosen.topology.processor;
        Ok(TuneDocument {
            origin: origin(
                TuneDocument::SCHEMA,
                self.context,
                Some(self.chosen),
                processor,
                began,
            ),
            workload: self.workload.name.clone(),
            from: self.tiers.from.clone(),
            to: self.tiers.to.clone(),
            bound: bound.bound,
            evidence: bound.evidence,
            advice,
            curve: Vec::new(),
        })
    }

    /// What is said to work that waits for latency.
    fn stay(&self, local: &Run<'_>) -> Result<Advice> {
        let all_slow = self.model.map(|model| predict(model, local)).transpose()?;
        let note = match all_slow.map(|p| p.total()) {
            Some(all_slow) => format!(
                "it waits for latency: a fifth of its pages on {} would cost {:.1} %",
                self.tiers.to,
                best_shot::latency_bound_slowdown(all_slow, 0.2) * 100.0
            ),
            None => format!("it waits for latency, which {} has more of", self.tiers.to),
        };
        Ok(Advice {
            method: "best-shot".into(),
            note,
            ..advice(1, 0.0, Some(0.0))
        })
    }

    fn best_shot(&self, counted: &Run<'_>, time: Nanos) -> Result<Option<Advice>> {
        let fit = self.model.and_then(|model| model.interleave.as_ref());
        fit.map(|fit| Ok(aimed(fit, &Load::of(counted, time)?)))
            .transpose()
    }

    fn closed_form(&self, local: &WorkloadRun, unloaded: [Cycles; 2]) -> Result<Advice> {
        let slow = self.at(Weights { local: 0, slow: 1 })?;
        let classes = tune::classes(local, &slow, unloaded)?;
        let (share, change) = closed_form::best(&classes);
        Ok(Advice {
            method: "closed form".into(),
            ..advice(2, share, Some(change))
        })
    }

    fn caption(&self, local: &WorkloadRun) -> Result<Advice> {
        let testbed = &*self.chosen.testbed;
        let go_on = |_| !self.context.stop.requested();
        let climb = tune::climb(
            testbed,
            self.workload,
            self.tiers,
            local,
            &self.options,
            &go_on,
        )?;
        Ok(climbed(&climb))
    }

    fn proportional(&self) -> Option<Advice> {
        let total = |name: &TierName| {
            let tier = self.chosen.topology.tier(name)?;
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
    fn verify(&self, document: &mut TuneDocument) -> Result<()> {
        let testbed = &*self.chosen.testbed;
        let shares = tune::shares(tune::ROUND);
        let go_on = |of| self.going.step(of);
        let runs: Vec<(Weights, WorkloadRun)> = tune::sweep(
            testbed,
            self.workload,
            self.tiers,
            &shares,
            &self.options,
            &go_on,
        )
        .into_iter()
        .collect::<std::result::Result<_, _>>()?;
        if runs.len() < shares.len() {
            return Err(Failure::Partial(
                "stopped before every share was tried".into(),
            ));
        }
        let (Some((_, local)), Some((_, slow))) = (runs.first(), runs.last()) else {
            return Ok(());
        };
        let unloaded = [
            self.unloaded(&self.tiers.from)?,
            self.unloaded(&self.tiers.to)?,
        ];
        let classes = tune::classes(local, slow, unloaded)?;
        document.curve = (runs.iter())
            .map(|(weights, run)| Tried {
                share_pct: weights.share() * 100.0,
                change_pct: tune::change(local, run) * 100.0,
                predicted_pct: Some(closed_form::change(&classes, weights.share()) * 100.0),
            })
            .collect();
        for advice in &mut document.advice {
            let [from, to] = advice.weights;
            let run = self.at(Weights {
                local: from,
                slow: to,
            })?;
            advice.measured_pct = Some(tune::change(local, &run) * 100.0);
        }
        Ok(())
    }
}

/// Advice of a method that is yet to be named.
fn advice(runs: u32, share: f64, change: Option<f64>) -> Advice {
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

/// What best-shot says of a load. Where the gain is less than its own error, it says to stay.
fn aimed(fit: &InterleaveFit, load: &Load) -> Advice {
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
fn climbed(climb: &Climb) -> Advice {
    const LOCAL: (Weights, f64) = (Weights { local: 1, slow: 0 }, 1.0);
    let (weights, speed) = climb.settled().unwrap_or(LOCAL);
    let path: Vec<String> = (climb.tried.iter())
        .map(|(weights, _)| format!("{:.0}", weights.share() * 100.0))
        .collect();
    Advice {
        method: "caption".into(),
        runs: climb.tried.len() as u32,
        share_pct: weights.share() * 100.0,
        weights: [weights.local, weights.slow],
        change_pct: None,
        measured_pct: Some((1.0 / speed - 1.0) * 100.0),
        note: format!("tried {} %", path.join(", ")),
    }
}
