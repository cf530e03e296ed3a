//! Registers and resctrl groups of a measurement, which is killed at any step: its journal restores them.

use super::actuators::allocation::{self, Own, Owner};
use super::fake::{Life, Machine, Paper, differences};
use super::journalled_writes::JournalledWrites;
use super::not_put_back::{Cause, NotPutBack};
use super::replay::Restored;
use super::settings::SystemSettings;
use crate::prefetch::tests::{processor, registers, value};
use crate::prefetch::{Running, Switches};

const MSR: u32 = 0x1a4;
const THREAD: u32 = 401;

/// A machine with registers of two processors, and a thread of the measurement in a group of another program.
fn machine() -> Machine {
    let machine = Machine::new();
    registers(&machine.real("/"), &[0, 1], MSR, 0x20);
    machine.begin(THREAD);
    machine.write("/sys/fs/resctrl/others/tasks", &format!("{THREAD}\n"));
    machine
}

/// The prefetchers are switched twice, and the thread gets a part of the cache.
fn measure(machine: &Machine, paper: &Paper, life: &Life) -> Option<SystemSettings> {
    let root = machine.root(life);
    let (writes, _) = JournalledWrites::on(&root, Box::new(paper.held_by(life))).ok()?;
    let settings = SystemSettings::on(&root, writes);
    let switches = Switches::find(&root, &processor("GenuineIntel"), 0).unwrap();
    let made = settings.write(|access| {
        let own = Own::make(access, Owner::Run, 0)?;
        allocation::ways(access, &own, None, 0xf0)?;
        own.gather(access, &[THREAD])?;
        [true, false]
            .map(|l1| Running { l1, l2: false })
            .into_iter()
            .try_for_each(|wanted| switches.set(access, &[0, 1], wanted))
    });
    made.ok().map(|()| settings)
}

fn restore(machine: &Machine, paper: &Paper) -> Restored {
    let life = Life::default();
    let storage = Box::new(paper.held_by(&life));
    let restored = JournalledWrites::on(&machine.root(&life), storage);
    restored.unwrap().1
}

/// The machine and the journal of a measurement that is killed while it runs.
fn killed() -> (Machine, Paper) {
    let (machine, paper) = (machine(), Paper::default());
    std::mem::forget(measure(&machine, &paper, &Life::default()).unwrap());
    (machine, paper)
}

#[test]
fn a_measurement_may_end_after_or_in_the_middle_of_any_step() {
    let (of_whole, whole) = (machine(), Life::default());
    let before = of_whole.tree();
    let settings = measure(&of_whole, &Paper::default(), &whole).unwrap();
    for cpu in [0, 1] {
        assert_eq!(value(&of_whole.real("/"), cpu, MSR), 0x2f);
    }
    let different = differences(&before, &of_whole.tree());
    assert!(different.iter().any(|one| one.contains("weir-bench-")));
    assert_eq!(settings.restore(), Ok(vec![]));
    assert_eq!(differences(&before, &of_whole.tree()), [""; 0]);
    for step in 0..whole.taken() {
        let (machine, paper) = (machine(), Paper::default());
        let before = machine.tree();
        drop(measure(&machine, &paper, &Life::until(Some(step))));
        let restored = restore(&machine, &paper);
        assert_eq!((restored.not, restored.notes), (vec![], vec![]), "{step}");
        assert_eq!(differences(&before, &machine.tree()), [""; 0], "{step}");
        assert_eq!(restore(&machine, &paper), Restored::default(), "{step}");
    }
}

#[test]
fn a_register_that_another_program_changed_is_left_to_it_and_told() {
    let foreign = |machine: &Machine| registers(&machine.real("/"), &[0], MSR, 0x7);
    let is_told = |not: &[NotPutBack]| {
        let [not] = not else { panic!("{not:?}") };
        assert_eq!(not.path, "/dev/cpu/0/msr:0x1a4");
        assert!(matches!(&not.cause, Cause::Changed { found } if found == "0x7"));
        let said = not.to_string();
        assert!(said.contains("was `0x20`; another program"), "{said}");
    };
    let (machine_killed, paper) = killed();
    foreign(&machine_killed);
    let restored = restore(&machine_killed, &paper);
    assert!(restored.is_whole());
    is_told(&restored.not);
    let machine_ended = machine();
    let settings = measure(&machine_ended, &Paper::default(), &Life::default()).unwrap();
    foreign(&machine_ended);
    is_told(&settings.restore().unwrap());
    for machine in [machine_killed, machine_ended] {
        assert_eq!(value(&machine.real("/"), 0, MSR), 0x7);
        assert_eq!(value(&machine.real("/"), 1, MSR), 0x20);
    }
}

#[test]
fn a_register_without_its_file_stays_in_the_journal() {
    let (machine, paper) = killed();
    let [file, hidden] = ["/dev/cpu/1", "/hidden"].map(|path| machine.real(path));
    std::fs::rename(&file, &hidden).unwrap();
    for _ in 0..2 {
        let restored = restore(&machine, &paper);
        assert!(!restored.is_whole());
        let [not] = &restored.not[..] else {
            panic!("{restored:?}")
        };
        assert!(not.cause.is_refused());
        let said = not.to_string();
        for part in ["/dev/cpu/1/msr:0x1a4", "`0x20`", "modprobe msr"] {
            assert!(said.contains(part), "{said}");
        }
    }
    assert_eq!(value(&machine.real("/"), 0, MSR), 0x20);
    std::fs::rename(&hidden, &file).unwrap();
    let restored = restore(&machine, &paper);
    assert_eq!(restored.put_back, ["/dev/cpu/1/msr:0x1a4"]);
    assert_eq!(value(&machine.real("/"), 1, MSR), 0x20);
}
