//! Ten mistakes in the order of stores, and the same programs without them. In each file a line that begins with `- ` is the
//! mistake's, and one with `+ ` the mended program's.

use std::convert::Infallible;

use weir_persist::checker::{Limits, Tally, allow};
use weir_persist::{Answer, Checker, CounterExample, Platform, Reader, Recovered};

fn check(name: &str, mended: bool, platform: Platform) -> Option<CounterExample> {
    check_changed(name, mended, platform, |line| line.to_owned())
}

/// The same with each line of the trace changed.
fn check_changed(
    name: &str,
    mended: bool,
    platform: Platform,
    change: impl Fn(&str) -> String,
) -> Option<CounterExample> {
    let file = format!("{}/tests/bugs/{name}.trace", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap();
    let (own, other) = if mended { ("+ ", "- ") } else { ("- ", "+ ") };
    let kept: String = (text.lines())
        .filter(|line| !line.starts_with(other))
        .map(|line| format!("{}\n", change(line.strip_prefix(own).unwrap_or(line))))
        .collect();
    let mut reader = Reader::new(kept.as_bytes());
    let mut checker = Checker::new(platform, Limits::default(), allow);
    while let Some((place, event)) = reader.next_event().unwrap() {
        checker.event(&place, &event).unwrap();
    }
    checker.finish().unwrap();
    assert_eq!(checker.tally().cut_short, 0, "{name}");
    checker.found().cloned()
}

/// The mistake's platform, the event before the crash, and the stores that are missing.
const BUGS: [(&str, Platform, &str, &[&str]); 10] = [
    (
        "missing_flush",
        Platform::Adr,
        "publish flag",
        &["write data"],
    ),
    (
        "missing_fence",
        Platform::Adr,
        "publish flag",
        &["write data"],
    ),
    ("pointer_before_data", Platform::Eadr, "set pointer", &[]),
    ("torn_record", Platform::Adr, "write first half", &[]),
    (
        "lost_log_tail",
        Platform::Adr,
        "update value",
        &["log old value"],
    ),
    (
        "ownership_aba",
        Platform::SharedPool,
        "write first half again",
        &["take again"],
    ),
    ("short_flush", Platform::Adr, "publish flag", &["write end"]),
    ("one_epoch", Platform::Adr, "set commit", &["write data"]),
    (
        "allocator_before_link",
        Platform::Adr,
        "advance head",
        &["write link"],
    ),
    (
        "unfenced_stream",
        Platform::Eadr,
        "raise count",
        &["write entry"],
    ),
];

#[test]
fn each_mistake_has_its_shortest_trace_and_no_mended_program_one() {
    for (name, platform, after, missing) in BUGS {
        let found = check(name, false, platform).unwrap_or_else(|| panic!("{name} is not found"));
        let lost: Vec<String> = (found.stores.iter())
            .filter(|store| !store.arrived)
            .map(|store| store.place.to_string())
            .collect();
        assert_eq!(
            (found.after.to_string().as_str(), lost),
            (after, missing.iter().map(|one| one.to_string()).collect()),
            "{name}: {found:?}"
        );
        assert_eq!(check(name, true, platform), None, "{name}, mended");
    }
}

#[test]
fn kept_caches_hide_mistakes_of_flushes_alone() {
    let hidden = |name: &str| check(name, false, Platform::Eadr).is_none();
    let shown: Vec<&str> = (BUGS.iter().map(|bug| bug.0))
        .filter(|name| !hidden(name))
        .collect();
    assert_eq!(
        shown,
        ["pointer_before_data", "torn_record", "unfenced_stream"]
    );
}

#[test]
fn what_a_device_buffers_is_kept_once_it_is_synchronised() {
    for (name, ..) in BUGS.iter().filter(|bug| bug.1 == Platform::Adr) {
        // Fences ensure nothing there, so that the mended program is wrong too.
        assert!(
            check(name, true, Platform::DeviceBuffer).is_some(),
            "{name}"
        );
        let pool = std::cell::Cell::new(0);
        let synchronised = |line: &str| {
            if let Some(bytes) = line.strip_prefix("pool ") {
                pool.set(bytes.parse().unwrap());
            }
            match line.strip_prefix("fence") {
                Some(rest) => format!("sync 0 {}{rest}", pool.get()),
                None => line.to_owned(),
            }
        };
        let found = check_changed(name, true, Platform::DeviceBuffer, synchronised);
        assert_eq!(found, None, "{name}");
    }
}

/// Follows the events of a trace, with the bytes from 192 to 247 left out.
fn follow(
    platform: Platform,
    states: usize,
    events: &str,
    check: impl FnMut(&mut Recovered<'_>) -> Result<Answer, Infallible>,
) -> (Tally, Option<CounterExample>) {
    let text = format!("weir-persist 1\npool 256\n{events}");
    let mut reader = Reader::new(text.as_bytes());
    let mut checker = Checker::new(platform, Limits { states }, check);
    checker.leave_out(192..248);
    while let Some((place, event)) = reader.next_event().unwrap() {
        checker.event(&place, &event).unwrap();
    }
    checker.finish().unwrap();
    (checker.tally(), checker.found().cloned())
}

#[test]
fn a_counter_example_has_the_fewest_missing_stores_its_host_and_the_last_mark() {
    let two_lines = "by 0\nmark begun\nstore 0 01\nflush 0\nfence\nmark written\nby 1\n\
                     store 56 01010101010101010101010101010101\nstore 128 01\n\
                     require whole 128=01 -> 56=01010101010101010101010101010101\n";
    let (_, found) = follow(Platform::SharedPool, 64, two_lines, allow);
    let found = found.unwrap();
    assert_eq!((found.missing(), found.host), (1, Some(1)));
    assert_eq!(found.mark, "written");
    // What was required is not any more.
    let forgotten =
        "require same 0=00\nrequire same 0=00|01\nstore 0 01\nforget same\nstore 0 02\n";
    assert_eq!(follow(Platform::Adr, 64, forgotten, allow).1, None);
}

#[test]
fn states_are_counted_up_to_the_limits_and_what_is_left_out_is_said() {
    let counted = |states, events: &str, answer: Answer| {
        let (tally, _) = follow(Platform::Adr, states, events, |state| {
            state.image();
            Ok(answer.clone())
        });
        (tally.states, tally.unchecked, tally.cut_short)
    };
    let two_lines = "store 0 01\nstore 64 01\n";
    assert_eq!(counted(4, two_lines, Answer::Unchecked), (4, 4, 0));
    assert_eq!(counted(3, two_lines, Answer::Legal), (3, 0, 1));
    let one_line = "store 0 01\nstore 0 02\n";
    assert_eq!(counted(3, one_line, Answer::Legal), (3, 0, 0));
    assert_eq!(counted(2, one_line, Answer::Legal), (2, 0, 1));
    // Of very many stores to a line the oldest are taken to have arrived.
    let many: String = (1..=129).map(|n| format!("store 0 {n:02x}\n")).collect();
    assert_eq!(counted(4096, &many, Answer::Legal), (129, 0, 1));
    // What is left out always arrives; a store that begins before it, or ends behind it, may be missing.
    assert_eq!(counted(64, "store 192 01\n", Answer::Legal).0, 1);
    for at in [188, 244] {
        let store = format!("store {at} 0101010101010101\n");
        assert_eq!(counted(64, &store, Answer::Legal).0, 4);
    }
}
