//! Two tenants on one socket. The model has no rule for interference: it follows from the shared queues,
//! above all the Table of Requests.

use crate::common::*;
use weir_model::access::Op;
use weir_model::counters::Counter;
use weir_model::machine::Machine;
use weir_model::platform::{Platform, Sourced};
use weir_model::tenant::Tenant;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_sim::SimMachine;

/// `spr2s+cxl-a` with a table that is just enough for its DRAM alone.
fn few_entries() -> Platform {
    with_tor("spr2s+cxl-a", 20)
}

fn victim() -> Tenant {
    stream(Op::Ld, "dram", 0..16)
}

fn aggressor(op: Op) -> Tenant {
    stream(op, "cxl0", 16..32)
}

/// Share of its bandwidth alone that the victim loses when the aggressor runs too.
fn loss(platform: &Platform, victim: Tenant, aggressor: Tenant) -> f64 {
    let bed = bed_of(platform);
    let alone = gbps(&bed, victim.clone());
    1.0 - steady(&bed, &[victim, aggressor]).gbps(0) / alone
}

#[test]
fn loads_take_tens_of_percent_from_loads_where_the_table_is_small() {
    for platform in [few_entries(), platform("interplay-b")] {
        let loss = loss(&platform, victim(), aggressor(Op::Ld));
        assert!((0.2..0.8).contains(&loss), "{}: {loss:.3}", platform.name);
    }
}

#[test]
fn loads_and_temporal_stores_take_nothing_from_loads_where_the_table_is_large() {
    // CXL-Interplay, System A. The cores' buffers bound the write-backs of stores, as they bound loads.
    for op in [Op::Ld, Op::St] {
        for platform in [platform("interplay-a"), with_tor("spr2s+cxl-a", 64)] {
            let loss = loss(&platform, victim(), aggressor(op));
            assert!(loss.abs() < 0.02, "{}, {op}: {loss:.3}", platform.name);
        }
    }
}

#[test]
fn posted_stores_take_most_of_the_loads_bandwidth_whatever_the_table() {
    for platform in [platform("interplay-a"), platform("interplay-b")] {
        let loss = loss(&platform, victim(), aggressor(Op::NtSt));
        assert!(loss > 0.8, "{}: {loss:.3}", platform.name);
    }
}

#[test]
fn the_starved_loads_wait_before_the_table_and_not_in_it() {
    for platform in [few_entries(), platform("interplay-a")] {
        let bed = bed_of(&platform);
        let idle = steady(&bed, &[chase("dram", 0..1, Bytes::gib(1))]);
        let alone = steady(&bed, &[victim()]);
        let both = steady(&bed, &[victim(), aggressor(Op::NtSt)]);
        // After admission, a DDR miss is served as if the machine were idle: DRAM is idle.
        let (now, before) = (both.ddr_residency(), idle.ddr_residency());
        assert!(
            now < 1.3 * before,
            "{}: {now:.0} from {before:.0} ns",
            platform.name
        );
        assert!(now < alone.ddr_residency());
        // The wait is before admission.
        let queued = both.mean_level(Counter::IrqOccupancy);
        let before = alone.mean_level(Counter::IrqOccupancy).max(1.0);
        assert!(
            queued > 5.0 * before,
            "{}: {queued:.0} from {before:.0}",
            platform.name
        );
        assert!(queued > 300.0, "{}: {queued:.0}", platform.name);
    }
}

#[test]
fn the_table_is_full_of_what_waits_for_cxl() {
    let platform = few_entries();
    let both = steady(&bed_of(&platform), &[victim(), aggressor(Op::NtSt)]);
    let entries = f64::from(*platform.host.llc.slices * *platform.host.uncore.tor);
    let cxl = both.mean_level(Counter::TorOccupancyIaMissCxl);
    assert!(cxl > 0.8 * entries, "{cxl:.0} of {entries}");
}

#[test]
fn a_table_for_everything_in_flight_takes_the_loss_away() {
    // The cores' own buffers bound loads, so a table can hold them all.
    let loss = |tor| loss(&with_tor("spr2s+cxl-a", tor), victim(), aggressor(Op::Ld));
    let (small, absurd) = (loss(20), loss(1024));
    assert!(small > 0.2 && absurd < 0.02, "{small:.3} and {absurd:.3}");
}

#[test]
fn posted_stores_do_no_harm_until_they_have_filled_the_table() {
    // No buffer of a core bounds them, so they fill any table: the larger, the later.
    let platform = with_tor("spr2s+cxl-a", 1024);
    let bed = bed_of(&platform);
    let mut machine = SimMachine::new(&bed, 1);
    machine.start(&[victim()]).unwrap();
    machine.observe(Nanos(1_000.0)).unwrap();
    let alone = Measured(machine.observe(Nanos(2_000.0)).unwrap()).gbps(0);

    let mut machine = SimMachine::new(&bed, 1);
    machine.start(&[victim(), aggressor(Op::NtSt)]).unwrap();
    machine.observe(Nanos(1_000.0)).unwrap();
    let before = Measured(machine.observe(Nanos(2_000.0)).unwrap()).gbps(0);
    assert!(
        before > 0.9 * alone,
        "{before:.0} of {alone:.0} GB/s while it fills"
    );
    machine.observe(Nanos(20_000.0)).unwrap();
    let after = Measured(machine.observe(Nanos(20_000.0)).unwrap()).gbps(0);
    assert!(
        after < 0.3 * alone,
        "{after:.0} of {alone:.0} GB/s once full"
    );
}

#[test]
fn a_device_as_fast_as_dram_takes_no_harm_to_it() {
    // The cause is the aggressor's slow device: the same stores to a device that keeps up free their entries
    // in time. That device has four times the lanes, the channels and the measured peak.
    let mut platform = platform("interplay-a");
    let slow = loss(&platform, victim(), stream(Op::NtSt, "cxl0", 16..20));
    let device = &mut platform.devices[0].device;
    device.link.lanes = Sourced::from_source(64, "what if");
    device.channels = Sourced::from_source(16, "what if");
    device.measured.read = Some(Sourced::from_source(GbPerSec(192.0), "what if"));
    let fast = loss(&platform, victim(), stream(Op::NtSt, "cxl0", 16..20));
    assert!(slow > 0.3 && fast < 0.1, "{slow:.3} and {fast:.3}");
}

#[test]
fn tenants_on_different_idle_tiers_do_not_slow_each_other() {
    let platform = platform("emr2s+cxl-a");
    let loss = loss(
        &platform,
        stream(Op::Ld, "dram", 0..2),
        stream(Op::Ld, "cxl0", 16..17),
    );
    assert!(loss.abs() < 0.01, "{loss:.3}");
}
