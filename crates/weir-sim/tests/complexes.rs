//! Core complexes: each has a cache, a queue and a link to memory.

use crate::common::*;
use weir_model::access::{Op, Pattern};
use weir_model::counters::Counter;
use weir_model::platform::Sourced;
use weir_model::tenant::Tenant;
use weir_model::units::Bytes;

const MACHINE: &str = "miku-b";
/// Cores of a complex.
const CORES: u32 = 7;

/// Reads and writes that the link of one complex carries.
fn link() -> (f64, f64) {
    let uncore = platform(MACHINE).host.uncore;
    let (read, write) = uncore.complexes.unwrap().link(*uncore.clock);
    (read.get(), write.get())
}

#[test]
fn a_complex_reads_and_writes_what_its_link_carries() {
    let bed = bed(MACHINE);
    for (op, most) in [(Op::Ld, link().0), (Op::NtSt, link().1)] {
        let one = gbps(&bed, stream(op, "dram", 0..CORES));
        assert_near(&format!("{op} of a complex"), one, most, 0.03);
        let two = gbps(&bed, stream(op, "dram", 0..2 * CORES));
        assert_near(&format!("{op} of two"), two, 2.0 * most, 0.05);
    }
}

#[test]
fn one_core_stays_below_its_own_peaks_and_its_complexs_link() {
    let (bed, host) = (bed(MACHINE), platform(MACHINE).host);
    let core = &host.core;
    let buffers = f64::from(*core.line_fill_buffers) * 64.0;
    let load = gbps(&bed, stream(Op::Ld, "dram", 0..1));
    let demand = buffers / host.dram.measured.idle.get();
    assert!(
        load > 0.9 * demand && load <= core.load_peak.get(),
        "{load}"
    );
    let nt = gbps(&bed, stream(Op::NtSt, "dram", 0..1));
    let peak = buffers / core.nt_store_hold.get();
    assert_near("non-temporal stores", nt, peak, 0.05);
    assert!(nt < link().1);
}

#[test]
fn a_complex_has_no_more_lines_under_way_than_its_entries() {
    let mut platform = platform(MACHINE);
    let entries = 48;
    platform.host.uncore.tor = Sourced::from_source(entries, "what if");
    let seen = steady(&bed_of(&platform), &[stream(Op::Ld, "cxl0", 0..CORES)]);
    let level = seen.mean_level(Counter::TorOccupancyIaMissCxl);
    assert!(
        level > 0.9 * f64::from(entries) && level <= f64::from(entries),
        "{level}"
    );
}

#[test]
fn a_complex_that_waits_for_cxl_slows_its_own_cores_and_no_others() {
    let bed = bed(MACHINE);
    let victims = |cores: std::ops::Range<u32>| Tenant {
        name: "victim".into(),
        ..stream(Op::Ld, "dram", cores)
    };
    let corunner = stream(Op::NtSt, "cxl0", 0..4);
    let alone = gbps(&bed, victims(4..CORES));
    let corun = steady(&bed, &[victims(4..CORES), corunner.clone()]).gbps(0);
    let apart = steady(&bed, &[victims(CORES + 4..2 * CORES), corunner]).gbps(0);
    assert!(corun < 0.8 * alone, "{corun} of {alone}");
    assert_near("another complex", apart, alone, 0.05);
}

#[test]
fn lines_survive_in_the_cache_of_their_own_complex_alone() {
    let (bed, host) = (bed(MACHINE), platform(MACHINE).host);
    let part = host.llc.size.get() / 12;
    let fits = latency(&bed, chase("dram", 0..1, Bytes(part / 2)));
    assert_near("a hit", fits, host.llc.latency.get(), 0.25);
    // Larger than a part, smaller than the whole.
    let beyond = latency(&bed, chase("dram", 0..1, Bytes(4 * part)));
    assert!(beyond > 0.8 * host.dram.measured.idle.get(), "{beyond}");
}

#[test]
fn a_line_is_handed_over_faster_within_a_complex() {
    let bed = bed(MACHINE);
    let between = |a: u32, b: u32| {
        latency(
            &bed,
            Tenant {
                cores: vec![a, b],
                ..stream(Op::Cas, "dram", 0..1)
            }
            .with_stream(|s| {
                s.pattern = Pattern::SharedLine;
                s.working_set = Bytes(64);
            }),
        )
    };
    let (near, far) = (between(0, CORES - 1), between(0, CORES));
    assert!((15.0..30.0).contains(&near), "{near}");
    let crossing = platform(MACHINE).host.uncore.complexes.unwrap().crossing;
    assert!(far > near + 1.8 * crossing.get(), "{near} and {far}");
}
