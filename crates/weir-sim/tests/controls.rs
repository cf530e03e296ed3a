//! Actions on a machine, and refusals.

use crate::common::*;
use weir_model::access::{Op, Pattern};
use weir_model::action::Action;
use weir_model::counters::Counter;
use weir_model::machine::{Machine, MachineError};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_sim::SimMachine;

const MACHINE: &str = "emr2s+cxl-a";

fn window() -> Nanos {
    Nanos::from_micros(50.0)
}

#[test]
fn without_prefetchers_one_thread_loads_what_its_fill_buffers_allow() {
    let platform = platform(MACHINE);
    let core = &platform.host.core;
    for (tier, idle) in [
        ("dram", platform.host.dram.measured.idle.get()),
        ("cxl0", platform.devices[0].device.measured.idle.get()),
    ] {
        let mut machine = SimMachine::new(&bed_of(&platform), 1);
        machine.start(&[stream(Op::Ld, tier, 0..1)]).unwrap();
        machine.observe(window()).unwrap();
        let on = Measured(machine.observe(window()).unwrap());
        let off = Action::Prefetchers {
            l1: false,
            l2: false,
        };
        let applied = machine.act(&off).unwrap();
        assert_eq!((&applied.requested, &applied.applied), (&off, &off));
        machine.observe(window()).unwrap();
        let off = Measured(machine.observe(window()).unwrap());
        assert_eq!(
            off.count(Counter::HwpfL1d) + off.count(Counter::HwpfL2),
            0.0
        );
        assert!(on.count(Counter::HwpfL2) > 0.0);
        assert!(
            off.gbps(0) < 0.75 * on.gbps(0),
            "{tier}: {} of {}",
            off.gbps(0),
            on.gbps(0)
        );
        // A stream finds rows open, unlike a chase: it is somewhat faster than idle latency says.
        let expected = f64::from(*core.line_fill_buffers) * LINE_BYTES as f64 / idle;
        assert_near(tier, off.gbps(0), expected, 0.2);

        machine
            .act(&Action::Prefetchers { l1: true, l2: true })
            .unwrap();
        machine.observe(window()).unwrap();
        let again = Measured(machine.observe(window()).unwrap());
        assert_near("on again", again.gbps(0), on.gbps(0), 0.05);
    }
}

#[test]
fn prefetchers_stay_off_for_a_tenant_that_runs_without() {
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    machine
        .start(&[plain_stream(Op::Ld, "dram", 0..1)])
        .unwrap();
    machine
        .act(&Action::Prefetchers { l1: true, l2: true })
        .unwrap();
    let seen = Measured(machine.observe(window()).unwrap());
    assert_eq!(
        seen.count(Counter::HwpfL1d) + seen.count(Counter::HwpfL2),
        0.0
    );
}

/// The refusal's text, if an action is refused as a bad request.
#[track_caller]
fn refused(result: Result<impl std::fmt::Debug, MachineError>) -> String {
    match result {
        Err(MachineError::Request(text)) => text,
        other => panic!("not refused as a request: {other:?}"),
    }
}

#[test]
fn an_empty_mask_one_beyond_the_ways_or_one_for_an_unknown_tenant_is_refused_with_the_reason() {
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    let tenant = stream(Op::Ld, "dram", 0..1);
    machine.start(std::slice::from_ref(&tenant)).unwrap();
    let mut mask = |tenant: &str, mask| {
        refused(machine.act(&Action::CacheWays {
            tenant: tenant.into(),
            mask,
        }))
    };
    assert!(mask(&tenant.name, 0).contains("20 ways"));
    assert!(mask(&tenant.name, 1 << 20).contains("0x100000"));
    assert!(mask("nobody", 1).contains("`nobody`"));
    // The run goes on as before.
    assert!(Measured(machine.observe(window()).unwrap()).gbps(0) > 1.0);
}

#[test]
fn requests_to_storage_are_refused_by_a_model_without_any() {
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    for op in Op::STORAGE {
        let said = refused(machine.start(&[stream(op, "dram", 0..1)]));
        assert!(said.contains("storage device"), "{said}");
    }
    let mut requests = stream(Op::Ld, "dram", 0..1);
    requests.work.stream_mut().unwrap().pattern = Pattern::Requests {
        bytes: Bytes::kib(4),
        depth: 16,
        buffered: false,
    };
    assert!(refused(machine.start(&[requests])).contains("storage requests"));
}

#[test]
fn nothing_can_be_seen_or_changed_before_start() {
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    assert!(refused(machine.observe(window())).contains("start"));
    let off = Action::Prefetchers {
        l1: false,
        l2: false,
    };
    assert!(refused(machine.act(&off)).contains("start"));
}

#[test]
fn a_run_may_be_stopped_twice_and_started_again() {
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    let tenants = [stream(Op::Ld, "dram", 0..4)];
    machine.stop().unwrap();
    machine.start(&tenants).unwrap();
    let first = machine.observe(window()).unwrap();
    machine.stop().unwrap();
    machine.stop().unwrap();
    refused(machine.observe(window()));
    machine.start(&tenants).unwrap();
    let second = machine.observe(window()).unwrap();
    assert_eq!(first.counters, second.counters);
}

/// The machine's answer to a tenant; nothing runs afterwards.
#[track_caller]
fn answer(tenants: &[Tenant]) -> MachineError {
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    let error = machine.start(tenants).expect_err("a bad tenant");
    assert!(
        machine.observe(window()).is_err(),
        "something runs after: {error}"
    );
    error
}

/// The same for a tenant that makes no sense.
#[track_caller]
fn objection(tenants: &[Tenant]) -> String {
    refused(Err::<(), _>(answer(tenants)))
}

fn changed(change: impl FnOnce(&mut Tenant)) -> Tenant {
    let mut tenant = stream(Op::Ld, "dram", 0..2);
    change(&mut tenant);
    tenant
}

#[test]
fn a_tenant_without_cores_is_refused() {
    let text = objection(&[changed(|t| t.cores.clear())]);
    assert!(
        text.contains("`ld@dram`") && text.contains("no cores"),
        "{text}"
    );
}

#[test]
fn a_core_wanted_twice_is_refused() {
    let text = objection(&[changed(|t| t.cores = vec![3, 3])]);
    assert!(text.contains("core 3"), "{text}");
    let other = changed(|t| {
        t.name = "other".into();
        t.cores = vec![1, 2];
    });
    let text = objection(&[changed(|_| {}), other]);
    assert!(
        text.contains("core 1") && text.contains("`other`"),
        "{text}"
    );
}

#[test]
fn a_core_that_does_not_exist_is_refused_with_how_many_do() {
    let text = objection(&[changed(|t| t.cores = vec![64])]);
    assert!(
        text.contains("core 64") && text.contains("there are 64"),
        "{text}"
    );
}

#[test]
fn two_tenants_of_one_name_are_refused() {
    let second = changed(|t| t.cores = vec![5]);
    assert!(objection(&[changed(|_| {}), second]).contains("`ld@dram`"));
}

#[test]
fn an_unknown_tier_is_refused_with_the_known_ones() {
    for placement in [
        Placement::Bind(TierName::cxl(7)),
        Placement::Interleave(vec![(TierName::dram(), 1), (TierName::cxl(7), 1)]),
    ] {
        let error = answer(&[changed(|t| t.placement = placement)]);
        assert!(
            matches!(&error, MachineError::NoSuchTier { name, .. } if *name == TierName::cxl(7))
        );
        assert_eq!(
            error.to_string(),
            "no tier `cxl7` here; there are dram, cxl0, remote"
        );
    }
}

#[test]
fn a_working_set_beyond_capacity_is_refused_with_both_figures() {
    let error = answer(&[changed(|t| {
        t.work.stream_mut().unwrap().working_set = Bytes::gib(100)
    })]);
    let MachineError::NoMemory {
        tier, free, wanted, ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(
        (tier, *free, *wanted),
        (&TierName::dram(), Bytes::gib(128), Bytes::gib(200))
    );
    // Together they may be too many, though each fits alone.
    let half = |name: &str, core| {
        changed(|t| {
            t.name = name.into();
            t.cores = vec![core];
            t.work.stream_mut().unwrap().working_set = Bytes::gib(70);
        })
    };
    let error = answer(&[half("one", 0), half("two", 1)]);
    assert!(matches!(error, MachineError::NoMemory { .. }), "{error:?}");
}

#[test]
fn a_working_set_of_less_than_a_line_is_refused() {
    let text = objection(&[changed(|t| {
        t.work.stream_mut().unwrap().working_set = Bytes(63)
    })]);
    assert!(text.contains("63 B"), "{text}");
}

#[test]
fn only_loads_can_chase() {
    for op in Op::ALL.into_iter().filter(|&op| op != Op::Ld) {
        let text = objection(&[changed(|t| {
            t.work.stream_mut().unwrap().op = op;
            t.work.stream_mut().unwrap().pattern = chase("dram", 0..1, Bytes::mib(1))
                .work
                .stream()
                .unwrap()
                .pattern;
        })]);
        assert!(text.contains(op.name()) && text.contains("chase"), "{text}");
    }
    let text = objection(&[changed(|t| {
        t.work.stream_mut().unwrap().op = Op::Cas;
        t.work.stream_mut().unwrap().pattern = Pattern::FlushedLine;
    })]);
    assert!(text.contains("cas"), "{text}");
}

#[test]
fn a_placement_on_nothing_is_refused() {
    for weights in [vec![], vec![(TierName::dram(), 0)]] {
        objection(&[changed(|t| t.placement = Placement::Interleave(weights))]);
    }
}

#[test]
fn an_interleaved_tenant_loads_its_tiers_by_their_weights() {
    let mut tenant = stream(Op::Ld, "dram", 0..2);
    tenant.placement = Placement::Interleave(vec![(TierName::dram(), 3), (TierName::cxl(0), 1)]);
    let seen = steady(&bed(MACHINE), &[tenant]);
    let (near, far) = (
        seen.count(Counter::CasRd),
        seen.count(Counter::CxlRxMemData),
    );
    assert_near("pages on dram for one on cxl0", near / far, 3.0, 0.05);
}

#[test]
fn a_start_that_is_refused_ends_the_run_before_it() {
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    machine.start(&[changed(|_| {})]).unwrap();
    refused(machine.start(&[changed(|t| t.cores.clear())]));
    assert!(machine.observe(window()).is_err(), "the run before goes on");
}

#[test]
fn a_working_set_that_no_machine_could_hold_is_refused() {
    for bytes in [u64::MAX, u64::MAX / 2, 1 << 60] {
        for placement in [
            Placement::Bind(TierName::dram()),
            Placement::Interleave(vec![(TierName::dram(), u32::MAX), (TierName::cxl(0), 1)]),
        ] {
            let error = answer(&[changed(|t| {
                t.work.stream_mut().unwrap().working_set = Bytes(bytes);
                t.placement = placement;
            })]);
            assert!(matches!(error, MachineError::NoMemory { .. }), "{error:?}");
        }
    }
}

/// A machine whose last-level cache fills quickly: 4 MiB in 16 ways, with 256 KiB of L2.
fn small_caches() -> weir_model::platform::Platform {
    use weir_model::platform::Sourced;

    let mut platform = platform("emr2s");
    let host = &mut platform.host;
    host.llc.size = Sourced::from_source(Bytes::mib(4), "what if");
    host.llc.slices = Sourced::from_source(16, "what if");
    host.llc.ways = Sourced::from_source(16, "what if");
    host.l2.size = Sourced::from_source(Bytes::kib(256), "what if");
    platform
}

#[test]
fn cache_ways_protect_a_tenant_from_another() {
    let bed = bed_of(&small_caches());
    let quiet = chase("dram", 0..1, Bytes::mib(2));
    let mut noisy = stream(Op::Ld, "dram", 1..3);
    // So large that it never hits, and evicts all other lines.
    noisy.work.stream_mut().unwrap().working_set = Bytes::mib(64);
    noisy.name = "noisy".into();

    let alone = run(&bed, std::slice::from_ref(&quiet), 5.0, 500.0, 1).ns(0);
    let mut machine = SimMachine::new(&bed, 1);
    machine.start(&[quiet, noisy]).unwrap();
    machine.observe(Nanos::from_micros(2000.0)).unwrap();
    let shared = Measured(machine.observe(window() * 10.0).unwrap()).ns(0);
    assert!(shared > 1.5 * alone, "{shared:.1} from {alone:.1} ns");

    let mask = Action::CacheWays {
        tenant: "noisy".into(),
        mask: 0b1,
    };
    let applied = machine.act(&mask).unwrap();
    assert_eq!((&applied.requested, &applied.applied), (&mask, &mask));
    // The chase brings its lines back in its next round.
    machine.observe(Nanos::from_micros(8000.0)).unwrap();
    let protected = Measured(machine.observe(window() * 10.0).unwrap()).ns(0);
    assert!(
        protected < alone + 0.25 * (shared - alone),
        "{protected:.1} against {alone:.1} alone and {shared:.1} ns shared"
    );
}

#[test]
fn a_tenant_hits_the_more_the_more_ways_it_has_from_the_start() {
    let bed = bed_of(&small_caches());
    let latency = |mask| {
        let mut tenant = chase("dram", 0..1, Bytes::mib(2));
        tenant.cache_ways = mask;
        run(&bed, &[tenant], 5.0, 500.0, 1).ns(0)
    };
    let all = latency(None);
    let (one, four, most) = (
        latency(Some(0x1)),
        latency(Some(0xf)),
        latency(Some(0xffff)),
    );
    assert!(
        one > 1.05 * four && four > 1.2 * most,
        "{one:.1}, {four:.1}, {most:.1} ns"
    );
    assert!((most / all - 1.0).abs() < 0.02, "{most:.1} for {all:.1} ns");
}

#[test]
fn an_allocation_below_what_a_device_serves_leaves_others_all_they_had() {
    let bed = bed(MACHINE);
    let fast = stream(Op::Ld, "dram", 0..12);
    let mut slow = stream(Op::NtSt, "cxl0", 12..19);
    slow.name = "slow".into();
    let alone = steady(&bed, std::slice::from_ref(&fast)).gbps(0);
    let mut machine = SimMachine::new(&bed, 1);
    machine.start(&[fast, slow]).unwrap();
    machine.observe(window()).unwrap();
    let free = Measured(machine.observe(window()).unwrap());
    assert!(free.gbps(0) < 0.5 * alone, "{}", free.gbps(0));
    let tenth = Action::Bandwidth {
        tenant: "slow".into(),
        percent: 10,
    };
    machine.act(&tenth).unwrap();
    machine.observe(window() * 4.0).unwrap();
    let held = Measured(machine.observe(window()).unwrap());
    // What a tenth lets seven cores of a peak of 19 GB/s draw: the device takes 20.8 GB/s.
    let passes = platform(MACHINE).host.allocation.passes(0.1);
    assert_near("the rate", held.gbps(1), 7.0 * 19.0 * passes, 0.02);
    assert!(held.gbps(0) > 0.98 * alone, "{} of {alone}", held.gbps(0));
}

#[test]
fn an_allocation_is_applied_in_the_steps_that_the_processor_has() {
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    let tenant = stream(Op::Ld, "dram", 0..2);
    let name = tenant.name.clone();
    machine.start(&[tenant]).unwrap();
    let asked = |percent| Action::Bandwidth {
        tenant: name.clone(),
        percent,
    };
    for (percent, applied) in [(1, 10), (10, 10), (11, 20), (70, 70), (93, 100), (100, 100)] {
        let after = machine.act(&asked(percent)).unwrap();
        assert_eq!(
            (after.requested, after.applied),
            (asked(percent), asked(applied))
        );
    }
}

#[test]
fn what_is_stored_passes_an_allocation_twice() {
    let rate = |op: Op, percent| {
        let tenant = stream(op, "dram", 0..2);
        let mut machine = SimMachine::new(&bed(MACHINE), 1);
        let action = Action::Bandwidth {
            tenant: tenant.name.clone(),
            percent,
        };
        machine.start(&[tenant]).unwrap();
        machine.act(&action).unwrap();
        machine.observe(window()).unwrap();
        Measured(machine.observe(window()).unwrap()).gbps(0)
    };
    let tenth = |op| rate(op, 10);
    assert_near("posted", tenth(Op::NtSt), tenth(Op::Ld), 0.02);
    assert_near("stored", 2.0 * tenth(Op::St), tenth(Op::Ld), 0.02);
    assert!(rate(Op::Ld, 50) > 3.0 * tenth(Op::Ld));
}
