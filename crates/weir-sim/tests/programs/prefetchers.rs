//! What prefetchers bring for described programs, and what is left to demand.

use super::*;

#[test]
fn late_prefetches_show_in_l2_or_in_the_last_level_cache() {
    // Skylake: L2. Emerald Rapids, whose streamer goes on into the last-level cache: there (SupMario section
    // 4.4). No parameter says so.
    for (machine, tier, part) in [("skx2s", "remote", 2), (MACHINE, "cxl0", 3)] {
        let mut grown = [0.0; 5];
        for name in ["scan", "scan-column", "llama-decode", "gpt2-decode"] {
            let at = |tier| {
                let work = Workload {
                    threads: 1,
                    ..preset(name)
                };
                counts_of(machine, &work, tier, true, 10_000)
            };
            let (local, far) = (at("dram"), at(tier));
            for (part, grown) in grown.iter_mut().enumerate() {
                *grown += (far.stalls()[part] - local.stalls()[part]) / local.cpi();
            }
        }
        let most = (1..4).max_by(|&a, &b| grown[a].total_cmp(&grown[b]));
        assert_eq!(most, Some(part), "{machine}: {grown:?}");
    }
}

/// Shares of a program's lines that the prefetchers of L1 and L2 bring from memory, and of its loads that hit
/// a fill buffer.
fn prefetched(machine: &str, work: &Workload, tier: &str) -> [f64; 3] {
    let seen = counts_of(machine, work, tier, true, 20_000);
    let all: f64 = [
        Counter::HwpfL1d,
        Counter::HwpfL2,
        Counter::OffcoreDemandDataRd,
    ]
    .map(|counter| seen.of(counter))
    .iter()
    .sum();
    let (hits, waits) = (seen.of(Counter::L1Hit), seen.of(Counter::FbHit));
    let from_memory = seen.of(Counter::HwpfL1d) - seen.of(Counter::HwpfL1dL3Hit);
    [
        from_memory / all,
        seen.of(Counter::HwpfL2) / all,
        waits / (hits + waits),
    ]
}

proptest! {
    #![proptest_config(config())]

    /// A line comes once, by whichever prefetcher or by demand.
    #[test]
    fn what_one_prefetcher_omits_another_brings(
        (machine, tier) in prop::sample::select(&[("skx2s", "remote"), ("skx2s", "dram"), (MACHINE, "cxl0")][..]),
        name in prop::sample::select(&["scan", "stencil-7pt", "llama-decode"][..]),
        apki in 2f64..240.0,
    ) {
        let mut work = preset(name);
        (work.threads, work.phases[0].apki) = (1, apki);
        let seen = counts_of(machine, &work, tier, true, 20_000);
        let lines: f64 = [Counter::HwpfL1d, Counter::HwpfL2, Counter::OffcoreDemandDataRd, Counter::OffcoreDemandRfo]
            .map(|counter| seen.of(counter))
            .iter()
            .sum();
        // With its page tables: one line for 512.
        let wanted = apki / 1e3 / (LINE_BYTES / work.phases[0].regions[0].element.get().min(LINE_BYTES)) as f64;
        prop_assert!((lines / wanted - 1.0).abs() < 0.05, "{lines} of {wanted}");
    }
}

#[test]
fn a_streamer_that_falls_behind_leaves_lines_to_l1() {
    let mut work = preset("stencil-7pt");
    work.phases[0].apki = 240.0;
    let [l1, l2, waits] = prefetched("skx2s", &work, "dram");
    let [far_l1, far_l2, far_waits] = prefetched("skx2s", &work, "remote");
    assert!(
        far_l1 > 1.2 * l1 && far_l2 < 0.97 * l2,
        "{l1} {l2}, {far_l1} {far_l2}"
    );
    assert!(far_waits > 1.2 * waits, "{waits} {far_waits}");
}

#[test]
fn a_run_is_the_same_twice_and_switching_prefetchers_is_as_good_as_starting_without() {
    let work = preset("bfs-urand");
    let again = || counts(&work, "cxl0", true).set;
    assert_eq!(again(), again());

    let mut machine = SimMachine::new(&bed(MACHINE), 3);
    machine
        .start(&[tenant(&preset("scan"), "dram", true)])
        .unwrap();
    machine.observe(Nanos(5_000.0)).unwrap();
    let off = Action::Prefetchers {
        l1: false,
        l2: false,
    };
    machine.act(&off).unwrap();
    machine.observe(Nanos(5_000.0)).unwrap();
    let seen = machine.observe(Nanos(50_000.0)).unwrap();
    let counted = |counter| seen.tenants[0].counters.get(counter).unwrap();
    assert_eq!(counted(Counter::HwpfL1d) + counted(Counter::HwpfL2), 0);
    assert!(counted(Counter::OffcoreDemandDataRd) > 100);
}
