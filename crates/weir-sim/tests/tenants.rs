//! Each tenant's own counters: the counts of its cores, and of no others.

use crate::common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::access::Op;
use weir_model::counters::{Counter, CounterSet};
use weir_model::tenant::Tenant;
use weir_model::units::Bytes;

const MACHINE: &str = "emr2s+cxl-a";

/// Streams and a chase, each on its own cores.
fn tenants() -> impl Strategy<Value = Vec<Tenant>> {
    let op = prop::sample::select(&[Op::Ld, Op::St, Op::StClwb, Op::NtSt][..]);
    let tier = prop::sample::select(&["dram", "cxl0", "remote"][..]);
    let one = (op, tier, 1u32..8, any::<bool>(), any::<bool>());
    prop::collection::vec(one, 1..=3).prop_map(|all| {
        let mut first = 0;
        let of = |(op, tier, threads, prefetch, chases): (Op, &str, u32, bool, bool)| {
            let cores = first..first + threads;
            first += threads;
            let tenant = match chases && op == Op::Ld {
                true => chase(tier, cores, Bytes::mib(256)),
                false => stream(op, tier, cores),
            };
            Tenant { prefetch, ..tenant }
        };
        let tenants = all.into_iter().map(of).collect::<Vec<_>>();
        let named = |(i, tenant)| Tenant {
            name: format!("tenant {i}"),
            ..tenant
        };
        tenants.into_iter().enumerate().map(named).collect()
    })
}

fn count(set: &CounterSet, counter: Counter) -> f64 {
    set.get(counter).unwrap() as f64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(9), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_tenants_count_adds_up_to_what_the_machine_counts(tenants in tenants(), seed in 0u64..1000) {
        let seen = run(&bed(MACHINE), &tenants, 10.0, 20.0, seed);
        let own: Vec<_> = seen.0.tenants.iter().map(|t| &t.counters).collect();
        for (counter, _) in own[0].iter() {
            let sum: f64 = own.iter().map(|set| count(set, counter)).sum();
            // Each time is cut to whole cycles, at both ends of the window.
            let cut = 2.0 * (own.len() + 1) as f64;
            prop_assert!((sum - seen.count(counter)).abs() <= cut, "{counter}: {sum}");
        }
    }

    #[test]
    fn a_core_waits_no_longer_than_there_is_time_and_with_no_more_than_it_has_buffers(
        tenants in tenants(),
        seed in 0u64..1000,
    ) {
        let platform = platform(MACHINE);
        let buffers = f64::from((*platform.host.core.super_queue).max(*platform.host.core.line_fill_buffers));
        let seen = run(&bed_of(&platform), &tenants, 10.0, 20.0, seed);
        for own in seen.0.tenants.iter().map(|t| &t.counters) {
            let c = |counter| count(own, counter);
            // A line arrives at its core one mesh crossing after its entry is released.
            let cycles = c(Counter::Cycles) * 1.005;
            let with = c(Counter::OffcoreCyclesDemandDataRd);
            prop_assert!(with <= cycles);
            prop_assert!(with <= c(Counter::OffcoreOutstandingDemandDataRd) * 1.005 + 1.0);
            prop_assert!(c(Counter::OffcoreOutstandingDataRd) + c(Counter::OffcoreOutstandingDemandRfo) <= buffers * cycles);
            prop_assert_eq!(c(Counter::OffcoreDataRd), c(Counter::OffcoreDemandDataRd) + c(Counter::HwpfL1d) + own_l2_reads(own));
            prop_assert_eq!(c(Counter::L3Hit) + c(Counter::L3Miss), c(Counter::OffcoreDemandDataRd));
        }
    }
}

/// Data reads of the L2 prefetcher; for stores it reads for ownership.
fn own_l2_reads(own: &CounterSet) -> f64 {
    match count(own, Counter::OffcoreDataRd) {
        0.0 => 0.0,
        _ => count(own, Counter::HwpfL2),
    }
}

#[test]
fn a_chase_sees_its_latency_in_its_counters() {
    let chase = chase("cxl0", 0..1, Bytes::mib(256));
    let seen = run(&bed(MACHINE), &[chase], 5.0, 500.0, 1);
    let own = &seen.0.tenants[0].counters;
    let outstanding = own.ratio(
        Counter::OffcoreOutstandingDemandDataRd,
        Counter::OffcoreDemandDataRd,
    );
    let cycle = seen.0.window.get() / count(own, Counter::Cycles);
    assert_near(
        "L2-miss latency",
        outstanding.unwrap() * cycle,
        seen.ns(0),
        0.01,
    );
    // One at a time, and always one.
    let with = own.ratio(Counter::OffcoreCyclesDemandDataRd, Counter::Cycles);
    assert_near("time with a miss", with.unwrap(), 1.0, 0.02);
}

#[test]
fn who_is_hurt_shows_in_the_victims_counters_and_not_in_the_aggressors_mean() {
    let bed = bed("interplay-a");
    let victim = stream(Op::Ld, "dram", 0..8);
    let alone = steady(&bed, std::slice::from_ref(&victim));
    let corun = steady(&bed, &[victim, stream(Op::NtSt, "cxl0", 8..16)]);
    let latency = |seen: &Measured| {
        let own = &seen.0.tenants[0].counters;
        let (all, number) = (Counter::OffcoreOutstandingDataRd, Counter::OffcoreDataRd);
        own.ratio(all, number).unwrap()
    };
    assert!(latency(&corun) > 3.0 * latency(&alone));
    // The aggressor's stores bypass the caches: it reads nothing.
    let other = &corun.0.tenants[1].counters;
    assert_eq!(other.get(Counter::OffcoreDataRd), Ok(0));
    assert!(other.get(Counter::StreamingWr).unwrap() > 0);
    let why = other.get(Counter::Instructions).unwrap_err();
    assert!(why.reason.contains("stream"), "{why}");
}

/// A tenant's mean time of a request in ns: outstanding over requests, of one of its own pairs.
fn own_ns(seen: &Measured, tenant: usize, threads: u32, pair: (Counter, Counter)) -> f64 {
    let own = &seen.0.tenants[tenant].counters;
    let cycle = seen.0.window.get() * f64::from(threads) / count(own, Counter::Cycles);
    own.ratio(pair.0, pair.1).unwrap() * cycle
}

const L2_MISS: (Counter, Counter) = (
    Counter::OffcoreOutstandingDemandDataRd,
    Counter::OffcoreDemandDataRd,
);
const L3_MISS: (Counter, Counter) = (
    Counter::OffcoreOutstandingL3MissDemandDataRd,
    Counter::OffcoreL3MissDemandDataRd,
);

/// A load from zero to far beyond what the tables take.
fn loads_of_dram() -> Vec<Vec<Tenant>> {
    let corun = |aggressor| vec![plain_stream(Op::Ld, "dram", 0..8), aggressor];
    vec![
        vec![chase("dram", 0..8, Bytes::mib(256))],
        vec![plain_stream(Op::Ld, "dram", 0..8)],
        corun(stream(Op::Ld, "cxl0", 8..16)),
        corun(stream(Op::NtSt, "cxl0", 8..16)),
    ]
}

#[test]
fn every_request_is_on_its_way_or_before_a_table_or_in_it() {
    // A request's time at its core is the sum of the path to its slice and back, which load does not change,
    // of a wait before the table, and of its time in the table.
    let bed = bed("interplay-a");
    let mut ways = Vec::new();
    for tenants in loads_of_dram() {
        let seen = steady(&bed, &tenants);
        let (l2, l3) = (own_ns(&seen, 0, 8, L2_MISS), own_ns(&seen, 0, 8, L3_MISS));
        assert!(l3 <= l2);
        ways.push((l2 - l3, l3 - seen.ddr_residency()));
    }
    let (_, way) = ways[0];
    assert!(way > 0.0);
    assert_eq!(ways[0].0, 0.0, "a lone chase never waits");
    for (waits, same_way) in &ways[..2] {
        assert!(*waits < 1.0);
        assert_near("the way", *same_way, way, 0.02);
    }
    // With posted stores to CXL it waits many times as long as it is served.
    let (waits, same_way) = ways[3];
    assert!(waits > 300.0, "{waits}");
    // The path does not take longer.
    assert_near("the way", same_way, way, 0.05);
}

#[test]
fn what_a_table_holds_is_at_the_memory_or_on_the_way_there() {
    let bed = bed("interplay-a");
    let ways: Vec<f64> = loads_of_dram()
        .iter()
        .map(|tenants| {
            let seen = steady(&bed, tenants);
            let ticks = seen.count(Counter::MClockticks) / seen.0.window.get();
            let (waiting, read) = (
                seen.count(Counter::RpqOccupancy),
                seen.count(Counter::CasRd),
            );
            seen.ddr_residency() - waiting / read / ticks
        })
        .collect();
    for way in &ways {
        assert_near("from the table to the column and back", *way, ways[0], 0.01);
    }
}

#[test]
fn a_device_holds_no_more_than_its_queues_and_the_tables_do() {
    let platform = platform("interplay-a");
    let (host, device) = (&platform.host, &platform.devices[0].device.controller);
    let room = f64::from(*device.queue + *device.write_buffer);
    for op in [Op::Ld, Op::St, Op::NtSt] {
        let seen = steady(&bed_of(&platform), &[stream(op, "cxl0", 0..16)]);
        let held = seen.mean_level(Counter::CxlDeviceOccupancy);
        assert!(held <= room * 1.001, "{op}: {held} of {room}");
        let tables = seen.mean_level(Counter::TorOccupancyIaMissCxl);
        assert!(held <= tables + f64::from(*device.write_buffer), "{op}");
        let own = &seen.0.tenants[0].counters;
        let lfb = own.ratio(Counter::LfbOccupancy, Counter::Cycles).unwrap();
        let buffers = f64::from((*host.core.super_queue).max(*host.core.line_fill_buffers));
        assert!(lfb <= buffers * 1.005, "{op}: {lfb}");
        if op == Op::Ld {
            // Loads hold a buffer of their core all the time.
            assert!(lfb * 16.0 >= tables, "{lfb} {tables}");
            assert!(tables >= held);
        }
    }
}
