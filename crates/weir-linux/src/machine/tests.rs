use weir_model::access::{Locality, Op, Pattern};
use weir_model::latency::LatencyHistogram;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::*;
use crate::prefetch::tests::{processor, registers, value, writable};

fn testbed() -> LinuxTestbed {
    LinuxTestbed::new(Root::live(), Options::default()).unwrap()
}

fn machine(testbed: &LinuxTestbed) -> Box<dyn Machine> {
    testbed.open(1).unwrap()
}

fn tenant(machine: &dyn Machine, op: Op, pattern: Pattern, bytes: Bytes) -> Tenant {
    Tenant {
        cores: machine.topology().cores[..1].to_vec(),
        ..Tenant::on_first_cores(op, pattern, &TierName::dram(), 1, bytes)
    }
}

const FRIENDLY: Pattern = Pattern::Chase {
    locality: Locality::TlbFriendly,
};

fn request(error: &MachineError) -> bool {
    matches!(error, MachineError::Request(_))
}

/// The first window in which every tenant did something: other tests may use the processors for whole
/// windows.
fn at_work(machine: &mut dyn Machine, window: Nanos) -> Observation {
    for _ in 0..100 {
        let seen = machine.observe(window).unwrap();
        if seen.tenants.iter().all(|t| t.accesses > 0) {
            return seen;
        }
    }
    panic!("100 windows without an access of each tenant");
}

#[test]
fn every_instruction_moves_bytes_at_a_rate_that_memory_can_have() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    for op in Op::ALL.into_iter().chain([Op::NtLd]) {
        for pattern in [
            Pattern::Sequential,
            Pattern::RandomLine,
            Pattern::RandomBlock {
                block: Bytes::kib(1),
            },
        ] {
            let tenant = tenant(machine.as_ref(), op, pattern, Bytes::mib(16));
            match machine.start(&[tenant]) {
                Ok(()) => {}
                Err(MachineError::Missing { .. }) => continue,
                Err(other) => panic!("{op}: {other}"),
            }
            // Random lines and atomics of one thread may go slower than half a gigabyte a second.
            let least = if op == Op::Cas || pattern == Pattern::RandomLine {
                0.05
            } else {
                0.5
            };
            // Other tests may use the processor for whole windows.
            let mut rate = 0.0;
            for _ in 0..50 {
                let seen = machine.observe(Nanos(20e6)).unwrap();
                let done = &seen.tenants[0];
                assert_eq!(done.bytes.get(), done.accesses * 64);
                assert!(done.latency.is_none());
                rate = done.bandwidth(seen.window).get();
                if rate >= least {
                    break;
                }
            }
            let notes = machine.stop().unwrap();
            assert!(
                (least..1000.0).contains(&rate),
                "{op} {}: {rate} GB/s",
                pattern.name()
            );
            assert!(
                notes.conditions.iter().any(|c| c.starts_with(op.name())),
                "{notes:?}"
            );
        }
    }
}

#[test]
fn latencies_come_with_their_conditions() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    for (op, pattern, samples_are) in [
        (Op::Ld, FRIENDLY, "mean of"),
        (Op::Ld, Pattern::FlushedLine, "timed alone"),
        (Op::NtSt, Pattern::FlushedLine, "timed alone"),
        (
            Op::Ld,
            Pattern::FlushedBurst { lines: 16 },
            "16 accesses at once",
        ),
        (
            Op::NtSt,
            Pattern::FlushedBurst { lines: 64 },
            "64 accesses at once",
        ),
    ] {
        let tenant = Tenant {
            prefetch: false,
            ..tenant(machine.as_ref(), op, pattern, Bytes::mib(8))
        };
        machine.start(&[tenant]).unwrap();
        let mut latency = LatencyHistogram::new();
        while latency.len() <= 100 {
            let seen = machine.observe(Nanos(20e6)).unwrap();
            latency.merge(seen.tenants[0].latency.as_ref().unwrap());
        }
        let notes = machine.stop().unwrap();
        // A single access may be shorter than a step of the clock: most may be, but never all.
        let (mean, slow) = (latency.mean().get(), latency.quantile(0.99).get());
        assert!(
            mean < 100_000.0 && slow > 0.3,
            "{op}: mean {mean} ns, 99 % within {slow} ns"
        );
        let said = notes.conditions.join("\n");
        assert!(
            said.contains(samples_are) && said.contains("prefetchers on"),
            "{said}"
        );
    }
}

#[test]
fn verified_pages_are_in_the_notes() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    let tenant = tenant(machine.as_ref(), Op::Ld, Pattern::Sequential, Bytes::mib(4));
    machine.start(&[tenant]).unwrap();
    let notes = machine.stop().unwrap();
    let placed = testbed.host.policy.availability().is_ok();
    assert_eq!(
        notes
            .conditions
            .iter()
            .any(|c| c.contains("verified on node")),
        placed
    );
    assert_eq!(
        notes.warnings.iter().any(|w| w.contains("not verified")),
        !placed
    );
}

#[test]
fn a_missing_instruction_is_a_missing_capability_and_nothing_runs() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    let foreign = if cfg!(target_arch = "x86_64") {
        None
    } else {
        Some(Op::Movdir64b)
    };
    let lacks = |f: Feature| {
        machine
            .capabilities()
            .iter()
            .any(|c| c.feature == f && !c.present)
    };
    let op = foreign.or(lacks(Feature::Movdir64b).then_some(Op::Movdir64b));
    let Some(op) = op else { return };
    let tenant = tenant(machine.as_ref(), op, Pattern::Sequential, Bytes::mib(1));
    let error = machine.start(&[tenant]).unwrap_err();
    assert!(
        matches!(&error, MachineError::Missing { feature: Feature::Movdir64b, reason } if reason.contains("movdir64b")),
        "{error}"
    );
    assert!(request(&machine.observe(Nanos(1e6)).unwrap_err()));
}

#[test]
fn more_memory_than_there_is_is_refused_before_it_is_touched() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    for bytes in [Bytes::gib(1 << 20), Bytes::gib(1 << 30)] {
        let tenant = tenant(machine.as_ref(), Op::St, Pattern::Sequential, bytes);
        let error = machine.start(&[tenant]).unwrap_err();
        assert!(
            matches!(&error, MachineError::NoMemory { wanted, .. } if *wanted >= bytes),
            "{error}"
        );
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    let good = tenant(machine.as_ref(), Op::Ld, Pattern::Sequential, Bytes::mib(1));
    let cpu = good.cores[0];
    let wrong: Vec<(Vec<Tenant>, &str)> = vec![
        (vec![], "no tenant"),
        (
            vec![Tenant {
                cores: vec![],
                ..good.clone()
            }],
            "no core",
        ),
        (
            vec![Tenant {
                cores: vec![7999],
                ..good.clone()
            }],
            "CPU 7999",
        ),
        (
            vec![Tenant {
                cores: vec![cpu, cpu],
                ..good.clone()
            }],
            "already uses",
        ),
        (vec![good.clone(), good.clone()], "same name"),
        (
            vec![good.clone().with_stream(|s| s.working_set = Bytes(10))],
            "too small",
        ),
        (
            vec![
                good.clone()
                    .with_stream(|s| s.pattern = Pattern::FlushedBurst { lines: 65 }),
            ],
            "burst of 65",
        ),
        (
            vec![good.clone().with_stream(|s| {
                s.pattern = Pattern::FlushedBurst { lines: 16 };
                s.working_set = Bytes(15 * 64);
            })],
            "at least 1024 B",
        ),
        (
            vec![good.clone().with_stream(|s| {
                s.op = Op::St;
                s.pattern = FRIENDLY;
            })],
            "consists of loads",
        ),
        (
            vec![
                good.clone()
                    .with_stream(|s| s.pattern = Pattern::RandomBlock { block: Bytes(100) }),
            ],
            "multiple of 64",
        ),
        (
            vec![Tenant {
                placement: Placement::Interleave(vec![]),
                ..good.clone()
            }],
            "weight",
        ),
        (
            vec![Tenant {
                placement: Placement::Bind(TierName::cxl(9)),
                ..good.clone()
            }],
            "no tier `cxl9`",
        ),
    ];
    for (tenants, expected) in wrong {
        let error = machine.start(&tenants).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(machine.observe(Nanos(1e6)).is_err());
    }
    // After all that the machine still works.
    machine.start(std::slice::from_ref(&good)).unwrap();
    assert!(request(&machine.start(&[good]).unwrap_err()));
    assert!(request(&machine.observe(Nanos(-1.0)).unwrap_err()));
    machine.stop().unwrap();
    assert_eq!(machine.stop().unwrap(), RunNotes::default());
}

#[test]
fn memory_of_one_run_serves_the_next_and_is_verified_again() {
    let testbed = testbed();
    for _ in 0..2 {
        let mut machine = machine(&testbed);
        let tenant = tenant(machine.as_ref(), Op::Ld, Pattern::Sequential, Bytes::mib(6));
        machine.start(&[tenant]).unwrap();
        assert!(testbed.host.kept.lock().unwrap().is_empty());
        machine.stop().unwrap();
        let kept = testbed.host.kept.lock().unwrap();
        assert_eq!(kept.len(), 1);
        assert_eq!(
            kept[0].is_verified(),
            testbed.host.policy.availability().is_ok()
        );
    }
}

#[test]
fn threads_of_several_tenants_are_distinguished() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    let cores = machine.topology().cores.clone();
    let [first, second, ..] = cores[..] else {
        return;
    };
    let reader = tenant(machine.as_ref(), Op::Ld, FRIENDLY, Bytes::mib(2));
    let reader = Tenant {
        cores: vec![first],
        ..reader
    };
    let writer = tenant(
        machine.as_ref(),
        Op::NtSt,
        Pattern::Sequential,
        Bytes::mib(2),
    );
    let writer = Tenant {
        cores: vec![second],
        ..writer
    };
    machine.start(&[reader, writer]).unwrap();
    let seen = at_work(machine.as_mut(), Nanos(30e6));
    let notes = machine.stop().unwrap();
    assert!(seen.tenants[0].latency.is_some() && seen.tenants[1].latency.is_none());
    assert!(
        notes
            .conditions
            .iter()
            .any(|c| c.starts_with("nt_st@dram: ")),
        "{notes:?}"
    );
}

#[test]
fn actions_that_this_machine_cannot_do_are_missing_with_a_reason() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    let off = Action::Prefetchers {
        l1: false,
        l2: false,
    };
    let error = machine.act(&off).unwrap_err();
    assert!(
        matches!(&error, MachineError::Missing { feature: Feature::PrefetchControl, reason } if !reason.is_empty())
    );
}

#[test]
fn counters_that_cannot_be_read_say_why() {
    let testbed = testbed();
    for &counter in Counter::ALL {
        let why = testbed.host.counters.get(counter).unwrap_err();
        assert!(!why.reason.is_empty() && why.reason != "this machine does not count it");
    }
}

#[test]
fn a_budget_that_is_no_multiple_is_refused() {
    for budget in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options = Options {
            budget,
            ..Options::default()
        };
        assert!(LinuxTestbed::new(Root::live(), options).is_err());
    }
    let half = Options {
        budget: 0.5,
        ..Options::default()
    };
    let half = LinuxTestbed::new(Root::live(), half).unwrap();
    let pacing = machine(&half).pacing(Goal::Bandwidth);
    assert_eq!(pacing.window, Nanos(20e6));
}

#[test]
fn a_kernel_that_refuses_placement_still_lets_local_memory_be_measured() {
    let mut testbed = testbed();
    let host = Arc::get_mut(&mut testbed.host).unwrap();
    host.policy = Policy::denied(Unavailable::because("mbind: Operation not permitted"));
    let mut other = host.topology.tiers[0].clone();
    other.name = TierName::remote();
    host.topology.tiers.push(other);

    let mut machine = machine(&testbed);
    let local = tenant(machine.as_ref(), Op::Ld, Pattern::Sequential, Bytes::mib(2));
    let remote = Tenant {
        placement: Placement::Bind(TierName::remote()),
        ..local.clone()
    };
    assert!(matches!(
        machine.start(&[remote]).unwrap_err(),
        MachineError::Missing {
            feature: Feature::NumaPolicy,
            ..
        }
    ));
    machine.start(&[local]).unwrap();
    assert!(
        at_work(machine.as_mut(), Nanos(10e6)).tenants[0]
            .bytes
            .get()
            > 0
    );
    let notes = machine.stop().unwrap();
    assert!(
        notes.warnings.iter().any(|w| w.contains("not permitted")),
        "{notes:?}"
    );
}

#[test]
fn a_thread_that_dies_ends_the_run_with_its_name_and_nothing_hangs() {
    let testbed = testbed();
    let cores = machine(&testbed).topology().cores.clone();
    let [first, second, ..] = cores[..] else {
        return;
    };
    let named = |name: &str, core: u32, pattern| Tenant {
        name: name.to_owned(),
        cores: vec![core],
        ..Tenant::on_first_cores(Op::Ld, pattern, &TierName::dram(), 1, Bytes::mib(2))
    };
    // One thread dies when it runs, the other when it measures the cost of its timer.
    for (pattern, when) in [
        (Pattern::Sequential, "during the run"),
        (Pattern::FlushedLine, "before it was ready"),
    ] {
        let tenants = [
            named("healthy", first, FRIENDLY),
            named("doomed", second, pattern),
        ];
        let mut work = assignment::work(&testbed.host, &tenants, 1).unwrap();
        work.jobs[1].kernel = work.jobs[1].kernel.deadly();
        let mut machine = LinuxMachine {
            host: Arc::clone(&testbed.host),
            seed: 1,
            pool: None,
            settings: None,
        };
        let error = match WorkerPool::assemble(work, &tenants, &testbed.host) {
            Err(error) => error,
            Ok(pool) => {
                machine.pool = Some(pool);
                let seen = (0..1000).find_map(|_| machine.observe(Nanos(1e9)).err());
                let error = seen.unwrap();
                assert_eq!(machine.stop().unwrap_err(), error);
                error
            }
        };
        let error = error.to_string();
        assert!(
            error.contains("tenant `doomed`") && error.contains(when),
            "{error}"
        );
        // After that the machine still works.
        machine.start(&tenants).unwrap();
        machine.stop().unwrap();
    }
}

#[test]
fn a_figure_and_the_list_of_capabilities_say_alike_why_prefetchers_stay_on() {
    let testbed = testbed();
    let mut listed = testbed.host.capabilities.iter();
    let listed = listed
        .find(|c| c.feature == Feature::PrefetchControl)
        .unwrap();
    assert_eq!(listed.present, testbed.host.prefetchers.is_ok());
    if let Err(why) = &testbed.host.prefetchers {
        assert_eq!(why.reason, listed.detail);
    }
}

#[test]
fn prefetchers_are_off_for_as_long_as_a_tenant_wants_them_off() {
    const MSR: u32 = 0x1a4;
    let mut testbed = testbed();
    let cpu = testbed.host.topology.cores[0];
    let folder = tempfile::tempdir().unwrap();
    registers(folder.path(), &[cpu], MSR, 0x20);
    let now = || value(folder.path(), cpu, MSR);
    let host = Arc::get_mut(&mut testbed.host).unwrap();
    let root = writable(folder.path());
    host.options.run_journal = Some(folder.path().join("journal"));
    host.prefetchers = Switches::find(&root, &processor("GenuineIntel"), cpu);

    let mut machine = machine(&testbed);
    let quiet = Tenant {
        prefetch: false,
        ..tenant(machine.as_ref(), Op::Ld, FRIENDLY, Bytes::mib(1))
    };
    let loud = Tenant {
        prefetch: true,
        ..quiet.clone()
    };
    machine.start(std::slice::from_ref(&loud)).unwrap();
    assert_eq!(now(), 0x20);
    let off = Action::Prefetchers {
        l1: true,
        l2: false,
    };
    assert_eq!(machine.act(&off).unwrap().applied, off);
    assert_eq!(now(), 0x23);
    // Other programs may have used the processor, which is also noted; there is nothing to note about the
    // prefetchers.
    let notes = machine.stop().unwrap();
    assert!(
        !notes.warnings.iter().any(|w| w.contains("prefetch")),
        "{notes:?}"
    );
    assert_eq!(now(), 0x20);

    machine.start(std::slice::from_ref(&quiet)).unwrap();
    assert_eq!(now(), 0x2f);
    let notes = machine.stop().unwrap();
    assert!(
        notes
            .conditions
            .contains(&"prefetchers off (MSR 0x1a4)".to_owned()),
        "{notes:?}"
    );
    assert_eq!(now(), 0x20);

    // A run that cannot start, and a machine that is never stopped, leave nothing behind.
    let greedy = quiet
        .clone()
        .with_stream(|s| s.working_set = Bytes::gib(1 << 20));
    machine.start(&[greedy]).unwrap_err();
    assert_eq!(now(), 0x20);
    machine.start(&[quiet]).unwrap();
    assert_eq!(now(), 0x2f);
    drop(machine);
    assert_eq!(now(), 0x20);

    // They were off before, and stay off for a tenant that wants them on: that is noted.
    registers(folder.path(), &[cpu], MSR, 0x3);
    let mut machine = testbed.open(1).unwrap();
    machine.start(&[loud]).unwrap();
    let notes = machine.stop().unwrap();
    assert!(
        notes
            .warnings
            .iter()
            .any(|w| w.contains("as they were found")),
        "{notes:?}"
    );
    assert_eq!(now(), 0x3);
}

#[test]
fn each_tenants_cores_are_counted_or_say_why_not() {
    let testbed = testbed();
    let mut machine = machine(&testbed);
    let load = tenant(
        machine.as_ref(),
        Op::Ld,
        Pattern::Sequential,
        Bytes::mib(16),
    );
    machine.start(&[load]).unwrap();
    let seen = at_work(machine.as_mut(), Nanos(20e6));
    machine.stop().unwrap();
    let counters = &seen.tenants[0].counters;
    // Its pages existed before the window began, and its thread stays on its processor.
    match counters.get(Counter::PageFaults) {
        Ok(faults) => assert!(faults < 100, "{faults}"),
        Err(why) => assert!(!why.reason.is_empty()),
    }
    if let Ok(moves) = counters.get(Counter::CpuMigrations) {
        assert_eq!(moves, 0);
    }
    match (
        counters.get(Counter::Cycles),
        seen.counters.get(Counter::Cycles),
    ) {
        (Ok(its), Ok(all)) => assert_eq!(its, all, "one tenant is all tenants"),
        (Err(why), Err(_)) => assert_ne!(why.reason, "zero"),
        (its, all) => panic!("{its:?} and {all:?}"),
    }
}
