//! Laws of a last-level cache that described programs share: twins have half of it each, ways of one's own are not shared,
//! and a stream takes what it passes through.

use crate::common::*;
use weir_model::access::{Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::Machine;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::{Workload, Workloads};
use weir_sim::SimMachine;

/// A preset whose data a last-level cache holds in part, on four threads.
fn work(name: &str) -> Workload {
    Workload {
        threads: 4,
        ..Workloads::builtin()
            .get(name)
            .unwrap()
            .phase_alone(0)
            .unwrap()
    }
}

fn program(name: &str, work: &Workload, first: u32, ways: Option<u32>) -> Tenant {
    let cores = (first..first + work.threads).collect();
    Tenant {
        name: name.into(),
        cache_ways: ways,
        ..Tenant::running(
            work.clone(),
            cores,
            Placement::Bind(TierName::named("dram")),
        )
    }
}

/// Loads that miss the last-level cache in a thousand instructions, of the first tenant.
fn misses(tenants: &[Tenant]) -> f64 {
    let mut machine = SimMachine::new(&bed("emr2s+cxl-a"), 5);
    machine.start(tenants).unwrap();
    machine.observe(Nanos::from_micros(60.0)).unwrap();
    let seen = machine.observe(Nanos::from_micros(150.0)).unwrap();
    let of = |counter| {
        (seen.tenants[0].counters.get(counter))
            .or_else(|_| seen.counters.get(counter))
            .unwrap() as f64
    };
    1000.0 * of(Counter::OffcoreL3MissDemandDataRd) / of(Counter::Instructions)
}

#[test]
fn twins_have_half_of_the_cache_each() {
    let ways = bed_ways();
    for name in ["hash-join-probe", "silo-ycsb", "memcached-etc"] {
        let work = work(name);
        let half = Some((1 << (ways / 2)) - 1);
        let alone = misses(&[program("a", &work, 0, None)]);
        let in_half = misses(&[program("a", &work, 0, half)]);
        let twins = misses(&[program("a", &work, 0, None), program("b", &work, 8, None)]);
        assert!(in_half > alone, "{name}: {alone} alone, {in_half} in half");
        let (least, most) = (in_half * 0.93, in_half * 1.07);
        assert!(
            (least..most).contains(&twins),
            "{name}: {twins} with a twin, {in_half} in half"
        );
    }
}

#[test]
fn ways_of_its_own_are_not_shared_and_a_stream_takes_what_it_passes_through() {
    let work = work("silo-ycsb");
    let (low, high) = (Some(0x3f), Some(0xf_ffc0));
    let stream = |ways| Tenant {
        cores: (8..16).collect(),
        cache_ways: ways,
        ..Tenant::on_first_cores(
            Op::Ld,
            Pattern::Sequential,
            &TierName::named("dram"),
            8,
            Bytes::mib(256),
        )
    };
    let alone = misses(&[program("a", &work, 0, low)]);
    let apart = misses(&[program("a", &work, 0, low), stream(high)]);
    assert!(
        (apart / alone - 1.0).abs() < 0.05,
        "{alone} alone, {apart} with other ways"
    );
    let whole = misses(&[program("a", &work, 0, None)]);
    let beside = misses(&[program("a", &work, 0, None), stream(None)]);
    assert!(
        beside > whole * 1.1,
        "{whole} alone, {beside} with a stream"
    );
}

fn bed_ways() -> u32 {
    let machine = SimMachine::new(&bed("emr2s+cxl-a"), 5);
    machine
        .topology()
        .caches
        .last()
        .and_then(|c| c.ways)
        .unwrap()
}

#[test]
fn what_fits_the_last_level_cache_misses_it_never() {
    let mut work = work("silo-ycsb");
    for region in &mut work.phases[0].regions {
        region.bytes = Bytes::mib(4);
        region.skew = 0.1;
    }
    let alone = misses(&[program("a", &work, 0, None)]);
    assert!(alone < 0.01, "{alone} misses in a thousand instructions");
}
