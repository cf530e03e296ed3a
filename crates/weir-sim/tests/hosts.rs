//! Several hosts: what they share is behind the switch, and nothing else.

use crate::common::*;
use proptest::prelude::*;
use weir_model::access::{Op, Pattern};
use weir_model::action::Action;
use weir_model::counters::Counter;
use weir_model::machine::{Machine, MachineError};
use weir_model::region::Pages;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::Workloads;
use weir_sim::{SimMachine, SimTestbed};

/// A device with a port for each of two hosts, and with one port for both.
const HEADED: &str = "2xemr2s+cxl-a@switch";
const LOGICAL: &str = "2xemr2s+cxl-a@switch@logical";
/// The same with one host.
const ONE: &str = "emr2s+cxl-a@switch";
/// Beyond every cache.
const SET: Bytes = Bytes::gib(1);
/// Cores of a host.
const CORES: u32 = 32;
const OPS: [Op; 3] = [Op::Ld, Op::St, Op::NtSt];

/// Threads of a host that stream.
fn on(host: u32, op: Op, tier: &str, threads: u32) -> Tenant {
    let first = host * CORES;
    Tenant {
        name: format!("{op}@{tier} of host {host}"),
        ..stream(op, tier, first..first + threads)
    }
}

/// One thread of a host that chases pointers.
fn waits(host: u32, tier: &str) -> Tenant {
    let core = host * CORES + CORES - 1;
    Tenant {
        name: format!("chase@{tier} of host {host}"),
        ..chase(tier, core..core + 1, SET)
    }
}

/// Bytes, accesses and counters of the first tenant and its host.
fn first_of(bed: &SimTestbed, tenants: &[Tenant], seed: u64) -> String {
    let seen = run(bed, tenants, 5.0, 10.0, seed).0;
    let own = &seen.tenants[0];
    let shared = [Counter::CxlDeviceReads, Counter::CxlDeviceWrites];
    let counters = |set: &weir_model::counters::CounterSet| {
        let own = set.iter().filter(|(counter, _)| !shared.contains(counter));
        format!("{:?}", own.collect::<Vec<_>>())
    };
    format!(
        "{:?} {} {} {} {:?}",
        own.bytes,
        own.accesses,
        counters(&own.counters),
        counters(&seen.counters),
        own.latency.as_ref().map(|l| (l.mean(), l.len())),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn a_host_with_an_idle_neighbour_is_a_host_alone(
        op in prop::sample::select(&OPS[..]),
        tier in prop::sample::select(&["dram", "cxl0"][..]),
        threads in 1u32..24,
        seed in any::<u64>(),
    ) {
        let tenants = [on(0, op, tier, threads), waits(0, tier)];
        let alone = first_of(&bed(ONE), &tenants, seed);
        prop_assert_eq!(&first_of(&bed(HEADED), &tenants, seed), &alone);
        prop_assert_eq!(&first_of(&bed(LOGICAL), &tenants, seed), &alone);
    }

    #[test]
    fn what_a_host_does_in_its_own_memory_its_neighbour_never_sees(
        tier in prop::sample::select(&["dram", "cxl0"][..]),
        op in prop::sample::select(&OPS[..]),
        threads in 1u32..32,
        seed in any::<u64>(),
    ) {
        let own = waits(0, tier);
        let bed = bed(HEADED);
        let alone = first_of(&bed, std::slice::from_ref(&own), seed);
        let beside = [own, on(1, op, "dram", threads)];
        prop_assert_eq!(first_of(&bed, &beside, seed), alone);
    }

    #[test]
    fn the_lines_of_all_hosts_are_those_of_the_device(
        reads in 1u32..16,
        writes in 1u32..16,
        expression in prop::sample::select(&[HEADED, LOGICAL][..]),
        seed in any::<u64>(),
    ) {
        let tenants = [
            on(0, Op::Ld, "cxl0", reads),
            Tenant { cores: (16..16 + writes).collect(), ..on(0, Op::NtSt, "cxl0", writes) },
            on(1, Op::Ld, "cxl0", reads),
            Tenant { cores: (CORES + 16..CORES + 16 + writes).collect(), ..on(1, Op::NtSt, "cxl0", writes) },
        ];
        let seen = run(&bed(expression), &tenants, 20.0, 40.0, seed);
        let lines = |of: [usize; 2]| of.map(|i| seen.0.tenants[i].bytes.get() / LINE_BYTES).iter().sum::<u64>();
        // What is under way at both ends of the window may differ.
        for (hosts, device) in [
            (lines([0, 2]), seen.count(Counter::CxlDeviceReads)),
            (lines([1, 3]), seen.count(Counter::CxlDeviceWrites)),
        ] {
            prop_assert!((hosts as f64 - device).abs() < 2_500.0, "{hosts} {device}");
        }
        // The counters of the uncore are those of one host.
        let own = seen.count(Counter::CxlRxMemData);
        prop_assert!((own - lines([0, 0]) as f64 / 2.0).abs() < 2_500.0);
    }
}

#[test]
fn equal_hosts_get_equal_bandwidth() {
    for expression in [HEADED, LOGICAL] {
        let bed = bed(expression);
        for op in OPS {
            let alone = gbps(&bed, on(0, op, "cxl0", 16));
            let seen = steady(&bed, &[on(0, op, "cxl0", 16), on(1, op, "cxl0", 16)]);
            let (first, second) = (seen.gbps(0), seen.gbps(1));
            assert_near(&format!("{op} on {expression}"), second, first, 0.03);
            assert!(
                first < 1.02 * alone && first + second > 0.9 * alone,
                "{first} {second} {alone}"
            );
        }
    }
}

#[test]
fn the_cores_caches_and_memory_of_every_host_are_alike() {
    let bed = bed(HEADED);
    for (op, tier, set) in [
        (Op::Ld, "dram", Bytes::mib(256)),
        (Op::St, "cxl0", Bytes::mib(256)),
        (Op::Ld, "dram", Bytes::mib(8)),
        (Op::Ld, "remote", Bytes::mib(256)),
    ] {
        let of = |host| on(host, op, tier, 8).with_stream(|s| s.working_set = set);
        assert_near(
            &format!("{op} {tier} {set}"),
            gbps(&bed, of(1)),
            gbps(&bed, of(0)),
            0.03,
        );
    }
    let program = |host: u32| {
        let work = Workloads::builtin().get("mcf-like").unwrap().clone();
        Tenant::running(work, vec![host * CORES], Placement::Bind(TierName::cxl(0)))
    };
    let [here, there] = [0, 1].map(|host| run(&bed, &[program(host)], 30.0, 600.0, 1).accesses(0));
    assert_near("a program", there, here, 0.05);
}

#[test]
fn a_shared_device_gives_no_more_than_it_can_and_no_less_under_more_load() {
    let (headed, logical) = (bed(HEADED), bed(LOGICAL));
    let solo = gbps(&headed, on(0, Op::Ld, "cxl0", 16));
    let limit = platform(HEADED).topology().tiers[1]
        .limits
        .clone()
        .unwrap()
        .read
        .get();
    let total = |bed: &SimTestbed, threads| {
        let seen = steady(
            bed,
            &[
                on(0, Op::Ld, "cxl0", threads),
                on(1, Op::Ld, "cxl0", threads),
            ],
        );
        seen.gbps(0) + seen.gbps(1)
    };
    let mut before = 0.0;
    for threads in [1, 2, 4, 8, 16, 31] {
        let now = total(&logical, threads);
        // One port carries what it carries for one host.
        assert!(
            now > 0.97 * before && now < 1.005 * limit,
            "{threads}: {now} {before} {limit}"
        );
        before = now;
    }
    assert_near("one port", before, solo, 0.05);
    // Two ports carry more, until the DRAM behind them is busy.
    let (two, media) = (
        total(&headed, 16),
        platform(HEADED).devices[0].device.limits().total.get(),
    );
    println!(
        "{solo:.1} GB/s alone, {before:.1} with one port, {two:.1} with two; media {media:.1}"
    );
    assert!(two > 1.3 * before && two < 2.02 * solo, "{two} {before}");
}

#[test]
fn a_host_waits_for_the_device_that_its_neighbour_fills_and_for_nothing_else() {
    let crowd = on(1, Op::Ld, "cxl0", 16);
    for (expression, least) in [(HEADED, 1.0), (LOGICAL, 1.2)] {
        let bed = bed(expression);
        let timed = |tenants: &[Tenant]| run(&bed, tenants, 20.0, 200.0, 1);
        let alone = timed(&[waits(0, "cxl0")]);
        let beside = timed(&[waits(0, "cxl0"), crowd.clone()]);
        println!(
            "{expression}: {} ns, {} ns alone",
            beside.ns(0),
            alone.ns(0)
        );
        assert!(beside.ns(0) > least * alone.ns(0));
        // The tables are each host's own.
        assert!(beside.mean_level(Counter::TorOccupancyIa) < 3.0);
        let crowded = timed(&[crowd.clone(), waits(0, "dram")]);
        assert!(crowded.mean_level(Counter::TorOccupancyIa) > 50.0);
        let dram = timed(&[waits(0, "dram")]).ns(0);
        assert_eq!(timed(&[waits(0, "dram"), crowd.clone()]).ns(0), dram);
    }
}

#[test]
fn on_every_host_accesses_a_second_times_latency_are_those_outstanding() {
    let tenants = [0, 1].map(|host| {
        let first = host * CORES;
        chase("cxl0", first..first + 8, SET)
    });
    let tenants = [
        tenants[0].clone(),
        Tenant {
            name: "second".into(),
            ..tenants[1].clone()
        },
    ];
    let seen = run(&bed(HEADED), &tenants, 20.0, 200.0, 3);
    for host in 0..2 {
        let outstanding = seen.accesses(host) / seen.0.window.get() * seen.ns(host);
        assert_near("accesses", outstanding, 8.0, 0.02);
    }
}

#[test]
fn a_host_whose_tenants_end_leaves_the_device_to_the_other() {
    let bed = bed(LOGICAL);
    let tenants = [on(0, Op::Ld, "cxl0", 8), on(1, Op::Ld, "cxl0", 8)];
    let alone = steady(&bed, &tenants[..1]).gbps(0);
    let mut machine = SimMachine::new(&bed, 1);
    machine.start(&tenants).unwrap();
    let mut gbps = |window: f64| {
        let seen = machine.observe(Nanos::from_micros(window)).unwrap();
        let bandwidth = seen.tenants[0].bandwidth(seen.window).get();
        let end = Action::ProcessorTime {
            tenant: tenants[1].name.clone(),
            share: 0.001,
            period: Nanos::from_micros(1000.0),
        };
        machine.act(&end).unwrap();
        bandwidth
    };
    let both = gbps(60.0);
    gbps(60.0);
    let after = gbps(200.0);
    assert!(both < 0.7 * alone, "{both} {alone}");
    assert_near("after the end", after, alone, 0.02);
}

#[test]
fn equal_seeds_give_equal_figures_on_several_hosts() {
    let tenants = [
        on(1, Op::St, "cxl0", 4),
        on(0, Op::Ld, "cxl0", 4),
        waits(0, "dram"),
    ];
    let bed = bed(HEADED);
    assert_eq!(first_of(&bed, &tenants, 9), first_of(&bed, &tenants, 9));
    assert_ne!(first_of(&bed, &tenants, 9), first_of(&bed, &tenants, 10));
}

#[test]
fn four_hosts_each_with_a_device_of_their_own_behind_a_switch_are_apart() {
    // The prototype of DirectCXL (USENIX ATC 2022) in shape: no device is reached by two hosts.
    let bed = bed("4xemr2s+4xcxl-a@switch");
    let of = |host: u32| on(host, Op::Ld, &format!("cxl{host}"), 8);
    let alone = gbps(&bed, of(0));
    let all: Vec<Tenant> = (0..4).map(of).collect();
    let seen = run(&bed, &all, 20.0, 30.0, 1);
    for host in 0..4 {
        assert_near("a host", seen.gbps(host), alone, 0.03);
    }
}

#[test]
fn a_medium_behind_the_dram_of_a_shared_device_serves_all_hosts() {
    let bed = bed("2xemr2s+cxl-ssd-znand@switch");
    let of = |host: u32| {
        on(host, Op::Ld, "cxl0", 4).with_stream(|s| {
            s.pattern = Pattern::RandomLine;
            s.working_set = Bytes::gib(2);
        })
    };
    let alone = run(&bed, &[of(0)], 100.0, 300.0, 1);
    let both = run(&bed, &[of(0), of(1)], 100.0, 300.0, 1);
    println!(
        "{} GB/s alone, {} and {}",
        alone.gbps(0),
        both.gbps(0),
        both.gbps(1)
    );
    // Its dies are busy with one host, and serve two in turn.
    assert_near("either", both.gbps(1), both.gbps(0), 0.1);
    assert_near("both", both.gbps(0) + both.gbps(1), alone.gbps(0), 0.2);
    assert!(both.count(Counter::MediumMisses) > 100.0);
}

#[test]
fn hosts_with_core_complexes_share_a_device_too() {
    let bed = bed("2xmiku-b+micron-x8@switch");
    let cores = platform("miku-b").topology().cores.len() as u32;
    let of = |host: u32| Tenant {
        name: format!("host {host}"),
        ..stream(Op::Ld, "cxl0", host * cores..host * cores + 8)
    };
    let alone = [0, 1].map(|host| gbps(&bed, of(host)));
    assert_near("either", alone[1], alone[0], 0.03);
    let seen = steady(&bed, &[of(0), of(1)]);
    assert_near("both", seen.gbps(1), seen.gbps(0), 0.03);
}

#[test]
fn every_host_has_a_range_of_a_shared_device() {
    let bed = bed(HEADED);
    let range = SimMachine::new(&bed, 1).topology().tiers[1].capacity;
    let whole = platform(ONE).topology().tiers[1].capacity;
    assert_eq!(range.get(), whole.get() / 2);
    let all = |part: f64| {
        let set = Bytes((range.get() as f64 * part) as u64);
        [0, 1].map(|host| on(host, Op::Ld, "cxl0", 1).with_stream(|s| s.working_set = set))
    };
    SimMachine::new(&bed, 1).start(&all(0.9)).unwrap();
    let error = SimMachine::new(&bed, 1).start(&all(1.01)).unwrap_err();
    assert!(
        matches!(error, MachineError::NoMemory { free, .. } if free == range),
        "{error}"
    );
}

#[test]
fn pages_of_a_host_move_between_its_own_tiers() {
    let bed = bed(HEADED);
    let tenant = on(1, Op::Ld, "dram", 1).with_stream(|s| s.working_set = Bytes::mib(2));
    let mut machine = SimMachine::new(&bed, 1);
    machine.start(std::slice::from_ref(&tenant)).unwrap();
    let action = Action::Place {
        tenant: tenant.name.clone(),
        pages: Pages::All,
        placement: Placement::Bind(TierName::cxl(0)),
        limit: None,
    };
    machine.act(&action).unwrap();
    let seen = machine.observe(Nanos::from_micros(2000.0)).unwrap();
    let tiers = &seen.tenants[0].regions[0].tiers;
    let on_tier = |name: TierName| {
        tiers
            .iter()
            .find(|t| t.tier == name)
            .map(|t| t.resident.get())
    };
    assert_eq!(on_tier(TierName::cxl(0)), Some(2 << 20), "{tiers:?}");
    assert_eq!(on_tier(TierName::dram()), Some(0));
}

#[test]
fn what_is_not_modelled_on_several_hosts_is_refused() {
    let bed = bed("2xemr2s+cxl-a@switch+ssd-nvme4");
    let spans = Tenant {
        cores: vec![0, CORES],
        ..on(0, Op::Ld, "dram", 1)
    };
    let refused = |tenants: &[Tenant], why: &str| {
        let error = SimMachine::new(&bed, 1)
            .start(tenants)
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(&[spans], "a tenant is on one");
    let storage = |host: u32| {
        on(host, Op::RandRead, "ssd0", 1).with_stream(|s| {
            s.pattern = Pattern::Requests {
                bytes: Bytes::kib(4),
                depth: 1,
                buffered: false,
            };
        })
    };
    refused(&[storage(1)], "another socket or host");
    refused(
        &[storage(0), on(1, Op::Ld, "dram", 1)],
        "another socket or host",
    );
    refused(&[on(2, Op::Ld, "dram", 1)], "there are 64 cores");
    let crowd = SimTestbed::new(&platform("8xemr2s+4xcxl-a@switch"))
        .err()
        .unwrap();
    assert!(
        crowd.to_string().contains("at most 32 are simulated"),
        "{crowd}"
    );
}
