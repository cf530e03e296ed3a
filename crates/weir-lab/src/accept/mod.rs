//! `weir accept`: whether a server is what was bought, in one verdict.
//!
//! The idle latency, the read and the write bandwidth and the capacity of each tier are held against what a data sheet
//! promises, what the firmware reports to the kernel, what a platform file describes, and what the same server did before.

mod expected;
mod outcome;

use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::Point;
use weir_model::machine::{Identity, Testbed};
use weir_model::number::figure;
use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::units::Bytes;

pub use expected::{Expected, PlatformLike, Promised, What};
pub use outcome::{Acceptance, Before, Check, Figure, Firmware};

use crate::studies::bandwidth::Bandwidth;
use crate::study::{PointStudy as _, Study};
use crate::{Lab, LabError, PointSpec, Threads};

/// Hops of the latency go through this much memory at least, as the last step of `weir bench latency` does.
const CHASED: Bytes = Bytes::gib(1);
/// And this much in a quick run.
const CHASED_QUICK: Bytes = Bytes::mib(256);

/// A model that the machine should be like.
pub struct Like {
    /// Where its machines come from.
    pub testbed: Box<dyn Testbed>,
    /// Which it is.
    pub machine: Identity,
    /// What it is made of.
    pub topology: Topology,
}

/// Measures each tier and holds it against all that is expected.
pub struct Accept {
    /// What a file expects.
    pub expected: Expected,
    /// What the firmware says; empty on a model.
    pub firmware: Vec<Firmware>,
    /// The platform that [`Expected::platform`] names.
    pub like: Option<Like>,
    /// An earlier run.
    pub before: Option<Before>,
    /// Fewer thread counts, and less memory for latencies.
    pub quick: bool,
    /// Bytes that each thread touches; `None` for enough to leave the caches.
    pub size: Option<Bytes>,
}

impl Study for Accept {
    const VERB: &'static str = "accept";
    type Output = Acceptance;

    fn run(&self, lab: &Lab<'_>) -> Result<Acceptance, LabError> {
        let topology = lab.topology();
        let tiers = tiers(topology);
        if tiers.is_empty() {
            let text = "this machine has no tier of memory that can be measured";
            return Err(LabError::Nothing(text.into()));
        }
        let points = lab.measure(self.plan(topology, &tiers)?, &[])?;
        let figures = figures(topology, &tiers, &points);
        let mut checks = outcome::promised(&self.expected, &figures);
        if let Some(within) = self.expected.firmware {
            checks.extend(outcome::of_firmware(&self.firmware, within, &figures));
        }
        if let (Some(wanted), Some(like)) = (&self.expected.platform, &self.like) {
            let model = lab.on(like.testbed.as_ref(), &like.machine, &like.topology);
            let mut shared = self::tiers(&like.topology);
            shared.retain(|name| tiers.contains(name));
            let points = match shared.is_empty() {
                true => Vec::new(),
                false => model.measure(self.plan(&like.topology, &shared)?, &[])?,
            };
            let theirs = self::figures(&like.topology, &shared, &points);
            checks.extend(outcome::like(wanted, &theirs, &figures));
        }
        if let Some(before) = &self.before {
            if before.quick.is_some_and(|quick| quick != self.quick) {
                let (then, now) = if self.quick {
                    ("without", "with")
                } else {
                    ("with", "without")
                };
                lab.warn(format!(
                    "{} was made {then} --quick, and this one {now} it: they differ in memory and numbers of threads, so that \
                     figures may differ on a machine that is as before",
                    before.run
                ));
            }
            let scattered = outcome::scattered(before, &figures);
            if !scattered.is_empty() {
                lab.warn(format!(
                    "the intervals of {} and of this run are wider than {} %, and what is slower within them passes: {}; a quiet \
                     machine and --repeat narrow them",
                    before.run,
                    figure(before.worse * 100.0),
                    scattered.join(", ")
                ));
            }
            checks.extend(outcome::since(before, &figures));
        }
        Ok(Acceptance {
            summary: self.expected.summary.clone(),
            checks,
            figures,
        })
    }
}

/// The tiers of a machine that loads reach.
fn tiers(topology: &Topology) -> Vec<TierName> {
    let memory = (topology.tiers.iter()).filter(|tier| tier.kind != TierKind::Ssd);
    memory.map(|tier| tier.name.clone()).collect()
}

impl Accept {
    /// A chase and the peaks of two instructions for each tier.
    fn plan(&self, topology: &Topology, tiers: &[TierName]) -> Result<Vec<PointSpec>, LabError> {
        self.size.map(crate::plan::check_working_set).transpose()?;
        let wanted = if self.quick { CHASED_QUICK } else { CHASED };
        let mut points = Vec::new();
        for tier in topology.tiers.iter().filter(|t| tiers.contains(&t.name)) {
            let chase = Pattern::Chase {
                locality: Locality::TlbFriendly,
            };
            let size = self
                .size
                .unwrap_or(wanted.min(Bytes(tier.capacity.get() / 4)));
            let load = crate::plan::Load::new(&tier.name, Op::Ld, chase, 1, size);
            points.push(PointSpec::alone("latency", load.prefetch(false)));
        }
        let cores = topology.cores.len() as u32;
        let threads = match self.quick {
            true => vec![Threads::from(cores)],
            false => Vec::new(),
        };
        let peaks = Bandwidth {
            tiers: tiers.to_vec(),
            ops: vec![Op::Ld, Op::NtSt],
            threads,
            working_set: self.size,
            quick: true,
            ..Bandwidth::default()
        };
        points.extend(peaks.plan(topology)?);
        Ok(points)
    }
}

/// The figures that a run of benches has of each tier, from the first socket, so that a machine can be held against it.
pub fn figures_of(points: &[Point]) -> Vec<Figure> {
    let plain = |point: &&Point| {
        let known = ["latency", "nodes", "bandwidth"].contains(&point.experiment.as_str());
        let own = point.tier.as_str() != crate::import::nodes::OWN;
        known && own && point.socket == 0 && point.beside.is_none() && point.read_share.is_none()
    };
    let points: Vec<Point> = points.iter().filter(plain).cloned().collect();
    let mut tiers: Vec<TierName> = points.iter().map(|point| point.tier.clone()).collect();
    tiers.sort();
    tiers.dedup();
    figures(&Topology::default(), &tiers, &points)
}

/// Whether a point is to give a bandwidth, also where it failed.
fn is_rate(point: &Point) -> bool {
    point.experiment == Bandwidth::NAME || point.gbps.is_some()
}

/// What was measured of each tier: its best bandwidth by any number of threads.
fn figures(topology: &Topology, tiers: &[TierName], points: &[Point]) -> Vec<Figure> {
    let mut all = Vec::new();
    for name in tiers {
        let own = || points.iter().filter(|point| point.tier == *name);
        let why = |op: Op, rate: bool| {
            let mut failed = own().filter(|p| p.op == op && is_rate(p) == rate);
            failed.find_map(|point| point.error.clone())
        };
        let figure = |what: What, value: Option<f64>, ci95, error: Option<String>| Figure {
            tier: name.clone(),
            what,
            unit: what.unit().to_owned(),
            // A figure that was found has no error, whatever other points of it had.
            error: error.filter(|_| value.is_none()),
            value,
            ci95,
        };
        let idle = own().find_map(|point| Some((point.ns.as_ref()?.mean.get(), point.ci95)));
        all.push(figure(
            What::Latency,
            idle.map(|(ns, _)| ns),
            idle.and_then(|(_, ci95)| ci95),
            why(Op::Ld, false),
        ));
        for (what, op) in [(What::Read, Op::Ld), (What::Write, Op::NtSt)] {
            let rates = own().filter(|point| point.op == op && point.ns.is_none());
            let rates = rates.filter_map(|point| Some((point.gbps?.get(), point.ci95)));
            let best = rates.max_by(|a, b| a.0.total_cmp(&b.0));
            all.push(figure(
                what,
                best.map(|(gbps, _)| gbps),
                best.and_then(|(_, ci95)| ci95),
                why(op, true),
            ));
        }
        let tier = topology.tiers.iter().find(|tier| tier.name == *name);
        let capacity = tier.map(|tier| tier.capacity.get() as f64 / Bytes::gib(1).get() as f64);
        all.push(figure(What::Capacity, capacity, None, None));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A chase and loads that fill a link are both loads.
    #[test]
    fn each_figure_has_the_reason_of_its_own_points() {
        let point = |experiment: &str, found: Value| -> Point {
            let mut all = json!({
                "experiment": experiment, "tier": "dram", "op": "ld", "pattern": "sequential", "threads": 1,
                "prefetch": true, "samples": 1,
            });
            all.as_object_mut()
                .unwrap()
                .extend(found.as_object().unwrap().clone());
            serde_json::from_value(all).unwrap()
        };
        let of = |points: &[Point]| -> Vec<(Option<f64>, Option<String>)> {
            let found = figures(&Topology::default(), &[TierName::dram()], points);
            let first = found.into_iter().take(2);
            first.map(|figure| (figure.value, figure.error)).collect()
        };
        let failed = |why: &str| json!({ "error": why });
        let chase = point("latency", failed("no memory"));
        let loads = point("bandwidth", json!({ "gbps": 20.0 }));
        let lost = point("bandwidth", failed("a lost processor"));
        let no_memory = (None, Some("no memory".to_owned()));
        assert_eq!(
            of(&[chase.clone(), loads]),
            [no_memory.clone(), (Some(20.0), None)]
        );
        let no_processor = (None, Some("a lost processor".to_owned()));
        assert_eq!(of(&[chase, lost]), [no_memory, no_processor]);
    }
}
