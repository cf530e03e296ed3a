//! Each tenant's own counters: what its cores did, and nobody else's.

mod common;

use common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::access::Op;
use weir_model::counters::{Counter, CounterSet};
use weir_model::tenant::Tenant;
use weir_model::units::Bytes;

const MACHINE: &str = "emr2s+cxl-a";

/// Streams and a chase, on any cores of their own.
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
            // Each is cut to whole cycles, at both ends of the window.
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
            // A line is at its core a mesh crossing later than its entry is given back.
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

/// Data reads of the L2 prefetcher; that of stores reads for ownership.
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
    let beside = steady(&bed, &[victim, stream(Op::NtSt, "cxl0", 8..16)]);
    let latency = |seen: &Seen| {
        let own = &seen.0.tenants[0].counters;
        let (all, number) = (Counter::OffcoreOutstandingDataRd, Counter::OffcoreDataRd);
        own.ratio(all, number).unwrap()
    };
    assert!(latency(&beside) > 3.0 * latency(&alone));
    // The aggressor stores past the caches: it reads nothing.
    let other = &beside.0.tenants[1].counters;
    assert_eq!(other.get(Counter::OffcoreDataRd), Ok(0));
    assert!(other.get(Counter::StreamingWr).unwrap() > 0);
    let why = other.get(Counter::Instructions).unwrap_err();
    assert!(why.reason.contains("stream"), "{why}");
}
