//! What is read from a point that ran.

use weir_model::counters::Counter;
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

use crate::Finished;
use crate::grouped::GroupMeans;

pub(super) fn gbps(done: &Finished) -> Result<f64, String> {
    let figure = done.point.gbps.map(|gbps| gbps.get());
    figure.ok_or_else(|| no_figure(done, "no bandwidth"))
}

pub(super) fn latency(done: &Finished) -> Result<f64, String> {
    let ns = done.point.ns.ok_or_else(|| no_figure(done, "no latency"))?;
    Ok(ns.mean.get())
}

/// Single accesses that a quantile must have beyond it to mean something.
const LEAST_BEYOND: f64 = 10.0;

pub(super) fn quantile_of_means(done: &Finished, hops: u32, share: f64) -> Result<f64, String> {
    let singles = &done.record.latency;
    let means = GroupMeans::of(singles, hops).ok_or_else(|| no_figure(done, "no latency"))?;
    let all: u64 = singles.iter().map(|&(_, count)| count).sum();
    // A group is beyond it for one long hop among its own.
    if all as f64 * (1.0 - share) / f64::from(hops) < LEAST_BEYOND {
        return Err(format!("{all} accesses are too few for that quantile"));
    }
    Ok(means.quantile(share).get())
}

fn no_figure(done: &Finished, otherwise: &str) -> String {
    done.point.error.clone().unwrap_or_else(|| otherwise.into())
}

pub(super) fn tor_residency(done: &Finished) -> Result<f64, String> {
    if let Some(error) = &done.point.error {
        return Err(error.clone());
    }
    let counters = &done.record.counters;
    let missing = |why: weir_model::capability::Unavailable| format!("no residency: {why}");
    let cycles = counters
        .ratio(Counter::TorOccupancyIaMissCxl, Counter::TorInsertsIaMissCxl)
        .map_err(missing)?;
    let ticks = counters.get(Counter::ChaClockticks).map_err(missing)? as f64;
    let time: Nanos = done.record.samples.iter().map(|&(window, _)| window).sum();
    let per_ns = ticks / time.get();
    if per_ns > 0.0 {
        Ok(cycles / per_ns)
    } else {
        Err("the uncore clock did not tick".into())
    }
}

/// Core cycles that a demand load which missed L2 was outstanding.
pub(super) fn l2_miss(done: &Finished) -> Result<f64, String> {
    let counters = &done.record.counters;
    counters
        .ratio(
            Counter::OffcoreOutstandingDemandDataRd,
            Counter::OffcoreDemandDataRd,
        )
        .map_err(|why| no_figure(done, &format!("no latency of L2 misses: {why}")))
}

/// Requests a second of the first tenant's cores to the last-level cache, in units of 10^9.
pub(super) fn l3_accesses(done: &Finished) -> Result<f64, String> {
    let victim = done.record.tenants.first();
    let victim = victim.ok_or_else(|| no_figure(done, "no counters of the victim's cores"))?;
    let sent = victim.get(Counter::OffcoreAllRequests);
    let sent = sent.map_err(|why| no_figure(done, &format!("no requests counted: {why}")))?;
    let time: Nanos = done.record.samples.iter().map(|&(window, _)| window).sum();
    match sent {
        0 => Err("the victim's cores sent no request to the last-level cache".into()),
        sent => Ok(sent as f64 / time.get()),
    }
}

/// What went out to CXL memory, in MB/s.
pub(super) fn cxl_writes(done: &Finished) -> Result<f64, String> {
    let lines = done.record.counters.get(Counter::CxlTxMemData);
    let lines = lines.map_err(|why| no_figure(done, &format!("no lines counted: {why}")))?;
    let time: Nanos = done.record.samples.iter().map(|&(window, _)| window).sum();
    let rate = GbPerSec::from_bytes_in(Bytes(lines * LINE_BYTES), time);
    Ok(rate.get() * 1e3)
}
