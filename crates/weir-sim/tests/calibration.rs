//! The model reproduces what was measured alone on a machine.

use crate::common::*;
use weir_model::access::Op;
use weir_model::platform::{Definition, Library};
use weir_model::topology::TierKind;
use weir_model::units::Bytes;

/// Published latencies are met to this share, bandwidths to the next.
const LATENCY: f64 = 0.02;
/// Or to this: the mean wait for a slot of the bus and for refresh is half of it or more.
const LEAST_NS: f64 = 2.0;
const BANDWIDTH: f64 = 0.05;

fn hosts() -> Vec<String> {
    names(|d| matches!(d, Definition::Host(_)))
}

fn devices() -> Vec<String> {
    names(|d| matches!(d, Definition::Device(_)))
}

fn names(wanted: impl Fn(&Definition) -> bool) -> Vec<String> {
    Library::builtin()
        .list()
        .into_iter()
        .filter(|d| wanted(d))
        .map(|d| d.name().to_string())
        .collect()
}

fn idle(expression: &str, tier: &str) -> f64 {
    latency(&bed(expression), chase(tier, 0..1, Bytes::gib(1)))
}

/// The most bandwidth over all numbers of threads, as a published peak is.
fn peak(expression: &str, op: Op, tier: &str) -> f64 {
    let platform = platform(expression);
    let (bed, cores) = (bed_of(&platform), *platform.host.core.count);
    [cores / 8, cores / 4, cores / 2, 3 * cores / 4, cores]
        .into_iter()
        .map(|threads| gbps(&bed, stream(op, tier, 0..threads.max(1))))
        .fold(0.0, f64::max)
}

/// `emr2s` with each device, local and, if it was measured, behind the socket link.
fn attached() -> Vec<String> {
    devices().iter().map(|d| format!("emr2s+{d}")).collect()
}

#[test]
fn idle_latency_of_every_hosts_dram_is_the_measured_one() {
    for host in hosts() {
        let expected = platform(&host).host.dram.measured.idle.get();
        let within = LATENCY.max(LEAST_NS / expected);
        assert_near(&host, idle(&host, "dram"), expected, within);
    }
}

#[test]
fn idle_latency_of_every_other_socket_is_the_measured_one() {
    for host in hosts() {
        if let Some(remote) = &platform(&host).host.remote {
            let what = format!("remote of {host}");
            assert_near(&what, idle(&host, "remote"), remote.idle.get(), LATENCY);
        }
    }
}

#[test]
fn idle_latency_of_a_device_on_the_other_socket_is_the_measured_one() {
    let mut checked = 0;
    for name in attached() {
        let expected = platform(&name).devices[0]
            .device
            .measured
            .remote_idle
            .clone();
        if let Some(expected) = expected {
            let name = format!("{name}@remote");
            assert_near(&name, idle(&name, "cxl0"), expected.get(), LATENCY);
            checked += 1;
        }
    }
    assert!(checked >= 4, "only {checked} devices were measured so");
}

#[test]
fn peak_reads_of_every_hosts_dram_are_the_measured_ones() {
    for host in hosts() {
        let expected = platform(&host).host.dram.measured.read.get();
        assert_near(&host, peak(&host, Op::Ld, "dram"), expected, BANDWIDTH);
    }
}

#[test]
fn peak_non_temporal_stores_to_every_hosts_dram_are_the_measured_ones() {
    for host in hosts() {
        let expected = platform(&host).host.dram.measured.nt_write.get();
        assert_near(&host, peak(&host, Op::NtSt, "dram"), expected, BANDWIDTH);
    }
}

#[test]
fn peak_reads_across_every_socket_link_are_the_measured_ones() {
    for host in hosts() {
        if let Some(remote) = &platform(&host).host.remote {
            let what = format!("remote of {host}");
            let ours = peak(&host, Op::Ld, "remote");
            assert_near(&what, ours, remote.read.get(), BANDWIDTH);
        }
    }
}

#[test]
fn peak_reads_of_every_device_are_the_measured_ones() {
    let mut checked = 0;
    for name in attached() {
        if let Some(expected) = &platform(&name).devices[0].device.measured.read {
            let ours = peak(&name, Op::Ld, "cxl0");
            assert_near(&name, ours, expected.get(), BANDWIDTH);
            checked += 1;
        }
    }
    assert!(checked >= 4, "only {checked} devices were measured so");
}

/// A link whose directions differ: posted stores come up to the written data that it carries.
#[test]
fn peak_writes_of_every_device_are_those_that_its_link_is_said_to_carry() {
    let mut checked = 0;
    for name in attached() {
        if let Some(expected) = &platform(&name).devices[0].device.measured.write {
            let ours = peak(&name, Op::NtSt, "cxl0");
            assert_near(&name, ours, expected.get(), BANDWIDTH);
            checked += 1;
        }
    }
    assert!(checked >= 2, "only {checked} devices state it");
}

#[test]
fn peak_reads_of_a_device_on_the_other_socket_are_the_measured_ones() {
    for name in attached() {
        let remote = platform(&name).devices[0].device.measured.remote_read.get();
        let name = format!("{name}@remote");
        // No more than its own link carries. Two limits that are alike let less pass than either.
        let carried = platform(&name).topology().tiers.into_iter();
        let carried = carried.filter(|tier| tier.name.as_str() == "cxl0");
        let limits = carried.filter_map(|tier| tier.limits);
        let expected = limits
            .map(|limits| limits.read.get())
            .fold(remote, f64::min);
        let alike = expected < remote && expected > 0.9 * remote;
        let within = BANDWIDTH + if alike { 0.02 } else { 0.0 };
        let ours = peak(&name, Op::Ld, "cxl0");
        assert_near(&name, ours, expected, within);
    }
}

#[test]
fn every_tier_of_every_host_answers_a_chase_and_a_stream() {
    for host in hosts() {
        let machine = platform(&host);
        let bed = bed_of(&machine);
        let topology = machine.topology();
        let mut before = 0.0;
        for tier in topology
            .tiers
            .iter()
            .filter(|t| !matches!(t.kind, TierKind::Remote | TierKind::Ssd))
        {
            let what = format!("{} of {host}", tier.name);
            let ns = run(
                &bed,
                &[chase(tier.name.as_str(), 0..1, Bytes::gib(1))],
                5.0,
                50.0,
                1,
            );
            let ns = ns.ns(0);
            assert!(ns > before * 0.98, "{what}: {ns} ns after {before} ns");
            before = ns;
            let read = gbps(
                &bed,
                stream(
                    Op::Ld,
                    tier.name.as_str(),
                    0..topology.cores.len().min(4) as u32,
                ),
            );
            let most = tier.limits.as_ref().unwrap().read.get();
            assert!(read > 1.0 && read <= most, "{what}: {read} of {most} GB/s");
        }
    }
}

#[test]
fn idle_latency_of_every_device_is_the_measured_one() {
    for name in attached().iter().map(String::as_str).chain(["memo"]) {
        let expected = platform(name).devices[0].device.measured.idle.get();
        assert_near(name, idle(name, "cxl0"), expected, LATENCY);
    }
}

#[test]
fn a_core_draws_from_the_last_level_cache_what_passes_between_it_and_l2() {
    // One core of a Gold 6148 draws 24.4 GB/s from it whether it loads or updates (machine files of kerncraft):
    // lines that leave L2 pass the other way. It draws more than from DRAM.
    for machine in ["skx2s", "miku-a"] {
        let platform = platform(machine);
        let core = &platform.host.core;
        let most = 64.0 / core.clock.time(*core.llc_gap).get();
        let bed = bed_of(&platform);
        let of = |op| {
            let size = Bytes(platform.host.l2.size.get() * 3);
            let tenant = stream(op, "dram", 0..1).with_stream(|s| s.working_set = size);
            run(&bed, &[tenant], 500.0, 200.0, 1).gbps(0)
        };
        for op in [Op::Ld, Op::St] {
            assert_near(&format!("{machine}, {op}"), of(op), most, 0.1);
            let memory = gbps(&bed, stream(op, "dram", 0..1));
            assert!(of(op) > memory, "{machine}, {op}: {memory}");
        }
    }
}
