//! Laws that hold for every load: Little's law, conservation, limits, order, determinism.

mod common;

use common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::access::{Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::Machine;
use weir_model::platform::{Platform, Sourced};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_sim::{SimMachine, SimTestbed};

const MACHINE: &str = "emr2s+cxl-a";
const TIERS: [&str; 3] = ["dram", "cxl0", "remote"];

/// The machine with an eighth of its last-level cache, which is warm sooner.
fn small() -> Platform {
    let mut platform = platform(MACHINE);
    platform.host.llc.size = Sourced::from_source(Bytes::mib(20), "what if");
    platform
}

fn tier() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&TIERS[..])
}

/// Patterns that are not timed, which work with every instruction.
fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        2 => Just(Pattern::Sequential),
        1 => Just(Pattern::RandomLine),
        1 => (0u32..8).prop_map(|n| Pattern::RandomBlock { block: Bytes(256 << n) }),
    ]
}

/// A tenant of any kind, its working set from a part of L1 to many times the last-level cache.
fn tenant() -> impl Strategy<Value = Tenant> {
    (
        prop::sample::select(&Op::ALL[..]),
        pattern(),
        tier(),
        1u32..=32,
        14u32..28,
        any::<bool>(),
    )
        .prop_map(|(op, pattern, tier, threads, size, prefetch)| Tenant {
            prefetch,
            ..Tenant::on_first_cores(
                op,
                pattern,
                &TierName::named(tier),
                threads,
                Bytes(1 << size),
            )
        })
}

/// One to three tenants at once; one of them may have pages on two tiers.
fn tenants() -> impl Strategy<Value = Vec<Tenant>> {
    let interleaved = prop::option::of((1u32..4, 1u32..4));
    (prop::collection::vec(tenant(), 1..=3), interleaved).prop_map(|(mut tenants, weights)| {
        let most = 32 / tenants.len();
        let mut core = 0;
        for (i, tenant) in tenants.iter_mut().enumerate() {
            let threads = tenant.cores.len().min(most) as u32;
            tenant.name = format!("tenant {i}");
            tenant.cores = (core..core + threads).collect();
            core += threads;
        }
        if let Some((near, far)) = weights {
            let tiers = vec![(TierName::dram(), near), (TierName::cxl(0), far)];
            tenants[0].placement = Placement::Interleave(tiers);
        }
        tenants
    })
}

/// Lines that cores may have asked for or handed over, and not have in their counts, when counting ends: a request
/// holds a buffer of its core from its miss until its answer, and an eviction follows the answer.
fn outstanding(platform: &Platform, threads: usize) -> f64 {
    f64::from(threads as u32 * *platform.host.core.super_queue)
}

/// Lines that may be booked on a direction and not have crossed it when counting ends: of requests in cores, in
/// queues of slices, in buffers of devices and channels.
fn in_flight(platform: &Platform, threads: usize) -> f64 {
    let host = &platform.host;
    let cores = threads as u32 * *host.core.super_queue;
    let slices = *host.llc.slices * (*host.uncore.tor + *host.uncore.irq);
    let buffers: u32 = platform
        .devices
        .iter()
        .map(|d| *d.device.controller.write_buffer + 8 * 48)
        .sum();
    let channels = 2 * *host.dram.channels * *host.dram.write_queue;
    f64::from(cores + slices + buffers + channels)
}

/// Lines read from and written to memory of any tier.
fn moved(seen: &Measured) -> (f64, f64) {
    let sum = |counters: [Counter; 3]| counters.map(|c| seen.count(c)).iter().sum();
    // DRAM behind the socket link or a device is counted where its lines cross the link.
    let read = sum([Counter::CasRd, Counter::CxlRxMemData, Counter::UpiRxData]);
    let written = sum([Counter::CasWr, Counter::CxlTxMemData, Counter::UpiTxData]);
    (read, written)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_runs_counters_agree_with_each_other_and_with_limits(
        tenants in tenants(),
        seed in 0u64..1000,
    ) {
        let platform = small();
        let bed = bed_of(&platform);
        let threads = tenants.iter().map(|t| t.cores.len()).sum();
        // From the first access on, so that nothing is outstanding when counting begins.
        let seen = run(&bed, &tenants, 0.0, 60.0, seed);
        let slack = outstanding(&platform, threads);
        let host = &platform.host;

        let slices = f64::from(*host.llc.slices);
        let tor = slices * f64::from(*host.uncore.tor);
        let irq = slices * f64::from(*host.uncore.irq);
        prop_assert!(seen.mean_level(Counter::TorOccupancyIa) <= tor * 1.001);
        prop_assert!(seen.mean_level(Counter::IrqOccupancy) <= irq * 1.001);

        let c = |counter| seen.count(counter);
        let misses = c(Counter::TorInsertsIaMiss);
        prop_assert_eq!(c(Counter::TorInsertsIaHit) + misses, c(Counter::TorInsertsIa));
        let by_tier = c(Counter::TorInsertsIaMissDdr)
            + c(Counter::TorInsertsIaMissCxl)
            + c(Counter::TorInsertsIaMissRemote);
        prop_assert_eq!(by_tier, misses);

        // Requests that leave the cores enter the slices, except those on the path or waiting.
        let waiting = c(Counter::OffcoreAllRequests) - c(Counter::TorInsertsIa);
        prop_assert!((0.0..=slack).contains(&waiting), "{waiting} of {slack}");

        // Every miss moves one line, and so does every eviction; nothing else does.
        let (read, written) = moved(&seen);
        let entries = misses + c(Counter::TorInsertsEvict);
        let beyond = read + written - entries;
        prop_assert!(beyond.abs() <= slack, "{read} + {written} for {entries}");
        prop_assert!(read <= misses + slack, "{read} read in {misses} misses");
        if tenants.iter().all(|t| t.work.stream().unwrap().op == Op::Ld) {
            prop_assert_eq!(written, 0.0);
        }
        if tenants.iter().all(|t| t.work.stream().unwrap().op.is_posted()) {
            prop_assert_eq!(read, 0.0);
        }
        for (tenant, progress) in tenants.iter().zip(&seen.0.tenants) {
            prop_assert!(progress.accesses > 0, "{} makes no progress", tenant.name);
            prop_assert_eq!(progress.bytes.get(), progress.accesses * LINE_BYTES);
        }

        // No direction carries more than its limit; what is booked ahead counts when it is booked.
        let early = in_flight(&platform, threads) * LINE_BYTES as f64 / seen.0.window.get();
        let topology = platform.topology();
        for (tier, [read, write]) in [
            ("dram", [Counter::CasRd, Counter::CasWr]),
            ("cxl0", [Counter::CxlRxMemData, Counter::CxlTxMemData]),
        ] {
            let limits = topology.tier(&TierName::named(tier)).and_then(|t| t.limits.clone());
            let limits = limits.expect("a tier of known parts");
            let (read, write) = (seen.line_rate(read), seen.line_rate(write));
            prop_assert!(read <= limits.read.get() + early, "{tier} reads {read}");
            prop_assert!(write <= limits.write.get() + early, "{tier} writes {write}");
            prop_assert!(read + write <= limits.total.get() + early, "{tier} {read} + {write}");
        }
    }

    #[test]
    fn no_line_is_lost_between_the_program_and_memory(
        op in prop::sample::select(&Op::ALL[..]),
        tier in tier(),
        threads in 1u32..=32,
        prefetch in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let platform = platform(MACHINE);
        let mut tenant = stream(op, tier, 0..threads);
        tenant.prefetch = prefetch;
        let seen = run(&bed_of(&platform), &[tenant], 0.0, 100.0, seed);
        let (read, written) = moved(&seen);
        let touched = seen.accesses(0);
        let (reads, writes) = match op {
            Op::Ld => (1.0, 0.0),
            // Read for ownership, write back.
            Op::St | Op::StClwb | Op::Cas => (1.0, 1.0),
            _ => (0.0, 1.0),
        };
        // No line is read or posted later than it is touched, and none is written back before. A compare-and-swap
        // waits for its line; others are as far ahead as the buffers of the core allow.
        let core = &platform.host.core;
        let each = match op {
            Op::Cas => 1,
            _ if prefetch => *core.super_queue,
            _ => *core.line_fill_buffers,
        };
        let ahead = 0.0..=f64::from(threads * each);
        let early = read - reads * touched;
        prop_assert!(ahead.contains(&early), "{touched} touched, {read} read");
        let posted = written - writes * touched;
        let posted = if reads > 0.0 { -posted } else { posted };
        prop_assert!(ahead.contains(&posted), "{touched} touched, {written} written");
        prop_assert!(*ahead.end() <= 0.07 * touched, "{touched} touched, slack of {ahead:?}");
        prop_assert_eq!(op.traffic_factor(), reads + writes);
    }

    #[test]
    fn a_closed_loop_has_as_many_in_it_as_there_are_threads(
        tier in tier(),
        threads in 1u32..=32,
        seed in 0u64..1000,
    ) {
        // Little's law with nothing taken from a queue: rate x response time = population.
        let bed = bed(MACHINE);
        let tenant = chase(tier, 0..threads, Bytes::mib(256));
        let seen = run(&bed, &[tenant], 5.0, 100.0, seed);
        let population = seen.accesses(0) * seen.ns(0) / seen.0.window.get();
        prop_assert!((population / f64::from(threads) - 1.0).abs() < 0.02, "{population}");

        // The same with the ToR's counts: an entry is held for all of the response time except the path
        // between core and slice.
        let inside = seen.mean_level(Counter::TorOccupancyIaMiss);
        let residency = seen.residency(Counter::TorOccupancyIaMiss, Counter::TorInsertsIaMiss);
        let expected = f64::from(threads) * residency / seen.ns(0);
        prop_assert!((inside / expected - 1.0).abs() < 0.02, "{inside} for {expected}");
    }

    #[test]
    fn loads_hold_no_more_entries_than_the_cores_have_fill_buffers(
        pattern in pattern(),
        tier in tier(),
        threads in 1u32..=32,
        seed in 0u64..1000,
    ) {
        let platform = small();
        let mut tenant = plain_stream(Op::Ld, tier, 0..threads);
        tenant.work.stream_mut().unwrap().pattern = pattern;
        let seen = run(&bed_of(&platform), &[tenant], 10.0, 40.0, seed);
        let buffers = f64::from(threads * *platform.host.core.line_fill_buffers);
        let inside = seen.mean_level(Counter::TorOccupancyIa) + seen.mean_level(Counter::IrqOccupancy);
        prop_assert!(inside <= buffers, "{inside} of {buffers}");
        // The same as the cores count it.
        let outstanding = seen.count(Counter::OffcoreOutstandingDemandDataRd)
            / seen.count(Counter::Cycles)
            * f64::from(threads);
        prop_assert!(outstanding <= buffers * 1.02, "{outstanding} of {buffers}");
        prop_assert!(inside <= outstanding * 1.02, "{inside} inside, {outstanding} outstanding");
    }

    #[test]
    fn the_same_seed_gives_the_same_observation(tenant in tenant(), seed in 0u64..1000) {
        let bed = bed_of(&small());
        let alone = fingerprint(&bed, std::slice::from_ref(&tenant), seed);
        prop_assert_eq!(&alone, &fingerprint(&bed, &[tenant], seed));
    }
}

/// Everything that two windows of a run show.
fn fingerprint(bed: &SimTestbed, tenants: &[Tenant], seed: u64) -> String {
    let mut machine = SimMachine::new(bed, seed);
    machine.start(tenants).unwrap();
    (0..2)
        .map(|_| {
            let seen = machine.observe(Nanos::from_micros(10.0)).unwrap();
            let latencies: Vec<_> = seen
                .tenants
                .iter()
                .map(|t| t.latency.as_ref().map(|h| h.buckets()))
                .collect();
            let accesses: Vec<u64> = seen.tenants.iter().map(|t| t.accesses).collect();
            format!("{:?} {accesses:?} {latencies:?}\n", seen.counters)
        })
        .collect()
}

fn three_tenants() -> Vec<Tenant> {
    let mut interleaved = stream(Op::St, "dram", 8..12);
    interleaved.name = "interleaved".into();
    interleaved.placement =
        Placement::Interleave(vec![(TierName::dram(), 3), (TierName::cxl(0), 1)]);
    vec![
        chase("cxl0", 0..1, Bytes::mib(256)),
        stream(Op::NtSt, "cxl0", 1..3),
        interleaved,
    ]
}

#[test]
fn results_do_not_depend_on_how_many_machines_run_at_once() {
    let bed = bed(MACHINE);
    let tenants = three_tenants();
    let seeds: Vec<u64> = (1..=8).collect();
    let one_by_one: Vec<String> = seeds
        .iter()
        .map(|&seed| fingerprint(&bed, &tenants, seed))
        .collect();
    let at_once: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = seeds
            .chunks(2)
            .map(|two| {
                let (bed, tenants) = (&bed, &tenants);
                scope.spawn(move || {
                    let of = |&seed| fingerprint(bed, tenants, seed);
                    two.iter().map(of).collect::<Vec<_>>()
                })
            })
            .collect();
        running
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    });
    assert_eq!(one_by_one, at_once);
}

#[test]
fn another_seed_is_another_run() {
    let bed = bed(MACHINE);
    let runs: std::collections::BTreeSet<String> = (1..=8)
        .map(|seed| fingerprint(&bed, &three_tenants(), seed))
        .collect();
    assert_eq!(runs.len(), 8);
}

#[test]
fn a_window_cut_in_two_counts_what_the_whole_counts() {
    let bed = bed(MACHINE);
    let counts = |windows: &[f64]| {
        let mut machine = SimMachine::new(&bed, 1);
        machine.start(&three_tenants()).unwrap();
        let mut sums = std::collections::BTreeMap::<Counter, u64>::new();
        let mut accesses = 0;
        for &us in windows {
            let seen = machine.observe(Nanos::from_micros(us)).unwrap();
            accesses += seen.tenants.iter().map(|t| t.accesses).sum::<u64>();
            for (counter, value) in seen.counters.iter() {
                *sums.entry(counter).or_default() += value;
            }
        }
        (sums, accesses)
    };
    assert_eq!(counts(&[30.0]), counts(&[7.0, 11.0, 12.0]));
}

#[test]
fn tiers_differ_in_latency_by_what_they_differ_in_residency() {
    // The path between core and slice is the same for every tier.
    let bed = bed(MACHINE);
    let seen = TIERS.map(|tier| run(&bed, &[chase(tier, 0..1, Bytes::gib(1))], 5.0, 1000.0, 1));
    let outside = seen
        .each_ref()
        .map(|s| s.ns(0) - s.residency(Counter::TorOccupancyIaMiss, Counter::TorInsertsIaMiss));
    for (tier, ns) in TIERS.iter().zip(outside) {
        assert!(
            (ns - outside[0]).abs() < 0.5,
            "{tier}: {ns:.2} ns outside, {:.2} for dram",
            outside[0]
        );
    }
}

#[test]
fn a_streaming_core_keeps_its_fill_buffers_full() {
    // Little's law from the core's side: bandwidth = buffers x line / latency, with the latency
    // that the cores' own counters give.
    let platform = platform(MACHINE);
    let bed = bed_of(&platform);
    let buffers = f64::from(*platform.host.core.line_fill_buffers);
    for (tier, threads) in [
        ("dram", 1),
        ("dram", 8),
        ("cxl0", 1),
        ("cxl0", 16),
        ("remote", 8),
    ] {
        let seen = steady(&bed, &[plain_stream(Op::Ld, tier, 0..threads)]);
        let cycles = seen.count(Counter::OffcoreOutstandingDemandDataRd)
            / seen.count(Counter::OffcoreDemandDataRd);
        let ns = cycles / platform.host.core.clock.get();
        let expected = f64::from(threads) * buffers * LINE_BYTES as f64 / ns;
        assert_near(
            &format!("{threads} on {tier}"),
            seen.gbps(0),
            expected,
            0.05,
        );
    }
}

#[test]
fn latency_never_falls_as_load_rises() {
    for tier in ["dram", "cxl0", "remote"] {
        let bed = bed(MACHINE);
        let mut longest = 0.0f64;
        let mut first = 0.0;
        for threads in [0, 1, 2, 4, 8, 12, 16, 20, 24, 28] {
            let mut tenants = vec![chase(tier, 0..1, Bytes::gib(1))];
            if threads > 0 {
                tenants.push(stream(Op::Ld, tier, 1..1 + threads));
            }
            let ns = run(&bed, &tenants, 30.0, 200.0, 1).ns(0);
            if threads == 0 {
                first = ns;
            }
            assert!(
                ns > 0.95 * longest,
                "{tier}, {threads} other threads: {ns:.0} after {longest:.0} ns"
            );
            longest = longest.max(ns);
        }
        assert!(
            longest > 1.5 * first,
            "{tier}: {first:.0} to {longest:.0} ns"
        );
    }
}

#[test]
fn idle_latency_does_not_depend_on_how_many_chase() {
    let bed = bed(MACHINE);
    // A device with four DDR4 ranks is left out: eight chases already compete for its banks.
    for tier in ["dram", "remote"] {
        let ns = |threads| {
            run(
                &bed,
                &[chase(tier, 0..threads, Bytes::mib(512))],
                5.0,
                1000.0,
                1,
            )
            .ns(0)
        };
        assert_near(tier, ns(8), ns(1), 0.02);
    }
}

#[test]
fn dirty_lines_that_loads_drive_out_do_not_outrun_the_link() {
    let platform = small();
    let mut writer = stream(Op::St, "cxl0", 0..5);
    writer.work.stream_mut().unwrap().working_set = Bytes::mib(4);
    writer.prefetch = false;
    let mut reader = stream(Op::Ld, "dram", 5..30);
    reader.work.stream_mut().unwrap().working_set = Bytes::mib(16);
    let seen = run(&bed_of(&platform), &[writer, reader], 0.0, 60.0, 1);
    let limit = platform
        .topology()
        .tier(&TierName::cxl(0))
        .unwrap()
        .limits
        .clone()
        .unwrap();
    let written = seen.line_rate(Counter::CxlTxMemData);
    assert!(
        written <= 1.05 * limit.write.get(),
        "{written:.1} GB/s over a link of {}",
        limit.write
    );
}
