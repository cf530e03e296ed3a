//! Laws of the last-level cache's occupancy: what each tenant has filled of it.

use crate::common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::access::Op;
use weir_model::counters::Counter;
use weir_model::platform::{Platform, Sourced};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::Bytes;
use weir_model::workload::Workloads;

/// A last-level cache of 8 MiB with 16 ways, so that little time fills it.
fn small() -> Platform {
    let mut platform = platform("emr2s+cxl-a");
    platform.host.llc.size = Sourced::from_source(Bytes::mib(8), "what if");
    platform.host.llc.ways = Sourced::from_source(16, "what if");
    platform.host.l2.size = Sourced::from_source(Bytes::kib(256), "what if");
    platform
}

fn held(seen: &Measured, tenant: usize) -> f64 {
    let own = seen.0.tenants[tenant].counters.get(Counter::LlcOccupancy);
    own.unwrap() as f64 / Bytes::mib(1).get() as f64
}

fn sized(tenant: Tenant, size: Bytes, name: &str) -> Tenant {
    let mut tenant = tenant.with_stream(|s| s.working_set = size);
    tenant.name = name.into();
    tenant
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tenants_hold_no_more_than_the_cache_and_no_more_than_they_have(
        sizes in prop::collection::vec((1u64..12, 0usize..3, 1u32..0xffff), 1..4),
        masked: bool,
    ) {
        let mut tenants = vec![chase("dram", 0..1, Bytes::mib(1))];
        for (i, &(mib, op, mask)) in sizes.iter().enumerate() {
            let core = i as u32 + 1;
            let op = [Op::Ld, Op::St, Op::NtSt][op];
            let mut tenant = sized(stream(op, "cxl0", core..core + 1), Bytes::mib(mib), &core.to_string());
            tenant.cache_ways = masked.then_some(mask);
            tenants.push(tenant);
        }
        let seen = run(&bed_of(&small()), &tenants, 20.0, 100.0, 3);
        let all: f64 = (0..tenants.len()).map(|i| held(&seen, i)).sum();
        prop_assert!(all <= 8.0, "{all} MiB");
        prop_assert_eq!(seen.count(Counter::LlcOccupancy), all * 1024.0 * 1024.0);
        for (i, &(mib, op, mask)) in sizes.iter().enumerate() {
            let own = held(&seen, i + 1);
            prop_assert!(own <= mib as f64, "{own} of {mib} MiB");
            let ways = if masked { f64::from(mask.count_ones()) } else { 16.0 };
            prop_assert!(own <= ways / 16.0 * 8.0, "{own} MiB in {ways} ways");
            prop_assert!(op != 2 || own == 0.0, "posted stores leave nothing: {own} MiB");
        }
    }
}

#[test]
fn a_small_set_alone_is_held_and_a_large_neighbour_takes_its_place() {
    let bed = bed_of(&small());
    let quiet = sized(chase("dram", 0..1, Bytes::mib(4)), Bytes::mib(4), "quiet");
    let alone = run(&bed, std::slice::from_ref(&quiet), 5.0, 100.0, 1);
    assert!(
        (3.7..=4.0).contains(&held(&alone, 0)),
        "{} MiB",
        held(&alone, 0)
    );
    let noisy = sized(stream(Op::Ld, "dram", 1..5), Bytes::mib(64), "noisy");
    let beside = run(&bed, &[quiet.clone(), noisy.clone()], 1000.0, 100.0, 1);
    assert!(
        held(&beside, 0) < 0.7 * held(&alone, 0),
        "{} MiB",
        held(&beside, 0)
    );
    assert!(held(&beside, 0) + held(&beside, 1) <= 8.0);
    let mut bounded = noisy;
    bounded.cache_ways = Some(0b11);
    let bounded = run(&bed, &[quiet, bounded], 1000.0, 100.0, 1);
    assert!(held(&bounded, 1) <= 1.0, "{} MiB", held(&bounded, 1));
    assert!(held(&bounded, 0) > held(&beside, 0));
}

#[test]
fn where_no_lines_are_tracked_there_is_a_reason_and_no_zero() {
    let seen = run(&bed("emr2s"), &[stream(Op::Ld, "dram", 0..4)], 5.0, 10.0, 1);
    for set in [&seen.0.counters, &seen.0.tenants[0].counters] {
        let why = set.get(Counter::LlcOccupancy).unwrap_err();
        assert!(why.reason.contains("keeps no tags"), "{why}");
    }
}

/// A program alone fills its ways if it has more lines, and otherwise holds what it has; with others the
/// formula says what it finds, and not what it holds.
#[test]
fn a_programs_share_follows_from_the_formula_only_if_it_is_alone() {
    let bed = bed_of(&small());
    let work = Workloads::builtin().get("gups").unwrap().clone();
    let cores = (0..work.threads).collect();
    let dram = TierName::named("dram");
    let mut tenant = Tenant::running(work, cores, Placement::Bind(dram));
    for (mask, most) in [(None, 8.0), (Some(0xff), 4.0)] {
        tenant.cache_ways = mask;
        let seen = run(&bed, std::slice::from_ref(&tenant), 1.0, 5.0, 1);
        let own = held(&seen, 0);
        assert!((0.95 * most..=most).contains(&own), "{own} of {most} MiB");
    }
    let first = tenant.cores.len() as u32;
    let beside = stream(Op::Ld, "dram", first..first + 1);
    let seen = run(&bed, &[tenant, beside], 1.0, 5.0, 1);
    let why = seen.0.tenants[0]
        .counters
        .get(Counter::LlcOccupancy)
        .unwrap_err();
    assert!(why.reason.contains("formula"), "{why}");
}
