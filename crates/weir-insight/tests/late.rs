//! Laws of the cache component by exposed cycles, on waits and counters whose constants are known.

use crate::common;

use common::{CHASES, CONSTANTS, CYCLES, IDLE, Program, micros, model};
use proptest::prelude::*;
use weir_insight::Run;
use weir_insight::forecast::compare;
use weir_insight::slowdown::late::{self, Lost};
use weir_insight::slowdown::predict::try_out;
use weir_insight::slowdown::{Misses, Pair, Waits, calibrate, predict};
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Exposed, Late, Micro, PrefetchForm};

const FORMS: [PrefetchForm; 2] = [PrefetchForm::Skylake, PrefetchForm::SapphireRapids];

/// What DRAM costs more on the other memory.
const DRAM: Exposed = Exposed {
    growth: 0.9,
    exposed: 0.8,
    beside: 0.2,
};

const LATE: Late = Late {
    growth: 0.7,
    exposed: 0.9,
};

fn constants() -> impl Strategy<Value = Late> {
    (0.1..2.0_f64, 0.0..1.0_f64).prop_map(|(growth, exposed)| Late { growth, exposed })
}

fn waits() -> impl Strategy<Value = Waits> {
    (0.01..0.9_f64, 0.0..0.1_f64, 0.1..1.0_f64, 1.0..10.0_f64).prop_map(
        |(stalled, hidden, late, mlp)| Waits {
            stalled,
            hidden,
            late,
            mlp,
        },
    )
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + b.abs())
}

/// A program, the cycles that it hides at a miss and at the level of prefetched lines, and the loads that
/// hit the cache behind.
#[derive(Debug, Clone, Copy)]
struct Hides {
    program: Program,
    miss: f64,
    level: f64,
    hits: f64,
}

impl Hides {
    /// Counts the cycles at each level too.
    fn counted(&self, mut set: CounterSet, form: PrefetchForm) -> CounterSet {
        let get = |set: &CounterSet, counter| set.get(counter).unwrap() as f64;
        let stalls = [
            Counter::StallsL1dMiss,
            Counter::StallsL2Miss,
            Counter::StallsL3Miss,
        ]
        .map(|stalls| get(&set, stalls));
        let more = match form {
            PrefetchForm::Skylake => [self.miss + self.level, self.miss, self.miss],
            PrefetchForm::SapphireRapids => {
                [self.miss + self.level, self.miss + self.level, self.miss]
            }
        };
        let cycles = [
            Counter::CyclesL1dMiss,
            Counter::CyclesL2Miss,
            Counter::CyclesL3Miss,
        ];
        for ((counter, stalls), more) in cycles.into_iter().zip(stalls).zip(more) {
            set.set(counter, (stalls + CYCLES * more) as u64);
        }
        for hits in [Counter::L2Hit, Counter::L3Hit] {
            set.set(hits, self.hits as u64);
        }
        if form == PrefetchForm::Skylake {
            set.set(Counter::HwpfL2, 1e10 as u64);
        }
        set
    }

    fn local(&self, form: PrefetchForm) -> CounterSet {
        self.counted(self.program.local(form), form)
    }

    /// On both memories of a machine that obeys both components.
    fn on_both(&self, truth: &Late, form: PrefetchForm, micro: Micro) -> Pair {
        let local = self.local(form);
        let run = Run::of(&local).unwrap();
        let [store, ..] = self.program.slowdown(&CONSTANTS, form);
        let dram = Misses::of(&run).unwrap().lost(&DRAM);
        let cache = Waits::of(&run, form).unwrap().lost(truth, dram);
        let whole = 1.0 + store + cache + dram;
        let target = self.program.counted(form, whole, [store, cache, dram]);
        Pair {
            name: micro.to_string(),
            micro,
            target: self.counted(target, form),
            local,
        }
    }
}

/// Micro-workloads of such a machine.
fn calibration(truth: &Late, form: PrefetchForm) -> Vec<Pair> {
    let chase = |miss_stalls, aol, miss| {
        let hides = Hides {
            program: Program {
                miss_stalls,
                aol,
                ..IDLE
            },
            miss,
            level: 0.0,
            hits: 0.0,
        };
        hides.on_both(truth, form, Micro::Chase)
    };
    let list = |level_stalls, level, from_memory| {
        let hides = Hides {
            program: Program {
                level_stalls,
                fill_buffer_hits: 0.9,
                from_memory,
                by_l1: 0.1,
                ..IDLE
            },
            miss: 0.0,
            level,
            hits: 1e9,
        };
        hides.on_both(truth, form, Micro::List)
    };
    let mut pairs: Vec<Pair> = CHASES.map(|(s, aol, h)| chase(s, aol, h)).into();
    pairs.extend([
        list(0.9, 0.05, 1.0),
        list(0.5, 0.4, 1.0),
        list(0.3, 0.1, 0.7),
    ]);
    let others = micros(&CONSTANTS, form).into_iter();
    pairs.extend(others.filter(|pair| pair.micro == Micro::Store));
    pairs
}

proptest! {
    #[test]
    fn a_fit_finds_the_constants_that_lists_were_made_with(
        truth in constants(),
        lists in prop::collection::vec((waits(), 0.0..1.0_f64), 8..20),
    ) {
        let lists: Vec<(Waits, Lost)> = (lists.into_iter())
            .map(|(waits, dram)| (waits, Lost { cache: waits.lost(&truth, dram), dram }))
            .collect();
        let found = late::fit(&lists).unwrap();
        for (waits, lost) in &lists {
            let again = waits.lost(&found, lost.dram);
            prop_assert!((again - lost.cache).abs() < 1e-4, "{found:?} is not {truth:?}");
        }
    }

    #[test]
    fn a_fit_of_anything_is_none_or_can_be(
        lists in prop::collection::vec((waits(), -1.0..2.0_f64, -0.5..2.0_f64), 0..8),
    ) {
        let lists: Vec<(Waits, Lost)> = (lists.into_iter())
            .map(|(waits, cache, dram)| (waits, Lost { cache, dram }))
            .collect();
        if let Some(found) = late::fit(&lists) {
            prop_assert!(found.growth > 0.0 && found.growth.is_finite());
            prop_assert!((0.0..=1.0).contains(&found.exposed));
        }
    }

    /// More stalls, more hidden cycles, more late lines, a longer latency: waits never grow less for it.
    #[test]
    fn waits_grow_with_what_they_are_made_of(w in waits(), c in constants(), more in 0.0..0.3_f64) {
        let grown = w.grown(&c);
        let stalled = Waits { stalled: w.stalled + more, ..w };
        let hidden = Waits { hidden: w.hidden + more, ..w };
        let late = Waits { late: w.late + more, ..w };
        let beside = Waits { mlp: w.mlp + more, ..w };
        let longer = Late { growth: c.growth + more, ..c };
        for larger in [stalled.grown(&c), hidden.grown(&c), late.grown(&c), w.grown(&longer)] {
            prop_assert!(larger >= grown);
        }
        prop_assert!(beside.grown(&c) <= grown);
        prop_assert!(grown <= c.growth * (w.stalled + w.hidden) + 1e-12);
    }

    /// What falls during misses is theirs: never more than all of it.
    #[test]
    fn misses_take_over_what_falls_beside_them(
        w in waits(),
        c in constants(),
        dram in 0.0..3.0_f64,
        more in 0.0..3.0_f64,
    ) {
        prop_assert!(w.lost(&c, dram + more) <= w.lost(&c, dram));
        prop_assert!(w.lost(&c, dram) >= -w.stalled);
        prop_assert!(close(w.lost(&c, 0.0), w.grown(&c)));
    }

    #[test]
    fn a_program_that_obeys_the_form_is_predicted_exactly(
        truth in constants(),
        miss_stalls in 0.0..0.3_f64,
        miss in 0.0..0.2_f64,
        level_stalls in 0.0..0.3_f64,
        level in 0.0..0.15_f64,
        shares in (0.0..1.0_f64, 0.0..1.0_f64),
        hits in 0.0..1e11_f64,
    ) {
        for form in FORMS {
            let model = model(calibrate(&calibration(&truth, form), form).unwrap(), form);
            let (fill_buffer_hits, from_memory) = shares;
            let program = Program {
                miss_stalls,
                level_stalls,
                fill_buffer_hits,
                from_memory,
                by_l1: 0.5,
                ..IDLE
            };
            let hides = Hides { program, miss, level, hits };
            let tried = try_out(&model, &hides.on_both(&truth, form, Micro::Mixed)).unwrap();
            for judged in [tried.cache.unwrap(), tried.dram.unwrap(), tried.total] {
                prop_assert!(close(judged.predicted, judged.measured), "{judged:?}");
            }
        }
    }

    #[test]
    fn where_nothing_is_prefetched_nothing_grows(
        miss_stalls in 0.0..0.4_f64,
        level_stalls in 0.0..0.4_f64,
        level in 0.0..0.1_f64,
        fill_buffer_hits in 0.0..1.0_f64,
    ) {
        for form in FORMS {
            let program = Program { miss_stalls, level_stalls, fill_buffer_hits, ..IDLE };
            let mut counters = Hides { program, miss: 0.1, level, hits: 1e9 }.local(form);
            for none in [
                Counter::HwpfL1d,
                Counter::HwpfL1dL3Hit,
                Counter::HwpfL2,
                Counter::TorInsertsIaDrdPref,
                Counter::TorInsertsIaMissDrdPref,
            ] {
                counters.set(none, 0);
            }
            let waits = Waits::of(&Run::of(&counters).unwrap(), form).unwrap();
            prop_assert_eq!(waits.grown(&LATE), 0.0);
            prop_assert!(waits.lost(&LATE, 0.5) <= 0.0);
        }
    }
}

/// No more loads wait for prefetched lines than lines are prefetched.
#[test]
fn what_finds_its_line_under_way_was_prefetched_at_most_once() {
    let program = Program {
        fill_buffer_hits: 0.7,
        from_memory: 0.6,
        by_l1: 0.5,
        ..IDLE
    };
    let hides = Hides {
        program,
        miss: 0.0,
        level: 0.1,
        hits: 2e10,
    };
    let form = PrefetchForm::SapphireRapids;
    let counters = hides.local(form);
    let waits = Waits::of(&Run::of(&counters).unwrap(), form).unwrap();
    // Of 7e11 such loads 1e11, beside twice 2e10 that hit; 0.6 of the lines come from memory.
    assert!(close(waits.late, 0.6 * 1e11 / 1.4e11), "{}", waits.late);
}

#[test]
fn a_hidden_cycle_grows_as_a_stalled_one_and_beside_two_misses_half() {
    let lone = Waits {
        stalled: 0.3,
        hidden: 0.1,
        late: 0.5,
        mlp: 1.0,
    };
    assert!(close(lone.grown(&LATE), 0.7 * 0.5 * (0.3 + 0.09)));
    let two = Waits { mlp: 2.0, ..lone };
    assert!(close(two.grown(&LATE), 0.7 * 0.5 * (0.3 + 0.045)));
    assert!(close(lone.lost(&LATE, 0.25), (0.3 + 0.1365) / 1.25 - 0.3));
}

#[test]
fn without_its_counters_the_published_component_is_used_and_said() {
    let cycles = Counter::CyclesL1dMiss;
    for form in FORMS {
        let model = model(calibrate(&calibration(&LATE, form), form).unwrap(), form);
        let program = Program {
            level_stalls: 0.3,
            fill_buffer_hits: 0.5,
            from_memory: 0.8,
            by_l1: 0.2,
            ..IDLE
        };
        let hides = Hides {
            program,
            miss: 0.0,
            level: 0.4,
            hits: 1e9,
        };
        let pair = hides.on_both(&LATE, form, Micro::Mixed);
        let with = predict(&model, &Run::of(&pair.local).unwrap()).unwrap();
        let published = with.published.unwrap();
        assert!(with.warnings.is_empty() && with.cache > published.cache * 1.05);
        let comparison = compare(&model, "a", &pair.local, &pair.target).unwrap();
        assert!(close(
            comparison.published.unwrap().cache_pct,
            published.cache * 100.0
        ));
        let mut counters = pair.local;
        counters.set_unavailable(cycles, Unavailable::because("the register is taken"));
        let fallen = predict(&model, &Run::of(&counters).unwrap()).unwrap();
        assert_eq!((fallen.cache, fallen.dram), (published.cache, with.dram));
        let [warning] = fallen.warnings.as_slice() else {
            panic!("{:?}", fallen.warnings);
        };
        for text in ["cache", "published", cycles.name(), "the register is taken"] {
            assert!(warning.contains(text), "{warning}");
        }
    }
}

#[test]
fn a_calibration_without_its_counters_has_the_published_component_and_says_so() {
    for form in FORMS {
        let mut pairs = calibration(&LATE, form);
        for pair in &mut pairs {
            let why = Unavailable::because("the register is taken");
            pair.local.set_unavailable(Counter::HwpfL2, why.clone());
            pair.local.set_unavailable(Counter::CyclesL1dMiss, why);
        }
        // Sapphire Rapids needs the first for the published component too.
        if form == PrefetchForm::SapphireRapids {
            for pair in &mut pairs {
                pair.local.set(Counter::HwpfL2, 1e10 as u64);
            }
        }
        let found = calibrate(&pairs, form).unwrap();
        assert!(found.exposed.is_some() && found.late.is_none());
        let said = |note: &String| note.contains(Counter::CyclesL1dMiss.name());
        assert!(found.notes.iter().any(said), "{:?}", found.notes);
    }
}
