//! Laws of the DRAM component by exposed cycles, on misses and counters whose constants are known.

use crate::common;

use common::{CHASES, CONSTANTS, CYCLES, IDLE, Program, micros, model};
use proptest::prelude::*;
use weir_insight::Run;
use weir_insight::forecast::compare;
use weir_insight::slowdown::predict::try_out;
use weir_insight::slowdown::{Misses, Pair, calibrate, exposed, predict};
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Exposed, HeldOut, Margin, Micro, PrefetchForm};

const FORMS: [PrefetchForm; 2] = [PrefetchForm::Skylake, PrefetchForm::SapphireRapids];

fn constants() -> impl Strategy<Value = Exposed> {
    (0.1..2.0_f64, 0.0..1.0_f64, 0.0..1.0_f64).prop_map(|(growth, exposed, beside)| Exposed {
        growth,
        exposed,
        beside,
    })
}

fn misses() -> impl Strategy<Value = Misses> {
    (0.01..0.9_f64, 0.0..0.1_f64, 1.0..10.0_f64).prop_map(|(stalled, hidden, mlp)| Misses {
        stalled,
        hidden,
        mlp,
    })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + b.abs())
}

/// Counts the cycles with a miss too, of which this many are hidden on either memory.
fn with_hidden(mut set: CounterSet, hidden: f64) -> CounterSet {
    let stalled = set.get(Counter::StallsL3Miss).unwrap();
    set.set(Counter::CyclesL3Miss, stalled + (CYCLES * hidden) as u64);
    set
}

/// A program that hides this many cycles, on both memories of a machine that obeys the form.
fn obeys(program: Program, hidden: f64, truth: &Exposed, form: PrefetchForm, micro: Micro) -> Pair {
    let local = with_hidden(program.local(form), hidden);
    let misses = Misses::of(&Run::of(&local).unwrap()).unwrap();
    let [store, cache, _] = program.slowdown(&CONSTANTS, form);
    let more = [store, cache, misses.lost(truth)];
    let target = program.counted(form, 1.0 + more.iter().sum::<f64>(), more);
    Pair {
        name: micro.to_string(),
        micro,
        target: with_hidden(target, hidden),
        local,
    }
}

/// Micro-workloads of such a machine: chases of several overlaps, some of which work between hops.
fn calibration(truth: &Exposed, form: PrefetchForm) -> Vec<Pair> {
    let chase = |miss_stalls, aol, hidden| {
        let program = Program {
            miss_stalls,
            aol,
            ..IDLE
        };
        obeys(program, hidden, truth, form, Micro::Chase)
    };
    let mut pairs: Vec<Pair> = CHASES.map(|(s, aol, h)| chase(s, aol, h)).into();
    let others = micros(&CONSTANTS, form).into_iter();
    pairs.extend(others.filter(|pair| pair.micro != Micro::Chase));
    pairs
}

proptest! {
    #[test]
    fn a_fit_finds_the_constants_that_chases_were_made_with(
        truth in constants(),
        chases in prop::collection::vec(misses(), 8..20),
    ) {
        let chases: Vec<(Misses, f64)> = (chases.into_iter())
            .map(|m| (m, m.lost(&truth)))
            .collect();
        let found = exposed::fit(&chases).unwrap();
        for (misses, lost) in &chases {
            prop_assert!((misses.lost(&found) - lost).abs() < 1e-4, "{found:?} is not {truth:?}");
        }
    }

    #[test]
    fn a_fit_of_anything_is_none_or_can_be(
        chases in prop::collection::vec((misses(), -1.0..2.0_f64), 0..8),
    ) {
        if let Some(found) = exposed::fit(&chases) {
            prop_assert!(found.growth > 0.0 && found.growth.is_finite());
            prop_assert!((0.0..=1.0).contains(&found.exposed) && found.beside >= 0.0);
        }
    }

    /// More stalls, more hidden cycles, a longer latency never cost less; more together never more.
    #[test]
    fn what_is_lost_grows_with_what_it_is_made_of(m in misses(), c in constants(), more in 0.0..0.3_f64) {
        let lost = m.lost(&c);
        let stalled = Misses { stalled: m.stalled + more, ..m };
        let hidden = Misses { hidden: m.hidden + more, ..m };
        let beside = Misses { mlp: m.mlp + more, ..m };
        let longer = Exposed { growth: c.growth + more, ..c };
        prop_assert!(stalled.lost(&c) >= lost && hidden.lost(&c) >= lost);
        prop_assert!(m.lost(&longer) >= lost && beside.lost(&c) <= lost);
    }

    /// No less than what was stalled stretches to, and no more than every cycle with a miss does.
    #[test]
    fn what_is_lost_lies_between_stalls_and_cycles_with_a_miss(m in misses(), c in constants()) {
        let lost = m.lost(&c);
        prop_assert!(lost >= c.growth * m.stalled / (1.0 + c.beside) - 1e-12);
        prop_assert!(lost <= c.growth * (m.stalled + m.hidden) + 1e-12);
    }

    #[test]
    fn a_program_that_obeys_the_form_is_predicted_exactly(
        truth in constants(),
        miss_stalls in 0.0..0.5_f64,
        hidden in 0.0..0.4_f64,
        aol in 20.0..300.0_f64,
        store in 0.0..0.2_f64,
    ) {
        for form in FORMS {
            let model = model(calibrate(&calibration(&truth, form), form).unwrap(), form);
            let program = Program { miss_stalls, aol, store, ..IDLE };
            let tried = try_out(&model, &obeys(program, hidden, &truth, form, Micro::Mixed)).unwrap();
            for judged in [tried.store.unwrap(), tried.dram.unwrap(), tried.total] {
                prop_assert!(close(judged.predicted, judged.measured), "{judged:?}");
            }
        }
    }
}

#[test]
fn of_a_hidden_cycle_beside_two_misses_half_counts() {
    let constants = Exposed {
        growth: 0.9,
        exposed: 0.8,
        beside: 0.2,
    };
    let lone = Misses {
        stalled: 0.3,
        hidden: 0.1,
        mlp: 1.0,
    };
    assert!(close(lone.lost(&constants), 0.9 * (0.3 + 0.08)));
    let two = Misses { mlp: 2.0, ..lone };
    assert!(close(two.lost(&constants), 0.9 * (0.3 + 0.04) / 1.1));
}

#[test]
fn without_its_counters_the_published_component_is_used_and_said() {
    let form = PrefetchForm::SapphireRapids;
    let truth = Exposed {
        growth: 0.9,
        exposed: 0.8,
        beside: 0.2,
    };
    let model = model(calibrate(&calibration(&truth, form), form).unwrap(), form);
    let mut published = model.clone();
    published.exposed = None;
    let program = Program {
        miss_stalls: 0.3,
        ..IDLE
    };
    let pair = obeys(program, 0.4, &truth, form, Micro::Mixed);
    let with = predict(&model, &Run::of(&pair.local).unwrap()).unwrap();
    let without = predict(&published, &Run::of(&pair.local).unwrap()).unwrap();
    // Both are reported, and they differ by what is hidden.
    assert_eq!(with.published_total(), Some(without.total()));
    assert_eq!(without.published, None);
    assert!(with.dram > without.dram * 1.05 && with.warnings.is_empty());
    let comparison = compare(&model, "a", &pair.local, &pair.target).unwrap();
    let comparison = comparison.published.unwrap();
    assert!(close(comparison.slowdown_pct, without.total() * 100.0));
    assert!(close(comparison.dram_pct, without.dram * 100.0));
    let tried = try_out(&model, &pair).unwrap().published();
    assert_eq!(tried.total.predicted, without.total());
    let mut counters = pair.local;
    counters.set_unavailable(
        Counter::CyclesL3Miss,
        Unavailable::because("the register is taken"),
    );
    let fallen = predict(&model, &Run::of(&counters).unwrap()).unwrap();
    assert_eq!((fallen.dram, fallen.published), (without.dram, None));
    let [warning] = fallen.warnings.as_slice() else {
        panic!("{:?}", fallen.warnings);
    };
    for text in [
        "published",
        Counter::CyclesL3Miss.name(),
        "the register is taken",
    ] {
        assert!(warning.contains(text), "{warning}");
    }
}

#[test]
fn an_interval_is_that_of_the_components_in_use() {
    let form = PrefetchForm::SapphireRapids;
    let truth = Exposed {
        growth: 0.9,
        exposed: 0.8,
        beside: 0.2,
    };
    let held_out = |relative| {
        let margin = Margin {
            relative,
            floor_pct: 5.0,
        };
        Some(HeldOut {
            workloads: 100,
            coverage_pct: 90.0,
            store: margin,
            cache: margin,
            dram: margin,
            total: margin,
            near: None,
        })
    };
    let mut model = model(calibrate(&calibration(&truth, form), form).unwrap(), form);
    model.held_out = held_out(0.1);
    model.exposed.as_mut().unwrap().held_out = held_out(20.0);
    let program = Program {
        miss_stalls: 0.3,
        ..IDLE
    };
    let mut counters = obeys(program, 0.4, &truth, form, Micro::Mixed).local;
    let with = predict(&model, &Run::of(&counters).unwrap()).unwrap();
    assert!(close(
        with.half_width.unwrap(),
        20.0 * (with.total() + 0.05)
    ));
    // No workload takes less than no time.
    assert_eq!(with.interval().unwrap()[0], -1.0);
    counters.set_unavailable(Counter::CyclesL3Miss, Unavailable::because("taken"));
    let without = predict(&model, &Run::of(&counters).unwrap()).unwrap();
    let half = 0.1 * (without.total() + 0.05);
    assert!(close(without.half_width.unwrap(), half));
    assert!(close(
        without.interval().unwrap()[0],
        without.total() - half
    ));
}

#[test]
fn a_constant_that_cannot_be_is_left_out_before_the_others_are_fitted() {
    // Each hidden cycle costs as much as two that were stalled.
    let truth = Exposed {
        growth: 0.5,
        exposed: 2.0,
        beside: 0.2,
    };
    let chases = CHASES.map(|(stalled, aol, hidden)| {
        let mlp = 300.0 / aol;
        let misses = Misses {
            stalled,
            hidden,
            mlp,
        };
        (misses, misses.lost(&truth))
    });
    let found = exposed::fit(&chases).unwrap();
    let off = |of: &Exposed| -> f64 {
        let each = chases.iter().map(|(m, lost)| (m.lost(of) - lost).powi(2));
        each.sum()
    };
    let cut = Exposed {
        exposed: 1.0,
        ..truth
    };
    assert!(off(&found) < 0.9 * off(&cut), "{found:?}");
}

#[test]
fn a_calibration_without_its_counters_has_the_published_component_and_says_so() {
    let form = PrefetchForm::Skylake;
    let found = calibrate(&micros(&CONSTANTS, form), form).unwrap();
    assert_eq!(found.exposed, None);
    let said = |note: &String| note.contains(Counter::CyclesL3Miss.name());
    assert!(found.notes.iter().any(said), "{:?}", found.notes);
}

#[test]
fn more_stalls_on_misses_than_cycles_with_one_cannot_be() {
    let form = PrefetchForm::Skylake;
    let program = Program {
        miss_stalls: 0.5,
        ..IDLE
    };
    let mut counters = with_hidden(program.local(form), 0.0);
    counters.set(Counter::CyclesL3Miss, (CYCLES * 0.4) as u64);
    let error = Run::of(&counters).unwrap_err().to_string();
    assert!(
        error.contains(Counter::CyclesL3Miss.name()) && error.contains("swapped?"),
        "{error}"
    );
}
