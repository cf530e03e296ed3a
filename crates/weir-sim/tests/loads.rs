//! Laws of loads that are more than one instruction in a row: mixes, copies, pauses, shared lines,
//! descriptors.

use crate::common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::action::Action;
use weir_model::counters::Counter;
use weir_model::machine::Machine;
use weir_model::tenant::{Arrivals, Placement, Reads, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_sim::SimMachine;

const MACHINE: &str = "emr2s+cxl-a";
const TIERS: [&str; 3] = ["dram", "cxl0", "remote"];

fn tier() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&TIERS[..])
}

/// Threads that load `lines` from one tier for each `per` lines of the instruction on another.
fn mix(op: Op, tier: &str, from: &str, (lines, per): (u32, u32), threads: u32) -> Tenant {
    let mut tenant = stream(op, tier, 0..threads);
    tenant.work.stream_mut().unwrap().reads = Some(Reads {
        lines,
        per,
        from: Placement::Bind(TierName::named(from)),
        dataflow: Dataflow::Copy,
    });
    tenant
}

/// A thread whose lines an accelerator moves.
fn moved(from: &str, to: &str, bytes: u64, batch: u32, in_flight: u32) -> Tenant {
    let mut tenant = mix(Op::Dsa, to, from, (1, 1), 1);
    tenant.work.stream_mut().unwrap().pattern = Pattern::Descriptors {
        bytes: Bytes(bytes),
        batch,
        in_flight,
    };
    tenant
}

/// Threads on these cores that alternate on a line.
fn sharing(op: Op, cores: &[u32]) -> Tenant {
    let mut tenant = stream(op, "dram", 0..1);
    tenant.work.stream_mut().unwrap().pattern = Pattern::SharedLine;
    tenant.cores = cores.to_vec();
    tenant
}

/// Lines read from and written to a tier.
fn crossed(seen: &Measured, tier: &str) -> (f64, f64) {
    let (read, written) = match tier {
        "dram" => (Counter::CasRd, Counter::CasWr),
        "cxl0" => (Counter::CxlRxMemData, Counter::CxlTxMemData),
        _ => (Counter::UpiRxData, Counter::UpiTxData),
    };
    (seen.count(read), seen.count(written))
}

/// GB/s of one tenant, reads and writes together.
fn rate(machine: &str, tenant: Tenant) -> f64 {
    gbps(&bed(machine), tenant)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, rng_seed: RngSeed::Fixed(11), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_line_of_a_mix_crosses_the_interface_of_its_own_tier(
        op in prop::sample::select(&[Op::Ld, Op::St, Op::StClwb, Op::NtSt, Op::Movdir64b][..]),
        to in tier(),
        from in tier(),
        rounds in (1u32..6, 1u32..6),
        threads in 1u32..=32,
        prefetch in any::<bool>(),
        pause in prop::sample::select(&[0.0, 3.0, 40.0][..]),
        seed in 0u64..1000,
    ) {
        let platform = platform(MACHINE);
        let tenant = Tenant { prefetch, ..mix(op, to, from, rounds, threads) }.with_stream(|s| s.pause = Nanos(pause));
        let seen = run(&bed_of(&platform), &[tenant], 0.0, 60.0, seed);
        let touched = seen.accesses(0);
        prop_assert!(touched > 0.0);
        let (lines, per) = (f64::from(rounds.0), f64::from(rounds.1));
        let (loaded, own) = (touched * lines / (lines + per), touched * per / (lines + per));
        let read = own * f64::from(u8::from(op == Op::Ld || op.reads_for_ownership()));
        let written = own * f64::from(u8::from(op != Op::Ld));
        // Lines outstanding in cores, slices and devices.
        let slack = in_flight(&platform, threads);
        for tier in TIERS {
            let (r, w) = crossed(&seen, tier);
            let expected = if tier == from { loaded } else { 0.0 } + if tier == to { read } else { 0.0 };
            prop_assert!((r - expected).abs() <= slack, "{tier}: {r} read for {expected}");
            let expected = if tier == to { written } else { 0.0 };
            prop_assert!((w - expected).abs() <= slack, "{tier}: {w} written for {expected}");
        }
    }

    #[test]
    fn an_accelerator_reads_each_line_and_writes_it_once(
        from in tier(),
        to in tier(),
        kib in 1u64..64,
        batch in 1u32..20,
        in_flight_most in 1u32..9,
        seed in 0u64..1000,
    ) {
        let platform = platform(MACHINE);
        let tenant = moved(from, to, kib << 10, batch, in_flight_most);
        let seen = run(&bed_of(&platform), &[tenant], 0.0, 60.0, seed);
        let half = seen.accesses(0) / 2.0;
        prop_assert!(half > 0.0);
        let slack = in_flight(&platform, 1);
        for tier in TIERS {
            let (read, written) = crossed(&seen, tier);
            let expected = if tier == from { half } else { 0.0 };
            prop_assert!((read - expected).abs() <= slack, "{tier}: {read} read for {expected}");
            let expected = if tier == to { half } else { 0.0 };
            prop_assert!((written - expected).abs() <= slack, "{tier}: {written} written for {expected}");
        }
        let gbps = half * LINE_BYTES as f64 / seen.0.window.get();
        prop_assert!(gbps <= 1.01 * platform.host.accelerator.peak.get(), "{gbps}");
    }

    #[test]
    fn the_longer_the_pause_the_fewer_lines(
        op in prop::sample::select(&[Op::Ld, Op::St, Op::NtSt][..]),
        tier in tier(),
        threads in 1u32..=8,
        prefetch in any::<bool>(),
        pause in 20f64..400.0,
    ) {
        let at = |pause| {
            let tenant = Tenant { prefetch, ..stream(op, tier, 0..threads) }.with_stream(|s| s.pause = Nanos(pause));
            steady(&bed(MACHINE), &[tenant]).accesses(0)
        };
        let (full, paused, twice) = (at(0.0), at(pause), at(2.0 * pause));
        prop_assert!(full * 1.01 >= paused && paused * 1.01 >= twice, "{full} {paused} {twice}");
        // A thread accesses at most one line per pause, and not fewer if nothing else limits it.
        let most = f64::from(threads) * 60_000.0 / (2.0 * pause);
        prop_assert!(twice <= most + f64::from(threads) * 64.0, "{twice} of {most}");
        if prefetch && full > 2.0 * most {
            prop_assert!(twice > 0.9 * most, "{twice} of {most}");
        }
    }

    #[test]
    fn lines_at_a_fixed_rate_come_as_often_as_asked_while_memory_can_and_never_less_often_than_after_pauses(
        op in prop::sample::select(&[Op::Ld, Op::St, Op::NtSt][..]),
        tier in tier(),
        threads in 1u32..=8,
        pause in 20.0f64..160.0,
        rounds in prop::option::of((1u32..4, 1u32..4)),
    ) {
        let bed = bed(MACHINE);
        // Random lines of loads would fill the tags of a whole cache first, which takes long.
        let pattern = match (op, rounds) {
            (Op::NtSt, None) => Pattern::RandomLine,
            _ => Pattern::Sequential,
        };
        let lines = |arrivals, beside: Option<Tenant>| {
            let mut tenant = match rounds {
                Some(rounds) => mix(op, tier, tier, rounds, threads),
                None => stream(op, tier, 0..threads),
            };
            tenant = tenant.with_stream(|s| {
                (s.pattern, s.pause, s.arrivals) = (pattern, Nanos(pause), arrivals);
            });
            let tenants: Vec<Tenant> = std::iter::once(tenant).chain(beside).collect();
            run(&bed, &tenants, 10.0, 40.0, 1).accesses(0)
        };
        let asked = f64::from(threads) * 40_000.0 / pause;
        let (open, closed) = (lines(Arrivals::Open, None), lines(Arrivals::Closed, None));
        // Lines of rounds and those outstanding as the window begins and ends.
        let slack = 48.0 * f64::from(threads);
        prop_assert!(closed <= open + slack, "{closed} after pauses, {open} at a fixed rate");
        prop_assert!(open <= asked + slack, "{open} for {asked}");
        // Each thread asks for less than half of what one can draw.
        if pause > 60.0 {
            prop_assert!((open - asked).abs() <= slack, "{open} for {asked}");
            let mut others = stream(Op::Ld, tier, 8..12);
            others.name = "others".into();
            let slower = lines(Arrivals::Open, Some(others));
            prop_assert!((slower - asked).abs() <= slack, "{slower} for {asked} with others");
        }
    }

    #[test]
    fn turns_follow_each_other(
        cores in prop::sample::subsequence((0u32..32).collect::<Vec<_>>(), 2..8),
        op in prop::sample::select(&[Op::Cas, Op::St][..]),
        seed in 0u64..1000,
    ) {
        // Only one thread at a time has its turn: rate x time of a turn = 1.
        let seen = run(&bed(MACHINE), &[sharing(op, &cores)], 5.0, 100.0, seed);
        let population = seen.accesses(0) * seen.ns(0) / seen.0.window.get();
        prop_assert!((population - 1.0).abs() < 0.01, "{population}");
        // Each turn passes the Table of Requests once, without going to memory.
        prop_assert!((seen.count(Counter::TorInsertsIa) - seen.accesses(0)).abs() <= 1.0);
        prop_assert_eq!(seen.count(Counter::TorInsertsIaMiss), 0.0);
    }

    #[test]
    fn the_same_seed_gives_the_same_observation(
        which in 0usize..4,
        seed in 0u64..1000,
    ) {
        let tenant = || match which {
            0 => mix(Op::NtSt, "cxl0", "dram", (2, 1), 4),
            1 => mix(Op::St, "dram", "cxl0", (1, 1), 4).with_stream(|s| s.pause = Nanos(7.0)),
            2 => moved("cxl0", "dram", 4096, 4, 2),
            _ => sharing(Op::Cas, &[0, 3, 9]),
        };
        let bed = bed(MACHINE);
        let seen = || {
            let mut machine = SimMachine::new(&bed, seed);
            machine.start(&[tenant()]).unwrap();
            let seen = machine.observe(Nanos::from_micros(20.0)).unwrap();
            (seen.counters, seen.tenants[0].accesses)
        };
        prop_assert_eq!(seen(), seen());
    }
}

/// Lines that may be outstanding when counting ends.
fn in_flight(platform: &weir_model::platform::Platform, threads: u32) -> f64 {
    let host = &platform.host;
    let queues = *host.llc.slices * (*host.uncore.tor + *host.uncore.irq);
    let buffers: u32 = platform
        .devices
        .iter()
        .map(|d| *d.device.controller.write_buffer + 8 * 48)
        .sum();
    let channels = 2 * *host.dram.channels * *host.dram.write_queue;
    // A thread's super queue, its store buffer, and the accelerator's lines.
    let held = threads * (*host.core.super_queue + *host.core.store_buffer);
    f64::from(queues + buffers + channels + held + *host.accelerator.read_buffers)
}

#[test]
fn a_non_temporal_load_of_ordinary_memory_is_a_load() {
    let seen = |op| {
        let mut tenant = stream(op, "cxl0", 0..4);
        tenant.name = "loads".into();
        let seen = steady(&bed(MACHINE), &[tenant]);
        (seen.0.counters.clone(), seen.accesses(0))
    };
    assert_eq!(seen(Op::NtLd), seen(Op::Ld));
}

#[test]
fn a_thread_makes_up_for_nothing_while_it_may_not_run() {
    let part = |arrivals| {
        let tenant = stream(Op::Ld, "cxl0", 0..2)
            .with_stream(|s| (s.pause, s.arrivals) = (Nanos(100.0), arrivals));
        let half = Action::ProcessorTime {
            tenant: tenant.name.clone(),
            share: 0.5,
            period: Nanos::from_micros(10.0),
        };
        let mut machine = SimMachine::new(&bed(MACHINE), 1);
        machine.start(&[tenant]).unwrap();
        machine.act(&half).unwrap();
        machine.observe(Nanos::from_micros(40.0)).unwrap();
        let seen = Measured(machine.observe(Nanos::from_micros(200.0)).unwrap());
        seen.accesses(0) / (2.0 * 2000.0)
    };
    assert_near("at a fixed rate", part(Arrivals::Open), 0.5, 0.02);
    assert_near("after pauses", part(Arrivals::Closed), 0.5, 0.02);
}

#[test]
fn a_load_with_a_pause_of_zero_is_the_plain_load() {
    // The shortest pause uses the code for programs: its bandwidth is that of the plain stream.
    for (op, threads) in [(Op::Ld, 1), (Op::Ld, 16), (Op::St, 8), (Op::NtSt, 4)] {
        for tier in TIERS {
            for prefetch in [true, false] {
                let plain = Tenant {
                    prefetch,
                    ..stream(op, tier, 0..threads)
                };
                let paced = plain.clone().with_stream(|s| s.pause = Nanos(0.001));
                let what = format!("{threads} x {op} on {tier}, prefetchers {prefetch}");
                assert_near(&what, rate(MACHINE, paced), rate(MACHINE, plain), 0.03);
            }
        }
    }
}

#[test]
fn prefetched_lines_of_a_thread_that_pauses_are_early() {
    let share = |pause| {
        let tenant = stream(Op::Ld, "cxl0", 0..1).with_stream(|s| s.pause = Nanos(pause));
        let seen = steady(&bed(MACHINE), &[tenant]);
        let (early, late) = (seen.count(Counter::L2Hit), seen.count(Counter::FbHit));
        early / (early + late)
    };
    assert!(share(100.0) > 0.95, "{}", share(100.0));
    assert!(share(0.0) < 0.9, "{}", share(0.0));
}

#[test]
fn direct_stores_feel_where_their_source_is_and_not_where_they_go() {
    // MEMO §4.3.1: the D2* copies are alike and above the C2* copies.
    let copy = |from, to| rate("memo", mix(Op::Movdir64b, to, from, (1, 1), 1));
    let (dd, dc) = (copy("dram", "dram"), copy("dram", "cxl0"));
    let (cd, cc) = (copy("cxl0", "dram"), copy("cxl0", "cxl0"));
    assert_near("D2C as D2D", dc, dd, 0.05);
    assert!(cd < 0.8 * dd && cc < 0.8 * dc, "{dd} {dc} {cd} {cc}");
    assert!(cc < cd, "C2C {cc}, C2D {cd}");
}

#[test]
fn an_accelerator_used_alone_copies_like_a_core_and_batches_copy_faster() {
    // MEMO §4.3.1: synchronous single descriptors are about as fast as a loop of copies, all others faster.
    let dsa = |from, to, batch, in_flight| rate("memo", moved(from, to, 4096, batch, in_flight));
    let copy = rate("memo", mix(Op::St, "dram", "dram", (1, 1), 1));
    let single = dsa("dram", "dram", 1, 1);
    assert!((0.6..1.6).contains(&(single / copy)), "{single} for {copy}");
    for from in ["dram", "cxl0"] {
        for to in ["dram", "cxl0"] {
            let single = dsa(from, to, 1, 1);
            for (batch, in_flight) in [(16, 1), (128, 1), (1, 16), (16, 4)] {
                let more = dsa(from, to, batch, in_flight);
                assert!(
                    more > 1.3 * single,
                    "{from} to {to}, {batch} x {in_flight}: {more} after {single}"
                );
            }
            let both = dsa("cxl0", "cxl0", 16, 4);
            assert!(
                dsa(from, to, 16, 4) >= both,
                "{from} to {to} below C2C {both}"
            );
        }
    }
}

#[test]
fn handing_a_line_over_takes_longer_than_the_last_level_cache_and_less_than_memory() {
    for machine in ["memo", "emr2s", "skx2s"] {
        let platform = platform(machine);
        let ns = latency(&bed_of(&platform), sharing(Op::Cas, &[0, 9]));
        let (hit, idle) = (
            platform.host.llc.latency.get(),
            platform.host.dram.measured.idle.get(),
        );
        assert!(ns > hit && ns < idle, "{machine}: {hit} < {ns} < {idle} ns");
    }
}

#[test]
fn a_shared_line_waits_in_the_queues_that_others_fill() {
    let bed = bed("memo");
    let alone = run(&bed, &[sharing(Op::Cas, &[0, 1])], 30.0, 200.0, 1).ns(0);
    let mut others = stream(Op::NtSt, "cxl0", 8..32);
    others.name = "others".into();
    let corun = run(&bed, &[sharing(Op::Cas, &[0, 1]), others], 30.0, 200.0, 1).ns(0);
    assert!(corun > 2.0 * alone, "{corun} after {alone} ns");
}

#[test]
fn loads_that_make_no_sense_are_refused_with_the_reason() {
    let bed = bed(MACHINE);
    let refusal = |tenant: Tenant| {
        let error = SimMachine::new(&bed, 1).start(&[tenant]).unwrap_err();
        error.to_string()
    };
    let none = mix(Op::St, "dram", "dram", (0, 1), 1);
    assert!(refusal(none).contains("zero"));
    let long = mix(Op::St, "dram", "dram", (1, 100_000), 1);
    assert!(refusal(long).contains("256"));
    let locked = mix(Op::Cas, "dram", "dram", (1, 1), 1);
    assert!(refusal(locked).contains("atomics"));
    let mut timed = chase("dram", 0..1, Bytes::mib(1));
    timed.work.stream_mut().unwrap().reads = mix(Op::St, "dram", "dram", (1, 1), 1)
        .work
        .stream()
        .unwrap()
        .reads
        .clone();
    assert!(refusal(timed).contains("chase"));
    for pause in [-1.0, f64::NAN, f64::INFINITY] {
        let mut tenant = stream(Op::Ld, "dram", 0..1);
        tenant.work.stream_mut().unwrap().pause = Nanos(pause);
        assert!(refusal(tenant).contains("pauses"), "{pause}");
    }
    let dependent = chase("dram", 0..1, Bytes::mib(1)).with_stream(|s| s.arrivals = Arrivals::Open);
    assert!(refusal(dependent).contains("fixed rate"));
    assert!(refusal(sharing(Op::Cas, &[4])).contains("needs two"));
    assert!(refusal(sharing(Op::NtSt, &[4, 5])).contains("shared_line"));
    let mut sourceless = moved("dram", "dram", 4096, 1, 1);
    sourceless.work.stream_mut().unwrap().reads = None;
    assert!(refusal(sourceless).contains("source"));
    assert!(refusal(moved("dram", "dram", 0, 1, 1)).contains("size zero"));
    assert!(refusal(moved("dram", "dram", 1 << 40, 2, 1)).contains("4 GiB"));
    assert!(refusal(stream(Op::Dsa, "dram", 0..1)).contains("accelerator"));
    let unknown = mix(Op::St, "dram", "cxl7", (1, 1), 1);
    assert!(refusal(unknown).contains("cxl7"));
}

#[test]
fn a_processor_without_an_accelerator_says_so() {
    let bed = bed("skx2s");
    let error = SimMachine::new(&bed, 1)
        .start(&[moved("dram", "remote", 4096, 1, 1)])
        .unwrap_err();
    assert!(error.to_string().contains("skylake-server"), "{error}");
}
