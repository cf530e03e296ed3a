//! Requests to storage devices obey the laws of queues, and share the socket with memory.

use crate::common::{Measured, bed, bed_of, platform, stream};
use proptest::prelude::*;
use weir_model::access::{Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::{Machine, MachineError};
use weir_model::platform::{Platform, STORAGE_BLOCK, Sourced};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_sim::{SimMachine, SimTestbed};

/// Threads that each keep `depth` direct requests of 4 KiB outstanding.
fn requests(op: Op, cores: std::ops::Range<u32>, depth: u32) -> Tenant {
    stream(op, "ssd0", cores).with_stream(|s| {
        s.pattern = Pattern::Requests {
            bytes: Bytes::kib(4),
            depth,
            buffered: false,
        }
    })
}

fn buffered(mut tenant: Tenant) -> Tenant {
    if let Pattern::Requests { buffered, .. } = &mut tenant.work.stream_mut().unwrap().pattern {
        *buffered = true;
    }
    tenant
}

/// The result of two milliseconds of steady state.
fn steady(bed: &SimTestbed, tenants: &[Tenant]) -> Measured {
    crate::common::run(bed, tenants, 1_000.0, 2_000.0, 1)
}

fn iops(seen: &Measured) -> f64 {
    seen.accesses(0) / seen.0.window.get() * 1e9
}

/// A platform with other figures of its drive.
fn with_drive(
    expression: &str,
    change: impl Fn(&mut weir_model::platform::StorageDevice),
) -> Platform {
    let mut platform = platform(expression);
    change(&mut platform.storage[0]);
    platform
}

const DRIVES: [&str; 2] = ["interplay-a", "interplay-b"];

#[test]
fn a_lone_request_takes_what_was_measured_and_the_hosts_part() {
    for name in DRIVES {
        let platform = platform(name);
        let (bed, io) = (bed_of(&platform), &platform.host.io);
        let clock = platform.host.core.clock.value;
        let host = clock.time(*io.submit) + clock.time(*io.complete) + *io.interrupt;
        let measured = &platform.storage[0].measured;
        for (op, idle) in [
            (Op::RandRead, measured.read_idle.value),
            (Op::RandWrite, measured.write_idle.value),
        ] {
            let seen = steady(&bed, &[requests(op, 0..1, 1)]);
            crate::common::assert_near(
                &format!("{name} {op}"),
                seen.ns(0),
                (idle + host).get(),
                0.03,
            );
        }
    }
}

#[test]
fn requests_under_way_are_their_rate_times_their_latency() {
    for name in DRIVES {
        let bed = bed(name);
        for op in Op::STORAGE {
            for (threads, depth) in [(1, 1), (1, 16), (4, 8), (8, 16)] {
                let tenants = [requests(op, 0..threads, depth)];
                let seen = crate::common::run(&bed, &tenants, 6_000.0, 6_000.0, 1);
                let (inside, wanted) = (iops(&seen) * seen.ns(0) / 1e9, f64::from(threads * depth));
                // Requests are cut at both ends of a window; a request that waits for its core to submit it
                // is not outstanding.
                assert!(
                    inside < wanted * 1.03,
                    "{name} {op} x{threads}: {inside:.1} of {wanted}"
                );
                if threads == 8 {
                    crate::common::assert_near(&format!("{name} {op}"), inside, wanted, 0.05);
                }
            }
        }
    }
}

#[test]
fn no_drive_beats_its_link_its_controller_or_its_flash() {
    for name in DRIVES {
        let platform = platform(name);
        let (bed, drive) = (bed_of(&platform), &platform.storage[0]);
        let m = &drive.measured;
        let block = STORAGE_BLOCK.get() as f64;
        for op in Op::STORAGE {
            let seen = steady(&bed, &[requests(op, 0..12, 32)]);
            let flash = match op {
                Op::RandWrite => f64::from(*m.random_write) * block / 1e9,
                Op::SeqWrite => m.sequential_write.get(),
                _ => m.sequential_read.get(),
            };
            let controller = f64::from(*m.random_read) * block / 1e9;
            let limit = flash.min(controller).min(drive.link.get());
            assert!(seen.gbps(0) < limit * 1.02, "{name} {op}: {}", seen.gbps(0));
            // All of that limit can be reached.
            assert!(seen.gbps(0) > limit * 0.93, "{name} {op}: {}", seen.gbps(0));
        }
    }
    let narrow = with_drive("interplay-b", |drive| {
        drive.link = Sourced::from_source("0.5 GB/s".parse().unwrap(), "what if");
    });
    for op in [Op::SeqRead, Op::SeqWrite, Op::RandRead] {
        let seen = steady(&bed_of(&narrow), &[requests(op, 0..4, 16)]);
        assert!(
            (0.45..=0.505).contains(&seen.gbps(0)),
            "{op}: {}",
            seen.gbps(0)
        );
    }
}

#[test]
fn in_order_is_no_slower_than_at_random_and_more_under_way_no_less() {
    for name in DRIVES {
        let bed = bed(name);
        for (random, in_order) in [(Op::RandRead, Op::SeqRead), (Op::RandWrite, Op::SeqWrite)] {
            let mut before = [0.0, 0.0];
            for depth in [1, 4, 16, 64] {
                let of = |op| steady(&bed, &[requests(op, 0..2, depth)]).gbps(0);
                let here = [of(random), of(in_order)];
                assert!(
                    here[0] <= here[1] * 1.02,
                    "{name} {random} {depth}: {here:?}"
                );
                for (here, before) in here.into_iter().zip(before) {
                    assert!(
                        here >= before * 0.98,
                        "{name} {random} {depth}: {before} {here}"
                    );
                }
                before = here;
            }
        }
    }
}

/// Lines of a request of 4 KiB at the slices: its data, its command, its completion, and lines of the kernel.
fn entries(platform: &Platform) -> f64 {
    STORAGE_BLOCK.lines() as f64 + 2.0 + f64::from(*platform.host.io.lines)
}

#[test]
fn every_byte_of_the_device_crosses_the_socket_once() {
    let platform = platform("interplay-b");
    let bed = bed_of(&platform);
    for op in Op::STORAGE {
        let seen = steady(&bed, &[requests(op, 0..4, 16)]);
        let lines = seen.accesses(0) * entries(&platform);
        crate::common::assert_near(op.name(), seen.count(Counter::IrqInserts), lines, 0.02);
        // Its buffers stay in the caches.
        let memory = seen.count(Counter::CasRd) + seen.count(Counter::CasWr);
        assert!(memory < 0.001 * lines, "{op}: {memory} lines of {lines}");
    }
    // One core is the limit: the copies take its time.
    let direct = steady(&bed, &[requests(Op::SeqRead, 0..1, 16)]);
    let copied = steady(&bed, &[buffered(requests(Op::SeqRead, 0..1, 16))]);
    let copies = copied.accesses(0) * (entries(&platform) + STORAGE_BLOCK.lines() as f64);
    crate::common::assert_near("copies", copied.count(Counter::IrqInserts), copies, 0.02);
    assert!(copied.gbps(0) < direct.gbps(0));
}

#[test]
fn what_the_io_ways_do_not_hold_goes_to_memory_once() {
    // There are no such ways.
    let mut bare = platform("interplay-b");
    bare.host.io.ways = Sourced::from_source(0, "what if");
    let seen = steady(&bed_of(&bare), &[requests(Op::RandRead, 0..4, 16)]);
    let written = seen.accesses(0) * (STORAGE_BLOCK.lines() as f64 + 1.0);
    crate::common::assert_near("written", seen.count(Counter::CasWr), written, 0.03);
    // More buffers than the ways hold: 8 of 60 MiB.
    let deep = requests(Op::SeqRead, 0..1, 16).with_stream(|s| {
        s.pattern = Pattern::Requests {
            bytes: Bytes::mib(1),
            depth: 16,
            buffered: false,
        }
    });
    let bed = bed("interplay-b");
    let seen = crate::common::run(&bed, std::slice::from_ref(&deep), 3_000.0, 2_000.0, 1);
    let moved = seen.0.tenants[0].bytes.get() as f64;
    let written = seen.count(Counter::CasWr) * 64.0;
    assert!((0.9..1.1).contains(&(written / moved)), "{written} {moved}");
    // Fewer buffers than the ways hold.
    let shallow = deep.with_stream(|s| {
        s.pattern = Pattern::Requests {
            bytes: Bytes::mib(1),
            depth: 4,
            buffered: false,
        }
    });
    let seen = crate::common::run(&bed, &[shallow], 3_000.0, 2_000.0, 1);
    assert_eq!(seen.count(Counter::CasWr), 0.0);
}

#[test]
fn a_seed_decides_everything() {
    let bed = bed("interplay-b");
    let tenants = [
        requests(Op::RandRead, 0..2, 16),
        stream(Op::NtSt, "cxl0", 4..6),
    ];
    let of = |seed| {
        let seen = crate::common::run(&bed, &tenants, 100.0, 500.0, seed);
        let latency = seen.0.tenants[0].latency.as_ref().unwrap().buckets();
        (
            seen.0.tenants[0].accesses,
            seen.0.tenants[1].accesses,
            latency,
        )
    };
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}

#[test]
fn memory_and_storage_meet_in_the_tables_and_nowhere_else() {
    let reads = requests(Op::RandRead, 0..1, 16);
    let mut stores = stream(Op::NtSt, "cxl0", 4..20);
    let change = |platform: &Platform, stores: &Tenant| {
        let bed = bed_of(platform);
        let alone = steady(&bed, std::slice::from_ref(&reads));
        let corun = steady(&bed, &[reads.clone(), stores.clone()]);
        let l2_miss = |seen: &Measured| {
            seen.count(Counter::OffcoreOutstandingDemandDataRd)
                / seen.count(Counter::OffcoreDemandDataRd)
        };
        (
            corun.gbps(0) / alone.gbps(0),
            l2_miss(&corun) / l2_miss(&alone),
        )
    };
    let (kept, longer) = change(&platform("interplay-b"), &stores);
    assert!(kept < 0.8 && longer > 5.0, "{kept:.2} {longer:.1}");
    // Loads leave entries free, so no request waits for one.
    stores.work.stream_mut().unwrap().op = Op::Ld;
    let (kept, longer) = change(&platform("interplay-a"), &stores);
    assert!(kept > 0.97 && longer < 1.3, "{kept:.2} {longer:.1}");
}

#[test]
fn two_drives_do_not_wait_for_each_other() {
    let bed = bed("interplay-b+2xssd-sas12");
    let one = requests(Op::RandWrite, 0..4, 16);
    let other = Tenant {
        name: "other".into(),
        ..stream(Op::RandWrite, "ssd1", 4..8)
    };
    let other = other.with_stream(|s| s.pattern = one.work.stream().unwrap().pattern);
    let alone = steady(&bed, std::slice::from_ref(&one)).gbps(0);
    let seen = steady(&bed, &[one, other]);
    crate::common::assert_near("one", seen.gbps(0), alone, 0.02);
    crate::common::assert_near("other", seen.gbps(1), alone, 0.02);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let bed = bed("interplay-b");
    let good = requests(Op::RandRead, 0..1, 16);
    let pattern = |bytes, depth| Pattern::Requests {
        bytes,
        depth,
        buffered: false,
    };
    let bad: [(Tenant, &str); 8] = [
        (
            good.clone()
                .with_stream(|s| s.pattern = pattern(Bytes(0), 1)),
            "1 MiB",
        ),
        (
            good.clone()
                .with_stream(|s| s.pattern = pattern(Bytes::mib(2), 1)),
            "1 MiB",
        ),
        (
            good.clone()
                .with_stream(|s| s.pattern = pattern(Bytes::kib(4), 0)),
            "outstanding",
        ),
        (
            good.clone()
                .with_stream(|s| s.pattern = Pattern::Sequential),
            "sequential",
        ),
        (good.clone().with_stream(|s| s.pause = Nanos(5.0)), "pauses"),
        (good.clone().with_stream(|s| s.op = Op::Ld), "to ld"),
        (stream(Op::Ld, "ssd0", 0..1), "storage device"),
        (requests(Op::RandRead, 0..1, 16), ""),
    ];
    for (tenant, says) in bad {
        let mut machine = SimMachine::new(&bed, 1);
        match machine.start(std::slice::from_ref(&tenant)) {
            Ok(()) => assert!(says.is_empty(), "{tenant:?}"),
            Err(MachineError::Request(why)) => {
                assert!(!says.is_empty() && why.contains(says), "{why}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    let mut elsewhere = good.clone();
    elsewhere.placement = Placement::Bind(TierName::dram());
    let mut machine = SimMachine::new(&bed, 1);
    assert!(machine.start(&[elsewhere]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// For all loads: requests make progress, each line crosses once, and none is lost.
    #[test]
    fn requests_of_any_kind_go_on(
        op in prop::sample::select(Op::STORAGE.to_vec()),
        threads in 1u32..6,
        depth in 1u32..40,
        lines in 1u64..200,
        copied: bool,
        seed: u64,
    ) {
        let bed = bed("interplay-b");
        let tenant = requests(op, 0..threads, depth).with_stream(|s| s.pattern = Pattern::Requests {
                bytes: Bytes(lines * 64),
                depth,
                buffered: copied,
            });
        let mut machine = SimMachine::new(&bed, seed);
        machine.start(&[tenant]).unwrap();
        machine.observe(Nanos::from_micros(1_000.0)).unwrap();
        let seen = Measured(machine.observe(Nanos::from_micros(3_000.0)).unwrap());
        prop_assert!(seen.accesses(0) > 0.0);
        prop_assert_eq!(seen.0.tenants[0].bytes.get() as f64, seen.accesses(0) * lines as f64 * 64.0);
        let kernel = f64::from(*platform("interplay-b").host.io.lines) + 2.0;
        let each = kernel + lines as f64 * if copied { 2.0 } else { 1.0 };
        let cut_off = f64::from(2 * threads * depth) * each;
        let off = seen.count(Counter::IrqInserts) - seen.accesses(0) * each;
        prop_assert!(off.abs() <= cut_off, "{off} of {cut_off}");
    }
}
