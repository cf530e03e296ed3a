//! Laws of described programs on the out-of-order core: relations between its counters that hold for every
//! program, and the effect of slower memory on programs with a known answer.

mod prefetchers;
mod walks;

use crate::common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::action::Action;
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::Machine;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::{Order, Workload, Workloads, population};
use weir_sim::{SimMachine, SimTestbed};

const MACHINE: &str = "emr2s+cxl-a";

/// Counts per instruction, in a steady state.
struct Counts {
    set: CounterSet,
    instructions: f64,
}

impl Counts {
    fn of(&self, counter: Counter) -> f64 {
        self.set.get(counter).unwrap() as f64 / self.instructions
    }

    fn cpi(&self) -> f64 {
        self.of(Counter::Cycles)
    }

    /// Stalls: bound on stores, then those that SupMario's identity adds up, from L1 to DRAM.
    fn stalls(&self) -> [f64; 5] {
        let [any, l1, l2, l3] = [
            Counter::StallsMemAny,
            Counter::StallsL1dMiss,
            Counter::StallsL2Miss,
            Counter::StallsL3Miss,
        ]
        .map(|counter| self.of(counter));
        [
            self.of(Counter::BoundOnStores),
            any - l1,
            l1 - l2,
            l2 - l3,
            l3,
        ]
    }
}

fn tenant(work: &Workload, tier: &str, prefetch: bool) -> Tenant {
    let cores = (0..work.threads).collect();
    let placement = Placement::Bind(TierName::named(tier));
    Tenant {
        prefetch,
        ..Tenant::running(work.clone(), cores, placement)
    }
}

/// Runs the first phase of a program until it has accessed this many lines.
fn counts_of(machine: &str, work: &Workload, tier: &str, prefetch: bool, lines: u64) -> Counts {
    counts_on(&bed(machine), work, tier, prefetch, lines)
}

/// The same on a machine.
fn counts_on(bed: &SimTestbed, work: &Workload, tier: &str, prefetch: bool, lines: u64) -> Counts {
    let work = work.phase_alone(0).unwrap();
    let mut machine = SimMachine::new(bed, 3);
    machine.start(&[tenant(&work, tier, prefetch)]).unwrap();
    machine.observe(Nanos(5_000.0)).unwrap();
    let (mut set, mut touched) = (CounterSet::default(), 0);
    while touched < lines {
        let seen = machine.observe(Nanos(50_000.0)).unwrap();
        touched += seen.tenants[0].accesses.max(lines / 100);
        set.accumulate(&seen.tenants[0].counters);
    }
    let instructions = set.get(Counter::Instructions).unwrap() as f64;
    Counts { set, instructions }
}

fn counts(work: &Workload, tier: &str, prefetch: bool) -> Counts {
    counts_of(MACHINE, work, tier, prefetch, 10_000)
}

/// The cost of slower memory, as shares of the cycles on local DRAM: the total, and its five parts.
fn slowdown(work: &Workload, tier: &str, prefetch: bool) -> (f64, [f64; 5]) {
    let (local, far) = (counts(work, "dram", prefetch), counts(work, tier, prefetch));
    let mut parts = far.stalls();
    for (part, local_part) in parts.iter_mut().zip(local.stalls()) {
        *part = (*part - local_part) / local.cpi();
    }
    ((far.cpi() - local.cpi()) / local.cpi(), parts)
}

fn preset(name: &str) -> Workload {
    let all = Workloads::builtin();
    all.get(name).unwrap_or_else(|| panic!("{name}")).clone()
}

/// A preset with its only region changed.
fn changed(name: &str, change: impl Fn(&mut weir_model::workload::Region)) -> Workload {
    let mut work = preset(name);
    change(&mut work.phases[0].regions[0]);
    work
}

/// The share of cycles in which the first phase executes nothing during a miss, although dispatch continues.
fn quiet(work: &Workload) -> f64 {
    let phase = &work.phases[0];
    (-(1.0 - phase.slice) / phase.cpi).exp()
}

/// Scattered loads, `gap` instructions apart.
fn scattered(distance: f64) -> Workload {
    let mut work = changed("chase", |region| {
        (region.order, region.dependent) = (Order::Random, 0.0);
    });
    work.phases[0].apki = 1000.0 / distance;
    work
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 24,
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn counters_of_any_program_keep_their_order(
        point in 0usize..300,
        tier in prop::sample::select(&["dram", "cxl0", "remote"][..]),
        prefetch: bool,
    ) {
        let work = population(1, point + 1).pop().unwrap();
        let seen = counts(&work, tier, prefetch);
        let phase = &work.phases[0];
        // A window may cut an instruction in two.
        prop_assert!(seen.cpi() >= phase.cpi * 0.999);
        let stalls = seen.stalls();
        // Both counts of a difference are whole cycles.
        let cycle = 1.0 / seen.instructions;
        prop_assert!(stalls.iter().all(|&part| part >= -1.001 * cycle), "{stalls:?}");
        let executes = phase.cpi * (1.0 - quiet(&work));
        prop_assert!(stalls.iter().sum::<f64>() <= seen.cpi() - executes * 0.999);
        // Little's law: in the mean, no more are outstanding than there are buffers.
        let busy = seen.of(Counter::OffcoreCyclesDemandDataRd);
        let demand = seen.of(Counter::OffcoreOutstandingDemandDataRd);
        prop_assert!(busy <= seen.cpi() * 1.01 && busy <= demand * 1.01);
        // Stalls on misses are part of the cycles with a miss, and part of all stalled cycles.
        let mut outer = seen.cpi();
        for (cycles, stalls) in [
            (Counter::CyclesL1dMiss, Counter::StallsL1dMiss),
            (Counter::CyclesL2Miss, Counter::StallsL2Miss),
            (Counter::CyclesL3Miss, Counter::StallsL3Miss),
        ] {
            let missing = seen.of(cycles);
            prop_assert!(seen.of(stalls) <= missing * 1.0001 + 1e-6, "{cycles}");
            prop_assert!(missing <= outer * 1.0001 + 1e-6, "{cycles}");
            outer = missing;
        }
        prop_assert!(demand <= 16.0 * seen.cpi() * 1.01);
        prop_assert!(seen.of(Counter::OffcoreOutstandingDataRd) <= 48.0 * seen.cpi() * 1.01);
    }

    #[test]
    fn what_is_lost_is_what_stalls_say(
        point in 0usize..300,
        tier in prop::sample::select(&["cxl0", "remote"][..]),
        prefetch: bool,
    ) {
        let work = population(1, point + 1).pop().unwrap();
        let (all, parts) = slowdown(&work, tier, prefetch);
        let sum: f64 = parts.iter().sum();
        let slack = 0.03 + 0.02 * all.abs();
        // Cycles in which no instruction happens to be executed are stalls during a miss, and last longer
        // during a longer miss.
        let corun = quiet(&work) * work.phases[0].cpi / counts(&work, "dram", prefetch).cpi();
        prop_assert!((all - slack..all + corun + slack).contains(&sum), "{all} is not {parts:?}");
    }

    #[test]
    fn without_prefetchers_no_cache_costs_more_on_slower_memory(
        order in prop::sample::select(&[Order::Sequential, Order::Random, Order::Chase][..]),
        streams in 1u32..8,
        element in prop::sample::select(&[8u64, 64, 256][..]),
    ) {
        let work = changed("chase", |region| {
            region.order = order;
            region.streams = streams;
            region.element = Bytes(element);
            region.stride = region.element;
            region.dependent = if order == Order::Chase { 1.0 } else { 0.0 };
        });
        let (all, [_, l1, l2, l3, dram]) = slowdown(&work, "cxl0", false);
        prop_assert!((l1 + l2 + l3).abs() < 0.02, "{l1} {l2} {l3}");
        prop_assert!((all - dram).abs() < 0.02);
    }

    #[test]
    fn a_program_that_overlaps_more_is_never_slower(
        order in prop::sample::select(&[Order::Chase, Order::Sequential][..]),
        tier in prop::sample::select(&["dram", "cxl0"][..]),
    ) {
        let mut before = f64::INFINITY;
        for streams in [1, 2, 4, 8] {
            let work = changed("chase", |region| {
                region.order = order;
                region.streams = streams;
                region.dependent = 1.0;
            });
            let cpi = counts(&work, tier, false).cpi();
            prop_assert!(cpi <= before * 1.01, "{streams}: {cpi} after {before}");
            before = cpi;
        }
    }
}

#[test]
fn a_chase_slows_down_as_latencies_do_and_a_list_in_order_far_less() {
    let latency_of = |tier| {
        let progress = run(
            &bed(MACHINE),
            &[chase(tier, 0..1, Bytes::gib(1))],
            5.0,
            100.0,
            3,
        );
        let latency = progress.0.tenants[0].latency.as_ref();
        latency.map_or(0.0, |latency| latency.mean().get())
    };
    // The chase above stays within the reach of the TLBs; the program's chase walks pages.
    let work = preset("chase");
    let (all, _) = slowdown(&work, "cxl0", true);
    let walk = 30.0;
    let wanted = (latency_of("cxl0") - latency_of("dram")) / (latency_of("dram") + walk);
    assert!((all - wanted).abs() < 0.05 * wanted, "{all} for {wanted}");
    // At full pace the heads of pages, which train the streamer, cost a list almost as much as they cost a
    // chase; here there is time between the elements.
    let mut scan = preset("scan");
    scan.phases[0].apki = 5.0;
    let (list, _) = slowdown(&scan, "cxl0", true);
    assert!(list < all / 4.0, "{list}");
}

#[test]
fn a_list_that_is_walked_again_costs_what_a_chase_does_where_it_fits_no_cache_and_more_where_half_of_it_does()
 {
    let walked = |order, bytes| {
        let work = changed("chase", |region| {
            region.order = order;
            region.dependent = 1.0;
            region.bytes = bytes;
        });
        counts(&work, "cxl0", false)
    };
    let cpi = |order, bytes| walked(order, bytes).cpi();
    let large = Bytes::gib(16);
    let ratio = cpi(Order::Cycle, large) / cpi(Order::Chase, large);
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
    // LRU keeps nothing of a cycle that is larger than the cache, and a part of lines that are drawn.
    let halves = Bytes::mib(400);
    let ratio = cpi(Order::Cycle, halves) / cpi(Order::Chase, halves);
    assert!(ratio > 1.2, "{ratio}");
    let small = Bytes::mib(1);
    assert!(walked(Order::Cycle, small).of(Counter::StallsL3Miss) < 0.01);
}

#[test]
fn lines_that_are_modified_are_read_once_and_written_back_once() {
    let counted = |stores: f64, modifies: f64| {
        let work = changed("chase", |region| {
            (region.order, region.dependent) = (Order::Random, 0.0);
            (region.stores, region.modifies) = (stores, modifies);
            region.bytes = Bytes::gib(4);
        });
        let mut machine = SimMachine::new(&bed(MACHINE), 3);
        machine.start(&[tenant(&work, "dram", false)]).unwrap();
        machine.observe(Nanos(200_000.0)).unwrap();
        let seen = machine.observe(Nanos(400_000.0)).unwrap();
        let lines = |counter| seen.counters.get(counter).unwrap() as f64;
        lines(Counter::CasWr) / lines(Counter::CasRd)
    };
    let (read, modified, half, stored) = (
        counted(0.0, 0.0),
        counted(0.0, 1.0),
        counted(0.0, 0.5),
        counted(1.0, 0.0),
    );
    assert!(read < 0.02, "{read}");
    assert!(
        (modified - stored).abs() < 0.1 && modified > 0.8,
        "{modified} {stored}"
    );
    assert!((half / modified - 0.5).abs() < 0.06, "{half} {modified}");
}

proptest! {
    #![proptest_config(config())]

    /// Instructions that wait for a load cannot execute in the meantime, nor can those after a waiting
    /// branch.
    #[test]
    fn programs_that_wait_for_their_loads_are_never_faster(
        distance in 20f64..2000.0,
        cpi in 0.25f64..1.2,
        tier in prop::sample::select(&["dram", "cxl0"][..]),
    ) {
        let mut work = scattered(distance);
        let mut before = [0.0; 2];
        for (slice, mispredicts) in [(0.0, 5.0), (0.3, 10.0), (0.6, 20.0), (1.0, 40.0)] {
            let phase = &mut work.phases[0];
            (phase.cpi, phase.slice, phase.mispredicts) = (cpi, slice, 0.0);
            let straight = counts(&work, tier, true).cpi();
            work.phases[0].mispredicts = mispredicts;
            let branching = counts(&work, tier, true).cpi();
            prop_assert!(straight >= before[0] * 0.99, "{slice}: {straight} after {before:?}");
            prop_assert!(branching >= before[1] * 0.98, "{slice}: {branching} after {before:?}");
            prop_assert!(branching >= straight * 0.99, "{slice}: {branching} and {straight}");
            before = [straight, branching];
        }
    }
}

/// No time is lost if the reorder buffer outlasts the miss, but the hardware's events count the cycles in
/// which no instruction happens to be executed.
#[test]
fn stalls_are_counted_during_a_miss_that_costs_no_time() {
    let mut work = scattered(1000.0);
    (work.phases[0].cpi, work.phases[0].slice) = (1.0, 0.0);
    work.phases[0].vector = 0.4;
    let seen = counts(&work, "dram", true);
    assert!((seen.cpi() - 1.0).abs() < 0.01, "{}", seen.cpi());
    let [.., stalled] = seen.stalls();
    let missing = seen.of(Counter::CyclesL3Miss);
    let share = stalled / missing;
    assert!((share - quiet(&work)).abs() < 0.02, "{share}");
    // Every load of it misses the last-level cache, so the cycles with a miss are the cycles with a read, but for
    // the reads of page tables, which that cache has.
    let busy = seen.of(Counter::OffcoreCyclesDemandDataRd);
    assert!(
        missing < busy && missing > 0.7 * busy,
        "{missing} of {busy}"
    );
}

/// A round of pages that has a common factor with the distance between threads is as good as one that has
/// none.
#[test]
fn threads_that_interleave_are_not_in_step() {
    let mut work = preset("scan-column");
    (work.threads, work.phases[0].apki) = (8, 200.0);
    let cpi = |near, far| {
        let tiers = vec![(TierName::dram(), near), (TierName::named("remote"), far)];
        let cores = (0..work.threads).collect();
        let tenant = Tenant::running(work.clone(), cores, Placement::Interleave(tiers));
        let mut machine = SimMachine::new(&bed("skx2s"), 3);
        machine.start(&[tenant]).unwrap();
        machine.observe(Nanos(20_000.0)).unwrap();
        let seen = machine.observe(Nanos(200_000.0)).unwrap();
        let of = |counter| seen.tenants[0].counters.get(counter).unwrap() as f64;
        of(Counter::Cycles) / of(Counter::Instructions)
    };
    let (even, odd) = (cpi(10, 6), cpi(8, 5));
    assert!((even / odd - 1.0).abs() < 0.1, "{even} {odd}");
}

/// Golden Cove renames fewer integers, and fewer vectors, than its reorder buffer holds instructions; a mix
/// of both fills the reorder buffer first. Skylake's registers outlast its reorder buffer either way.
#[test]
fn results_that_have_not_retired_take_registers() {
    let cpi = |machine: &str, vector: f64| {
        let mut work = scattered(1000.0);
        (work.phases[0].cpi, work.phases[0].slice) = (0.5, 0.0);
        work.phases[0].vector = vector;
        counts_of(machine, &work, "dram", true, 4_000).cpi()
    };
    let golden_cove = [0.0, 0.4, 1.0].map(|vector| cpi(MACHINE, vector));
    assert!(golden_cove[0] > golden_cove[1] * 1.03, "{golden_cove:?}");
    assert!(golden_cove[2] > golden_cove[0] * 1.03, "{golden_cove:?}");
    assert_eq!(cpi("skx2s", 0.0), cpi("skx2s", 0.4));
}

/// Computation takes as many cycles as before, each of them longer; waiting does not take longer.
#[test]
fn cycles_that_were_counted_on_another_core_are_those_of_this_one() {
    let mut computes = scattered(20.0);
    computes.phases[0].regions[0].bytes = Bytes::kib(2);
    let cpi = |core_ipc, machine| {
        let work = Workload {
            core_ipc,
            ..computes.clone()
        };
        counts_of(machine, &work, "dram", true, 20_000).cpi()
    };
    // A Skylake core has one by definition.
    for (counted_on, machine, times) in [
        (1.0, "emr2s", 1.0 / 1.4),
        (1.4, "emr2s", 1.0),
        (1.4, "skx2s", 1.4),
        (0.5, "skx2s", 0.5),
    ] {
        let (own, other) = (cpi(None, machine), cpi(Some(counted_on), machine));
        assert_near(machine, other, own * times, 0.02);
    }
}

#[test]
fn a_lower_clock_slows_what_is_computed_more_than_what_is_waited_for() {
    let kept = |name: &str| {
        let work = preset(name).phase_alone(0).unwrap();
        let clock = platform(MACHINE).host.core.clock.value;
        let touched = |part: f64| {
            let mut machine = SimMachine::new(&bed(MACHINE), 3);
            machine.start(&[tenant(&work, "dram", true)]).unwrap();
            let action = Action::Clock {
                tenant: work.name.clone(),
                clock: Some(clock * part),
            };
            machine.act(&action).unwrap();
            machine.observe(Nanos(20_000.0)).unwrap();
            machine.observe(Nanos(100_000.0)).unwrap().tenants[0].accesses as f64
        };
        touched(0.5) / touched(1.0)
    };
    let (computes, waits) = (kept("deepsjeng-like"), kept("chase"));
    assert!((0.45..0.7).contains(&computes), "{computes}");
    assert!(waits > 0.85, "{waits}");
}

/// All requests that leave a core pass its allocation, including write-backs, whatever tier the lines are on;
/// a program with few requests is not slowed.
#[test]
fn an_allocation_holds_a_program_to_what_it_lets_pass() {
    let requests = |name: &str, tier: &str, percent| {
        let work = preset(name).phase_alone(0).unwrap();
        let mut machine = SimMachine::new(&bed(MACHINE), 3);
        machine.start(&[tenant(&work, tier, true)]).unwrap();
        machine
            .act(&Action::Bandwidth {
                tenant: work.name.clone(),
                percent,
            })
            .unwrap();
        machine.observe(Nanos(20_000.0)).unwrap();
        let seen = machine.observe(Nanos(100_000.0)).unwrap();
        let requests = seen.counters.get(Counter::TorInsertsIa).unwrap() as f64;
        requests / f64::from(work.threads) / seen.window.get()
    };
    let host = platform(MACHINE).host;
    let most = host.core.load_peak.get() / LINE_BYTES as f64 * host.allocation.passes(0.1);
    for (name, tier) in [("scan", "dram"), ("gups", "dram"), ("gups", "cxl0")] {
        let (free, held) = (requests(name, tier, 100), requests(name, tier, 10));
        assert!(held <= 1.01 * most, "{name} on {tier}: {held} of {most}");
        let expected = free.min(most);
        assert!(
            held > 0.9 * expected,
            "{name} on {tier}: {held} of {expected}"
        );
    }
    assert!(requests("gups", "dram", 100) > 1.5 * most);
}

#[test]
fn threads_share_their_program_s_memory_and_interleaving_splits_it() {
    let mut work = preset("gups");
    work.threads = 4;
    let interleaved = Placement::Interleave(vec![
        (TierName::named("dram"), 3),
        (TierName::named("cxl0"), 1),
    ]);
    let tenant = Tenant::running(work.clone(), (0..4).collect(), interleaved);
    let mut machine = SimMachine::new(&bed(MACHINE), 3);
    machine.start(&[tenant]).unwrap();
    machine.observe(Nanos(5_000.0)).unwrap();
    let seen = machine.observe(Nanos(50_000.0)).unwrap();
    let of = |counter| seen.counters.get(counter).unwrap() as f64;
    let share = of(Counter::TorInsertsIaMissCxl) / of(Counter::TorInsertsIaMiss);
    assert!((share - 0.25).abs() < 0.02, "{share}");

    let few = Tenant::running(work, vec![0, 1], Placement::Bind(TierName::dram()));
    let error = machine.start(&[few]).unwrap_err().to_string();
    assert!(
        error.contains("4 threads") && error.contains("2 cores"),
        "{error}"
    );
}
