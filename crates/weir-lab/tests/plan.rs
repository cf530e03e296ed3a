//! What the experiments plan to measure.

mod common;

use std::collections::HashSet;

use common::Toy;
use proptest::prelude::*;
use weir_lab::loaded::Mix;
use weir_lab::movement::Method;
use weir_lab::plan::caches_in_reach;
use weir_lab::stream::Kernel;
use weir_lab::studies::All;
use weir_lab::{LabError, Load, PointSpec, PointStudy as _};
use weir_lab::{bandwidth, latency, loaded, movement, random, share, stream, tail};
use weir_model::access::{Locality, Op, Pattern, Timing};
use weir_model::tenant::Arrivals;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, Nanos};

/// Every point of every experiment.
fn everything(topology: &Topology, quick: bool) -> Vec<PointSpec> {
    let options = All {
        quick,
        ..All::default()
    };
    options.plan(topology).unwrap()
}

/// What a load takes of each tier that it touches, at the most: all of its working set.
fn taken(load: &Load) -> Vec<(TierName, u64)> {
    let bytes = load.working_set.get() * u64::from(load.threads);
    let sources = load.reads.iter().flat_map(|reads| reads.from.tiers());
    let mut tiers: Vec<TierName> = sources.chain([&load.tier]).cloned().collect();
    tiers.dedup();
    tiers.into_iter().map(|tier| (tier, bytes)).collect()
}

proptest! {
    #[test]
    fn bandwidth_leaves_the_caches_behind_and_fits_the_tier(
        cores in 1_u32..129,
        cache_mib in 1_u64..600,
        quick: bool,
    ) {
        let mut topology = Toy { cores, ..Toy::default() }.topology();
        topology.caches[2].size = Bytes::mib(cache_mib);
        let options = bandwidth::Bandwidth { quick, ..bandwidth::Bandwidth::default() };
        for point in options.plan(&topology).unwrap() {
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
        let options = bandwidth::Bandwidth { quick, ..bandwidth::Bandwidth::default() };
        let plan = options.plan(&topology).unwrap();
        let threads: Vec<u32> =
            plan.iter().filter(|p| p.load.op == Op::Ld && p.load.tier == TierName::dram()).map(|p| p.load.threads).collect();
        prop_assert_eq!((threads[0], threads[threads.len() - 1]), (1, cores));
        prop_assert!(threads.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn the_staircase_reaches_beyond_the_caches(cache_mib in 1_u64..600, quick: bool) {
        let mut topology = Toy::default().topology();
        topology.caches[2].size = Bytes::mib(cache_mib);
        let options = latency::Latency { quick, ..latency::Latency::default() };
        let plan = options.plan(&topology).unwrap();
        let last = plan.iter().map(|point| point.load.working_set).max().unwrap();
        prop_assert!(last.get() >= 4 * Bytes::mib(cache_mib).get());
        prop_assert!(plan.iter().all(|point| point.load.threads == 1 && !point.load.prefetch));
    }

    #[test]
    fn every_point_of_every_experiment_fits_the_cores_and_the_tiers(
        cores in 1_u32..129,
        cache_mib in 1_u64..600,
        tier_gib in 1_u64..64,
        quick: bool,
    ) {
        let mut topology = Toy { cores, ..Toy::default() }.topology();
        topology.caches[2].size = Bytes::mib(cache_mib);
        topology.tiers[1].capacity = Bytes::gib(tier_gib);
        for point in everything(&topology, quick) {
            let tenants = point.tenants(&topology).unwrap();
            let mut used: Vec<u32> = tenants.iter().flat_map(|t| t.cores.clone()).collect();
            prop_assert_eq!(used.len() as u32, point.threads(), "{}", point);
            used.sort_unstable();
            used.dedup();
            prop_assert_eq!(used.len() as u32, point.threads(), "one thread on a core: {}", point);
            prop_assert!(used.iter().all(|core| topology.cores.contains(core)));
            for tier in &topology.tiers {
                let loads = [Some(&point.load), point.beside.as_ref()];
                let wanted: u64 = loads.into_iter().flatten().flat_map(taken)
                    .filter(|(name, _)| *name == tier.name).map(|(_, bytes)| bytes).sum();
                prop_assert!(wanted <= tier.capacity.get(), "{}", point);
            }
        }
    }

    #[test]
    fn what_loads_the_memory_leaves_the_caches_behind(
        cores in 2_u32..129,
        cache_mib in 1_u64..600,
        quick: bool,
    ) {
        let mut topology = Toy { cores, ..Toy::default() }.topology();
        topology.caches[2].size = Bytes::mib(cache_mib);
        for point in everything(&topology, quick) {
            let loads = [Some(&point.load), point.beside.as_ref()];
            for load in loads.into_iter().flatten().filter(|load| !load.pattern.is_timed()) {
                let footprint = load.working_set.get() * u64::from(load.threads);
                let caches = caches_in_reach(&topology, load.threads).get();
                prop_assert!(footprint >= 2 * caches, "{}", point);
            }
            if matches!(point.experiment.as_str(), "loaded" | "tail") {
                let set = point.load.working_set.get() * u64::from(point.load.threads);
                prop_assert!(set >= 4 * topology.last_level_cache().get(), "{}", point);
                prop_assert!(!point.load.prefetch);
            }
        }
    }

    #[test]
    fn a_mix_is_read_back_from_its_name_and_its_load_has_its_share(
        reads in 1_u32..40,
        writes in 1_u32..40,
        non_temporal: bool,
    ) {
        prop_assume!(non_temporal || reads >= writes);
        let store = if non_temporal { "nt" } else { "" };
        let mix: Mix = format!("{reads}:{writes}{store}").parse().unwrap();
        prop_assert_eq!(mix.to_string().parse::<Mix>().unwrap(), mix);
        let share = f64::from(reads) / f64::from(reads + writes);
        let load = mix.load(&TierName::dram(), 4, Bytes::mib(64));
        prop_assert!((load.read_share() - share).abs() < 1e-12, "{} {}", load, load.read_share());
        prop_assert_eq!(load.op, if non_temporal { Op::NtSt } else { Op::St });
        prop_assert_eq!(Mix::named(load.op, load.read_share()), mix.to_string());
    }

    #[test]
    fn a_mix_of_garbage_is_refused(text in ".{0,12}") {
        if let Ok(mix) = text.parse::<Mix>() {
            prop_assert_eq!(mix.to_string().parse::<Mix>().unwrap(), mix);
        }
    }

    #[test]
    fn no_two_points_of_a_plan_share_chance_but_a_bandwidth_alone_and_beside_another(seed: u64) {
        let topology = Toy::default().topology();
        let plan = everything(&topology, false);
        let seeds: HashSet<u64> = plan.iter().map(|point| point.seed(seed)).collect();
        prop_assert_eq!(seeds.len(), plan.len());
        for point in plan {
            let beside = point.clone().beside(point.load.clone());
            prop_assert_eq!(beside.seed(seed) == point.seed(seed), !point.load.pattern.is_timed());
        }
    }
}

#[test]
fn the_default_series_of_threads_is_dense_where_curves_bend() {
    let topology = Toy::default().topology();
    let plan = bandwidth::Bandwidth::default().plan(&topology).unwrap();
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
    let plan = latency::Latency::default().plan(&topology).unwrap();
    let flushed = plan
        .iter()
        .filter(|point| point.load.pattern == Pattern::FlushedLine);
    assert_eq!(flushed.count(), 2 * 3);
    let burst = Pattern::FlushedBurst {
        lines: latency::BURST,
    };
    let bursts = plan.iter().filter(|point| point.load.pattern == burst);
    assert_eq!(bursts.count(), 2 * 3);
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
    let plan = latency::Latency::default().plan(&topology).unwrap();
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
    let options = latency::Latency {
        tiers,
        ..latency::Latency::default()
    };
    let error = options.plan(&topology).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no tier `hbm` here; there are dram, cxl0"
    );

    for threads in [0, 33] {
        let options = bandwidth::Bandwidth {
            threads: vec![threads.into()],
            ..bandwidth::Bandwidth::default()
        };
        let error = options.plan(&topology).unwrap_err();
        assert_eq!(error, LabError::Threads { threads, cores: 32 });
    }
    let options = latency::Latency {
        sizes: vec![Bytes(64)],
        ..latency::Latency::default()
    };
    assert!(
        options
            .plan(&topology)
            .unwrap_err()
            .to_string()
            .contains("at least 128 B")
    );
}

#[test]
fn options_replace_the_defaults() {
    let topology = Toy::default().topology();
    let options = latency::Latency {
        tiers: vec![TierName::cxl(0)],
        ops: vec![Op::Ld],
        bursts: vec![],
        sizes: vec![Bytes::mib(1)],
        localities: vec![Locality::Random],
        quick: true,
    };
    let plan = options.plan(&topology).unwrap();
    assert_eq!(plan.len(), 2, "{plan:?}");
    let bursts = |lengths: &[u32]| latency::Latency {
        bursts: lengths.to_vec(),
        ..options.clone()
    };
    let plan = bursts(&[0, 4, 64]).plan(&topology).unwrap();
    assert_eq!(plan.len(), 4, "{plan:?}");
    let error = bursts(&[65]).plan(&topology).unwrap_err();
    assert!(error.to_string().contains("65"), "{error}");
    let options = latency::Latency {
        ops: vec![Op::NtSt],
        ..options
    };
    assert_eq!(options.plan(&topology).unwrap().len(), 1);
}

#[test]
fn loads_grow_from_idle_to_no_pause_about_the_limit_of_the_tier() {
    let topology = Toy::default().topology();
    let options = loaded::Loaded {
        tiers: vec![TierName::cxl(0)],
        mixes: vec![Mix::Reads],
        ..loaded::Loaded::default()
    };
    let plan = options.plan(&topology).unwrap();
    assert!(plan[0].beside.is_none());
    let pauses: Vec<f64> = plan[1..]
        .iter()
        .map(|point| point.beside.as_ref().unwrap().pause.get())
        .collect();
    assert!(pauses.is_sorted_by(|a, b| a > b), "{pauses:?}");
    assert_eq!(pauses.last(), Some(&0.0));
    // 31 threads ask for 24 GB/s when each asks for a line in 82.7 ns.
    let limit = 31.0 * 64.0 / 24.0;
    assert!(
        pauses
            .iter()
            .any(|pause| (pause / limit - 1.0).abs() < 0.01)
    );
    assert!((pauses[0] / limit - 16.0).abs() < 0.1, "{pauses:?}");
}

#[test]
fn loads_at_random_leave_the_caches_far_behind_and_keep_their_rate() {
    let topology = Toy::default().topology();
    let options = loaded::Loaded {
        mixes: vec!["1:3nt".parse().unwrap()],
        pattern: loaded::Order::Random,
        arrivals: Arrivals::Open,
        ..loaded::Loaded::default()
    };
    let plan = options.plan(&topology).unwrap();
    for load in plan.iter().filter_map(|point| point.beside.as_ref()) {
        assert_eq!(
            (load.pattern, load.arrivals),
            (Pattern::RandomLine, Arrivals::Open)
        );
        let footprint = load.working_set.get() * u64::from(load.threads);
        assert!(footprint >= 20 * caches_in_reach(&topology, load.threads).get());
    }
}

#[test]
fn a_loaded_latency_and_a_shared_line_need_two_cores() {
    let topology = Toy {
        cores: 1,
        ..Toy::default()
    }
    .topology();
    assert!(loaded::Loaded::default().plan(&topology).is_err());
    assert!(share::Share::default().plan(&topology).is_err());
    let all = All::default();
    let (plan, left_out) = (all.plan(&topology).unwrap(), all.left_out(&topology));
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(plan.iter().all(|point| point.threads() == 1));
}

#[test]
fn an_impossible_mix_says_why() {
    let error = "1:2".parse::<Mix>().unwrap_err();
    assert!(error.contains("the most is 1:1"), "{error}");
    assert!(error.contains("1:2nt"), "{error}");
    for text in [
        "",
        ":",
        "3:",
        "0:0",
        "1:1:1",
        "-1:1",
        "9999999999:1",
        "nt",
        "1:0nt",
        "2:1ntnt",
    ] {
        let error = text.parse::<Mix>().unwrap_err();
        assert!(error.contains("is no mix"), "{text}: {error}");
    }
    assert_eq!(
        "6:2".parse(),
        Ok(Mix::Temporal {
            reads: 3,
            writes: 1
        })
    );
    assert_eq!("nt-writes".parse(), Ok(Mix::Posted));
    assert_eq!("0:1nt".parse(), Ok(Mix::Posted));
}

#[test]
fn every_pair_of_tiers_is_copied_by_every_method() {
    let topology = Toy::default().topology();
    let plan = movement::Movement::default().plan(&topology).unwrap();
    // Three loops, and two ways to wait for three batches, single ones of two sizes.
    assert_eq!(plan.len(), 4 * (3 + 2 * 4));
    for point in &plan {
        let reads = point.load.reads.as_ref().unwrap();
        assert_eq!((reads.lines, reads.per), (1, 1));
        assert!(Method::of(&point.load).is_some(), "{point}");
    }
}

#[test]
fn every_pair_of_the_chosen_cores_shares_a_line_once() {
    let topology = Toy::default().topology();
    let plan = share::Share::default().plan(&topology).unwrap();
    assert_eq!(plan.len(), 12 * 11 / 2);
    let ends = [plan[10].load.cores.clone(), plan[65].load.cores.clone()];
    assert_eq!(ends, [vec![0, 31], vec![28, 31]]);
    let options = share::Share {
        cores: vec![5, 9],
        ..share::Share::default()
    };
    let plan = options.plan(&topology).unwrap();
    assert_eq!(plan[0].tenants(&topology).unwrap()[0].cores, [5, 9]);
    for cores in [vec![5, 5], vec![5], vec![5, 32]] {
        let options = share::Share {
            cores,
            ..share::Share::default()
        };
        assert!(options.plan(&topology).is_err());
    }
}

#[test]
fn stream_counts_the_arrays_that_it_names() {
    let topology = Toy::default().topology();
    let plan = stream::Stream::default().plan(&topology).unwrap();
    assert_eq!(plan.len(), 2 * 4 * 6);
    for point in &plan {
        let arrays = point.load.reads.as_ref().unwrap().lines + 1;
        let one = point.load.working_set.get() / u64::from(arrays);
        let caches = caches_in_reach(&topology, point.load.threads).get();
        assert!(one * u64::from(point.load.threads) >= 4 * caches, "{point}");
    }
    assert_eq!("Triad".parse(), Ok(Kernel::Triad));
    let options = stream::Stream {
        ops: vec![Op::Ld],
        ..stream::Stream::default()
    };
    assert!(options.plan(&topology).is_err());
}

#[test]
fn chasers_are_timed_together_and_other_company_stands_beside() {
    let topology = Toy::default().topology();
    let options = tail::Tail {
        tiers: vec![TierName::dram()],
        ..tail::Tail::default()
    };
    let plan = options.plan(&topology).unwrap();
    assert_eq!(plan.len(), 1 + 3 * 6);
    assert!(plan.iter().all(|p| p.load.timing == Timing::Each));
    assert_eq!(plan[0].threads(), 1);
    let all: Vec<u32> = plan[1..7].iter().map(PointSpec::threads).collect();
    assert_eq!(all, [2, 3, 5, 9, 17, 32]);
    assert!(plan[1..7].iter().all(|p| p.beside.is_none()));
    assert!(
        plan[7..]
            .iter()
            .all(|p| p.load.threads == 1 && p.beside.is_some())
    );
    // Ten requests beyond p99.999 alone, and beyond p99.99 with others.
    assert!(plan[0].least_accesses as f64 * 1e-5 > 10.0);
    assert!(
        plan[1..]
            .iter()
            .all(|p| p.least_accesses as f64 * 1e-4 > 10.0)
    );
}

/// Figures of earlier versions come again only with their seeds.
#[test]
fn seeds_are_those_of_earlier_versions() {
    let topology = Toy::default().topology();
    let plan = tail::Tail {
        tiers: vec![TierName::dram()],
        ..tail::Tail::default()
    }
    .plan(&topology)
    .unwrap();
    let seeds = [0, 1, 7].map(|n| plan[n].seed(1));
    assert_eq!(
        seeds,
        [
            3_406_584_979_425_663_723,
            15_509_651_572_976_885_205,
            17_553_425_933_310_315_492
        ],
        "{}, {} and {}",
        plan[0],
        plan[1],
        plan[7]
    );
}

#[test]
fn blocks_are_whole_lines_within_the_working_set() {
    let topology = Toy::default().topology();
    let plan = random::Random::default().plan(&topology).unwrap();
    assert_eq!(plan.len(), 2 * 3 * 7 * 6);
    for (block, set) in [(0, 1 << 20), (100, 1 << 20), (1 << 21, 1 << 20)] {
        let options = random::Random {
            blocks: vec![Bytes(block)],
            working_set: Some(Bytes(set)),
            ..random::Random::default()
        };
        let error = options.plan(&topology).unwrap_err();
        assert!(matches!(error, LabError::Block { .. }), "{error}");
    }
}

#[test]
fn a_negative_pause_is_refused() {
    let topology = Toy::default().topology();
    for pause in [-1.0, f64::NAN] {
        let options = loaded::Loaded {
            pauses: vec![Nanos(pause)],
            ..loaded::Loaded::default()
        };
        assert!(options.plan(&topology).is_err());
    }
}
