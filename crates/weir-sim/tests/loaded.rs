//! Latency under load, compared with what instruments logged on real machines.
//!
//! Our curves are read at the bandwidth of each logged point, so nothing is assumed between logged points.
//! Idle latency and peak bandwidth are calibrated; the rest of a curve follows from the mechanisms.

use crate::common::*;
use weir_model::access::{Dataflow, Op};
use weir_model::counters::Counter;
use weir_model::published::measured::Traffic;
use weir_model::tenant::{Placement, Reads};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};

const LOADS: Traffic = Traffic {
    op: Op::Ld,
    mix: None,
};
/// Temporal stores: one read to one write.
const STORES: Traffic = Traffic {
    op: Op::St,
    mix: None,
};
const POSTED: Traffic = Traffic {
    op: Op::NtSt,
    mix: None,
};
/// Two reads to one posted store.
const READS_BESIDE_POSTED: Traffic = Traffic {
    op: Op::NtSt,
    mix: Some((2, 1)),
};

/// From almost no load to all that threads can request, set by the pause between two lines.
const PAUSES: [f64; 16] = [
    2000.0, 500.0, 200.0, 120.0, 80.0, 60.0, 50.0, 40.0, 35.0, 30.0, 25.0, 20.0, 15.0, 12.0, 8.0,
    0.0,
];

/// Lines that cross the memory interface in GB/s, and the latency of a chase at the same time.
fn at_pauses(
    pauses: &[f64],
    machine: &str,
    tier: &str,
    traffic: Traffic,
    threads: u32,
) -> Vec<(f64, f64)> {
    let bed = bed(machine);
    let lines = [
        Counter::CasRd,
        Counter::CasWr,
        Counter::CxlRxMemData,
        Counter::CxlTxMemData,
    ];
    pauses
        .iter()
        .map(|&pause| {
            let load = stream(traffic.op, tier, 1..1 + threads).with_stream(|s| {
                s.pause = Nanos(pause);
                s.reads = traffic.mix.map(|(lines, per)| Reads {
                    lines,
                    per,
                    from: Placement::Bind(TierName::named(tier)),
                    dataflow: Dataflow::Apart,
                });
            });
            let mut chase = chase(tier, 0..1, Bytes::mib(256));
            chase.prefetch = false;
            let seen = run(&bed, &[chase, load], 60.0, 400.0, 1);
            (lines.iter().map(|&l| seen.line_rate(l)).sum(), seen.ns(0))
        })
        .collect()
}

/// The latency at a bandwidth, between the points on either side of it.
fn at(curve: &[(f64, f64)], gbps: f64) -> Option<f64> {
    let pair = curve.windows(2).find(|p| p[0].0 <= gbps && gbps < p[1].0)?;
    let share = (gbps - pair[0].0) / (pair[1].0 - pair[0].0);
    Some(pair[0].1 + share * (pair[1].1 - pair[0].1))
}

/// Compares the curve with the logged one: up to four fifths of the logged peak within the first share, from
/// there to saturation within the second. If our curve never carries as much, its saturated latency is used.
fn holds(machine: &str, tier: &str, traffic: Traffic, threads: u32, allowed: (f64, f64)) {
    holds_at(&PAUSES, machine, tier, traffic, threads, allowed);
}

/// The same with these pauses.
fn holds_at(
    pauses: &[f64],
    machine: &str,
    tier: &str,
    traffic: Traffic,
    threads: u32,
    allowed: (f64, f64),
) {
    let platform = platform(machine);
    let idle = match tier {
        "dram" => *platform.host.dram.measured.idle,
        _ => *platform.devices[0].device.measured.idle,
    };
    let curves = platform.measured_curves();
    let (_, log) = curves
        .iter()
        .find(|(name, log)| {
            name.to_string() == tier
                && log.traffic == traffic
                && log.threads.is_none_or(|n| n == threads)
        })
        .unwrap_or_else(|| panic!("{machine} has no such curve of {tier}"));
    let ours = at_pauses(pauses, machine, tier, traffic, threads);
    let peak = log.peak().get();
    let most = ours.iter().map(|p| p.0).fold(0.0, f64::max);
    let what = format!("{machine}, {traffic:?} of {threads} threads on {tier}");
    assert_near(&format!("{what}, peak"), most, peak, 0.08);
    let (mut below, mut beyond) = (0, 0);
    for point in log.of_memory(idle) {
        let gbps = point.bandwidth.get();
        let (ns, share) = match at(&ours, gbps) {
            Some(ns) if gbps <= 0.8 * peak => {
                below += 1;
                (ns, allowed.0)
            }
            Some(ns) => (ns, allowed.1),
            None if gbps >= most => (ours[ours.len() - 1].1, allowed.1),
            None => continue,
        };
        beyond += u32::from(gbps > 0.8 * peak);
        let what = format!("{what} at {gbps:.1} GB/s");
        assert_near(&what, ns, point.latency.get(), share);
    }
    assert!(
        below > 4 && beyond > 2,
        "{machine}: {below} and {beyond} points of {tier}"
    );
}

#[test]
fn loads_under_load_take_what_was_logged() {
    holds("eurosys24", "dram", LOADS, 8, (0.05, 0.15));
    holds("spr8480", "dram", LOADS, 55, (0.1, 0.15));
}

#[test]
fn stores_under_load_take_what_was_logged() {
    holds("eurosys24", "dram", STORES, 8, (0.1, 0.15));
    holds("spr8480", "dram", STORES, 55, (0.15, 0.2));
}

#[test]
fn a_card_under_load_takes_what_was_logged() {
    holds("eurosys24", "cxl0", LOADS, 8, (0.1, 0.3));
    holds("eurosys24", "cxl0", LOADS, 2, (0.1, 0.1));
    holds("eurosys24", "cxl0", LOADS, 4, (0.1, 0.15));
    holds("eurosys24", "cxl0", STORES, 8, (0.13, 0.12));
}

#[test]
fn reads_of_a_card_beside_posted_stores_take_what_was_logged() {
    holds("eurosys24", "cxl0", READS_BESIDE_POSTED, 8, (0.15, 0.2));
    // Two logged points far below the peak are 26 and 27 % above ours: docs/physics.md.
    holds("eurosys24", "cxl0", POSTED, 8, (0.3, 0.15));
}

#[test]
fn a_card_of_the_other_socket_under_load_takes_what_was_logged() {
    let machine = "eurosys24+leo-x16@remote";
    // Beyond four fifths the curves are steep.
    holds(machine, "cxl0", LOADS, 8, (0.05, 0.35));
    holds(machine, "cxl0", STORES, 8, (0.25, 0.4));
    // Saturated, the log has half as many stores under way: docs/physics.md.
    let pauses: Vec<f64> = (PAUSES[..12].iter().copied())
        .chain([18.0, 17.0])
        .chain(PAUSES[12..].iter().copied())
        .collect();
    holds_at(&pauses, machine, "cxl0", POSTED, 8, (0.15, 0.95));
}

#[test]
fn the_other_socket_under_load_takes_a_few_times_as_long_as_idle() {
    // There is no log, but fill buffers bound the queue, since prefetches are throttled.
    let idle = platform("spr8480").host.remote.unwrap().idle.get();
    for traffic in [LOADS, STORES] {
        let (_, ns) = at_pauses(&[0.0], "spr8480", "remote", traffic, 55)[0];
        assert!(
            ns > 1.5 * idle && ns < 4.0 * idle,
            "{traffic:?}: {ns:.0} ns"
        );
    }
}

#[test]
fn a_full_write_buffer_of_a_card_does_not_give_way_to_reads() {
    // If a turn of writes ends though lines wait in the buffer, the peak is 5 % below the logged 54.7 GB/s.
    let load = stream(Op::St, "cxl0", 1..9);
    let seen = run(&bed("eurosys24"), &[load], 60.0, 400.0, 1);
    let lines = [Counter::CxlRxMemData, Counter::CxlTxMemData];
    let most: f64 = lines.iter().map(|&l| seen.line_rate(l)).sum();
    assert_near("one read to one write", most, 54.7, 0.045);
}
