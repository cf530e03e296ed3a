//! The tuners: Caption's trace and its laws, and best-shot's queues.

use crate::common;

use common::{IDLE, Program};
use proptest::prelude::*;
use weir_insight::Run;
use weir_insight::interleave::Weights;
use weir_insight::interleave::best_shot::{Aim, Load, aim, latency_bound_slowdown, run_time};
use weir_insight::interleave::caption::{Caption, Did, Settings, State};
use weir_insight::interleave::kernels::{self, Swept};
use weir_insight::interleave::latency::Latencies;
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Capacity, InterleaveFit, LoadKind, Margin, PrefetchForm};
use weir_model::units::{Cycles, GbPerSec, Nanos};

/// Reads alone, of which nothing else is known.
const READS: LoadKind = LoadKind {
    ownership: 0.0,
    written: None,
    followed: None,
    past_caches: None,
};

/// A pair of tiers, the second of which takes half as long again and gives this much.
fn a_fit(queueing: f64, prefetched: f64, gives: f64) -> InterleaveFit {
    InterleaveFit {
        unloaded: [Cycles(200.0), Cycles(310.0)],
        queueing,
        slow_queueing: queueing,
        prefetched,
        exposed: 1.0,
        capacity: vec![Capacity {
            kind: READS,
            bandwidth: GbPerSec(gives),
            local: GbPerSec(60.0),
            latency: Cycles(600.0),
        }],
        unfollowed: Vec::new(),
        error: Margin {
            relative: 0.1,
            floor_pct: 5.0,
        },
    }
}

fn known_fit() -> impl Strategy<Value = InterleaveFit> {
    (0.05..0.5_f64, 0.6..1.6_f64, 5.0..60.0_f64).prop_map(|(q, w, gives)| a_fit(q, w, gives))
}

fn load() -> impl Strategy<Value = Load> {
    let stalls = (0.0..0.5_f64, 0.0..0.3_f64);
    (stalls, 200.0..1200.0_f64, 10.0..60.0_f64).prop_map(
        |((stalled, prefetched), latency, traffic)| Load {
            stalled,
            prefetched,
            latency: Cycles(latency),
            traffic: GbPerSec(traffic),
            kind: READS,
        },
    )
}

fn exactly(mean: f64) -> State {
    State { mean, noise: 0.0 }
}

/// Tunes on a workload whose figure depends on the weights alone.
fn climb(caption: &mut Caption, figure: impl Fn(u32) -> f64, tunings: u32) -> Vec<u32> {
    let mut seen = vec![caption.weights().slow];
    for _ in 0..tunings {
        let figure = figure(caption.weights().slow);
        seen.push(caption.tune(exactly(figure), true).slow);
    }
    seen
}

/// The published trace (Figure 12b): 9.1, 28.6, 41.2, 37.5, 33.3 %, better, better, worse, better.
#[test]
fn the_published_trace() {
    let mut caption = Caption::new(Settings::default());
    let mut trace = vec![caption.weights()];
    for figure in [10.0, 11.0, 10.5, 10.8] {
        trace.push(caption.tune(exactly(figure), true));
    }
    let slow: Vec<u32> = trace.iter().map(|w| w.slow).collect();
    assert_eq!(slow, [1, 4, 7, 6, 5]);
    let percent: Vec<String> = trace
        .iter()
        .map(|w| format!("{:.1}", w.share() * 100.0))
        .collect();
    assert_eq!(percent, ["9.1", "28.6", "41.2", "37.5", "33.3"]);
}

#[test]
fn without_new_pages_history_stands_still() {
    let mut caption = Caption::new(Settings::default());
    caption.tune(exactly(10.0), true);
    let first = caption.tune(exactly(11.0), false);
    for _ in 0..5 {
        assert_eq!(caption.tune(exactly(11.0), false), first, "history moved");
    }
    // The figure is still measured against 10, and the step still taken from 4.
    assert_eq!(caption.tune(exactly(9.0), false).slow, 3);
    assert_eq!(caption.tune(exactly(11.0), true).slow, 7);
    assert_eq!(caption.tune(exactly(12.0), true).slow, 10);
}

#[test]
fn changes_within_the_noise_are_none() {
    let mut caption = Caption::new(Settings::default());
    caption.tune(
        State {
            mean: 10.0,
            noise: 0.3,
        },
        true,
    );
    let held = caption.tune(
        State {
            mean: 9.8,
            noise: 0.3,
        },
        true,
    );
    assert_eq!((held.slow, caption.did()), (4, Some(Did::Held)));
    assert!(caption.is_settled());
    // Still measured against 10, so that small losses add up.
    caption.tune(
        State {
            mean: 9.45,
            noise: 0.3,
        },
        true,
    );
    assert_eq!(caption.did(), Some(Did::Back));
}

#[test]
fn another_phase_begins_anew() {
    let mut caption = Caption::new(Settings::default());
    climb(&mut caption, |slow| 10.0 + f64::from(slow), 3);
    let reset = caption.tune(exactly(100.0), true);
    assert_eq!((reset.slow, caption.did()), (1, Some(Did::Reset)));
    assert_eq!(caption.tune(exactly(101.0), true).slow, 4);
}

#[test]
fn a_latency_bound_workload_drifts_to_the_lower_bound() {
    let mut caption = Caption::new(Settings::default());
    let seen = climb(&mut caption, |slow| 10.0 - 0.1 * f64::from(slow), 12);
    assert_eq!(seen.last(), Some(&1), "{seen:?}");
}

proptest! {
    /// One peak, anywhere: found within ten tunings to one unit, and held from then on.
    #[test]
    fn the_climb_converges_within_ten_steps(peak in 1..=20_u32, steep in 0.5..4.0_f64) {
        let figure = |slow: u32| 100.0 - steep * (f64::from(slow) - f64::from(peak)).abs();
        let mut caption = Caption::new(Settings { sudden: 10.0, ..Settings::default() });
        let seen = climb(&mut caption, figure, 20);
        for slow in &seen[10..] {
            prop_assert!(slow.abs_diff(peak) <= 1, "peak {peak}: {seen:?}");
        }
    }

    #[test]
    fn bounds_hold_whatever_is_measured(figures in prop::collection::vec(-1e6..1e6_f64, 1..60)) {
        let mut caption = Caption::new(Settings::default());
        for (n, figure) in figures.into_iter().enumerate() {
            let weights = caption.tune(exactly(figure), n % 3 != 0);
            prop_assert!((1..=20).contains(&weights.slow));
            prop_assert_eq!(weights.local, 10);
        }
    }

    /// Noise below the dead band never moves it.
    #[test]
    fn a_flat_figure_is_held(noise in prop::collection::vec(-0.1..0.1_f64, 5..40)) {
        let mut caption = Caption::new(Settings::default());
        caption.tune(State { mean: 50.0, noise: 0.2 }, true);
        let place = caption.weights();
        for n in noise {
            prop_assert_eq!(caption.tune(State { mean: 50.0 + n, noise: 0.2 }, true), place);
        }
    }

    #[test]
    fn with_every_page_local_nothing_changes(load in load(), fit in known_fit()) {
        prop_assert!((run_time(&fit, &load, 0.0) - 1.0).abs() < 1e-9);
    }

    /// Neither tier serves more than it can, and the time is the one that follows from itself.
    #[test]
    fn no_tier_is_asked_for_more_than_it_has(
        load in load(),
        fit in known_fit(),
        share in 0.0..=1.0_f64,
    ) {
        let time = run_time(&fit, &load, share);
        let drawn = share * load.traffic.get() / time;
        prop_assert!(drawn <= fit.capacity[0].bandwidth.get() * (1.0 + 1e-9));
        prop_assert!(time >= 1.0 - load.stalled - load.prefetched - 1e-9);
    }

    #[test]
    fn a_slower_tier_that_gives_more_is_never_worse(
        load in load(),
        fit in known_fit(),
        share in 0.0..=1.0_f64,
        more in 1.0..3.0_f64,
    ) {
        let mut wider = fit.clone();
        wider.capacity[0].bandwidth = wider.capacity[0].bandwidth * more;
        let (narrow, wide) = (run_time(&fit, &load, share), run_time(&wider, &load, share));
        prop_assert!(wide <= narrow + 1e-9);
    }

    /// Without queues it is the law of work that waits for latency (SupMario section 6.2), and the advice to
    /// stay.
    #[test]
    fn what_does_not_queue_pays_for_every_page(
        stalled in 0.0..1.0_f64,
        fit in known_fit(),
        exposed in 0.0..=1.0_f64,
        share in 0.0..=1.0_f64,
    ) {
        let fit = InterleaveFit { exposed, ..fit };
        let load = Load {
            stalled,
            prefetched: 0.0,
            latency: fit.unloaded[0],
            traffic: GbPerSec(1e-9),
            kind: READS,
        };
        let all_slow = stalled * exposed * (fit.unloaded[1] / fit.unloaded[0] - 1.0);
        let found = run_time(&fit, &load, share) - 1.0;
        prop_assert!((found - latency_bound_slowdown(all_slow, share)).abs() < 1e-6);
        prop_assert!(!aim(&fit, &load, 20).is_worth_it());
    }

    /// A tier that gives less has half of the pages at most, and the error is what is lost if it gives a twentieth less.
    #[test]
    fn advice_fills_no_tier_and_says_what_that_costs(load in load(), fit in known_fit()) {
        let sure = Margin { relative: 0.0, floor_pct: 5.0 };
        let fit = InterleaveFit { error: sure, ..fit };
        let advised = aim(&fit, &load, 20);
        prop_assert!(advised.weights.slow <= 10);
        let mut narrow = fit;
        narrow.capacity[0].bandwidth = narrow.capacity[0].bandwidth * 0.95;
        let gained = 1.0 / run_time(&narrow, &load, advised.weights.share()) - 1.0;
        prop_assert!((advised.gain - advised.error - gained).abs() < 1e-6, "{advised:?} {gained}");
    }
}

proptest! {
    // Each looks through thousands of factors.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn kernels_that_follow_the_law_give_its_factors_back(
        fit in known_fit(),
        loads in prop::collection::vec(load(), 4..8),
    ) {
        // None that hardly waits, of which any factor would do, nor one that does nothing else.
        let swept: Vec<Swept> = (loads.into_iter())
            .map(|load| Load { stalled: 0.3, prefetched: 0.3, ..load })
            .map(|load| {
                let times = [0.1, 0.2, 0.3, 0.4, 0.5].map(|x| (x, run_time(&fit, &load, x)));
                Swept { load, times: times.to_vec() }
            })
            .collect();
        let found = kernels::fit(&swept, fit.unloaded, fit.capacity.clone(), Vec::new()).unwrap();
        for kernel in &swept {
            for &(share, time) in &kernel.times {
                let off = run_time(&found, &kernel.load, share) / time - 1.0;
                prop_assert!(off.abs() < 0.03, "{share}: {off} with {found:?} for {fit:?}");
            }
        }
    }

}

proptest! {
    #[test]
    fn what_latency_bound_work_loses_is_linear_in_the_share(slowdown in 0.0..3.0_f64, share in 0.0..=0.5_f64) {
        let half = latency_bound_slowdown(slowdown, share);
        prop_assert!((latency_bound_slowdown(slowdown, 2.0 * share) - 2.0 * half).abs() < 1e-12);
        prop_assert_eq!(latency_bound_slowdown(slowdown, 1.0), slowdown);
    }
}

/// All its reads may hit the last-level cache.
#[test]
fn a_load_that_draws_nothing_stays() {
    let load = Load {
        stalled: 0.4,
        prefetched: 0.1,
        latency: Cycles(70.0),
        traffic: GbPerSec(0.0),
        kind: READS,
    };
    let advised = aim(&a_fit(0.2, 1.0, 30.0), &load, 20);
    assert!(advised.weights.slow == 0 && !advised.is_worth_it());
}

#[test]
fn a_gain_within_its_error_is_none() {
    let mut fit = a_fit(0.16, 1.2, 30.0);
    let load = Load {
        stalled: 0.8,
        prefetched: 0.0,
        latency: fit.unloaded[0] * 2.0,
        traffic: GbPerSec(50.0),
        kind: READS,
    };
    let sure = aim(&fit, &load, 20);
    assert!(sure.is_worth_it() && sure.gain > 0.1, "{sure:?}");
    fit.error.relative = 0.9;
    let unsure = aim(&fit, &load, 20);
    assert_eq!((unsure.weights, unsure.gain), (sure.weights, sure.gain));
    assert!(!unsure.is_worth_it(), "{unsure:?}");
}

/// What looks like kernels that the slower tier gives less to is advised for those, and the difference is an
/// error.
#[test]
fn where_the_tier_may_give_less_the_advice_is_for_less() {
    let followed = |share| LoadKind {
        followed: Some(share),
        ..READS
    };
    let mut fit = a_fit(0.16, 1.2, 30.0);
    let mut load = Load {
        stalled: 0.8,
        prefetched: 0.0,
        latency: fit.unloaded[0] * 2.0,
        traffic: GbPerSec(50.0),
        kind: followed(0.9),
    };
    let sure = aim(&fit, &load, 20);
    fit.unfollowed = vec![Capacity {
        kind: followed(0.0),
        bandwidth: GbPerSec(8.0),
        ..fit.capacity[0]
    }];
    fit.capacity[0].kind = followed(0.9);
    assert_eq!(aim(&fit, &load, 20), sure, "it is none of those");
    let mut narrow = fit.clone();
    narrow.capacity[0].bandwidth = GbPerSec(8.0);
    for kind in [followed(0.1), READS] {
        load.kind = kind;
        let unsure = aim(&fit, &load, 20);
        assert!(unsure.weights.slow < sure.weights.slow, "{unsure:?}");
        let gained = 1.0 / run_time(&narrow, &load, unsure.weights.share()) - 1.0;
        assert!(
            gained >= unsure.gain - unsure.error - 1e-9,
            "{unsure:?}, but {gained}"
        );
        assert!(gained > 0.0, "{unsure:?}, but {gained}");
    }
}

#[test]
fn what_is_as_much_alike_as_makes_no_difference_tells_of_the_least() {
    let followed = |share| LoadKind {
        followed: Some(share),
        ..READS
    };
    let mut fit = a_fit(0.16, 1.2, 30.0);
    let load = Load {
        stalled: 0.8,
        prefetched: 0.0,
        latency: fit.unloaded[0] * 2.0,
        traffic: GbPerSec(50.0),
        kind: followed(0.02),
    };
    let kernel = |share, gives| Capacity {
        kind: followed(share),
        bandwidth: GbPerSec(gives),
        ..fit.capacity[0]
    };
    let (near, narrow) = (kernel(0.0, 30.0), kernel(0.15, 8.0));
    fit.capacity[0].kind = followed(0.9);
    let mut advised = |unfollowed| {
        fit.unfollowed = unfollowed;
        aim(&fit, &load, 20).weights.slow
    };
    assert!(advised(vec![near, narrow]) < advised(vec![near]));
}

#[test]
fn a_load_is_given_what_kernels_get_that_write_as_much_back() {
    let written = |share| LoadKind {
        written: Some(share),
        ..READS
    };
    let mut fit = a_fit(0.16, 1.2, 30.0);
    let kernel = |share, gives| Capacity {
        kind: written(share),
        bandwidth: GbPerSec(gives),
        ..fit.capacity[0]
    };
    let (reads, writes) = (kernel(0.0, 30.0), kernel(1.0, 10.0));
    let load = Load {
        stalled: 0.8,
        prefetched: 0.0,
        latency: fit.unloaded[0] * 2.0,
        traffic: GbPerSec(50.0),
        kind: written(1.0),
    };
    let mut time = |capacity| {
        fit.capacity = capacity;
        run_time(&fit, &load, 0.5)
    };
    let (both, alone, other) = (
        time(vec![reads, writes]),
        time(vec![writes]),
        time(vec![reads]),
    );
    assert!(
        alone - both < (both - other) / 4.0,
        "{alone} {both} {other}"
    );
}

#[test]
fn nobody_moves_pages_for_next_to_nothing() {
    let worth = |gain| {
        let weights = Weights { local: 19, slow: 1 };
        let error = 0.0;
        Aim {
            weights,
            gain,
            error,
        }
        .is_worth_it()
    };
    assert!(!worth(0.002) && worth(0.003));
}

#[test]
fn the_error_is_what_nine_in_ten_kernels_fall_short_by() {
    // The last gains 5 points less than expected, of 5 and 10; the others what is expected.
    let mut ran = vec![(0.10, 0.10); 19];
    ran.push((0.10, 0.05));
    assert_eq!(kernels::error(&ran).relative, 0.0);
    let few = &ran[17..];
    assert!((kernels::error(few).relative - 0.05 / 0.15).abs() < 1e-12);
    assert_eq!(
        kernels::error(&[(0.1, 0.3)]).relative,
        0.0,
        "more is no error"
    );
}

#[test]
fn too_few_kernels_are_no_calibration() {
    let fit = a_fit(0.16, 1.0, 30.0);
    let error = kernels::fit(&[], fit.unloaded, fit.capacity, Vec::new()).unwrap_err();
    assert!(error.to_string().contains("too few kernels"), "{error}");
}

/// Reads that hit the last-level cache would make memory look faster than it is. A handful of misses on demand
/// says nothing of the prefetches.
#[test]
fn the_latency_is_that_of_misses_where_there_are_enough() {
    let mut counters = IDLE.local(PrefetchForm::SapphireRapids);
    counters.set(Counter::TorInsertsIaMiss, 1_000_000);
    let reads = counters.get(Counter::OffcoreDataRd).unwrap();
    let latency = |counters: &CounterSet| {
        let load = Load::of(&Run::of(counters).unwrap(), Nanos(1e9)).unwrap();
        load.latency.get()
    };
    let of_all = latency(&counters);
    for (misses, found) in [(reads / 4, of_all + 100.0), (reads / 1000, of_all)] {
        let under_way = misses as f64 * (of_all + 100.0);
        counters.set(Counter::OffcoreL3MissDemandDataRd, misses);
        let outstanding = Counter::OffcoreOutstandingL3MissDemandDataRd;
        counters.set(outstanding, under_way as u64);
        let off = latency(&counters) / found - 1.0;
        assert!(off.abs() < 1e-3, "{misses} of {reads}: {off}");
    }
}

#[test]
fn prefetches_are_the_reads_that_no_load_asked_for() {
    let mut counters = IDLE.local(PrefetchForm::SapphireRapids);
    let add = |counters: &mut CounterSet, counter, more: u64| {
        let before = counters.get(counter).unwrap();
        counters.set(counter, before + more);
    };
    let found = |counters: &CounterSet| Latencies::of(&Run::of(counters).unwrap()).unwrap();
    let before = found(&counters);
    assert!((before.prefetches.get() - 300.0).abs() < 1e-3, "{before:?}");
    assert!((before.stores.get() - 400.0).abs() < 1e-3, "{before:?}");
    // As many prefetches again, each of which takes 100 cycles more.
    let prefetches = counters.get(Counter::OffcoreDemandDataRd).unwrap();
    add(&mut counters, Counter::OffcoreDataRd, prefetches);
    add(
        &mut counters,
        Counter::OffcoreOutstandingDataRd,
        400 * prefetches,
    );
    let after = found(&counters);
    assert!((after.prefetches.get() - 350.0).abs() < 1e-3, "{after:?}");
    assert_eq!(after.stores, before.stores);
}

#[test]
fn a_load_is_read_from_one_run() {
    let program = Program {
        miss_stalls: 0.4,
        store: 0.1,
        ..IDLE
    };
    let mut counters = program.local(PrefetchForm::SapphireRapids);
    counters.set(Counter::TorInsertsIaMiss, 1_000_000_000);
    let load = |counters: &CounterSet| Load::of(&Run::of(counters).unwrap(), Nanos(1e9));
    let found = load(&counters).unwrap();
    assert!((found.stalled - 0.5).abs() < 1e-6, "{found:?}");
    assert!((found.latency.get() - 300.0).abs() < 1e-3, "{found:?}");
    assert!((found.traffic.get() - 64.0).abs() < 1e-9, "{found:?}");
    for counter in [Counter::OffcoreDemandRfo, Counter::TorInsertsIaMiss] {
        let mut blind = counters.clone();
        blind.set_unavailable(counter, Unavailable::because("no such event"));
        let error = load(&blind).unwrap_err().to_string();
        assert!(
            error.contains("no such event") && error.contains(counter.name()),
            "{error}"
        );
    }
}
