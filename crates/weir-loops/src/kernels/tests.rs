use proptest::prelude::*;
use weir_model::access::Locality;

use super::*;

/// Lines of memory that belong to one test.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Debug)]
struct Line([u64; 8]);

fn every_kernel() -> Vec<Kernel> {
    families()
        .into_iter()
        .flat_map(|isa| {
            Op::ALL
                .into_iter()
                .chain(Op::BY_NAME)
                .map(move |op| select(op, Some(isa)))
        })
        .filter_map(Result::ok)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_store_changes_every_word_of_its_lines_and_no_other(lines in 0usize..70, seed: u64) {
        for kernel in every_kernel().into_iter().filter(|k| !(k.op.is_load() || k.op == Op::Cas)) {
            let mut memory = vec![Line([0; 8]); lines + 2];
            let mut data = Data::new(seed);
            // SAFETY: the lines are this test's own, and one on each side is left over.
            unsafe { kernel.run_settled(memory.as_mut_ptr().add(1).cast(), lines, &mut data) };
            prop_assert_eq!(memory[0], Line([0; 8]), "{:?} wrote before", kernel);
            prop_assert_eq!(memory[lines + 1], Line([0; 8]), "{:?} wrote behind", kernel);
            for line in &memory[1..=lines] {
                prop_assert!(line.0.iter().all(|&word| word != 0), "{:?} left {:?}", kernel, line);
                prop_assert!(line.0.iter().any(|&word| word != line.0[0]), "{:?} is constant", kernel);
            }
            for pair in memory[1..=lines].windows(2) {
                prop_assert_ne!(pair[0], pair[1], "{:?} repeats a line", kernel);
            }
        }
    }

    #[test]
    fn a_burst_touches_the_lines_it_is_given_and_no_other(chosen: u64, seed: u64) {
        for kernel in every_kernel().into_iter().filter(|k| !(k.op.is_load() || k.op == Op::Cas)) {
            let mut memory = vec![Line([0; 8]); 64];
            let base = memory.as_mut_ptr();
            let lines: Vec<*mut u8> = (0..64)
                .filter(|n| chosen >> n & 1 == 1)
                .map(|n| base.wrapping_add(n).cast())
                .collect();
            // SAFETY: the lines are this test's own.
            unsafe { kernel.burst_settled(&lines, &mut Data::new(seed)) };
            for (n, line) in memory.iter().enumerate() {
                let touched = chosen >> n & 1 == 1;
                prop_assert_eq!(line.0.iter().all(|&word| word != 0), touched, "{:?} {}", kernel, n);
                prop_assert_eq!(*line == Line([0; 8]), !touched, "{:?} {}", kernel, n);
            }
        }
    }

    #[test]
    fn compare_and_swap_always_succeeds_and_touches_one_word(lines in 0usize..40, seed: u64) {
        let kernel = select(Op::Cas, None).unwrap();
        let mut memory = vec![Line([7; 8]); lines];
        let mut data = Data::new(seed);
        // SAFETY: the lines are this test's own.
        unsafe { kernel.run_settled(memory.as_mut_ptr().cast(), lines, &mut data) };
        for line in memory {
            prop_assert_ne!(line.0[0], 7);
            prop_assert!(line.0[1..].iter().all(|&word| word == 7));
        }
    }

    #[test]
    fn loads_change_nothing(lines in 0usize..70, seed: u64) {
        for isa in families() {
            let kernel = select(Op::Ld, Some(isa)).unwrap();
            let before = vec![Line([seed; 8]); lines];
            let mut memory = before.clone();
            // SAFETY: the lines are this test's own.
            unsafe { kernel.run_settled(memory.as_mut_ptr().cast(), lines, &mut Data::new(seed)) };
            prop_assert_eq!(&memory, &before);
        }
    }

    #[test]
    fn a_chase_visits_every_line_exactly_once_in_a_cycle(
        lines in 1usize..20_000,
        seed: u64,
        friendly: bool,
    ) {
        let locality = if friendly { Locality::TlbFriendly } else { Locality::Random };
        let mut memory = vec![Line([0; 8]); lines];
        let base: *mut u8 = memory.as_mut_ptr().cast();
        let order = chase::order(lines, locality, &mut Random::new(seed));
        // SAFETY: the lines are this test's own.
        let first = unsafe { chase::link(base, &order) };
        let mut seen = vec![false; lines];
        let mut at = first;
        for _ in 0..lines {
            let index = (at as usize - base as usize) / LINE;
            prop_assert!(!seen[index], "line {} twice", index);
            seen[index] = true;
            // SAFETY: `at` is a line of the chain.
            at = unsafe { at.cast::<*mut u8>().read() };
        }
        prop_assert_eq!(at, first, "the chain is closed");
        // SAFETY: as above; a whole number of cycles comes back to where it began.
        prop_assert_eq!(unsafe { hops(first, lines) }, first);
    }

    #[test]
    fn a_tlb_friendly_chase_finishes_a_window_before_the_next(lines in 1usize..20_000, seed: u64) {
        let window = chase::WINDOW_PAGES * 4096 / LINE;
        let order = chase::order(lines, Locality::TlbFriendly, &mut Random::new(seed));
        let windows: Vec<usize> = order.iter().map(|&line| line as usize / window).collect();
        prop_assert!(windows.is_sorted());
    }

    #[test]
    fn scattered_blocks_stay_inside_the_working_set(count in 1usize..50, lines in 1usize..9, seed: u64) {
        for op in [Op::St, Op::NtSt] {
            let kernel = select(op, None).unwrap();
            let mut memory = vec![Line([0; 8]); count * lines + 2];
            let blocks = Blocks { lines, count };
            // SAFETY: the lines are this test's own, and one on each side is left over.
            unsafe {
                kernel.scatter(
                    memory.as_mut_ptr().add(1).cast(),
                    blocks,
                    200,
                    op == Op::NtSt,
                    &mut Random::new(seed),
                    &mut Data::new(seed),
                );
            }
            prop_assert_eq!(memory[0], Line([0; 8]));
            prop_assert_eq!(memory[count * lines + 1], Line([0; 8]));
            prop_assert!(memory.iter().any(|line| line.0[0] != 0));
        }
    }
}

#[test]
fn a_form_that_the_processor_has_is_chosen_and_any_other_on_demand() {
    let chosen = select(Op::Ld, None).unwrap().isa;
    assert!(families().contains(&chosen), "{chosen}");
    // Another family is chosen only if the widest is executed in halves.
    assert!(chosen >= families().into_iter().max().unwrap().min(Isa::Avx2));
    for isa in families() {
        assert_eq!(select(Op::NtSt, Some(isa)).unwrap().isa, isa);
    }
}

#[test]
fn an_instruction_that_is_missing_is_refused_with_its_name() {
    let absent = Op::ALL.into_iter().find_map(|op| select(op, None).err());
    let foreign = if cfg!(target_arch = "x86_64") {
        Isa::Neon
    } else {
        Isa::Avx512
    };
    let foreign = select(Op::Ld, Some(foreign)).unwrap_err();
    assert!(foreign.to_string().contains("was requested"), "{foreign}");
    if let Some(error) = absent {
        assert!(
            error.to_string().contains("does not have") || error.to_string().contains("x86"),
            "{error}"
        );
    }
}

#[test]
fn a_flushed_line_keeps_its_data() {
    let mut line = Line([3; 8]);
    // SAFETY: the line is this test's own.
    unsafe { flush((&raw mut line).cast()) };
    assert_eq!(std::hint::black_box(line), Line([3; 8]));
}
