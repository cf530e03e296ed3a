//! Loads beyond one instruction in one order: rounds, pauses, single hops, shared lines.

use weir_model::access::{Dataflow, Locality, Op, Pattern, Timing};
use weir_model::capability::Feature;
use weir_model::machine::{Machine, MachineError, Observation, RunNotes, TenantProgress, Testbed};
use weir_model::tenant::{Placement, Reads, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};

use super::{LinuxTestbed, Options};
use crate::root::Root;
use crate::storage::Wish;

fn machine() -> Box<dyn Machine> {
    let testbed = LinuxTestbed::new(Root::live(), Options::default()).unwrap();
    testbed.open(1).unwrap()
}

fn tenant(machine: &dyn Machine, op: Op, pattern: Pattern, bytes: Bytes) -> Tenant {
    Tenant {
        cores: machine.topology().cores[..1].to_vec(),
        ..Tenant::on_first_cores(op, pattern, &TierName::dram(), 1, bytes)
    }
}

fn reads(lines: u32, per: u32, dataflow: Dataflow) -> Option<Reads> {
    Some(Reads {
        lines,
        per,
        from: Placement::Bind(TierName::dram()),
        dataflow,
    })
}

/// Runs a tenant and observes it until it did something; on a machine full of other tests this takes more
/// than one window.
fn run(
    machine: &mut dyn Machine,
    tenant: Tenant,
    ms: f64,
) -> Result<(Observation, RunNotes), MachineError> {
    machine.start(&[tenant])?;
    let mut seen = machine.observe(Nanos(ms * 1e6))?;
    for _ in 0..100 {
        // With other work on the machine, a window may have no samples, or only disturbed ones.
        let TenantProgress {
            accesses, latency, ..
        } = &seen.tenants[0];
        if *accesses > 0 && latency.as_ref().is_none_or(|l| !l.is_empty()) {
            break;
        }
        seen = machine.observe(Nanos(ms * 1e6))?;
    }
    Ok((seen, machine.stop()?))
}

const CHASE: Pattern = Pattern::Chase {
    locality: Locality::Random,
};

#[test]
fn mixes_copies_and_streams_run_in_every_order_of_lines() {
    let mut machine = machine();
    for (op, reads) in [
        (Op::Ld, reads(1, 1, Dataflow::Apart)),
        (Op::St, reads(3, 1, Dataflow::Apart)),
        (Op::NtSt, reads(2, 3, Dataflow::Apart)),
        (Op::Cas, reads(1, 1, Dataflow::Apart)),
        (Op::St, reads(1, 1, Dataflow::Copy)),
        (Op::Movdir64b, reads(1, 1, Dataflow::Copy)),
        (Op::NtSt, reads(1, 1, Dataflow::Scale)),
        (Op::St, reads(2, 1, Dataflow::Add)),
        (Op::NtSt, reads(2, 1, Dataflow::Triad)),
    ] {
        for pattern in [
            Pattern::Sequential,
            Pattern::RandomLine,
            Pattern::RandomBlock {
                block: Bytes::kib(1),
            },
        ] {
            let tenant = tenant(machine.as_ref(), op, pattern, Bytes::mib(12))
                .with_stream(|s| s.reads = reads.clone());
            let (seen, notes) = match run(machine.as_mut(), tenant, 10.0) {
                Ok(done) => done,
                Err(MachineError::Missing { .. }) => continue,
                Err(other) => panic!("{op} {reads:?}: {other}"),
            };
            let done = &seen.tenants[0];
            assert!(done.accesses > 0 && done.bytes.get() == done.accesses * 64);
            let flow = reads.as_ref().map(|r| r.dataflow).unwrap();
            let said = match flow {
                Dataflow::Apart => "rounds of",
                other => other.name(),
            };
            assert!(notes.conditions[0].contains(said), "{notes:?}");
            assert!(
                notes
                    .conditions
                    .iter()
                    .any(|c| c.starts_with("loaded from pages")),
                "{notes:?}"
            );
        }
    }
}

#[test]
fn a_pause_slows_a_load_down_to_what_it_leaves_time_for() {
    let mut machine = machine();
    let pause = Nanos(400.0);
    for reads in [None, reads(1, 1, Dataflow::Apart)] {
        let tenant = tenant(machine.as_ref(), Op::Ld, Pattern::Sequential, Bytes::mib(4))
            .with_stream(|s| {
                s.pause = pause;
                s.reads = reads;
            });
        let (seen, notes) = run(machine.as_mut(), tenant, 20.0).unwrap();
        let most = seen.window.get() / pause.get();
        let done = seen.tenants[0].accesses as f64;
        assert!(done > 0.0 && done < 1.1 * most, "{done} of {most}");
        assert!(notes.conditions.iter().any(|c| c.contains("pausing 400")));
    }
}

#[test]
fn single_hops_take_as_long_as_hops_in_a_row() {
    let mut machine = machine();
    // The least of a few rounds: other work on the machine makes either figure greater, never smaller.
    let mut least = [f64::MAX; 2];
    for _ in 0..5 {
        for (timing, least) in [Timing::Averaged, Timing::Each].into_iter().zip(&mut least) {
            let tenant = tenant(machine.as_ref(), Op::Ld, CHASE, Bytes::mib(64))
                .with_stream(|s| s.timing = timing);
            let (seen, notes) = run(machine.as_mut(), tenant, 30.0).unwrap();
            let latency = seen.tenants[0].latency.clone().unwrap();
            *least = least.min(latency.quantile(0.5).get());
            if timing == Timing::Each {
                let said = notes.conditions.join("\n");
                for part in [
                    "each hop timed alone",
                    "subtracted",
                    "steps of",
                    "one random cycle",
                ] {
                    assert!(said.contains(part), "{said}");
                }
            }
        }
        // A loose bound: the test is that no fence, timer or ring is left in the figure, and that not too
        // much is subtracted.
        if (least[1] / least[0] - 1.0).abs() < 0.35 {
            return;
        }
    }
    panic!("{least:?}");
}

#[test]
fn a_shared_line_goes_round_among_all_its_threads() {
    let mut machine = machine();
    let cores = machine.topology().cores.clone();
    if cores.len() < 2 {
        return;
    }
    let tenant = Tenant {
        cores: cores[..2].to_vec(),
        ..tenant(machine.as_ref(), Op::Cas, Pattern::SharedLine, Bytes(64))
    };
    for timing in [Timing::Averaged, Timing::Each] {
        let tenant = tenant.clone().with_stream(|s| s.timing = timing);
        let (seen, notes) = run(machine.as_mut(), tenant, 20.0).unwrap();
        let latency = seen.tenants[0].latency.as_ref().unwrap();
        assert!(!latency.is_empty(), "{notes:?}");
        let mean = latency.mean().get();
        assert!((1.0..1e6).contains(&mean), "{mean}");
        assert!(notes.conditions.iter().any(|c| c.contains("hand-overs")));
    }
}

#[test]
fn an_accelerator_that_is_not_there_is_a_missing_capability() {
    let mut machine = machine();
    let there = machine
        .capabilities()
        .iter()
        .any(|c| c.feature == Feature::Dsa && c.present);
    let descriptors = |bytes| Pattern::Descriptors {
        bytes,
        batch: 1,
        in_flight: 1,
    };
    let copy = tenant(
        machine.as_ref(),
        Op::Dsa,
        descriptors(Bytes::kib(4)),
        Bytes::mib(2),
    )
    .with_stream(|s| s.reads = reads(1, 1, Dataflow::Copy));
    match run(machine.as_mut(), copy.clone(), 10.0) {
        Ok((seen, _)) => assert!(there && seen.tenants[0].accesses > 0),
        Err(MachineError::Missing { feature, reason }) => {
            assert_eq!(feature, Feature::Dsa);
            assert!(!reason.is_empty());
        }
        Err(other) => panic!("{other}"),
    }
    for (tenant, expected) in [
        (
            copy.clone().with_stream(|s| s.reads = None),
            "descriptors copy",
        ),
        (
            copy.clone()
                .with_stream(|s| s.pattern = descriptors(Bytes::mib(2))),
            "smaller than two blocks",
        ),
        (
            copy.clone()
                .with_stream(|s| s.pattern = Pattern::Sequential),
            "given descriptors",
        ),
        (
            copy.clone().with_stream(|s| s.op = Op::St),
            "for an accelerator",
        ),
        (copy.with_stream(|s| s.pause = Nanos(5.0)), "cannot pause"),
    ] {
        let error = machine.start(&[tenant]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn loads_that_make_no_sense_are_refused_in_words() {
    let mut machine = machine();
    let good = tenant(machine.as_ref(), Op::St, Pattern::Sequential, Bytes::mib(1));
    let wrong = [
        (
            good.clone()
                .with_stream(|s| s.reads = reads(0, 1, Dataflow::Apart)),
            "must have both",
        ),
        (
            good.clone()
                .with_stream(|s| s.reads = reads(u32::MAX, u32::MAX, Dataflow::Apart)),
            "too small",
        ),
        (
            good.clone()
                .with_stream(|s| s.reads = reads(1, 1, Dataflow::Triad)),
            "triad reads 2 for 1",
        ),
        (
            good.clone().with_stream(|s| {
                s.op = Op::Ld;
                s.pattern = CHASE;
                s.reads = reads(1, 1, Dataflow::Apart);
            }),
            "no other lines",
        ),
        (
            good.clone().with_stream(|s| s.pause = Nanos(f64::NAN)),
            "pause",
        ),
        (good.clone().with_stream(|s| s.pause = Nanos(-1.0)), "pause"),
        (
            good.clone().with_stream(|s| {
                s.op = Op::Cas;
                s.pattern = Pattern::SharedLine;
            }),
            "two cores",
        ),
        (
            Tenant {
                cores: machine.topology().cores.clone(),
                ..good.clone()
            }
            .with_stream(|s| s.pattern = Pattern::SharedLine),
            "by cas",
        ),
        (
            good.clone().with_stream(|s| {
                s.reads = Some(Reads {
                    from: Placement::Bind(TierName::cxl(9)),
                    ..reads(1, 1, Dataflow::Copy).unwrap()
                })
            }),
            "no tier `cxl9`",
        ),
    ];
    for (tenant, expected) in wrong {
        let error = machine.start(&[tenant]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    machine.start(&[good]).unwrap();
    machine.stop().unwrap();
}

#[test]
fn tenants_of_storage_are_refused_what_they_cannot_do() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let options = Options {
        storage: Some(Wish::at(folder.path())),
        ..Options::default()
    };
    let testbed = match LinuxTestbed::new(Root::live(), options) {
        Ok(testbed) => testbed,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let mut machine = testbed.open(1).unwrap();
    let ssd = TierName::ssd(0);
    let pattern = Pattern::Requests {
        bytes: Bytes::kib(4),
        depth: 16,
        buffered: false,
    };
    let cores = machine.topology().cores[..1].to_vec();
    let on = |tier: &TierName, op, pattern, bytes| Tenant {
        cores: cores.clone(),
        ..Tenant::on_first_cores(op, pattern, tier, 1, bytes)
    };
    let set = Bytes::mib(1);
    let reads = on(&ssd, Op::RandRead, pattern, set);
    let other = Tenant {
        name: "other".into(),
        ..on(&TierName::dram(), Op::Ld, Pattern::Sequential, set)
    };
    let pausing = reads.clone().with_stream(|s| s.pause = Nanos(100.0));
    for (tenants, said) in [
        (vec![reads.clone(), other], "already uses"),
        (vec![pausing], "cannot pause"),
        (
            vec![on(&ssd, Op::Ld, Pattern::Sequential, set)],
            "is a storage device",
        ),
        (
            vec![on(&ssd, Op::RandRead, Pattern::Sequential, set)],
            "put requests to",
        ),
        (
            vec![on(&TierName::dram(), Op::RandRead, pattern, set)],
            "takes no requests",
        ),
        (
            vec![on(&ssd, Op::RandRead, pattern, Bytes(64))],
            "whole sectors",
        ),
    ] {
        let error = machine.start(&tenants).unwrap_err();
        assert!(matches!(error, MachineError::Request(_)), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    // Without named storage, the capability is missing.
    let plain = LinuxTestbed::new(Root::live(), Options::default()).unwrap();
    let error = plain.open(1).unwrap().start(&[reads]).unwrap_err();
    assert!(matches!(error, MachineError::Missing { .. }), "{error}");
}
