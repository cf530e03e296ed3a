//! Several devices together, behind a switch, or on the other socket.

use crate::common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::access::Op;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};

const THREADS: u32 = 24;

/// Reads of this machine's `cxl0`, with enough threads for any device.
fn reads(expression: &str) -> f64 {
    gbps(&bed(expression), stream(Op::Ld, "cxl0", 0..THREADS))
}

fn idle(expression: &str) -> f64 {
    latency(&bed(expression), chase("cxl0", 0..1, Bytes::gib(1)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interleaved_devices_give_the_sum_of_what_each_gives(
        device in prop::sample::select(&["cxl-a", "cxl-b", "cxl-c", "cxl-d"][..]),
        ways in prop::sample::select(&[2u32, 4][..]),
        run in 0u32..7,
    ) {
        let one = reads(&format!("emr2s+{device}"));
        let mut together = platform(&format!("emr2s+{ways}x{device}@interleaved"));
        together.devices[0].device.interleave.value = Bytes(256 << run);
        let limits = together.topology().tiers[1].limits.clone().unwrap();
        let ours = gbps(&bed_of(&together), stream(Op::Ld, "cxl0", 0..THREADS));
        // Cores and tables of the host limit it before four wide devices do.
        let host = f64::from(THREADS) * together.host.core.load_peak.get();
        let sum = (f64::from(ways) * one).min(0.8 * host).min(0.75 * together.host.dram.measured.read.get());
        prop_assert!(ours >= 0.93 * sum && ours <= limits.read.get(), "{ours} of {sum}");
    }

    #[test]
    fn a_switch_adds_its_hop_and_nothing_else_to_an_idle_read(
        device in prop::sample::select(&["cxl-a", "cxl-c", "cxl-d"][..]),
        hop in 20.0..400.0,
    ) {
        let mut behind = platform(&format!("emr2s+{device}@switch"));
        behind.host.switch.hop.value = Nanos(hop);
        let ours = latency(&bed_of(&behind), chase("cxl0", 0..1, Bytes::gib(1)));
        let direct = idle(&format!("emr2s+{device}"));
        // Chases meet refresh and the rare delay at other times.
        prop_assert!((ours - direct - hop).abs() < 0.01 * ours, "{ours} is {direct} and {hop}");
    }
}

/// Threads on two tiers at once.
fn on_both(op: Op) -> [Tenant; 2] {
    let half = THREADS / 2;
    [("cxl0", 0..half), ("cxl1", half..THREADS)].map(|(tier, cores)| Tenant {
        name: tier.into(),
        ..stream(op, tier, cores)
    })
}

#[test]
fn devices_behind_a_switch_share_its_link() {
    let together = |expression: &str, op| {
        let seen = steady(&bed(expression), &on_both(op));
        seen.gbps(0) + seen.gbps(1)
    };
    let direct = together("emr2s+2xcxl-d", Op::Ld);
    let behind = together("emr2s+2xcxl-d@switch", Op::Ld);
    let link = platform("emr2s+cxl-d@switch").host.switch.upstream();
    let most = link.read_limit().get() * *link.efficiency;
    assert!(direct > 1.6 * most, "{direct} of {most}");
    assert_near("two behind a switch", behind, most, 0.03);
    // Requests that fit are accepted.
    let narrow = together("emr2s+2xcxl-a", Op::Ld);
    assert_near(
        "two of x8",
        together("emr2s+2xcxl-a@switch", Op::Ld),
        narrow,
        0.03,
    );
}

#[test]
fn memory_and_devices_of_the_other_socket_share_its_link() {
    let mut machine = platform("emr2s+cxl-a@remote");
    let alone = gbps(&bed_of(&machine), stream(Op::Ld, "cxl0", 0..8));
    assert_near("a device there", alone, 14.0, 0.03);
    let remote = machine.host.remote.as_mut().unwrap();
    remote.read.value = remote.read.value * 0.25;
    let link = remote.read.get();
    let tenants = [("cxl0", 0..8), ("remote", 8..24)].map(|(tier, cores)| Tenant {
        name: tier.into(),
        ..stream(Op::Ld, tier, cores)
    });
    let seen = steady(&bed_of(&machine), &tenants);
    let both = seen.gbps(0) + seen.gbps(1);
    assert_near("the socket link", both, link, 0.03);
}

#[test]
fn a_device_behind_the_other_socket_is_as_far_as_was_measured_or_assumed() {
    for (device, expected) in [("cxl-a", 375.0), ("montage", f64::NAN)] {
        let name = format!("emr2s+{device}@remote");
        let measured = platform(&name).devices[0].device.measured.clone();
        let expected = if expected.is_nan() {
            measured.idle.get() + measured.remote_hop.get()
        } else {
            expected
        };
        assert_near(&name, idle(&name), expected, 0.01);
    }
}

#[test]
fn one_page_on_two_tiers_and_one_tier_of_two_devices_read_alike() {
    let pages = Tenant {
        placement: Placement::Interleave(vec![(TierName::cxl(0), 1), (TierName::cxl(1), 1)]),
        ..stream(Op::Ld, "cxl0", 0..THREADS)
    };
    let by_pages = gbps(&bed("emr2s+2xcxl-a"), pages);
    assert_near(
        "two cards",
        reads("emr2s+2xcxl-a@interleaved"),
        by_pages,
        0.05,
    );
}
