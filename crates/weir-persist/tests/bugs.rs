//! Ten mistakes in the order of stores, and the same programs without them. In each file a line that begins with `- ` is the
//! mistake's, and one with `+ ` the mended program's.

use weir_persist::checker::{Limits, allow};
use weir_persist::{Checker, CounterExample, Platform, Reader};

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
