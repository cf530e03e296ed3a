//! Caption's estimate: what it reads from counters, and where a climb by any figure ends.

use crate::common;

use common::Simulated;
use proptest::prelude::*;
use weir_insight::InsightError;
use weir_insight::best_shot::crowd;
use weir_insight::interleave::Weights;
use weir_insight::interleave::caption::Settings;
use weir_insight::interleave::estimate::PcmReadings;
use weir_insight::tune::{climb_by, run_at};
use weir_insight::two_tiers::Tiers;
use weir_lab::WorkloadOptions;
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::Testbed;
use weir_model::platform::Library;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Nanos;
use weir_model::workload::Workloads;
use weir_sim::SimTestbed;

/// What the estimate reads.
const READ: [Counter; 7] = [
    Counter::Instructions,
    Counter::FbHit,
    Counter::L1Miss,
    Counter::L1dPendMiss,
    Counter::CasRd,
    Counter::RpqOccupancy,
    Counter::MClockticks,
];

/// The server that the coefficients are of: 2.1 GHz, two sockets of 32 cores.
fn server() -> Topology {
    let platform = Library::builtin().compose("micro23-snc4").unwrap();
    let machine = SimTestbed::new(&platform).unwrap().open(1).unwrap();
    machine.topology().clone()
}

fn counted(counts: [u64; 7]) -> CounterSet {
    let mut counters = CounterSet::default();
    counters.set(Counter::Cycles, u64::MAX / 4);
    for (counter, count) in READ.into_iter().zip(counts) {
        counters.set(counter, count);
    }
    counters
}

/// A microsecond is 2100 cycles of 64 cores, and 2400 of DDR5-4800.
#[test]
fn figures_are_those_that_pcm_reports() {
    let counters = counted([134_400, 300, 100, 82_000, 50, 6_000, 2_400]);
    let seen = PcmReadings::of(&counters, Nanos(1_000.0), &server()).unwrap();
    assert!((seen.ipc - 1.0).abs() < 1e-9, "{seen:?}");
    assert!((seen.l1_miss.get() - 210.0 / 2.1).abs() < 1e-9, "{seen:?}");
    assert!((seen.dram_read.get() - 50.0).abs() < 1e-9, "{seen:?}");
}

#[test]
fn a_missing_counter_is_named() {
    for missing in READ {
        let mut counters = CounterSet::default();
        counters.set(Counter::Cycles, 1);
        for counter in READ.into_iter().filter(|counter| *counter != missing) {
            counters.set(counter, 1);
        }
        let why = PcmReadings::of(&counters, Nanos(1.0), &server()).unwrap_err();
        assert!(matches!(why, InsightError::Missing { .. }), "{why}");
        assert!(why.to_string().contains(&missing.to_string()), "{why}");
    }
}

proptest! {
    #[test]
    fn a_run_twice_as_long_looks_the_same(
        counts in prop::array::uniform7(0..1_u64 << 40),
        time in 1.0..1e9_f64,
    ) {
        let server = server();
        let once = PcmReadings::of(&counted(counts), Nanos(time), &server).unwrap();
        let twice = PcmReadings::of(&counted(counts.map(|n| 2 * n)), Nanos(2.0 * time), &server).unwrap();
        prop_assert!(once.estimate().is_finite());
        for (a, b) in [
            (once.ipc, twice.ipc),
            (once.l1_miss.get(), twice.l1_miss.get()),
            (once.dram_read.get(), twice.dram_read.get()),
        ] {
            prop_assert!((a - b).abs() <= 1e-9 * a.abs(), "{a} {b}");
        }
    }

    /// Of runs of which one does more and waits less, the estimate prefers that.
    #[test]
    fn to_do_more_and_wait_less_is_better(
        ipc in 0.0..4.0_f64, l1 in 0.0..1e3_f64, dram in 0.0..1e3_f64,
        more in 1e-6..1.0_f64, which in 0..3_usize,
    ) {
        let worse = PcmReadings { ipc, l1_miss: Nanos(l1 + more), dram_read: Nanos(dram + more) };
        let mut better = worse;
        match which {
            0 => better.ipc += more,
            1 => better.l1_miss = Nanos(l1),
            _ => better.dram_read = Nanos(dram),
        }
        prop_assert!(better.estimate() > worse.estimate());
    }

    /// With one peak: it stays where it turned back to, and not one step beyond.
    #[test]
    fn a_climb_stays_at_the_better_of_its_last_two(peak in 1..=20_u32, steep in 0.5..4.0_f64) {
        let figure = |slow: u32| 100.0 - steep * (f64::from(slow) - f64::from(peak)).abs();
        let settings = Settings { sudden: 10.0, ..Settings::default() };
        let climb = climb_by::<InsightError>(settings, &|_| true, |w| Ok(figure(w.slow))).unwrap();
        let (weights, there) = climb.settled().unwrap();
        prop_assert_eq!(there, figure(weights.slow));
        for (_, tried) in climb.tried.iter().rev().take(2) {
            prop_assert!(there >= *tried, "{climb:?}");
        }
    }
}

#[test]
fn a_climb_that_was_stopped_at_once_settles_nowhere() {
    let never = |_| Err(InsightError::NothingRan);
    let climb = climb_by(Settings::default(), &|_| false, never).unwrap();
    assert_eq!(climb.settled(), None);
}

/// By run times, and by the estimate: where the tuner settles, and how fast the program is there. The first
/// is never slower than the second, and the second never at a smaller share.
#[test]
#[ignore = "climbs for a minute; CI runs a sample of them"]
fn the_estimate_goes_further_than_run_times() {
    let simulated = Simulated::new("micro23-snc4");
    let lab = &simulated.lab();
    let machine = server();
    let tiers = Tiers {
        from: TierName::dram(),
        to: TierName::named("cxl0"),
    };
    let options = WorkloadOptions {
        accesses: 32_000,
        ..WorkloadOptions::default()
    };
    let on = |of| (of, 16);
    let four = ["fotonik-like", "mcf-like", "roms-like", "cactu-like"].map(on);
    for (name, threads) in four.into_iter().chain([("dlrm-embedding", 24)]) {
        let program = crowd(Workloads::builtin().get(name).unwrap(), threads);
        let at = |weights| run_at(lab, &program, &tiers, weights, &options).unwrap();
        let local = at(Weights { local: 1, slow: 0 });
        let speed = |weights| local.time / at(weights).time;
        let by_time = climb_by::<InsightError>(Settings::default(), &|_| true, |w| Ok(speed(w)));
        let by_estimate = climb_by(Settings::of_estimate(), &|_| true, |weights| {
            let run = at(weights);
            Ok(PcmReadings::of(&run.counters, run.time, &machine)?.estimate())
        });
        let ends = [by_time, by_estimate].map(|climb| {
            let climb = climb.unwrap();
            let (weights, _) = climb.settled().unwrap();
            (weights.share(), speed(weights), climb.tried.len())
        });
        println!("{name} {threads}: {ends:?}");
        let [(share, fast, _), (further, slower, _)] = ends;
        assert!(share <= further && fast >= slower, "{name}");
    }
}
