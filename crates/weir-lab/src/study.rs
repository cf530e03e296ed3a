//! From a record to a figure: mean, interval, distribution, and theory beside it.

use weir_model::access::Pattern;
use weir_model::document::{Point, Record};
use weir_model::latency::LatencyHistogram;
use weir_model::machine::Goal;
use weir_model::topology::Topology;
use weir_model::units::GbPerSec;

use crate::PointSpec;
use crate::statistics::Estimate;
use crate::theory;

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
    let block_bytes = match spec.pattern {
        Pattern::RandomBlock { block } => Some(block),
        _ => None,
    };
    Point {
        experiment: spec.experiment,
        tier: spec.tier.clone(),
        op: spec.op,
        pattern: spec.pattern.name().into(),
        threads: spec.threads,
        block_bytes,
        wss_bytes: Some(spec.working_set),
        read_share: None,
        prefetch: spec.prefetch,
        gbps: None,
        ns: None,
        ci95: None,
        samples: 0,
        theory: None,
        conditions: Vec::new(),
        error: None,
    }
}
