//! What the two experiments plan to measure.

mod common;

use std::collections::HashSet;

use common::Toy;
use proptest::prelude::*;
use weir_lab::plan::caches_in_reach;
use weir_lab::{LabError, bandwidth, latency};
use weir_model::access::{Locality, Op, Pattern};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

proptest! {
    #[test]
    fn bandwidth_leaves_the_caches_behind_and_fits_the_tier(
        cores in 1_u32..129,
        cache_mib in 1_u64..600,
        quick: bool,
    ) {
        let mut topology = Toy { cores, ..Toy::default() }.topology();
        topology.caches[2].size = Bytes::mib(cache_mib);
        let options = bandwidth::Options { quick, ..bandwidth::Options::default() };
        for point in bandwidth::plan(&topology, &options).unwrap() {
            let footprint = point.load.working_set.get() * u64::from(point.load.threads);
            let caches = caches_in_reach(&topology, point.load.threads).get();
            prop_assert!(footprint >= 2 * caches, "{point}");
            prop_assert!(footprint <= topology.tier(&point.load.tier).unwrap().capacity.get(), "{point}");
            prop_assert!(point.load.threads <= cores);
        }
    }

    #[test]
    fn every_core_count_is_swept_from_one_thread_to_all(cores in 1_u32..200, quick: bool) {
        let topology = Toy { cores, ..Toy::default() }.topology();
        let options = bandwidth::Options { quick, ..bandwidth::Options::default() };
        let plan = bandwidth::plan(&topology, &options).unwrap();
        let threads: Vec<u32> =
            plan.iter().filter(|p| p.load.op == Op::Ld && p.load.tier == TierName::dram()).map(|p| p.load.threads).collect();
        prop_assert_eq!((threads[0], threads[threads.len() - 1]), (1, cores));
        prop_assert!(threads.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn the_staircase_reaches_beyond_the_caches(cache_mib in 1_u64..600, quick: bool) {
        let mut topology = Toy::default().topology();
        topology.caches[2].size = Bytes::mib(cache_mib);
        let options = latency::Options { quick, ..latency::Options::default() };
        let plan = latency::plan(&topology, &options).unwrap();
        let last = plan.iter().map(|point| point.load.working_set).max().unwrap();
        prop_assert!(last.get() >= 4 * Bytes::mib(cache_mib).get());
        prop_assert!(plan.iter().all(|point| point.load.threads == 1 && !point.load.prefetch));
    }

    #[test]
    fn no_two_points_of_a_plan_share_chance(seed: u64) {
        let topology = Toy::default().topology();
        let mut plan = latency::plan(&topology, &latency::Options::default()).unwrap();
        plan.extend(bandwidth::plan(&topology, &bandwidth::Options::default()).unwrap());
        let seeds: HashSet<u64> = plan.iter().map(|point| point.seed(seed)).collect();
        prop_assert_eq!(seeds.len(), plan.len());
    }
}

#[test]
fn the_default_series_of_threads_is_dense_where_curves_bend() {
    let topology = Toy::default().topology();
    let plan = bandwidth::plan(&topology, &bandwidth::Options::default()).unwrap();
    let threads: Vec<u32> = plan
        .iter()
        .take(12)
        .map(|point| point.load.threads)
        .collect();
    assert_eq!(threads, [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32]);
    assert_eq!(plan.len(), 2 * Op::ALL.len() * 12);
}

#[test]
fn latency_times_three_instructions_on_a_flushed_line_and_two_staircases_of_nineteen_steps() {
    let topology = Toy::default().topology();
    let plan = latency::plan(&topology, &latency::Options::default()).unwrap();
    let flushed = plan
        .iter()
        .filter(|point| point.load.pattern == Pattern::FlushedLine);
    assert_eq!(flushed.count(), 2 * 3);
    let chase = Pattern::Chase {
        locality: Locality::Random,
    };
    let sizes: Vec<Bytes> = plan
        .iter()
        .filter(|point| point.load.pattern == chase && point.load.tier == TierName::cxl(0))
        .map(|point| point.load.working_set)
        .collect();
    assert_eq!(
        (sizes.len(), sizes[0], sizes[18]),
        (19, Bytes::kib(4), Bytes::gib(1))
    );
}

#[test]
fn steps_that_a_small_tier_cannot_hold_are_left_out() {
    let mut topology = Toy::default().topology();
    topology.tiers[1].capacity = Bytes::mib(100);
    let plan = latency::plan(&topology, &latency::Options::default()).unwrap();
    let largest = |tier| {
        plan.iter()
            .filter(|p| p.load.tier == tier)
            .map(|p| p.load.working_set)
            .max()
    };
    assert_eq!(largest(TierName::cxl(0)), Some(Bytes::mib(64)));
    assert_eq!(largest(TierName::dram()), Some(Bytes::gib(1)));
}

#[test]
fn a_request_for_the_impossible_says_what_is_possible() {
    let topology = Toy::default().topology();
    let tiers = vec![TierName::named("hbm")];
    let options = latency::Options {
        tiers,
        ..latency::Options::default()
    };
    let error = latency::plan(&topology, &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no tier `hbm` here; there are dram, cxl0"
    );

    for threads in [0, 33] {
        let options = bandwidth::Options {
            threads: vec![threads],
            ..bandwidth::Options::default()
        };
        let error = bandwidth::plan(&topology, &options).unwrap_err();
        assert_eq!(error, LabError::Threads { threads, cores: 32 });
    }
    let options = latency::Options {
        sizes: vec![Bytes(64)],
        ..latency::Options::default()
    };
    assert!(
        latency::plan(&topology, &options)
            .unwrap_err()
            .to_string()
            .contains("at least 128 B")
    );
}

#[test]
fn options_replace_the_defaults() {
    let topology = Toy::default().topology();
    let options = latency::Options {
        tiers: vec![TierName::cxl(0)],
        ops: vec![Op::Ld],
        sizes: vec![Bytes::mib(1)],
        localities: vec![Locality::Random],
        quick: true,
    };
    let plan = latency::plan(&topology, &options).unwrap();
    assert_eq!(plan.len(), 2, "{plan:?}");
    let options = latency::Options {
        ops: vec![Op::NtSt],
        ..options
    };
    assert_eq!(latency::plan(&topology, &options).unwrap().len(), 1);
}
