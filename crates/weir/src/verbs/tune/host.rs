//! A command of this host, with its pages spread over two nodes by the kernel.

use weir_insight::bound::classify;
use weir_insight::documents::{Advice, Tried, Tuned};
use weir_insight::interleave::Weights;
use weir_insight::interleave::best_shot::Load;
use weir_insight::interleave::caption::Settings;
use weir_insight::studies::tune::{Interleave, advice, aimed, climbed};
use weir_insight::two_tiers::Tiers;
use weir_insight::{Run, tune};
use weir_lab::Outcome as _;
use weir_linux::steer::SystemSettings;
use weir_model::counter_file::CountersDocument;
use weir_model::counters::Counter;
use weir_model::document::Document;
use weir_model::insight::{Bound, SlowdownModel};
use weir_model::units::Nanos;

use crate::context::Context;
use crate::counting::{self, Count};
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::insight::Going;
use crate::nodes::{node_of, spread};
use crate::system::System;

/// What best-shot reads, and what tells that a processor counts at all.
const COUNTERS: [Counter; 19] = [
    Counter::Cycles,
    Counter::Instructions,
    Counter::StallsMemAny,
    Counter::StallsL1dMiss,
    Counter::StallsL2Miss,
    Counter::StallsL3Miss,
    Counter::BoundOnStores,
    Counter::OffcoreDataRd,
    Counter::OffcoreOutstandingDataRd,
    Counter::OffcoreDemandDataRd,
    Counter::OffcoreOutstandingDemandDataRd,
    Counter::OffcoreDemandRfo,
    Counter::OffcoreOutstandingDemandRfo,
    Counter::OffcoreL3MissDemandDataRd,
    Counter::OffcoreOutstandingL3MissDemandDataRd,
    Counter::HwpfL2,
    Counter::StreamingWr,
    Counter::TorInsertsIaMiss,
    Counter::TaskClock,
];

/// The kernel's own interleaving without weights: one page here, one there.
const EVEN: Weights = Weights { local: 1, slow: 1 };
const LOCAL: Weights = Weights { local: 1, slow: 0 };
const SLOW: Weights = Weights { local: 0, slow: 1 };

/// Advises about a command, and measures if asked to.
///
/// # Errors
/// A tier is no node here, the command fails or cannot be started, or nothing can be advised for want of
/// counters and of weights.
pub(super) fn advise(
    args: &Interleave,
    context: &Context,
    model: Option<&SlowdownModel>,
    (host, tiers): (&System, &Tiers),
    going: &Going<'_>,
) -> Result<Document<Tuned>> {
    let topology = host.view.topology()?;
    let nodes = [
        node_of(&topology, &tiers.from)?,
        node_of(&topology, &tiers.to)?,
    ];
    let on = OnHost {
        context,
        command: &args.command,
        host,
        nodes,
    };
    let weighted = SystemSettings::weights_available(&host.root);
    let local = on.run(LOCAL)?;
    let base = elapsed(&local)?;
    let mut header = header(Tuned::SCHEMA, context, &topology.processor);
    header.machine = host.identity.clone();
    let mut tuned = Tuned {
        workload: args.command.join(" "),
        from: tiers.from.clone(),
        to: tiers.to.clone(),
        bound: None,
        evidence: String::new(),
        advice: Vec::new(),
        curve: Vec::new(),
    };
    let mut missing = Vec::new();
    match shot(&local, model) {
        Ok((bound, evidence, advice)) => {
            (tuned.bound, tuned.evidence) = (bound, evidence);
            tuned.advice.push(advice);
        }
        Err(why) => {
            tuned.evidence.clone_from(&why);
            missing.push(format!("no best-shot: {why}"));
        }
    }
    match &weighted {
        Ok(()) => tuned.advice.push(on.caption(base, going)?),
        Err(why) => missing.push(format!("no climb by Caption: {why}")),
    }
    if args.verify {
        header.partial = !on.verify(&mut tuned, base, weighted.is_ok(), going)?;
    } else if tuned.advice.is_empty() {
        return Err(Failure::Missing(anyhow::anyhow!(
            "nothing can be advised here: {}; --verify measures what the kernel can place",
            missing.join("; ")
        )));
    }
    header.warnings.extend(missing);
    Ok(Document {
        header,
        output: tuned,
    })
}

/// What one run on local memory tells, or why nothing.
fn shot(
    local: &CountersDocument,
    model: Option<&SlowdownModel>,
) -> std::result::Result<(Option<Bound>, String, Advice), String> {
    let run = Run::of(&local.total).map_err(|error| error.to_string())?;
    let model = model.ok_or("no model of this pair is calibrated")?;
    let bound = classify(&run, Some(model.unloaded));
    let method = "best-shot".to_owned();
    if bound.bound == Some(Bound::Latency) {
        let note = "it waits for latency, which the other tier has more of".to_owned();
        let stay = Advice {
            method,
            note,
            ..advice(1, 0.0, Some(0.0))
        };
        return Ok((bound.bound, bound.evidence, stay));
    }
    let fit = model.interleave.as_ref();
    let fit = fit.ok_or("the model was calibrated without --interleave")?;
    let time = local.elapsed.ok_or("the command's time is not known")?;
    let load = Load::of(&run, time).map_err(|error| error.to_string())?;
    Ok((bound.bound, bound.evidence, aimed(fit, &load)))
}

fn elapsed(counted: &CountersDocument) -> Result<Nanos> {
    (counted.elapsed).ok_or_else(|| Failure::work("the command's time is not known"))
}

/// A command that is run again and again.
struct OnHost<'a> {
    context: &'a Context,
    command: &'a [String],
    host: &'a System,
    /// Of the local and of the slower tier.
    nodes: [u32; 2],
}

impl OnHost<'_> {
    /// Runs the command with its pages spread so. The system's weights are held meanwhile.
    fn run(&self, weights: Weights) -> Result<CountersDocument> {
        let [near, far] = self.nodes;
        let weights = [(near, weights.local), (far, weights.slow)];
        let (policy, held) = spread(self.host, &weights)?;
        let counted = Count {
            command: self.command,
            pid: None,
            others: &[],
            lasts: None,
            all: false,
            every: None,
            counters: &COUNTERS,
            policy: Some(&policy),
        }
        .run(&self.context.stop);
        if let Some(held) = held {
            held.restore()?;
        }
        let counted = counted?;
        if counted.exit_status != Some(0) {
            counting::tell(&counted);
            counting::passed_on(counted.exit_status)?;
        }
        Ok(counted)
    }

    /// Caption's climb: it needs nothing but times.
    fn caption(&self, base: Nanos, going: &Going<'_>) -> Result<Advice> {
        let climb = tune::climb_by(Settings::default(), &|of| going.step(of), |weights| {
            elapsed(&self.run(weights)?).map(|time| base / time)
        })?;
        Ok(climbed(&climb))
    }

    /// Fills in the curve over the shares that the kernel can place, and what each advice is worth. `false` where
    /// the user stopped it.
    fn verify(
        &self,
        tuned: &mut Tuned,
        base: Nanos,
        weighted: bool,
        going: &Going<'_>,
    ) -> Result<bool> {
        let mut whole = true;
        let shares = match weighted {
            true => tune::shares(tune::ROUND),
            false => vec![LOCAL, EVEN, SLOW],
        };
        let change =
            |weights| -> Result<f64> { Ok((elapsed(&self.run(weights)?)? / base - 1.0) * 100.0) };
        for &weights in &shares {
            if !going.step(shares.len()) {
                whole = false;
                break;
            }
            tuned.curve.push(Tried {
                share_pct: weights.share_pct(),
                change_pct: change(weights)?,
                predicted_pct: None,
            });
        }
        for advice in &mut tuned.advice {
            let [local, slow] = advice.weights;
            if advice.measured_pct.is_none()
                && (weighted || local == 0 || slow == 0 || local == slow)
            {
                advice.measured_pct = Some(change(Weights { local, slow })?);
            }
        }
        Ok(whole)
    }
}
