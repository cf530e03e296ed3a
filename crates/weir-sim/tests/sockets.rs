//! Two sockets whose cores both have work.

use crate::common::*;
use proptest::prelude::*;
use weir_model::access::{Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::Machine;
use weir_model::platform::Sourced;
use weir_model::tenant::Tenant;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_sim::{SimMachine, SimTestbed};

/// MIKU's platform A: its cores, and a device on each socket.
const SERVER: &str = "miku-a+micron-x8+micron-x8@remote";
const OPS: [Op; 3] = [Op::Ld, Op::St, Op::NtSt];
/// The first core of the other socket.
const BEYOND: u32 = 32;
/// The last core of the second socket.
const LAST: u32 = 63;
/// The difference between two seeds of one machine.
const LIKE: f64 = 0.03;

fn like(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < LIKE
}

/// A line that two cores hand over.
fn shared_line(tier: &str, cores: [u32; 2]) -> Tenant {
    Tenant {
        name: "shared".into(),
        cores: cores.to_vec(),
        prefetch: false,
        ..stream(Op::Cas, tier, 0..1)
    }
    .with_stream(|s| {
        s.pattern = Pattern::SharedLine;
        s.working_set = Bytes(128);
    })
}

/// The time to hand over a line when others run too, in ns.
fn hand_over(bed: &SimTestbed, cores: [u32; 2], corun: &[Tenant]) -> f64 {
    let mut tenants = vec![shared_line("dram", cores)];
    tenants.extend_from_slice(corun);
    run(bed, &tenants, 30.0, 100.0, 1).ns(0)
}

#[test]
fn either_socket_sees_its_own_memory_alike() {
    let bed = bed(SERVER);
    for (first, second) in [("dram", "remote"), ("cxl0", "cxl1")] {
        for op in OPS {
            for threads in [1, 16] {
                let here = gbps(&bed, stream(op, first, 0..threads));
                let there = gbps(&bed, stream(op, second, BEYOND..BEYOND + threads));
                assert!(like(here, there), "{op} {threads}: {here:.1} {there:.1}");
            }
        }
        let set = Bytes::mib(512);
        let here = latency(&bed, chase(first, 0..1, set));
        let there = latency(&bed, chase(second, BEYOND..BEYOND + 1, set));
        assert!(like(here, there), "{here:.1} {there:.1} ns");
    }
}

#[test]
fn either_socket_sees_the_others_memory_alike() {
    // The first socket sees it while it works alone, when no request is admitted on the other socket.
    let bed = bed(SERVER);
    for (first, second) in [("remote", "dram"), ("cxl1", "cxl0")] {
        for op in OPS {
            for threads in [1, 16] {
                let here = gbps(&bed, stream(op, first, 0..threads));
                let there = gbps(&bed, stream(op, second, BEYOND..BEYOND + threads));
                assert_near(&format!("{op} {threads} {second}"), there, here, 0.08);
            }
        }
        let set = Bytes::mib(512);
        let here = latency(&bed, chase(first, 0..1, set));
        let there = latency(&bed, chase(second, BEYOND..BEYOND + 1, set));
        assert!(like(here, there), "{here:.1} {there:.1} ns");
    }
}

#[test]
fn reads_from_the_other_socket_evict_nothing_while_posted_stores_leave_entries_free() {
    let platform = platform(SERVER);
    let evict = platform.devices[1].device.measured.remote_eviction().get();
    let bed = bed(SERVER);
    // The first machine has work on one socket only.
    for (tier, first) in [("cxl1", 0), ("cxl0", BEYOND)] {
        let stores =
            |op| stream(op, tier, first + 1..first + 3).with_stream(|s| s.pause = Nanos(500.0));
        let chase = chase(tier, first..first + 1, Bytes::mib(512));
        let beside = |op| run(&bed, &[chase.clone(), stores(op)], 20.0, 1000.0, 1).ns(0);
        let alone = latency(&bed, chase.clone());
        assert_near(&format!("{tier}, loads"), beside(Op::Ld), alone, 0.04);
        let posted = beside(Op::NtSt);
        assert_near(&format!("{tier}, posted"), posted, alone - evict, 0.04);
    }
}

#[test]
fn what_fits_the_cache_of_either_socket_stays_there() {
    let bed = bed(SERVER);
    let small =
        |tier, cores| stream(Op::Ld, tier, cores).with_stream(|s| s.working_set = Bytes::mib(8));
    let here = gbps(&bed, small("dram", 0..8));
    let there = gbps(&bed, small("remote", BEYOND..BEYOND + 8));
    assert!(like(here, there), "{here:.1} {there:.1}");
    // Each socket has its own table.
    let both = [small("dram", 0..8), small("remote", BEYOND..BEYOND + 8)];
    let seen = steady(&bed, &both);
    assert!(like(seen.gbps(0), here) && like(seen.gbps(1), here));
}

#[test]
fn tenants_that_share_no_socket_do_not_touch_each_other() {
    // MIKU §2.1: on different sockets the DDR bandwidth loss is gone.
    let bed = bed(SERVER);
    let victim = stream(Op::NtSt, "dram", 0..16);
    let alone = gbps(&bed, victim.clone());
    let corun = |tier, cores| {
        let seen = steady(&bed, &[victim.clone(), stream(Op::NtSt, tier, cores)]);
        seen.gbps(0) / alone
    };
    assert!(like(corun("cxl1", BEYOND..BEYOND + 16), 1.0));
    assert!(like(corun("remote", BEYOND..BEYOND + 16), 1.0));
    // On one socket they compete.
    assert!(corun("cxl0", 16..32) < 0.3);
    // The limit between the sockets is below what the device takes: its own socket's table stays free.
    assert!(corun("cxl0", BEYOND..BEYOND + 16) > 0.9);
}

#[test]
fn a_line_between_two_sockets_waits_at_both_of_them() {
    let bed = bed(SERVER);
    let on = |tier, first: u32| [stream(Op::NtSt, tier, first..first + 16)];
    let across = [0, BEYOND];
    let alone = hand_over(&bed, across, &[]);
    assert!(alone > 2.0 * hand_over(&bed, [0, 1], &[]), "{alone:.0} ns");
    // It rises with CXL on either side, and not with DRAM.
    for (cxl, dram, first) in [("cxl0", "dram", 2), ("cxl1", "remote", BEYOND + 2)] {
        let slow = hand_over(&bed, across, &on(cxl, first));
        let same = hand_over(&bed, across, &on(dram, first));
        assert!(
            slow > 3.0 * alone && same < 1.5 * alone,
            "{slow:.0} {same:.0} ns"
        );
    }
    // Two cores of one socket are not affected by the other socket's own traffic.
    let near = hand_over(&bed, [0, 1], &[]);
    let corun = hand_over(&bed, [0, 1], &on("cxl1", BEYOND));
    assert!(like(near, corun), "{near:.1} {corun:.1} ns");
}

#[test]
fn devices_of_the_first_socket_are_refused_with_tenants_on_the_other() {
    let bed = bed("miku-a+micron-x8+ssd-nvme4");
    let storage = stream(Op::RandRead, "ssd0", 0..1).with_stream(|s| {
        s.pattern = Pattern::Requests {
            bytes: Bytes::kib(4),
            depth: 4,
            buffered: false,
        }
    });
    let beyond = stream(Op::Ld, "remote", BEYOND..BEYOND + 1);
    let refused = SimMachine::new(&bed, 1).start(&[storage, beyond]);
    assert!(refused.unwrap_err().to_string().contains("other socket"));
}

/// A tier and an instruction, the number of threads and their socket.
fn tenant() -> impl Strategy<Value = (usize, usize, u32, bool)> {
    (0..4_usize, 0..3_usize, 1..=12_u32, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// For every combination: all threads make progress, no table holds more than its entries, and the lines
    /// that crossed the link are those that were read and written across it.
    #[test]
    fn all_go_on_and_every_line_that_crosses_is_counted(
        wanted in prop::collection::vec(tenant(), 1..5),
        tor in 1_u32..12,
    ) {
        let mut platform = with_tor(SERVER, tor);
        platform.host.uncore.irq = Sourced::from_source(4, "what if");
        let bed = bed_of(&platform);
        let mut next = [0, BEYOND];
        let mut tenants = Vec::new();
        for (n, &(tier, op, threads, beyond)) in wanted.iter().enumerate() {
            let first = &mut next[usize::from(beyond)];
            let end = if beyond { LAST } else { BEYOND };
            let cores = *first..(*first + threads).min(end);
            *first = cores.end;
            if cores.is_empty() {
                continue;
            }
            tenants.push(Tenant {
                name: n.to_string(),
                ..stream(OPS[op], ["dram", "cxl0", "cxl1", "remote"][tier], cores)
            });
        }
        // A thread is on the other socket, so that both are modelled.
        tenants.push(Tenant {
            name: "beyond".into(),
            ..chase("remote", LAST..LAST + 1, Bytes::mib(64))
        });
        let mut machine = SimMachine::new(&bed, 3);
        machine.start(&tenants).unwrap();
        for _ in 0..4 {
            let seen = Measured(machine.observe(Nanos::from_micros(20.0)).unwrap());
            let crossing = |t: usize| {
                let far = ["dram", "cxl0"].map(TierName::named);
                let placement = &tenants[t].placement;
                placement.tiers().all(|tier| far.contains(tier)) == (tenants[t].cores[0] >= BEYOND)
            };
            let (mut lines, mut under_way) = (0.0, 0.0);
            // Lines that were written may stay in a last-level cache in place of clean ones, and leave it for clean ones.
            let (mut stay, mut leave) = (0.0, 0.0);
            for (t, tenant) in tenants.iter().enumerate() {
                prop_assert!(seen.accesses(t) > 0.0, "{} of {tenants:?}", tenant.name);
                // A temporal store crosses twice.
                let times = if tenant.work.stream().unwrap().op == Op::St { 2.0 } else { 1.0 };
                if crossing(t) {
                    lines += times * seen.accesses(t);
                    stay += (times - 1.0) * seen.accesses(t);
                    under_way += times * 64.0 * tenant.cores.len() as f64;
                }
            }
            if stay > 0.0 {
                leave = (0..tenants.len()).map(|t| seen.accesses(t)).sum();
            }
            let crossed = seen.count(Counter::UpiRxData) + seen.count(Counter::UpiTxData);
            // Lines outstanding at either end of a window: no more than the cores have buffers for.
            prop_assert!(crossed <= lines + leave + under_way, "{crossed} for {lines}");
            prop_assert!(crossed >= lines - stay - under_way, "{crossed} for {lines}");
            let held = seen.mean_level(Counter::TorOccupancyIa);
            prop_assert!(held <= 64.0 * f64::from(tor) + 64.0, "{held}");
        }
    }
}
