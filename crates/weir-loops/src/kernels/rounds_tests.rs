use proptest::prelude::*;
use weir_model::access::{Dataflow, Op};

use super::rounds::{Arrays, FACTOR, LONGEST, Rounds, Shape, make_numbers, select};
use super::{Data, Isa, LINE, families};

/// A line of memory as eight numbers.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Debug)]
struct Line([f64; 8]);

const GUARD: Line = Line([-1.0; 8]);

fn shape(loads: usize, per: usize, dataflow: Dataflow) -> Shape {
    Shape {
        loads,
        per,
        dataflow,
    }
}

fn every(shape: Shape) -> impl Iterator<Item = (Op, Isa, Rounds)> {
    families().into_iter().flat_map(move |isa| {
        Op::ALL
            .into_iter()
            .chain(Op::BY_NAME)
            .filter_map(move |op| Some((op, isa, select(op, shape, Some(isa)).ok()?)))
    })
}

/// `arrays` loaded arrays of `rounds` lines each, with one guard line between them, filled by `seed`.
fn loaded(arrays: usize, rounds: usize, seed: u64) -> Vec<Line> {
    let mut random = super::Random::new(seed);
    let mut lines = vec![GUARD; arrays * (rounds + 1)];
    for array in lines.chunks_mut(rounds + 1) {
        for line in &mut array[..rounds] {
            // 52 random bits, made into numbers between 1 and 2.
            line.0 = std::array::from_fn(|_| f64::from_bits(random.word()));
        }
        // SAFETY: the lines are this test's own.
        unsafe { make_numbers(array.as_mut_ptr().cast(), rounds) };
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_what_plain_rust_computes(
        rounds in 0usize..40,
        from in 0usize..9,
        seed: u64,
        dataflow in prop::sample::select(vec![Dataflow::Copy, Dataflow::Scale, Dataflow::Add, Dataflow::Triad]),
    ) {
        let loads = if matches!(dataflow, Dataflow::Copy | Dataflow::Scale) { 1 } else { 2 };
        let all = from + rounds;
        let mut source = loaded(loads, all, seed);
        let stride = (all + 1) * LINE;
        let mut seen = 0;
        for (op, isa, kernel) in every(shape(loads, 1, dataflow)) {
            seen += 1;
            let before = source.clone();
            let mut written = vec![GUARD; all + 1];
            let arrays = Arrays {
                loaded: source.as_mut_ptr().cast(),
                stride,
                touched: written.as_mut_ptr().cast(),
            };
            // SAFETY: the arrays are this test's own and hold `from + rounds` lines.
            unsafe { kernel.run(arrays, from, rounds, &mut Data::new(seed)) };
            prop_assert_eq!(&source, &before, "{} {} changed what it read", op, isa);
            prop_assert!(written[..from].iter().chain(&written[all..]).all(|l| *l == GUARD));
            for (at, line) in written.iter().enumerate().take(all).skip(from) {
                for (word, &found) in line.0.iter().enumerate() {
                    let a = source[at].0[word];
                    let b = source[(loads - 1) * (all + 1) + at].0[word];
                    let expected = match dataflow {
                        Dataflow::Apart | Dataflow::Copy => a,
                        Dataflow::Scale => FACTOR * a,
                        Dataflow::Add => a + b,
                        Dataflow::Triad => a + FACTOR * b,
                    };
                    prop_assert_eq!(found, expected, "{} {}: line {}", op, isa, at);
                }
            }
        }
        prop_assert!(seen > 0);
    }

    #[test]
    fn a_mix_touches_the_lines_of_its_rounds_and_no_other(
        loads in 1usize..5,
        per in 1usize..5,
        rounds in 0usize..20,
        from in 0usize..5,
        seed: u64,
    ) {
        let all = from + rounds;
        let mut source = loaded(loads, all, seed);
        let before = source.clone();
        for (op, isa, kernel) in every(shape(loads, per, Dataflow::Apart)) {
            let mut touched = vec![GUARD; all * per + 1];
            let arrays = Arrays {
                loaded: source.as_mut_ptr().cast(),
                stride: (all + 1) * LINE,
                touched: touched.as_mut_ptr().cast(),
            };
            // SAFETY: the arrays are this test's own and hold `from + rounds` rounds.
            unsafe { kernel.run(arrays, from, rounds, &mut Data::new(seed)) };
            prop_assert_eq!(&source, &before, "{} {} wrote where it reads", op, isa);
            for (at, line) in touched.iter().enumerate() {
                let inside = (from * per..all * per).contains(&at);
                let changed = line.0.map(f64::to_bits) != GUARD.0.map(f64::to_bits);
                prop_assert_eq!(changed, inside && !op.is_load(), "{} {}: line {}", op, isa, at);
            }
            if !op.is_load() && op != Op::Cas {
                for pair in touched[from * per..all * per].windows(2) {
                    prop_assert_ne!(pair[0].0.map(f64::to_bits), pair[1].0.map(f64::to_bits));
                }
            }
        }
    }
}

#[test]
fn every_store_makes_every_round_in_every_form() {
    for isa in families() {
        for (loads, dataflow) in [
            (1, Dataflow::Copy),
            (1, Dataflow::Scale),
            (2, Dataflow::Add),
            (2, Dataflow::Triad),
            (3, Dataflow::Apart),
        ] {
            for op in [Op::St, Op::NtSt] {
                select(op, shape(loads, 1, dataflow), Some(isa)).unwrap();
            }
        }
        select(Op::Ld, shape(1, 1, Dataflow::Apart), Some(isa)).unwrap();
    }
}

#[test]
fn rounds_that_make_no_sense_are_refused_in_words() {
    for (op, wrong, expected) in [
        (Op::St, shape(0, 1, Dataflow::Apart), "must have both"),
        (Op::St, shape(1, 0, Dataflow::Apart), "must have both"),
        (Op::St, shape(LONGEST, 1, Dataflow::Apart), "at most"),
        (Op::St, shape(usize::MAX, 1, Dataflow::Apart), "at most"),
        (Op::St, shape(1, 1, Dataflow::Triad), "triad reads 2 for 1"),
        (Op::NtSt, shape(2, 1, Dataflow::Copy), "copy reads 1 for 1"),
        (Op::Ld, shape(1, 1, Dataflow::Copy), "cannot write"),
        (Op::Cas, shape(2, 1, Dataflow::Add), "cannot write"),
        (Op::Dsa, shape(1, 1, Dataflow::Copy), "not an instruction"),
    ] {
        let error = select(op, wrong, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
