//! Laws of the slowdown model, on counters whose constants are known.

use crate::common;

use common::{CONSTANTS, IDLE, Program, micros, model};
use proptest::prelude::*;
use weir_insight::slowdown::predict::{hold_out, try_out};
use weir_insight::slowdown::{Metrics, calibrate, metrics, predict};
use weir_insight::{InsightError, Run, score};
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Constants, Micro, PrefetchForm};
use weir_model::units::Cycles;

const FORMS: [PrefetchForm; 2] = [PrefetchForm::Skylake, PrefetchForm::SapphireRapids];

fn constants() -> impl Strategy<Value = Constants> {
    (0.2..4.0_f64, 0.1..3.0_f64, 0.0..80.0_f64, 0.2..2.0_f64).prop_map(|(k2, k3, p, q)| Constants {
        k1: 1.0,
        k2,
        k3,
        k4: 0.0,
        p: Cycles(p),
        q,
    })
}

fn program() -> impl Strategy<Value = Program> {
    (
        0.0..0.5_f64,
        8.0..300.0_f64,
        0.0..0.3_f64,
        0.0..1.0_f64,
        0.0..1.0_f64,
        0.0..1.0_f64,
        0.0..0.2_f64,
    )
        .prop_map(
            |(miss_stalls, aol, level_stalls, fill_buffer_hits, from_memory, by_l1, store)| {
                Program {
                    miss_stalls,
                    aol,
                    level_stalls,
                    fill_buffer_hits,
                    from_memory,
                    by_l1,
                    store,
                }
            },
        )
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + b.abs())
}

proptest! {
    #[test]
    fn calibration_finds_the_constants_that_counters_were_made_with(truth in constants()) {
        for form in FORMS {
            let found = calibrate(&micros(&truth, form), form).unwrap().constants;
            for (found, truth) in [
                (found.k1, truth.k1),
                (found.k2, truth.k2),
                (found.k3, truth.k3),
                (found.p.get(), truth.p.get()),
                (found.q, truth.q),
            ] {
                prop_assert!(close(found, truth), "{form}: {found} is not {truth}");
            }
        }
    }

    #[test]
    fn a_program_that_follows_the_model_is_predicted_exactly(truth in constants(), program in program()) {
        for form in FORMS {
            let model = model(calibrate(&micros(&truth, form), form).unwrap(), form);
            let tried = try_out(&model, &program.pair(Micro::Mixed, &truth, form)).unwrap();
            for judged in [tried.store.unwrap(), tried.cache.unwrap(), tried.dram.unwrap(), tried.total] {
                prop_assert!(close(judged.predicted, judged.measured), "{judged:?}");
            }
            let sum = tried.prediction.store + tried.prediction.cache + tried.prediction.dram;
            prop_assert!(close(sum, tried.prediction.total()));
        }
    }

    /// More stalls, more stores, or less overlap never make a slower memory less slow.
    #[test]
    fn slowdown_grows_with_what_it_is_made_of(program in program(), more in 0.0..0.2_f64) {
        let form = PrefetchForm::SapphireRapids;
        let model = model(calibrate(&micros(&CONSTANTS, form), form).unwrap(), form);
        let total = |program: Program| {
            let counters = program.local(form);
            predict(&model, &Run::of(&counters).unwrap()).unwrap().total()
        };
        let base = total(program);
        for more in [
            Program { miss_stalls: program.miss_stalls + more, ..program },
            Program { store: program.store + more, ..program },
            Program { level_stalls: program.level_stalls + more, ..program },
            Program { aol: program.aol * (1.0 + more), ..program },
        ] {
            let total = total(more);
            prop_assert!(total >= base - 1e-9, "{total} is below {base}");
        }
    }

    /// A run twice as long says the same.
    #[test]
    fn predictions_do_not_depend_on_the_length_of_the_run(program in program()) {
        let form = PrefetchForm::Skylake;
        let once = program.local(form);
        let mut twice = once.clone();
        twice.accumulate(&once);
        let metrics = |set: &CounterSet| Metrics::of(&Run::of(set).unwrap(), form).unwrap();
        prop_assert_eq!(metrics(&once), metrics(&twice));
    }

    /// The intervals hold as many of the workloads that they were made from as they promise.
    #[test]
    fn intervals_hold_what_they_promise(errors in prop::collection::vec(-0.3..0.3_f64, 40..80)) {
        let form = PrefetchForm::SapphireRapids;
        let mut model = model(calibrate(&micros(&CONSTANTS, form), form).unwrap(), form);
        let tried: Vec<_> = errors.iter().enumerate().map(|(n, error)| {
            let miss_stalls = 0.1 + 0.005 * n as f64;
            let mut pair = Program { miss_stalls, ..IDLE }.pair(Micro::Mixed, &CONSTANTS, form);
            let cycles = pair.target.get(Counter::Cycles).unwrap();
            pair.target.set(Counter::Cycles, cycles + (error.abs() * 1e12) as u64);
            try_out(&model, &pair).unwrap()
        }).collect();
        model.held_out = hold_out(std::slice::from_ref(&tried), 0.9);
        let held = tried.iter().filter(|t| {
            let margin = model.held_out.as_ref().unwrap().total;
            t.total.error().abs() * 100.0 <= margin.around(t.total.predicted * 100.0) + 1e-9
        }).count();
        prop_assert!(held as f64 >= 0.9 * tried.len() as f64);
    }
}

#[test]
fn each_counter_that_is_missing_is_named_with_its_reason() {
    for form in FORMS {
        let model = model(calibrate(&micros(&CONSTANTS, form), form).unwrap(), form);
        for &counter in metrics::needed(form) {
            let mut counters = IDLE.local(form);
            counters.set_unavailable(counter, Unavailable::because("the register is taken"));
            let error = Run::of(&counters)
                .and_then(|run| predict(&model, &run))
                .unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains(counter.name()) && text.contains("the register is taken"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_latency_far_from_those_of_the_calibration_is_said_where_misses_matter() {
    let form = PrefetchForm::SapphireRapids;
    let mut model = model(calibrate(&micros(&CONSTANTS, form), form).unwrap(), form);
    model.aol_range = [Cycles(50.0), Cycles(200.0)];
    let warns = |aol, miss_stalls| {
        let program = Program {
            aol,
            miss_stalls,
            ..IDLE
        };
        let counters = program.local(form);
        let predicted = predict(&model, &Run::of(&counters).unwrap()).unwrap();
        predicted
            .warnings
            .iter()
            .any(|w| w.contains("outside the 50 to 200"))
    };
    let found = [35.0, 45.0, 240.0, 260.0].map(|aol| warns(aol, 0.3));
    assert_eq!(found, [true, false, false, true]);
    assert!(!warns(260.0, 0.005));
}

/// A chase that hardly waits says little of how misses overlap.
#[test]
fn a_chase_counts_as_much_as_it_is_slowed() {
    let form = PrefetchForm::SapphireRapids;
    let mut pairs = micros(&CONSTANTS, form);
    let other = Constants {
        p: CONSTANTS.p * 2.0,
        q: CONSTANTS.q * 2.0,
        ..CONSTANTS
    };
    let hardly = Program {
        miss_stalls: 0.01,
        ..IDLE
    };
    pairs.push(hardly.pair(Micro::Chase, &other, form));
    let found = calibrate(&pairs, form).unwrap().constants;
    assert!((found.p / CONSTANTS.p - 1.0).abs() < 0.01, "{found:?}");
    assert!((found.q / CONSTANTS.q - 1.0).abs() < 0.01, "{found:?}");
}

#[test]
fn overlap_that_helps_no_miss_is_none_and_the_lone_chase_is_the_one_that_overlaps_least() {
    let form = PrefetchForm::SapphireRapids;
    let truth = Constants {
        p: Cycles(-10.0),
        q: 1.2,
        ..CONSTANTS
    };
    let mut pairs = micros(&truth, form);
    let lone = Program {
        miss_stalls: 0.7,
        aol: 350.0,
        ..IDLE
    };
    pairs.push(lone.pair(Micro::Chase, &truth, form));
    let found = calibrate(&pairs, form).unwrap();
    assert_eq!(found.constants.p, Cycles(0.0));
    assert!(found.notes.iter().any(|note| note.contains("p is zero")));
    assert!(close(found.unloaded.get(), 350.0), "{}", found.unloaded);
}

#[test]
fn the_counters_are_as_many_as_the_paper_says() {
    assert_eq!(metrics::needed(PrefetchForm::SapphireRapids).len(), 12);
    assert_eq!(metrics::needed(PrefetchForm::Skylake).len(), 11);
}

#[test]
fn requests_and_their_cycles_cannot_be_swapped() {
    let form = PrefetchForm::SapphireRapids;
    let mut counters = Program {
        miss_stalls: 0.5,
        ..IDLE
    }
    .local(form);
    let (requests, cycles) = (
        Counter::OffcoreDemandDataRd,
        Counter::OffcoreCyclesDemandDataRd,
    );
    let (a, b) = (
        counters.get(requests).unwrap(),
        counters.get(cycles).unwrap(),
    );
    counters.set(requests, b);
    counters.set(cycles, a);
    let error = Run::of(&counters).unwrap_err().to_string();
    assert!(error.contains("swapped?"), "{error}");
}

#[test]
fn without_prefetches_no_slowdown_is_the_caches() {
    for form in FORMS {
        let mut counters = Program {
            level_stalls: 0.4,
            fill_buffer_hits: 0.8,
            ..IDLE
        }
        .local(form);
        for counter in [
            Counter::HwpfL1d,
            Counter::HwpfL1dL3Hit,
            Counter::HwpfL2,
            Counter::TorInsertsIaDrdPref,
            Counter::TorInsertsIaMissDrdPref,
        ] {
            counters.set(counter, 0);
        }
        let metrics = Metrics::of(&Run::of(&counters).unwrap(), form).unwrap();
        assert_eq!(metrics.cache, 0.0);
    }
}

#[test]
fn a_kind_of_workload_that_is_missing_or_shows_nothing_is_named() {
    let form = PrefetchForm::SapphireRapids;
    let pairs = micros(&CONSTANTS, form);
    for micro in [Micro::Chase, Micro::Store, Micro::List] {
        let without: Vec<_> = pairs.iter().filter(|p| p.micro != micro).cloned().collect();
        let error = calibrate(&without, form).unwrap_err();
        assert!(
            matches!(&error, InsightError::Calibration(why) if why.contains(&micro.to_string()))
        );
    }
    for (micro, program) in [
        (Micro::Store, IDLE),
        (Micro::List, IDLE),
        (Micro::Chase, IDLE),
    ] {
        let mut pairs: Vec<_> = pairs.iter().filter(|p| p.micro != micro).cloned().collect();
        pairs.push(program.pair(micro, &CONSTANTS, form));
        let error = calibrate(&pairs, form).unwrap_err().to_string();
        assert!(error.contains(&micro.to_string()), "{error}");
    }
}

#[test]
fn mixed_workloads_find_what_every_workload_loses() {
    let form = PrefetchForm::SapphireRapids;
    let truth = Constants {
        k4: 0.03,
        ..CONSTANTS
    };
    // Micro-workloads without it; mixed ones that lose it too.
    let mut pairs = micros(&truth, form);
    for n in 1..40 {
        let part = f64::from(n % 7) / 20.0;
        let program = Program {
            miss_stalls: part,
            aol: 30.0 + f64::from(n * 37 % 200),
            level_stalls: f64::from(n % 5) / 15.0,
            fill_buffer_hits: 0.6,
            from_memory: 0.8,
            by_l1: 0.5,
            store: f64::from(n % 3) / 10.0,
        };
        pairs.push(program.pair(Micro::Mixed, &truth, form));
    }
    let found = calibrate(&pairs, form).unwrap();
    assert!(
        (found.constants.k4 - truth.k4).abs() < 0.005,
        "{:?}",
        found.constants
    );
    assert!(
        (found.constants.k2 - truth.k2).abs() < 0.2,
        "{:?}",
        found.constants
    );
    let mixed = found.fitted_on.iter().filter(|p| p.micro == Micro::Mixed);
    let off = mixed.map(|point| (point.fitted_pct - point.slowdown_pct).abs());
    assert!(off.fold(0.0, f64::max) < 1.0);
}

#[test]
fn one_quantity_does_not_tell_stores_from_loads() {
    let form = PrefetchForm::SapphireRapids;
    let model = model(calibrate(&micros(&CONSTANTS, form), form).unwrap(), form);
    let programs: Vec<_> = (0..60)
        .map(|n| Program {
            miss_stalls: f64::from(n % 6) / 15.0,
            aol: 20.0 + f64::from(n * 13 % 230),
            store: f64::from(n % 4) / 12.0,
            ..IDLE
        })
        .collect();
    let pairs: Vec<_> = programs
        .iter()
        .map(|p| p.pair(Micro::Mixed, &CONSTANTS, form))
        .collect();
    let tried: Vec<_> = pairs
        .iter()
        .map(|pair| try_out(&model, pair).unwrap())
        .collect();
    let ours: Vec<_> = tried.iter().map(|t| t.total).collect();
    assert_eq!(score::within(&ours, 0.01), Some(1.0));
    for of in 0..3 {
        let theirs: Vec<_> = (tried.iter())
            .filter_map(|t| {
                let predicted = t.prediction.rejected[of].1?;
                Some(score::Judged {
                    predicted,
                    ..t.total
                })
            })
            .collect();
        assert_eq!(theirs.len(), tried.len());
        assert!(score::within(&theirs, 0.01).unwrap() < 0.6);
    }
}
