//! Actions on streams of this host: each is read back, or is refused with its feature.

use weir_model::access::{Op, Pattern};
use weir_model::region::{DATA, Pages as Wanted, RegionPages};
use weir_model::tenant::{Command, Placement};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Gigahertz};

use super::*;

const SIZE: Bytes = Bytes::mib(8);

fn machine(threads: usize, pattern: Pattern) -> Option<(Box<dyn Machine>, Tenant)> {
    let testbed = LinuxTestbed::new(Root::live(), Options::default()).unwrap();
    let machine = testbed.open(1).unwrap();
    let cores: Vec<u32> = machine
        .topology()
        .cores
        .iter()
        .copied()
        .take(threads)
        .collect();
    let tenant = Tenant {
        name: "a".into(),
        placement: Placement::FirstTouch,
        ..Tenant::on_first_cores(Op::Ld, pattern, &TierName::dram(), 1, SIZE)
    };
    (cores.len() == threads).then_some((machine, Tenant { cores, ..tenant }))
}

fn window(machine: &mut dyn Machine) -> Observation {
    machine.observe(Nanos(20e6)).unwrap()
}

fn data(seen: &Observation) -> &RegionPages {
    let regions = seen.tenants[0].regions.iter();
    regions.into_iter().find(|r| r.region == DATA).unwrap()
}

fn moves(pages: Wanted, from: &TierName, to: &TierName, limit: Option<GbPerSec>) -> Action {
    Action::MovePages {
        tenant: "a".into(),
        pages,
        from: from.clone(),
        to: to.clone(),
        limit,
    }
}

#[test]
fn pages_are_conserved_and_moves_are_read_back() {
    let Some((mut machine, tenant)) = machine(1, Pattern::Sequential) else {
        return;
    };
    machine.start(&[tenant]).unwrap();
    let before = window(machine.as_mut());
    let tiers = machine.topology().tiers.clone();
    let placed: Vec<TierName> = (tiers.iter().filter(|t| t.node.is_some()))
        .map(|t| t.name.clone())
        .collect();
    let move_all = |from: &TierName, to| moves(Wanted::All, from, to, Some(GbPerSec(1.0)));
    let Some((home, others)) = placed.split_first() else {
        // A kernel without nodes refuses to move pages, and says why.
        let refused = machine.act(&move_all(&TierName::dram(), &TierName::dram()));
        assert!(
            matches!(refused, Err(MachineError::Missing { .. })),
            "{refused:?}"
        );
        machine.stop().unwrap();
        return;
    };
    if machine.act(&move_all(home, home)).is_err() {
        machine.stop().unwrap();
        return;
    }
    let still = window(machine.as_mut());
    assert_eq!(data(&before).total(), data(&still).total());
    assert_eq!(data(&still).total(), SIZE);
    assert!(data(&still).tiers.iter().all(|t| t.moved_in == Bytes(0)));
    if let Some(other) = others.first() {
        machine.act(&move_all(home, other)).unwrap();
        let (mut moved, mut time) = (0, 0.0);
        for _ in 0..200 {
            let seen = window(machine.as_mut());
            time += seen.window.get();
            assert_eq!(data(&seen).total(), SIZE);
            moved += data(&seen)
                .tiers
                .iter()
                .map(|t| t.moved_in.get())
                .sum::<u64>();
            // The windows and what is between them.
            assert!(moved as f64 <= 2.0 * time, "{moved} in {time}");
            if data(&seen).resident(other) == SIZE {
                break;
            }
        }
        assert_eq!(moved, SIZE.get());
    }
    machine.stop().unwrap();
}

#[test]
fn an_action_says_what_is_in_force() {
    let Some((mut machine, tenant)) = machine(2, Pattern::Sequential) else {
        return;
    };
    machine.start(&[tenant]).unwrap();
    let cores = |cores| Action::Cores {
        tenant: "a".into(),
        cores,
    };
    for (asked, applied) in [(Some(1), Some(1)), (Some(7), Some(2)), (None, None)] {
        assert_eq!(machine.act(&cores(asked)).unwrap().applied, cores(applied));
        window(machine.as_mut());
    }
    let share = |share| Action::ProcessorTime {
        tenant: "a".into(),
        share,
        period: Nanos(10e6),
    };
    for part in [0.3, 1.0] {
        assert_eq!(machine.act(&share(part)).unwrap().applied, share(part));
        window(machine.as_mut());
    }
    for wrong in [cores(Some(0)), share(0.0), share(f64::NAN), share(1.5)] {
        let error = machine.act(&wrong).unwrap_err();
        assert!(matches!(error, MachineError::Request(_)), "{error}");
    }
    let clock = Action::Clock {
        tenant: "a".into(),
        clock: Some(Gigahertz(1.0)),
    };
    let weights = Action::InterleaveWeights {
        weights: vec![(TierName::dram(), 1)],
    };
    for (action, lacks) in [
        (clock, Feature::ClockControl),
        (weights, Feature::InterleaveWeights),
    ] {
        match machine.act(&action).unwrap_err() {
            MachineError::Missing { feature, reason } => {
                assert_eq!(feature, lacks);
                assert!(reason.contains("journal"), "{reason}");
            }
            other => panic!("{other}"),
        }
    }
    machine.stop().unwrap();
    assert!(machine.act(&cores(None)).is_err());
}

#[test]
fn threads_that_wait_for_each_other_are_not_limited() {
    let Some((mut machine, tenant)) = machine(2, Pattern::SharedLine) else {
        return;
    };
    let tenant = tenant.with_stream(|s| s.op = Op::Cas);
    machine.start(&[tenant]).unwrap();
    let one = Action::Cores {
        tenant: "a".into(),
        cores: Some(1),
    };
    let text = machine.act(&one).unwrap_err().to_string();
    assert!(text.contains("wait"), "{text}");
    machine.stop().unwrap();
}

#[test]
fn settings_of_the_system_are_restored_when_the_run_ends() {
    let journal = tempfile::tempdir().unwrap();
    let options = Options {
        journal: Some(journal.path().to_owned()),
        ..Options::default()
    };
    let testbed = LinuxTestbed::new(Root::live(), options).unwrap();
    let mut machine = testbed.open(1).unwrap();
    let core = machine.topology().cores[0];
    let tier = TierName::dram();
    let tenant = Tenant::on_first_cores(Op::Ld, Pattern::Sequential, &tier, 1, SIZE);
    machine
        .start(&[Tenant {
            name: "a".into(),
            cores: vec![core],
            ..tenant
        }])
        .unwrap();
    let path = format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_max_freq");
    let before = std::fs::read_to_string(&path).ok();
    let clock = |ghz| Action::Clock {
        tenant: "a".into(),
        clock: Some(Gigahertz(ghz)),
    };
    match machine.act(&clock(0.1)) {
        Ok(applied) => assert!(matches!(
            applied.applied,
            Action::Clock { clock: Some(_), .. }
        )),
        Err(MachineError::Missing { feature, .. }) => assert_eq!(feature, Feature::ClockControl),
        Err(other) => panic!("{other}"),
    }
    machine.stop().unwrap();
    assert_eq!(std::fs::read_to_string(&path).ok(), before);
}

#[test]
fn a_command_is_a_tenant_from_its_start_to_the_end_of_the_run() {
    let testbed = LinuxTestbed::new(Root::live(), Options::default()).unwrap();
    let mut machine = testbed.open(1).unwrap();
    let core = machine.topology().cores[0];
    let command = |program: &str| {
        let work = Work::Command(Command {
            program: program.into(),
            arguments: vec!["100".into()],
        });
        Tenant::of_host("a".into(), work, vec![core])
    };
    let error = machine.start(&[command("/does/not/exist")]).unwrap_err();
    assert!(error.to_string().contains("/does/not/exist"), "{error}");
    match machine.start(&[command("sleep")]) {
        Ok(()) => {}
        Err(other) => panic!("{other}"),
    }
    let seen = window(machine.as_mut());
    let process = seen.tenants[0].process.as_ref().unwrap();
    match &process.ran {
        Ok(ran) => assert!(*ran <= seen.window, "{process:?}"),
        // A kernel without control groups of version 2 tells only of its end.
        Err(why) => assert!(why.reason.contains("control groups"), "{why}"),
    }
    assert_eq!(process.ended, None);
    let quota = Action::ProcessorTime {
        tenant: "a".into(),
        share: 0.5,
        period: Nanos(10e6),
    };
    let error = machine.act(&quota).unwrap_err();
    assert!(matches!(error, MachineError::Missing { .. }), "{error}");
    let notes = machine.stop().unwrap();
    let started = notes
        .conditions
        .iter()
        .find(|c| c.contains("a command, pid:"));
    let number = started.and_then(|c| c.rsplit_once(':')).unwrap().1;
    assert!(!std::path::Path::new(&format!("/proc/{number}")).exists());
}

#[test]
fn a_scope_that_names_nothing_is_refused_by_name() {
    let testbed = LinuxTestbed::new(Root::live(), Options::default()).unwrap();
    let mut machine = testbed.open(1).unwrap();
    let work = Work::Scope("cgroup:/there/is/none".parse().unwrap());
    let tenant = Tenant::of_host("a".into(), work, Vec::new());
    let error = machine.start(&[tenant]).unwrap_err();
    let no_groups = matches!(
        error,
        MachineError::Missing {
            feature: Feature::ControlGroups,
            ..
        }
    );
    assert!(
        no_groups || error.to_string().contains("/there/is/none"),
        "{error}"
    );
}
