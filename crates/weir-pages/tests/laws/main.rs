//! Laws of the page model and of its policies.

mod kernel;
mod payback;

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_pages::Host;
use weir_pages::policy::Thresholds;
use weir_pages::workload::{Band, Growth, Phase};
use weir_pages::{
    Costs, Memory, Options, PageKind, PagedWorkload, Region, Simulation, Tier, TierCurve, bound,
    by_name, policy, population, presets,
};

const POLICIES: [&str; 18] = [
    "first-touch",
    "numa-balancing",
    "tiering",
    "autotiering",
    "tpp",
    "tpp-coupled",
    "tpp-unfiltered",
    "tpp-all-sampled",
    "tpp-cache-to-slow",
    "interleave:3:1",
    "alto",
    "colloid",
    "nomad",
    "tmo",
    "neomem",
    "caption",
    "best-shot",
    "payback",
];

fn host(fast_mib: u64, slow_mib: u64) -> Host {
    Host {
        fast: Memory {
            capacity: Bytes::mib(fast_mib),
            curve: TierCurve::of_queue(Nanos(100.0), GbPerSec(200.0)),
        },
        slow: Memory {
            capacity: Bytes::mib(slow_mib),
            curve: TierCurve::of_queue(Nanos(250.0), GbPerSec(50.0)),
        },
        swap: true,
        costs: Costs::default(),
        thresholds: Thresholds::default(),
    }
}

fn region(name: &str, kind: PageKind, mib: u64, accesses: f64) -> Region {
    Region {
        name: name.into(),
        kind,
        bytes: Bytes::mib(mib),
        page: Bytes::kib(4),
        accesses,
        writes: 0.3,
        mlp: 2.0,
        burst: 1.0,
        band_bursts: Vec::new(),
        band_places: Vec::new(),
        bands: vec![
            Band {
                pages: 0.2,
                accesses: 0.9999,
            },
            Band {
                pages: 0.8,
                accesses: 0.0001,
            },
        ],
        growth: Growth::NONE,
        lifetime_s: None,
        drift_per_hour: 0.0,
    }
}

fn cache(file_mib: u64, anon_mib: u64) -> PagedWorkload {
    PagedWorkload {
        name: "cache".into(),
        about: String::new(),
        threads: 4,
        stalled: 0.25,
        regions: vec![
            region("file", PageKind::File, file_mib, 0.5),
            region("anon", PageKind::Anon, anon_mib, 0.5),
        ],
        phases: Vec::new(),
    }
}

fn options(seconds: f64) -> Options {
    Options {
        seconds,
        interval_s: 0.25,
        seed: 7,
    }
}

fn start<'a>(
    workload: &'a PagedWorkload,
    host: &'a Host,
    policy: &str,
    options: Options,
) -> Simulation<'a> {
    Simulation::new(workload, host, by_name(policy).unwrap(), options).unwrap()
}

#[test]
fn bands_are_in_the_parts_of_a_region_where_they_are_said_to_be() {
    // More than half of a region has room in the fast tier, and pages come in the order of addresses.
    let local = |hot: [f64; 4], drift: f64| {
        let mut workload = cache(0, 100);
        workload.regions.remove(0);
        let region = &mut workload.regions[0];
        region.accesses = 1.0;
        region.drift_per_hour = drift;
        region.band_places = vec![hot.to_vec(), vec![0.25; 4]];
        let host = host(60, 100);
        let mut simulation = start(&workload, &host, "first-touch", options(2.0));
        simulation.run(|| true).local_pct
    };
    assert!(local([0.5, 0.5, 0.0, 0.0], 0.0) > 99.0);
    assert!(local([0.0, 0.0, 0.0, 1.0], 0.0) < 1.0);
    let half = local([0.0, 0.5, 0.0, 0.5], 0.0);
    assert!((45.0..55.0).contains(&half), "{half}");
    // What leaves the hot set is replaced by pages from everywhere.
    let drifted = local([0.0, 0.0, 0.0, 1.0], 900.0);
    assert!((1.0..30.0).contains(&drifted), "{drifted}");
}

/// A workload with everything: growth, drift, renewal, large pages.
fn busy(file_mib: u64, anon_mib: u64) -> PagedWorkload {
    let mut workload = cache(file_mib, anon_mib);
    workload.regions[0].growth = Growth {
        initial: 0.1,
        from_s: 1.0,
        full_s: 5.0,
        shrinks_from_s: 10.0,
        shrunk_s: 15.0,
        kept: 0.4,
    };
    workload.regions[1].drift_per_hour = 20.0;
    workload.regions[0].accesses = 0.3;
    workload.regions.push(Region {
        lifetime_s: Some(3.0),
        accesses: 0.1,
        ..region("short", PageKind::Anon, 16, 0.1)
    });
    workload.regions.push(Region {
        page: Bytes::mib(2),
        accesses: 0.1,
        ..region("huge", PageKind::Anon, 64, 0.1)
    });
    workload
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn pages_are_conserved_and_no_node_holds_more_than_it_has(
        file in 64u64..300, anon in 64u64..300, fast in 64u64..400, slow in 64u64..400, seed: u64,
    ) {
        let (workload, host) = (busy(file, anon), host(fast, slow));
        for name in POLICIES {
            let mut sim = start(&workload, &host, name, Options { seed, ..options(20.0) });
            for _ in 0..sim.length() {
                sim.step();
                let placed = sim.placed();
                prop_assert_eq!(placed.iter().map(|b| b.get()).sum::<u64>(), sim.allocated().get(), "{}", name);
                prop_assert!(placed[0] <= host.fast.capacity && placed[1] <= host.slow.capacity, "{}", name);
                let last = sim.intervals().last().unwrap();
                prop_assert!(last.fixed_point_error < 1e-6, "{} {}", name, last.fixed_point_error);
                prop_assert!((0.0..=100.0 + 1e-9).contains(&last.local_pct));
            }
            let c = sim.counters();
            prop_assert_eq!(c.pgdemote_kswapd + c.pgdemote_direct + c.moved_to_slow, c.demoted());
            prop_assert_eq!(c.pgpromote_tried + c.moved_to_fast, c.promoted() + c.promote_aborted, "{}", name);
            prop_assert_eq!(c.pgpromote_candidate,
                c.pgpromote_tried + c.pgmigrate_fail_dst_node_full + c.promote_rate_limited);
            prop_assert_eq!(c.pgpromote_candidate, c.pgpromote_candidate_anon + c.pgpromote_candidate_file);
        }
    }

    #[test]
    fn equal_seeds_give_equal_results_and_others_do_not(seed: u64) {
        let (workload, host) = (busy(200, 200), host(128, 400));
        let run = |seed| {
            let mut sim = start(&workload, &host, "tpp", Options { seed, ..options(10.0) });
            sim.run(|| true);
            sim.intervals().to_vec()
        };
        prop_assert_eq!(run(seed), run(seed));
        prop_assert_ne!(run(seed), run(seed ^ 1));
    }

    #[test]
    fn all_local_is_never_beaten_where_the_slow_tier_is_slower(file in 64u64..300, anon in 64u64..300) {
        let workload = busy(file, anon);
        let all = host(2048, 512);
        let local = start(&workload, &all, "first-touch", options(20.0)).run(|| true);
        prop_assert!((local.local_pct - 100.0).abs() < 1e-9);
        let tiered = host(128, 1024);
        for name in POLICIES {
            let run = start(&workload, &tiered, name, options(20.0)).run(|| true);
            prop_assert!(run.maccesses_per_s <= local.maccesses_per_s * (1.0 + 1e-9), "{}", name);
        }
    }
}

#[test]
fn tpp_takes_no_hint_fault_on_a_page_of_the_fast_tier() {
    let (workload, host) = (cache(600, 300), host(256, 1024));
    let faults = |name| {
        let mut sim = start(&workload, &host, name, options(60.0));
        sim.run(|| true);
        *sim.counters()
    };
    let tpp = faults("tpp");
    assert!(tpp.numa_hint_faults > 0);
    assert_eq!(tpp.numa_hint_faults_toptier, 0);
    assert!(faults("tpp-all-sampled").numa_hint_faults_toptier > 0);
    assert!(faults("numa-balancing").numa_hint_faults_toptier > 0);
}

#[test]
fn nothing_is_promoted_at_the_first_fault_of_an_inactive_page() {
    // Every page is on the slow node and inactive; one pass of the scanner takes 4 s.
    let workload = cache(512, 512);
    let mut host = host(1024, 2048);
    host.swap = false;
    let promoted = |policy: policy::Tpp, seconds: f64| {
        struct Slow(policy::Tpp);
        impl weir_pages::Policy for Slow {
            fn place(&mut self, _: &policy::Placing) -> Tier {
                Tier::Slow
            }
            fn scan(&self) -> Option<policy::Scan> {
                self.0.scan()
            }
            fn fault(&mut self, fault: &policy::Fault) -> policy::Decision {
                self.0.fault(fault)
            }
        }
        let mut sim =
            Simulation::new(&workload, &host, Box::new(Slow(policy)), options(seconds)).unwrap();
        sim.run(|| true);
        (sim.counters().numa_hint_faults, sim.counters().promoted())
    };
    let tpp = policy::Tpp::default();
    let (faults, moved) = promoted(tpp, 3.75);
    assert!(faults > 40_000, "{faults}");
    assert_eq!(moved, 0);
    assert!(promoted(tpp, 8.0).1 > 40_000);
    let unfiltered = policy::Tpp {
        active_filter: false,
        ..tpp
    };
    assert!(promoted(unfiltered, 3.75).1 > 40_000);
}

#[test]
fn tpp_keeps_its_headroom_free_and_allocates_on_the_fast_node_while_it_reclaims() {
    let mut workload = cache(600, 300);
    workload.regions.push(Region {
        lifetime_s: Some(5.0),
        accesses: 0.2,
        ..region("short", PageKind::Anon, 32, 0.2)
    });
    workload.regions[0].accesses = 0.4;
    workload.regions[1].accesses = 0.4;
    let host = host(512, 2048);
    let run = |name| {
        let mut sim = start(&workload, &host, name, options(60.0));
        sim.run(|| true);
        let free = sim.free(Tier::Fast);
        (*sim.counters(), free, sim.watermarks(Tier::Fast))
    };
    let (tpp, free, marks) = run("tpp");
    let demote = marks.demote(200);
    assert!(
        free >= demote - 512 && free < demote + demote / 2,
        "{free} {demote}"
    );
    let (coupled, free, marks) = run("tpp-coupled");
    assert!(free < marks.high + 512);
    assert!(
        tpp.pgalloc_slow < coupled.pgalloc_slow,
        "{tpp:?} {coupled:?}"
    );
}

#[test]
fn default_linux_leaves_anonymous_memory_on_the_slow_node_behind_a_file_cache() {
    let mut workload = cache(512, 400);
    workload.regions[0].accesses = 0.1;
    workload.regions[1].accesses = 0.9;
    workload.regions[1].growth = Growth {
        initial: 0.0,
        from_s: 10.0,
        full_s: 60.0,
        ..Growth::NONE
    };
    let host = host(512, 1024);
    let at_end = |name| {
        let mut sim = start(&workload, &host, name, options(180.0));
        sim.run(|| true);
        *sim.intervals().last().unwrap()
    };
    let (linux, tpp) = (at_end("first-touch"), at_end("tpp"));
    assert!(linux.local_pct < 30.0, "{}", linux.local_pct);
    assert!(tpp.local_pct > 95.0, "{}", tpp.local_pct);
    assert!(tpp.maccesses > linux.maccesses);
}

#[test]
fn an_interleaving_places_pages_by_its_weights() {
    let (workload, host) = (cache(400, 400), host(1024, 1024));
    let mut sim = start(&workload, &host, "interleave:3:1", options(1.0));
    sim.run(|| true);
    let [fast, slow, _] = sim.placed();
    assert_eq!(fast.get(), 3 * slow.get());
}

#[test]
fn a_hot_set_larger_than_the_fast_node_goes_back_and_forth() {
    let mut workload = cache(400, 400);
    // Each page is touched every few seconds: all of them are hot, and not all at every look.
    workload.stalled = 0.0001;
    for region in &mut workload.regions {
        region.bands = vec![Band {
            pages: 1.0,
            accesses: 1.0,
        }];
    }
    let (small, large) = (host(128, 1024), host(1024, 1024));
    let ping_pong = |host: &Host, name| {
        let mut sim = start(&workload, host, name, options(120.0));
        sim.run(|| true);
        sim.counters().ping_pong().unwrap_or(0.0)
    };
    let small = ping_pong(&small, "tpp");
    assert!(small > 0.2, "{small}");
    assert_eq!(ping_pong(&large, "tpp"), 0.0);
}

#[test]
fn a_machine_that_is_full_swaps_and_its_threads_wait() {
    let (workload, host) = (cache(400, 400), host(256, 256));
    let mut sim = start(&workload, &host, "first-touch", options(10.0));
    let run = sim.run(|| true);
    assert!(sim.counters().pswpout > 0 && sim.counters().pswpin > 0);
    assert!(run.kernel_pct > 1.0, "{}", run.kernel_pct);
}

#[test]
fn every_preset_and_every_policy_is_in_order() {
    for (name, _) in presets::names() {
        presets::by_name(name, Bytes::gib(16))
            .unwrap()
            .check()
            .unwrap();
    }
    for (name, _) in policy::NAMES {
        by_name(name).unwrap();
    }
    assert!(by_name("interleave:0:1").is_err());
    assert!(by_name("tpq").is_err());
}

#[test]
fn a_hot_set_that_moves_is_served_by_the_fast_node_less_often() {
    let mut workload = cache(400, 200);
    let host = host(400, 1024);
    let mut local = |drift_per_hour| {
        workload.regions[1].drift_per_hour = drift_per_hour;
        let mut sim = start(&workload, &host, "tpp", options(120.0));
        sim.run(|| true);
        let settled = &sim.intervals()[sim.length() / 2..];
        settled.iter().map(|i| i.local_pct).sum::<f64>() / settled.len() as f64
    };
    let (moving, still) = (local(120.0), local(0.0));
    // What a still set misses is what cold pages take.
    assert!(100.0 - moving > 10.0 * (100.0 - still), "{moving} {still}");
}

/// Records the accesses in a second that a policy sees.
struct Sees(Option<f64>, Arc<Mutex<Vec<f64>>>);

impl weir_pages::Policy for Sees {
    fn event_period(&self) -> Option<f64> {
        self.0
    }
    fn observe(&mut self, seen: &policy::Seen<'_>) {
        self.1.lock().unwrap().push(seen.regions[0].per_s[0]);
    }
}

#[test]
fn event_samples_have_noise_and_cost_time() {
    let (workload, host) = (cache(64, 64), host(256, 256));
    let run = |period| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let policy = Box::new(Sees(period, Arc::clone(&seen)));
        let mut sim = Simulation::new(&workload, &host, policy, options(25.0)).unwrap();
        let speed = sim.run(|| true).maccesses_per_s;
        let seen = seen.lock().unwrap().clone();
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        let square = seen.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        (speed, mean, (square / seen.len() as f64).sqrt())
    };
    let (exact, sampled) = (run(None), run(Some(10_007.0)));
    assert!(exact.2 < 1e-6 * exact.1, "{exact:?}");
    // The deviation of a count is its root; 100 intervals tell it to 7 % (one standard deviation).
    let counted = sampled.1 * 0.25 / 10_007.0;
    let noise = sampled.2 / sampled.1 * counted.sqrt();
    assert!((0.7..1.3).contains(&noise), "{noise} {sampled:?}");
    assert!(
        (sampled.1 / exact.1 - 1.0).abs() < 0.01,
        "{sampled:?} {exact:?}"
    );
    assert!(sampled.0 < exact.0, "{sampled:?} {exact:?}");
}

#[test]
fn phases_move_accesses_between_regions() {
    let mut workload = cache(200, 200);
    workload.phases = [[1.0, 0.0], [0.0, 1.0]]
        .map(|accesses| Phase {
            seconds: 5.0,
            accesses: accesses.to_vec(),
            stalled: None,
        })
        .to_vec();
    // The first region fills the fast node.
    let host = host(220, 1024);
    let mut sim = start(&workload, &host, "interleave:255:1", options(20.0));
    workload.check().unwrap();
    sim.run(|| true);
    assert_eq!(workload.share_at(0, 12.0), 1.0);
    assert_eq!(workload.share_at(0, 17.0), 0.0);
}

#[test]
fn best_shot_interleaves_what_a_tier_is_too_slow_for_and_nothing_else() {
    let scan = presets::by_name("stream", Bytes::gib(2)).unwrap();
    let mut chase = scan.clone();
    (chase.threads, chase.regions[0].mlp) = (2, 1.0);
    let mut host = host(4096, 4096);
    host.fast.curve = TierCurve::of_queue(Nanos(90.0), GbPerSec(52.0));
    host.slow.curve = TierCurve::of_queue(Nanos(140.0), GbPerSec(32.0));
    let run = |workload: &PagedWorkload, policy: &str| {
        let mut sim = start(workload, &host, policy, options(40.0));
        let summary = sim.run(|| true);
        (summary.maccesses_per_s, summary.local_pct, sim.placed()[1])
    };
    let (before, after) = (run(&scan, "first-touch"), run(&scan, "best-shot"));
    assert!(after.0 > before.0 * 1.1, "{before:?} {after:?}");
    assert!(
        (Bytes::mib(600)..Bytes::mib(880)).contains(&after.2),
        "{after:?}"
    );
    assert_eq!(run(&chase, "best-shot").2, Bytes(0));
}

#[test]
fn triangle_counting_has_most_misses_early_and_most_slowdown_late() {
    let workload = presets::graphs::by_name("tc-twitter").unwrap();
    let rates = |slow: bool| {
        let mut host = if slow {
            host(16, 16 << 10)
        } else {
            host(16 << 10, 16)
        };
        host.slow.curve = TierCurve::of_queue(Nanos(250.0), GbPerSec(200.0));
        let mut sim = start(&workload, &host, "first-touch", options(100.0));
        sim.run(|| true);
        // While lists are sorted, and while they are merged.
        [30.0, 90.0].map(|t| sim.intervals()[(t / 0.25) as usize].maccesses)
    };
    let (fast, slow) = (rates(false), rates(true));
    assert!(fast[0] > fast[1] * 1.1, "{fast:?}");
    assert!(
        fast[1] / slow[1] > fast[0] / slow[0] * 1.05,
        "{fast:?} {slow:?}"
    );
}

#[test]
fn a_scan_finds_each_page_cold_until_it_comes_round_again() {
    // All pages are alike, and more than the fast node holds.
    let mut workload = cache(200, 200);
    (workload.threads, workload.stalled) = (1, 0.05);
    for region in &mut workload.regions {
        (region.kind, region.mlp) = (PageKind::Anon, 12.0);
        region.bands = vec![Band {
            pages: 1.0,
            accesses: 1.0,
        }];
    }
    let host = host(300, 1024);
    let mut run = |burst| {
        workload.regions.iter_mut().for_each(|r| r.burst = burst);
        let mut sim = start(&workload, &host, "tpp", options(120.0));
        sim.run(|| true);
        let counters = sim.counters();
        (counters.demoted(), counters.promoted())
    };
    // Lines that are touched at random keep every page in use; a scan leaves each page for all others.
    let (random, scan) = (run(1.0), run(64.0));
    assert!(scan.0 > 4 * random.0.max(1), "{random:?} {scan:?}");
    assert!(scan.1 > 4 * random.1.max(1), "{random:?} {scan:?}");
}

#[test]
fn a_region_of_fewer_pages_than_bands_drifts_as_well() {
    let mut workload = cache(64, 24);
    let anon = &mut workload.regions[1];
    anon.page = Bytes::mib(2);
    anon.drift_per_hour = 3600.0;
    // Of twelve pages the first two bands have none.
    let bands = [(0.02, 0.3), (0.02, 0.2), (0.1, 0.3), (0.86, 0.2)];
    anon.bands = bands
        .map(|(pages, accesses)| Band { pages, accesses })
        .to_vec();
    let host = host(64, 64);
    let mut simulation = start(&workload, &host, "tpp", options(30.0));
    simulation.run(|| true);
    let local = simulation.intervals().iter().map(|i| i.local_pct);
    local.for_each(|pct| assert!((0.0..=100.0).contains(&pct), "{pct}"));
    let placed = simulation.placed().map(Bytes::get);
    assert_eq!(placed.iter().sum::<u64>(), simulation.allocated().get());
}

#[test]
fn the_hot_set_is_of_pages_that_are_touched_more_often_than_the_mean_page() {
    // A fifth of each region has almost all of its accesses.
    let mut workload = cache(400, 200);
    let all: u64 = workload.regions.iter().map(|r| r.bytes.get()).sum();
    let hot = workload.hot_set().get() as f64 / all as f64;
    assert!((hot - 0.2).abs() < 0.01, "{hot}");
    // In the time of the phases only the second region is accessed.
    let only = workload.regions[1].bytes.get() as f64 * 0.2;
    workload.phases = vec![Phase {
        seconds: 1.0,
        accesses: vec![0.0, 1.0],
        stalled: None,
    }];
    assert_eq!(workload.hot_set().get(), only as u64);
}
