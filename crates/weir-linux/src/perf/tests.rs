//! What the kernel of this machine counts, and what it refuses.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use proptest::prelude::*;
use weir_model::counters::{Counter, CounterSet, RunningShare};
use weir_model::events::EventLibrary;

use super::command::Work;
use super::event::Reading;
use super::format::Format;
use super::session::scaled;
use super::{Session, Target, command, table};
use crate::recording::Tree;
use crate::root::Root;

const KERNELS: [Counter; 4] = [
    Counter::TaskClock,
    Counter::PageFaults,
    Counter::ContextSwitches,
    Counter::CpuMigrations,
];

fn count(words: &[&str], every: Option<Duration>) -> (command::Counted, CounterSet) {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .stdout(std::process::Stdio::null());
    let root = Root::live();
    let work = Work::Command(Box::new(command), None, &|| false);
    let counted = command::run(&root, None, &KERNELS, &[Target::Children], every, work).unwrap();
    let set = Session::counters(None, &counted.total, false);
    (counted, set)
}

/// Whether the kernel allows this user to count; otherwise only its message is tested.
fn may_count(set: &CounterSet) -> bool {
    match set.get(Counter::PageFaults) {
        Ok(_) => true,
        Err(why) => {
            assert!(why.reason.contains("perf"), "{why}");
            false
        }
    }
}

#[test]
fn a_command_is_counted_with_its_children_and_without_us() {
    let (_, one) = count(&["sh", "-c", "true"], None);
    if !may_count(&one) {
        return;
    }
    // Programs that the command starts fault their pages in too.
    let (counted, many) = count(
        &["sh", "-c", "/bin/true; /bin/true; /bin/true; /bin/true"],
        None,
    );
    let faults = |set: &CounterSet| set.get(Counter::PageFaults).unwrap();
    assert!(faults(&one) > 10, "{}", faults(&one));
    assert!(
        faults(&many) > 2 * faults(&one),
        "{} and {}",
        faults(&one),
        faults(&many)
    );
    assert!(counted.status.is_some_and(|status| status.success()));
    // On a processor for no longer than it lasted, on every processor of the machine.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let clock = many.get(Counter::TaskClock).unwrap() as f64;
    assert!(clock > 0.0 && clock <= counted.elapsed.get() * cpus);
}

#[test]
fn intervals_add_up_to_the_total() {
    let words = [
        "sh",
        "-c",
        "for i in 1 2 3 4 5 6; do /bin/true; sleep 0.01; done",
    ];
    let (counted, total) = count(&words, Some(Duration::from_millis(20)));
    if !may_count(&total) {
        return;
    }
    assert!(counted.intervals.len() > 1);
    let parts = counted.intervals.iter().map(|(_, amounts)| {
        let set = Session::counters(None, amounts, false);
        set.get(Counter::PageFaults).unwrap_or(0)
    });
    assert_eq!(parts.sum::<u64>(), total.get(Counter::PageFaults).unwrap());
    assert!(counted.intervals.is_sorted_by_key(|(end, _)| end.get()));
}

#[test]
fn a_command_that_fails_is_counted_and_its_status_kept() {
    let (counted, _) = count(&["sh", "-c", "exit 7"], None);
    assert_eq!(counted.status.and_then(|s| s.code()), Some(7));
    let nothing = Command::new("/nowhere/to/be/found");
    assert!(
        command::run(
            &Root::live(),
            None,
            &KERNELS,
            &[Target::Children],
            None,
            Work::Command(Box::new(nothing), None, &|| false)
        )
        .is_err()
    );
}

#[test]
fn a_process_is_watched_until_it_ends_or_nobody_cares() {
    let watch = |pid: u32, enough: &dyn Fn() -> bool| {
        let targets = [Target::Task(pid)];
        let work = Work::Process(pid, enough);
        command::run(&Root::live(), None, &KERNELS, &targets, None, work).unwrap()
    };
    let mut short = Command::new("sleep").arg("0.05").spawn().unwrap();
    // It ends without a waiting parent, and remains as an ended process.
    let seen = watch(short.id(), &|| false);
    assert!(seen.status.is_none() && seen.elapsed.get() > 0.0);
    short.wait().unwrap();
    let mut long = Command::new("sleep").arg("30").spawn().unwrap();
    watch(long.id(), &|| true);
    assert!(long.try_wait().unwrap().is_none());
    long.kill().unwrap();
    long.wait().unwrap();
}

#[test]
fn a_task_by_its_number_is_counted_from_now_on() {
    let mut child = Command::new("sleep").arg("30").spawn().unwrap();
    let mut session = Session::open(&Root::live(), None, &KERNELS, &[Target::Task(child.id())]);
    let amounts = session.total();
    child.kill().unwrap();
    child.wait().unwrap();
    let set = Session::counters(None, &amounts, false);
    // It sleeps: either it did nothing yet, which is a reason, or it had a few faults at its start.
    if let Ok(faults) = set.get(Counter::PageFaults) {
        assert!(faults < 1_000, "{faults}");
    }
    let gone = Session::open(
        &Root::live(),
        None,
        &[Counter::PageFaults],
        &[Target::Task(u32::MAX / 2)],
    )
    .total();
    let why = gone["page-faults"].value.clone().unwrap_err();
    assert!(!why.reason.is_empty());
}

/// A machine with counters counts; one without has a reason for each of them, and no zero.
#[test]
fn the_hardwares_counters_have_a_value_or_a_reason() {
    let (root, library) = (Root::live(), EventLibrary::builtin());
    let Ok(table) = table(&root, &library) else {
        return;
    };
    let mut session = Session::open(&root, Some(table), Counter::ALL, &[Target::ThisThread]);
    let work: u64 = (0..200_000_u64).map(std::hint::black_box).sum();
    assert!(work > 0);
    let set = Session::counters(Some(table), &session.total(), true);
    for &counter in Counter::ALL {
        match set.get(counter) {
            Ok(value) => assert!(counter != Counter::Cycles || value > 0),
            Err(why) => {
                assert!(
                    !why.reason.is_empty() && !why.reason.contains("does not count it"),
                    "{counter}: {why}"
                );
            }
        }
    }
}

fn reading(value: u64, enabled: u64, running: u64) -> Reading {
    Reading {
        value,
        enabled,
        running,
    }
}

#[test]
fn a_difference_that_cannot_be_is_a_reason() {
    let (value, _) = scaled(reading(10, 5, 5), reading(9, 6, 6));
    assert!(
        value
            .unwrap_err()
            .contains("negative difference: 9 after 10")
    );
    assert_eq!(scaled(reading(10, 5, 5), reading(10, 5, 5)).0, Ok(None));
    let (never, share) = scaled(reading(0, 0, 0), reading(0, 100, 0));
    assert!(never.unwrap_err().contains("never on a hardware counter"));
    assert_eq!(share, RunningShare(0.0));
}

proptest! {
    /// Scaling keeps the rate: a counter that ran for a share of the time had that share of the
    /// events.
    #[test]
    fn scaling_is_by_the_share(value in 0_u64..1 << 48, running in 1_u64..1 << 40, times in 1_u64..20) {
        let enabled = running * times;
        let (scaled, share) = scaled(Reading::default(), reading(value, enabled, running));
        prop_assert_eq!(scaled, Ok(Some(value * times)));
        prop_assert!((share.get() - 1.0 / times as f64).abs() < 1e-9);
    }

    /// Fields are put where the kernel expects them, and nowhere else; a value that does not fit is refused.
    #[test]
    fn a_field_lies_where_the_kernel_says(low in 0_u32..40, width in 1_u32..24, value in any::<u64>()) {
        let high = low + width - 1;
        let mut tree = Tree::default();
        tree.set("/u/format/event", &format!("config1:{low}-{high}"));
        let format = Format::of(&Root::recorded(tree), "/u").unwrap();
        let fields = BTreeMap::from([("event".to_owned(), value)]);
        match format.encode(9, &fields) {
            Ok(encoded) => {
                prop_assert_eq!(encoded.config, [0, value << low, 0]);
                prop_assert!(value < 1 << width);
            }
            Err(_) => prop_assert!(value >= 1 << width),
        }
    }

    #[test]
    fn garbage_in_a_format_is_no_field(text in "\\PC{0,24}") {
        let mut tree = Tree::default();
        tree.set("/u/format/event", &text);
        if let Ok(format) = Format::of(&Root::recorded(tree), "/u") {
            let _ = format.encode(0, &BTreeMap::from([("event".to_owned(), 1)]));
        }
    }
}
