//! From a record to a figure: mean, interval, distribution, and the theory next to it.

use weir_model::access::{Dataflow, Pattern};
use weir_model::counters::Counter;
use weir_model::document::{Beside, MediumUse, Point, Record};
use weir_model::latency::LatencyHistogram;
use weir_model::machine::Goal;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{GbPerSec, Nanos};

use crate::statistics::Estimate;
use crate::studies::movement::Method;
use crate::studies::point_study;
use crate::{Load, PointSpec};
use crate::{steadiness, theory};

/// The figure that a record holds, now or when it was stored.
pub fn figure(spec: &PointSpec, record: &Record, topology: &Topology) -> Point {
    let mut point = unmeasured(spec);
    if let Some(lost) = lost(record) {
        point.error = Some(lost);
        return point;
    }
    let part = spec.counted_part();
    // Windows of one run follow each other; only repetitions of it say how far it can be trusted.
    let samples: Vec<f64> = match record.repetitions.len() {
        0 | 1 => record.samples.iter().map(|&(_, figure)| figure).collect(),
        _ => steadiness::means(record),
    };
    let Some(estimate) = Estimate::of(samples.into_iter().map(|figure| figure * part)) else {
        point.error = Some("the record holds no sample".into());
        return point;
    };
    if spec.goal() != Goal::Latency {
        point.gbps = Some(GbPerSec(estimate.mean));
    }
    // Requests to storage have a bandwidth and a latency.
    point.ns = LatencyHistogram::from_buckets(&record.latency).summary();
    point.ci95 = estimate.ci95;
    point.samples = estimate.samples;
    point.repetitions = (record.repetitions.len() as u32).max(1);
    point.steadiness = steadiness::judge(record);
    let window: f64 = record.samples.iter().map(|(length, _)| length.get()).sum();
    point.medium = MediumUse::of(&record.counters, Nanos(window));
    if let (Some(beside), Some(drawn)) = (
        &mut point.beside,
        Estimate::of(record.beside.iter().copied()),
    ) {
        let traffic = spec.beside.as_ref().map_or(1.0, Load::traffic_factor);
        beside.gbps = Some(GbPerSec(drawn.mean));
        beside.traffic_gbps = Some(GbPerSec(drawn.mean * traffic));
    }
    // Limits of tiers are known as the first socket sees them.
    if spec.load.socket == 0 && spec.load.affinity.is_none() {
        point.theory = theory::beside(spec, &estimate, topology);
    }
    point
}

/// What became of lines that the tenant asked of a device that is gone: a processor would have ended it with a machine check.
fn lost(record: &Record) -> Option<String> {
    let own = record.tenants.first().unwrap_or(&record.counters);
    let written = own.get(Counter::CxlLostWrites).ok()?;
    let read = own.get(Counter::MediumPoison).ok()?;
    (read + written > 0).then(|| {
        format!(
            "its device is gone: {read} lines came with poison, {written} written lines are lost, and all that it held"
        )
    })
}

/// The point of a measurement that did not come about.
pub fn failed(spec: &PointSpec, error: impl ToString) -> Point {
    Point {
        error: Some(error.to_string()),
        ..unmeasured(spec)
    }
}

pub(crate) fn unmeasured(spec: &PointSpec) -> Point {
    let mut point = without_case(spec);
    point.case = point_study(&spec.experiment).and_then(|study| (study.case)(&point));
    point
}

fn without_case(spec: &PointSpec) -> Point {
    let load = &spec.load;
    let (block_bytes, batch) = match load.pattern {
        Pattern::RandomBlock { block } => (Some(block), None),
        Pattern::FlushedBurst { lines } => (None, Some(lines)),
        Pattern::Descriptors { bytes, batch, .. } => (Some(bytes), Some(batch)),
        _ => (None, None),
    };
    Point {
        experiment: spec.experiment.clone(),
        case: None,
        tier: load.tier.clone(),
        op: load.op,
        pattern: load.pattern.name().into(),
        threads: load.threads,
        cores: load.cores.clone(),
        socket: load.socket,
        host: load.host,
        affinity: load.affinity,
        block_bytes,
        wss_bytes: Some(load.working_set),
        read_share: load.reads.as_ref().map(|reads| reads.share(load.op)),
        source: source(load),
        kernel: kernel(spec).map(str::to_owned),
        batch,
        beside: spec.beside.as_ref().map(unmeasured_beside),
        cache_ways: load.ways,
        prefetch: load.prefetch,
        gbps: None,
        ns: None,
        ci95: None,
        samples: 0,
        repetitions: 1,
        steadiness: None,
        theory: None,
        medium: None,
        conditions: (load.deterministic)
            .then(|| DETERMINISTIC.to_owned())
            .into_iter()
            .collect(),
        error: None,
    }
}

/// A condition of points whose load is [deterministic](weir_model::tenant::Tenant::deterministic).
const DETERMINISTIC: &str = "reads have the hint that they are deterministic";

/// Where a load copies from.
fn source(load: &Load) -> Option<TierName> {
    let reads = load.reads.as_ref()?;
    (reads.dataflow == Dataflow::Copy)
        .then(|| reads.from.tiers().next().cloned())
        .flatten()
}

/// The name of the kernel or the method.
fn kernel(spec: &PointSpec) -> Option<&'static str> {
    match spec.experiment.as_str() {
        "stream" => Some(spec.load.reads.as_ref()?.dataflow.name()),
        "movement" => Method::of(&spec.load).map(Method::name),
        _ => None,
    }
}

fn unmeasured_beside(load: &Load) -> Beside {
    Beside {
        tier: load.tier.clone(),
        op: load.op,
        pattern: load.pattern.name().into(),
        threads: load.threads,
        socket: load.socket,
        host: load.host,
        source: source(load),
        cache_ways: load.ways,
        read_share: load.read_share(),
        pause_ns: load.pause,
        arrivals: load.arrivals,
        gbps: None,
        traffic_gbps: None,
    }
}
