//! Laws of sampled windows: their counts are those of the whole window within the error that is stated, the error falls
//! with the number of parts, and equal seeds give equal results.

use crate::common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::access::Op;
use weir_model::action::Action;
use weir_model::machine::{Machine, Observation};
use weir_model::sampled::{Sampled, traffic};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{LINE_BYTES, Nanos};
use weir_model::workload::{Workload, Workloads};
use weir_sim::{Sampling, SimMachine, SimTestbed};

const MACHINE: &str = "emr2s+cxl-a";
const SAMPLING: Sampling = Sampling {
    warm_up: Nanos(60_000.0),
    detail: Nanos(160_000.0),
};

fn sampled(error: Option<f64>) -> SimTestbed {
    bed(MACHINE).sampled(SAMPLING).to_error(error)
}

fn named(name: &str, tenant: Tenant) -> Tenant {
    Tenant {
        name: name.into(),
        ..tenant
    }
}

/// Two phases, of which one hardly touches memory.
fn two_phases(instructions: u64) -> Workload {
    let mut work = Workloads::builtin().get("gups").unwrap().clone();
    let mut quiet = work.phases[0].clone();
    quiet.name = "quiet".into();
    quiet.apki /= 20.0;
    work.phases[0].instructions = instructions;
    quiet.instructions = 4 * instructions;
    work.phases.push(quiet);
    work.threads = 2;
    work
}

fn program(work: &Workload, tier: &str, first: u32) -> Tenant {
    let cores = (first..first + work.threads).collect();
    Tenant::running(work.clone(), cores, Placement::Bind(TierName::named(tier)))
}

fn window(bed: &SimTestbed, tenants: &[Tenant], seed: u64, time: Nanos) -> Observation {
    let mut machine = SimMachine::new(bed, seed);
    machine.start(tenants).unwrap();
    machine.observe(time).unwrap()
}

fn detailed(tenants: &[Tenant], seed: u64, time: Nanos) -> Observation {
    let mut machine = SimMachine::new(&bed(MACHINE), seed);
    machine.start(tenants).unwrap();
    machine.observe(SAMPLING.warm_up).unwrap();
    machine.observe(time).unwrap()
}

/// Bytes a nanosecond of each tenant, then of DRAM and CXL.
fn rates(seen: &Observation) -> Vec<f64> {
    let tenants = seen.tenants.iter().map(|tenant| tenant.bytes.get());
    let all = tenants.chain(traffic(&seen.counters).map(|lines| lines * LINE_BYTES));
    all.map(|bytes| bytes as f64 / seen.window.get()).collect()
}

fn errors(seen: &Observation) -> Vec<Option<f64>> {
    let Sampled {
        tenants, traffic, ..
    } = seen.sampled.as_ref().unwrap();
    tenants.iter().chain(traffic).copied().collect()
}

/// Figures of the sampled windows that are within their interval of the detailed window's, and how many there are. The
/// detailed window is one of many as well: it is known to a thousandth at best.
fn covered(tenants: &[Tenant], seeds: u64, time: Nanos) -> (usize, usize) {
    let (mut within, mut all) = (0, 0);
    for seed in 1..=seeds {
        let whole = rates(&detailed(tenants, seed, time));
        let seen = window(&sampled(None), tenants, seed, time);
        for ((whole, part), error) in whole.iter().zip(rates(&seen)).zip(errors(&seen)) {
            let Some(error) = error else {
                assert_eq!((*whole, part), (0.0, 0.0));
                continue;
            };
            all += 1;
            within += usize::from((part - whole).abs() <= (error + 0.001) * part);
        }
    }
    (within, all)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 8,
        rng_seed: RngSeed::Fixed(17),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn counts_are_those_of_the_window_and_equal_seeds_give_equal_results(
        op in prop::sample::select(&[Op::Ld, Op::St, Op::NtSt][..]),
        threads in 1u32..5,
        share in 0.2f64..1.0,
        error in prop::option::of(0.005f64..0.1),
        ms in 0.3f64..8.0,
        seed in 0u64..1000,
    ) {
        let tenants = [
            named("a", stream(op, "dram", 0..threads)),
            named("b", program(&two_phases(40_000), "cxl0", 8)),
        ];
        let time = Nanos(ms * 1e6);
        let run = || {
            let mut machine = SimMachine::new(&sampled(error), seed);
            machine.start(&tenants).unwrap();
            machine.act(&Action::ProcessorTime { tenant: "a".into(), share, period: Nanos(1e8) }).unwrap();
            machine.observe(time).unwrap()
        };
        let (one, other) = (run(), run());
        prop_assert_eq!(&one.counters, &other.counters);
        prop_assert_eq!(&one.sampled, &other.sampled);
        prop_assert!((one.window.get() / time.get() - 1.0).abs() < 1e-9);
        // A tenant without caches that keep its lines moves what it touches, in the whole window.
        let accesses = one.tenants[0].accesses as f64 * LINE_BYTES as f64;
        prop_assert!((one.tenants[0].bytes.get() as f64 / accesses - 1.0).abs() < 1e-3);
        let how = one.sampled.as_ref().unwrap();
        prop_assert!(how.parts >= 16 && how.simulated.get() > 0.0);
        for error in errors(&one).into_iter().flatten() {
            prop_assert!(error.is_finite() && error >= 0.0);
        }
    }

    #[test]
    fn a_window_no_longer_than_the_detail_is_simulated_whole(
        op in prop::sample::select(&[Op::Ld, Op::St, Op::NtSt][..]),
        tier in prop::sample::select(&["dram", "cxl0"][..]),
        us in 1f64..160.0,
        seed in 0u64..1000,
    ) {
        let tenants = [stream(op, tier, 0..3)];
        let plain = window(&bed(MACHINE), &tenants, seed, Nanos(us * 1e3));
        let same = window(&sampled(Some(0.01)), &tenants, seed, Nanos(us * 1e3));
        prop_assert_eq!(plain.counters, same.counters);
        prop_assert_eq!(same.sampled, None);
    }
}

#[test]
fn steady_loads_are_within_their_intervals() {
    let loads = [
        vec![
            named("a", stream(Op::Ld, "dram", 0..2)),
            named("b", stream(Op::Ld, "cxl0", 2..4)),
        ],
        vec![
            named("a", stream(Op::Ld, "dram", 0..8)),
            named("b", stream(Op::Ld, "cxl0", 8..9)),
        ],
        vec![named("a", stream(Op::NtSt, "dram", 0..3))],
    ];
    for tenants in loads {
        let (within, all) = covered(&tenants, 12, Nanos(1.5e6));
        assert!(within as f64 >= 0.95 * all as f64, "{within} of {all}");
    }
}

#[test]
fn programs_with_phases_are_within_their_intervals() {
    // A phase lasts about as long as the detail: one part at the beginning would see one phase.
    let tenants = [
        named("a", program(&two_phases(20_000), "dram", 0)),
        named("b", program(&two_phases(30_000), "cxl0", 4)),
        named("c", stream(Op::Ld, "dram", 8..9)),
    ];
    let (within, all) = covered(&tenants, 5, Nanos(6e6));
    assert!(within as f64 >= 0.95 * all as f64, "{within} of {all}");
}

#[test]
fn a_program_goes_on_over_the_time_that_is_skipped() {
    let work = two_phases(20_000_000);
    let tenants = [program(&work, "dram", 0)];
    let mut machine = SimMachine::new(&sampled(None), 1);
    machine.start(&tenants).unwrap();
    let series: Vec<f64> = (0..12)
        .map(|_| rates(&machine.observe(Nanos(10e6)).unwrap())[1])
        .collect();
    let (least, most) = (
        series.iter().copied().fold(f64::MAX, f64::min),
        series.iter().copied().fold(0.0, f64::max),
    );
    assert!(most > 4.0 * least, "{series:?}");
}

#[test]
fn more_parts_give_smaller_errors_until_the_one_that_was_asked_for() {
    let tenants = [
        named("a", stream(Op::Ld, "dram", 0..4)),
        named("b", program(&two_phases(20_000), "cxl0", 8)),
    ];
    let mut before = (0, f64::INFINITY);
    for error in [0.2, 0.05, 0.0125] {
        let mut machine = SimMachine::new(&sampled(Some(error)), 1);
        machine.start(&tenants).unwrap();
        machine.observe(Nanos(50e6)).unwrap();
        let seen = machine.observe(Nanos(50e6)).unwrap();
        let how = seen.sampled.unwrap();
        let largest = how.tenants.iter().flatten().copied().fold(0.0, f64::max);
        assert!(
            how.parts >= before.0 && largest <= before.1,
            "{how:?} after {before:?}"
        );
        assert_eq!(how.missed, largest > error, "{how:?}");
        before = (how.parts, largest);
    }
    assert!(before.0 > 64);
}

#[test]
fn an_error_that_cannot_be_reached_is_reported() {
    let tenants = [program(&two_phases(20_000), "dram", 0)];
    let seen = window(&sampled(Some(1e-6)), &tenants, 1, Nanos(5e6));
    let how = seen.sampled.unwrap();
    assert!(how.missed);
    assert!(how.largest().unwrap() > 1e-6);
}
