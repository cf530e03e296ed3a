//! From a record to a figure: mean, interval, distribution, and theory beside it.

use weir_model::access::Pattern;
use weir_model::document::{Beside, Point, Record};
use weir_model::latency::LatencyHistogram;
use weir_model::machine::Goal;
use weir_model::topology::Topology;
use weir_model::units::GbPerSec;

use crate::statistics::Estimate;
use crate::theory;
use crate::{Load, PointSpec};

/// The figure that a record holds, now or when it was stored.
pub fn study(spec: &PointSpec, record: &Record, topology: &Topology) -> Point {
    let mut point = unmeasured(spec);
    let Some(estimate) = Estimate::of(record.samples.iter().map(|&(_, figure)| figure)) else {
        point.error = Some("the record holds no sample".into());
        return point;
    };
    match spec.goal() {
        Goal::Bandwidth => point.gbps = Some(GbPerSec(estimate.mean)),
        Goal::Latency => point.ns = LatencyHistogram::from_buckets(&record.latency).summary(),
    }
    point.ci95 = estimate.ci95;
    point.samples = estimate.samples;
    if let (Some(beside), Some(drawn)) = (
        &mut point.beside,
        Estimate::of(record.beside.iter().copied()),
    ) {
        let traffic = spec.beside.as_ref().map_or(1.0, Load::traffic_factor);
        beside.gbps = Some(GbPerSec(drawn.mean));
        beside.traffic_gbps = Some(GbPerSec(drawn.mean * traffic));
    }
    point.theory = theory::beside(spec, &estimate, topology);
    point
}

/// The point of a measurement that did not come about.
pub fn failed(spec: &PointSpec, error: impl ToString) -> Point {
    Point {
        error: Some(error.to_string()),
        ..unmeasured(spec)
    }
}

fn unmeasured(spec: &PointSpec) -> Point {
    let load = &spec.load;
    let block_bytes = match load.pattern {
        Pattern::RandomBlock { block } | Pattern::Descriptors { bytes: block, .. } => Some(block),
        _ => None,
    };
    Point {
        experiment: spec.experiment,
        tier: load.tier.clone(),
        op: load.op,
        pattern: load.pattern.name().into(),
        threads: load.threads,
        block_bytes,
        wss_bytes: Some(load.working_set),
        read_share: load.reads.as_ref().map(|reads| reads.share(load.op)),
        source: None,
        kernel: None,
        batch: None,
        beside: spec.beside.as_ref().map(unmeasured_beside),
        prefetch: load.prefetch,
        gbps: None,
        ns: None,
        ci95: None,
        samples: 0,
        repetitions: 1,
        steadiness: None,
        theory: None,
        conditions: Vec::new(),
        error: None,
    }
}

fn unmeasured_beside(load: &Load) -> Beside {
    Beside {
        tier: load.tier.clone(),
        op: load.op,
        pattern: load.pattern.name().into(),
        threads: load.threads,
        read_share: load.read_share(),
        pause_ns: load.pause,
        gbps: None,
        traffic_gbps: None,
    }
}
