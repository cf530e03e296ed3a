//! Bursts of accesses to flushed lines: their time is between that of one access and that of all accesses one
//! after the other.

use crate::common::*;
use proptest::prelude::*;
use weir_model::access::{Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::{Machine, MachineError};
use weir_model::units::Bytes;
use weir_sim::SimMachine;

const PLACES: [(&str, &str); 5] = [
    ("micro23+micro23-a", "dram"),
    ("micro23+micro23-a", "remote"),
    ("micro23+micro23-a", "cxl0"),
    ("memo", "cxl0"),
    ("interplay-b", "dram"),
];
const OPS: [Op; 4] = [Op::Ld, Op::St, Op::StClwb, Op::NtSt];

/// The effect of refreshes and rows on a mean.
const CHANCE: f64 = 0.03;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_access_of_a_burst_costs_less_than_one_alone_and_no_less_than_its_share(
        (machine, tier) in prop::sample::select(&PLACES[..]),
        op in prop::sample::select(&OPS[..]),
        lines in 1..=Pattern::MOST_IN_BURST,
    ) {
        let bed = bed(machine);
        let alone = latency(&bed, flushed(op, tier));
        let each = latency(&bed, burst(op, tier, lines));
        prop_assert!(each <= alone * (1.0 + CHANCE), "{each:.1} of {lines}, {alone:.1} alone");
        let share = alone / f64::from(lines);
        prop_assert!(each >= share * (1.0 - CHANCE), "{each:.1} of {lines}, share {share:.1}");
    }

    #[test]
    fn twice_the_burst_costs_no_more_an_access_and_no_less_in_all(
        (machine, tier) in prop::sample::select(&PLACES[..]),
        op in prop::sample::select(&OPS[..]),
        lines in 1..=Pattern::MOST_IN_BURST / 2,
    ) {
        let bed = bed(machine);
        let (one, two) = (
            latency(&bed, burst(op, tier, lines)),
            latency(&bed, burst(op, tier, 2 * lines)),
        );
        prop_assert!(two <= one * (1.0 + CHANCE), "{two:.1} for {one:.1} of {lines}");
        prop_assert!(2.0 * two >= one * (1.0 - CHANCE), "{two:.1} for {one:.1} of {lines}");
    }
}

#[test]
fn a_burst_longer_than_the_fill_buffers_waits_for_them() {
    let (platform, bed) = (platform("memo"), bed("memo"));
    let buffers = *platform.host.core.line_fill_buffers;
    let all = |lines: u32| latency(&bed, burst(Op::Ld, "cxl0", lines)) * f64::from(lines);
    // One more access needs a second trip; twice as many do not need a third.
    assert!(all(buffers + 1) > 1.4 * all(buffers));
    assert!(all(2 * buffers) < 1.3 * all(buffers + 1));
}

#[test]
fn every_access_of_a_burst_is_a_request_and_leaves_nothing_in_a_cache() {
    let bed = bed("micro23+micro23-a");
    // Few enough lines to fit any cache.
    let tenant = burst(Op::Ld, "cxl0", 16).with_stream(|s| s.working_set = Bytes::kib(16));
    let seen = run(&bed, &[tenant], 5.0, 500.0, 1);
    let inserts = seen.count(Counter::TorInsertsIaMissCxl);
    assert_near("misses", inserts, seen.accesses(0), 0.02);
    let samples = seen.0.tenants[0].latency.as_ref().unwrap().len() as f64;
    assert_near("samples of 16", samples * 16.0, seen.accesses(0), 0.02);
}

#[test]
fn bursts_of_nothing_and_of_too_much_are_refused() {
    for (op, lines, size) in [
        (Op::Ld, 0, Bytes::mib(64)),
        (Op::Ld, Pattern::MOST_IN_BURST + 1, Bytes::mib(64)),
        (Op::Ld, 16, Bytes(960)),
        (Op::Cas, 16, Bytes::mib(64)),
    ] {
        let mut tenant = burst(op, "dram", lines);
        tenant.work.stream_mut().unwrap().working_set = size;
        let mut machine = SimMachine::new(&bed("memo"), 1);
        let error = machine.start(&[tenant]).unwrap_err();
        assert!(matches!(error, MachineError::Request(_)), "{error}");
    }
}
