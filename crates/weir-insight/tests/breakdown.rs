//! Laws of the breakdown.

use crate::common;

use common::{CYCLES, IDLE, Program};
use proptest::prelude::*;
use weir_insight::bound::classify;
use weir_insight::breakdown::{Breakdown, Difference};
use weir_insight::documents::Yardstick;
use weir_insight::explain::CountedRun;
use weir_insight::prefetch::Health;
use weir_insight::{InsightError, Run};
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Bound, PrefetchForm};
use weir_model::metric::OwnMetric;
use weir_model::units::{Cycles, GbPerSec, Nanos};

const FORM: PrefetchForm = PrefetchForm::SapphireRapids;

/// Counters of any run that can be: nested stalls, and no more of them than cycles.
fn counters() -> impl Strategy<Value = CounterSet> {
    (
        1_000_000..u64::from(u32::MAX),
        1..u64::from(u32::MAX),
        prop::array::uniform5(0.0..1.0_f64),
    )
        .prop_map(|(cycles, instructions, [any, l1d, l2, l3, store])| {
            let mut set = CounterSet::default();
            let mut stalled = cycles as f64;
            set.set(Counter::Cycles, cycles);
            set.set(Counter::Instructions, instructions);
            for (counter, part) in [
                (Counter::StallsMemAny, any),
                (Counter::StallsL1dMiss, l1d),
                (Counter::StallsL2Miss, l2),
                (Counter::StallsL3Miss, l3),
            ] {
                stalled *= part;
                set.set(counter, stalled as u64);
            }
            set.set(
                Counter::BoundOnStores,
                ((1.0 - any) * store * cycles as f64) as u64,
            );
            set
        })
}

fn times(set: &CounterSet, factor: u64) -> CounterSet {
    let mut scaled = CounterSet::default();
    for (counter, value) in set.iter() {
        scaled.set(counter, value * factor);
    }
    scaled
}

/// A run whose cycles were not counted, with what it got done in a second.
fn without_cycles(per_s: Option<f64>, ms: f64) -> CountedRun {
    CountedRun {
        metric: per_s.map(|rate| OwnMetric {
            unit: "requests/s".into(),
            rate,
            ns: None,
            p99: None,
        }),
        time: Some(Nanos(ms * 1e6)),
        name: "a server".into(),
        tier: None,
        beside: None,
        memory: None,
        gbps: None,
        exit_status: None,
        counters: CounterSet::default(),
        phases: Vec::new(),
        prefetch: None,
        unloaded: None,
    }
}

proptest! {
    /// How long a server was observed says nothing of it, and how long a command took does.
    #[test]
    fn runs_without_cycles_are_compared_by_what_they_got_done_or_by_time(
        rates in (1.0..1e6_f64, 1.0..1e6_f64),
        times in (1.0..1e6_f64, 1.0..1e6_f64),
    ) {
        let between = |one, two| without_cycles(one, times.0).difference(&without_cycles(two, times.1));
        let served = between(Some(rates.0), Some(rates.1)).unwrap();
        prop_assert_eq!(served.by, Yardstick::Rate);
        prop_assert!((served.slowdown_pct - (rates.0 / rates.1 - 1.0) * 100.0).abs() < 1e-6 * rates.0);
        let timed = between(None, None).unwrap();
        prop_assert_eq!(timed.by, Yardstick::Time);
        prop_assert!((timed.slowdown_pct - (times.1 / times.0 - 1.0) * 100.0).abs() < 1e-6 * times.1);
        prop_assert!(between(Some(rates.0), None).is_err());
        prop_assert!(between(Some(rates.0), Some(0.0)).is_err());
        prop_assert!(without_cycles(Some(rates.0), 1.0).explain().is_ok());
    }
}

proptest! {
    #[test]
    fn causes_and_the_rest_add_up_to_the_slowdown(local in counters(), other in counters()) {
        let (local, other) = (Run::of(&local).unwrap(), Run::of(&other).unwrap());
        let difference = Difference::between(&local, &other).unwrap();
        let added = difference.added;
        let levels = added.l1.unwrap() + added.l2.unwrap() + added.l3.unwrap();
        prop_assert!((levels - added.cache.unwrap()).abs() <= 1e-9 * (1.0 + levels.abs()));
        let all = added.sum().unwrap() + difference.other.unwrap();
        prop_assert!((all - difference.slowdown).abs() <= 1e-9 * (1.0 + all.abs()));
    }

    #[test]
    fn a_run_beside_itself_loses_nothing(local in counters()) {
        let run = Run::of(&local).unwrap();
        let difference = Difference::between(&run, &run).unwrap();
        prop_assert_eq!(difference.slowdown, 0.0);
        prop_assert_eq!(difference.added.sum(), Some(0.0));
    }

    #[test]
    fn runs_are_compared_for_one_instruction(local in counters(), other in counters(), factor in 2..50_u64) {
        let once = Difference::between(&Run::of(&local).unwrap(), &Run::of(&other).unwrap()).unwrap();
        let longer = times(&other, factor);
        let more = Difference::between(&Run::of(&local).unwrap(), &Run::of(&longer).unwrap()).unwrap();
        prop_assert!((once.slowdown - more.slowdown).abs() <= 1e-9 * (1.0 + once.slowdown.abs()));
    }

    #[test]
    fn shares_of_one_run_are_shares(local in counters()) {
        let breakdown = Breakdown::of(&Run::of(&local).unwrap());
        let lost = breakdown.lost;
        for share in [lost.store, lost.l1, lost.l2, lost.l3, lost.dram] {
            prop_assert!((0.0..=1.0).contains(&share.unwrap()));
        }
        prop_assert!(lost.sum().unwrap() <= 1.0 + 1e-6);
        prop_assert!(breakdown.untold.is_empty());
    }

    /// Whatever is counted, the answer is a breakdown or an error, and no figure without its counter.
    #[test]
    fn no_counters_break_it(values in prop::collection::vec((0..Counter::ALL.len(), any::<u64>()), 0..60)) {
        let mut set = CounterSet::default();
        for (counter, value) in values {
            set.set(Counter::ALL[counter], value);
        }
        if let Ok(run) = Run::of(&set) {
            let breakdown = Breakdown::of(&run);
            prop_assert_eq!(breakdown.lost.dram.is_some(), set.get(Counter::StallsL3Miss).is_ok());
            let _ = classify(&run, Some(Cycles(200.0)));
            let _ = Health::of(&run, FORM);
            if let Ok(difference) = Difference::between(&run, &run) {
                prop_assert_eq!(difference.slowdown, 0.0);
            }
        }
    }
}

#[test]
fn a_missing_level_leaves_the_sum_of_the_caches() {
    let program = Program {
        miss_stalls: 0.3,
        level_stalls: 0.2,
        ..IDLE
    };
    let mut local = program.local(FORM);
    local.set_unavailable(
        Counter::StallsL2Miss,
        Unavailable::because("multiplexed to 4 %"),
    );
    let breakdown = Breakdown::of(&Run::of(&local).unwrap());
    assert_eq!(breakdown.lost.l2, None);
    assert_eq!(breakdown.lost.l3, None);
    assert!((breakdown.lost.cache.unwrap() - 0.2).abs() < 1e-9);
    let [untold] = breakdown.untold.as_slice() else {
        panic!("{:?}", breakdown.untold)
    };
    assert_eq!(
        (untold.counter, untold.why.as_str()),
        (Counter::StallsL2Miss, "multiplexed to 4 %")
    );
    // Of two runs either may lack it.
    let whole = program.local(FORM);
    let [whole, part] = [&whole, &local].map(|counters| Run::of(counters).unwrap());
    for (a, b) in [(&whole, &part), (&part, &whole)] {
        assert_eq!(Difference::between(a, b).unwrap().untold.len(), 1);
    }
}

#[test]
fn counts_that_cannot_be_are_refused() {
    let run = Program {
        miss_stalls: 0.4,
        ..IDLE
    }
    .local(FORM);
    let with = |counter, value| {
        let mut counters = run.clone();
        counters.set(counter, value);
        Run::of(&counters).map(|_| ()).unwrap_err()
    };
    assert_eq!(with(Counter::Cycles, 0), InsightError::NothingRan);
    // A counter of 48 bits that ran over.
    let wrapped = with(Counter::StallsL3Miss, u64::MAX - 7).to_string();
    assert!(wrapped.contains("wrapped"), "{wrapped}");
    // Counters that take turns may be off by a little.
    let stores = |share: f64| {
        let mut counters = run.clone();
        counters.set(Counter::BoundOnStores, (CYCLES * share) as u64);
        Run::of(&counters).map(|_| ())
    };
    assert_eq!(stores(1.02), Ok(()));
    assert!(stores(1.1).is_err());
    let under_way = |share: f64| {
        let mut counters = run.clone();
        counters.set(Counter::OffcoreCyclesDemandDataRd, (CYCLES * 0.5) as u64);
        let occupancy = Counter::OffcoreOutstandingDemandDataRd;
        counters.set(occupancy, (CYCLES * share) as u64);
        Run::of(&counters).map(|_| ())
    };
    assert_eq!(under_way(0.48), Ok(()));
    assert!(under_way(0.4).is_err());
    let swapped = with(Counter::StallsL1dMiss, 0).to_string();
    assert!(swapped.contains("swapped"), "{swapped}");
    let mut nothing = CounterSet::default();
    nothing.set(Counter::StallsL3Miss, 5);
    assert!(matches!(
        Run::of(&nothing),
        Err(InsightError::Missing { .. })
    ));
    let mut dead = run.clone();
    dead.set(Counter::Instructions, 0);
    let alive = Run::of(&run).unwrap();
    assert!(Difference::between(&alive, &Run::of(&dead).unwrap()).is_err());
}

#[test]
fn requests_that_take_longer_than_a_lone_one_queue() {
    let counters = Program {
        miss_stalls: 0.4,
        aol: 300.0,
        ..IDLE
    }
    .local(FORM);
    let run = Run::of(&counters).unwrap();
    assert_eq!(
        classify(&run, Some(Cycles(280.0))).bound,
        Some(Bound::Latency)
    );
    assert_eq!(
        classify(&run, Some(Cycles(200.0))).bound,
        Some(Bound::Bandwidth)
    );
    assert_eq!(classify(&run, None).bound, None);
    let mut none = counters.clone();
    none.set(Counter::OffcoreDataRd, 0);
    let idle = classify(&Run::of(&none).unwrap(), None);
    assert_eq!(idle.bound, Some(Bound::Latency), "{}", idle.evidence);
    let mut blind = counters.clone();
    for counter in [
        Counter::OffcoreOutstandingDataRd,
        Counter::OffcoreOutstandingDemandDataRd,
    ] {
        blind.set_unavailable(counter, Unavailable::because("not on this processor"));
    }
    let classified = classify(&Run::of(&blind).unwrap(), Some(Cycles(200.0)));
    assert!(classified.bound.is_none() && classified.evidence.contains("not on this processor"));
}

#[test]
fn phases_have_their_part_of_the_cycles_and_are_compared_by_name() {
    let mut once = IDLE.local(FORM);
    once.set(Counter::TorInsertsIaMiss, 1_000_000_000);
    let run = |names: [&str; 2]| CountedRun {
        counters: times(&once, 4),
        phases: vec![
            (names[0].into(), once.clone()),
            (names[1].into(), times(&once, 3)),
        ],
        ..without_cycles(None, 1e3)
    };
    let found = run(["a", "b"]).explain().unwrap();
    let shares: Vec<f64> = found.phases.iter().map(|phase| phase.share_pct).collect();
    assert_eq!(shares, [25.0, 75.0]);
    // 4e9 lines in a second, unless they were counted for it alone.
    assert_eq!(found.gbps, Some(GbPerSec(256.0)));
    let alone = CountedRun {
        gbps: Some(GbPerSec(7.0)),
        ..run(["a", "b"])
    };
    assert_eq!(alone.explain().unwrap().gbps, Some(GbPerSec(7.0)));
    let compared = |names| {
        run(["a", "b"])
            .difference(&run(names))
            .unwrap()
            .phases
            .len()
    };
    assert_eq!((compared(["a", "b"]), compared(["a", "c"])), (2, 0));
}

#[test]
fn prefetch_health_is_what_was_counted() {
    let program = Program {
        fill_buffer_hits: 0.7,
        from_memory: 0.5,
        by_l1: 0.25,
        ..IDLE
    };
    let counters = program.local(FORM);
    let health = Health::of(&Run::of(&counters).unwrap(), FORM);
    assert!((health.fill_buffer_hits.unwrap() - 0.7).abs() < 1e-9);
    assert!((health.by_l1.unwrap() - 0.25).abs() < 1e-9);
    // 1e11 prefetches in 8e12 instructions, half of them from memory, a quarter by L1.
    assert!((health.l1_misses_pki.unwrap() - 1.5625).abs() < 1e-9);
    assert!((health.l2_misses_pki.unwrap() - 4.6875).abs() < 1e-9);
}
