//! `docs/counters.md` agrees with the table of events of every microarchitecture.
//!
//! `WEIR_UPDATE_GOLDEN=1 cargo test -p weir-model --test counters_page` updates its table.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use weir_model::counters::Counter;
use weir_model::events::{Confidence, EventLibrary, Rule};

#[test]
fn the_table_on_the_page_is_that_of_the_events() {
    let library = EventLibrary::builtin();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/counters.md");
    let before = fs::read_to_string(&path).unwrap();
    let mut table = String::from("| counter |");
    for events in library.tables() {
        let _ = write!(table, " {} |", events.short[0]);
    }
    table += "\n|---|";
    table += &"---|".repeat(library.tables().len());
    table.push('\n');
    for &counter in Counter::ALL.iter().filter(|counter| counter.is_event()) {
        let _ = write!(table, "| `{counter}` |");
        for events in library.tables() {
            let mark = match &events.rules[&counter] {
                Rule::Counted(rule) if rule.confidence == Confidence::High => "yes",
                Rule::Counted(rule) if rule.confidence == Confidence::Medium => "(yes)",
                Rule::Counted(_) => "((yes))",
                Rule::Missing(_) => "-",
            };
            let _ = write!(table, " {mark} |");
        }
        table.push('\n');
    }
    let (head, end) = ("<!-- counters -->\n", "<!-- end -->");
    let start = before.find(head).unwrap() + head.len();
    let length = before[start..].find(end).unwrap();
    let mut after = before.clone();
    after.replace_range(start..start + length, &table);
    if std::env::var_os("WEIR_UPDATE_GOLDEN").is_some() {
        fs::write(path, after).unwrap();
    } else {
        assert!(
            after == before,
            "docs/counters.md is not up to date; \
             WEIR_UPDATE_GOLDEN=1 cargo test -p weir-model --test counters_page updates it"
        );
    }
}

/// The example on the page is a table that lacks most counters, and nothing else.
#[test]
fn the_example_on_the_page_is_read() {
    let page = include_str!("../../../docs/counters.md");
    let example = page.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let mistakes = EventLibrary::check("example.toml", example).unwrap_err();
    for mistake in &mistakes.shown {
        assert!(
            mistake.message.starts_with("there is no entry for"),
            "{mistake}"
        );
    }
}
