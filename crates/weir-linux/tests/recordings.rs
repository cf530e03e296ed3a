//! Recordings: what is refused and where, that a recording gives the same results as its machine, and what
//! the doctor says of the stored ones.

mod machines;

use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_linux::recording::{self, SCHEMA};
use weir_linux::{Root, doctor, topology};
use weir_model::diagnosis::{Diagnosis, Severity};

fn diagnose(root: &Root) -> Diagnosis {
    doctor::examine(root, &topology::discover(root))
}

/// Everything that topo and doctor say of a machine.
fn said(root: &Root) -> (String, String, Vec<String>, Diagnosis) {
    let view = topology::discover(root);
    (
        format!("{:?}", view.topology()),
        format!("{:?}", view.capabilities()),
        view.warnings(),
        doctor::examine(root, &view),
    )
}

fn parse_error(text: &str) -> String {
    recording::parse("a.machine", text).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_named_with_file_and_line() {
    for (text, place, words) in [
        ("", "a.machine:1:", "starts with the line"),
        ("weir/machine/2\nend\n", "a.machine:1:", "weir/machine/2"),
        ("#!/bin/sh\n", "a.machine:1:", "#!/bin/sh"),
        ("weir/machine/1\n/a: 1\n", "a.machine:2:", "was cut"),
        ("weir/machine/1\n/a <<\n1\n", "a.machine:2:", "no `>>`"),
        ("weir/machine/1\n\nwhat\nend\n", "a.machine:3:", "no entry"),
        ("weir/machine/1\na: 1\nend\n", "a.machine:2:", "whole path"),
        (
            "weir/machine/1\n/../a: 1\nend\n",
            "a.machine:2:",
            "whole path",
        ),
        (
            "weir/machine/1\n/a -> b\nend\n",
            "a.machine:2:",
            "whole path",
        ),
        ("weir/machine/1\n/a[0-: 1\nend\n", "a.machine:2:", "bracket"),
        ("weir/machine/1\n/a[3-1]: 1\nend\n", "a.machine:2:", "3-1"),
        (
            "weir/machine/1\n/a: 1\n/a: 2\nend\n",
            "a.machine:3:",
            "already exists",
        ),
        (
            "weir/machine/1\n/a: 1\n/a/b: 2\nend\n",
            "a.machine:3:",
            "not a folder",
        ),
        (
            "weir/machine/1\nend\n/a: 1\n",
            "a.machine:3:",
            "behind `end`",
        ),
        (
            "weir/machine/1\n/a[0-60000]/b[0-60000]: 1\nend\n",
            "a.machine:2:",
            "entries",
        ),
    ] {
        let error = parse_error(text);
        assert!(error.starts_with(place) && error.contains(words), "{error}");
    }
}

#[test]
fn a_recording_that_was_cut_anywhere_is_refused() {
    for name in machines::names() {
        let text = std::fs::read_to_string(machines::file(&name)).unwrap();
        for (at, _) in text.trim_end().match_indices('\n') {
            assert!(
                recording::parse(&name, &text[..at]).is_err(),
                "{name}: {at}"
            );
        }
    }
}

#[test]
fn a_recording_is_read_as_the_machine_that_it_was_made_from() {
    for name in machines::names() {
        let root = machines::root(&name);
        let made = recording::make(&root, &["a note".to_owned()]);
        let again = Root::recorded(recording::parse(&name, &made.text).unwrap());
        assert_eq!(said(&again), said(&root), "{name}");
        // A recording of a recording changes nothing more.
        let second = recording::make(&again, &["a note".to_owned()]);
        assert_eq!(second.text, made.text, "{name}");
    }
}

#[test]
fn this_machine_is_read_from_its_recording_as_it_is() {
    let live = Root::live();
    let made = recording::make(&live, &[]);
    let recorded = Root::recorded(recording::parse("live", &made.text).unwrap());
    let (here, there) = (said(&live), said(&recorded));
    assert_eq!((here.0, here.1, here.2), (there.0, there.1, there.2));
    // Other programs start and end in the meantime.
    let steady = |d: Diagnosis| {
        let name = |rule: &String| rule != "other_load";
        let findings = d.findings.into_iter().filter(|f| f.rule != "other_load");
        let fine: Vec<String> = d.fine.into_iter().filter(name).collect();
        (findings.collect::<Vec<_>>(), fine, d.unknown)
    };
    assert_eq!(steady(here.3), steady(there.3));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    assert!(
        host.len() < 4 || host == "localhost" || !made.text.contains(host),
        "{}",
        made.text
    );
    assert!(!made.text.contains("Uid:"));
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = doctor::rules::RULES.iter().map(|r| r.name).collect();
    assert_eq!(names.len(), doctor::rules::RULES.len());
    assert!(doctor::rules::RULES.iter().all(|r| !r.about.is_empty()));
}

#[test]
fn every_rule_answers_and_every_finding_says_what_it_saw_and_what_to_do() {
    for name in machines::names() {
        let diagnosis = diagnose(&machines::root(&name));
        let mut answered: BTreeSet<&str> = diagnosis.fine.iter().map(String::as_str).collect();
        answered.extend(diagnosis.unknown.iter().map(|u| u.rule.as_str()));
        answered.extend(diagnosis.findings.iter().map(|f| f.rule.as_str()));
        assert_eq!(answered.len(), doctor::rules::RULES.len(), "{name}");
        assert!(
            diagnosis.findings.is_sorted_by_key(|f| f.severity),
            "{name}"
        );
        for finding in &diagnosis.findings {
            assert!(!finding.evidence.is_empty(), "{name}: {finding:?}");
            assert!(!finding.effect.is_empty(), "{name}: {finding:?}");
            let helps = !finding.commands.is_empty() || !finding.advice.is_empty();
            assert!(helps, "{name}: {finding:?}");
        }
    }
}

#[test]
fn the_doctor_finds_what_each_machine_was_made_to_show() {
    for (name, expected) in [
        (
            "emr2s",
            &[
                "smt",
                "governor",
                "turbo",
                "uncore_clock",
                "deep_idle",
                "huge_pages",
                "numa_balancing",
                "swap",
                "nmi_watchdog",
                "counters",
                "registers",
                "nice",
                "resctrl",
            ][..],
        ),
        (
            "genoa-cxl",
            &[
                "one_memory_tier",
                "not_movable",
                "cxl_link",
                "auto_online",
                "demotion",
                "promotion",
                "weighted_interleave",
            ],
        ),
        (
            "cxl-guest",
            &[
                "emulated_cxl",
                "virtual_machine",
                "invariant_tsc",
                "demotion",
            ],
        ),
        ("firmware-cxl", &["confinement", "huge_pages"]),
        ("zen4-guest", &["virtual_machine"]),
    ] {
        let diagnosis = diagnose(&machines::root(name));
        let found: Vec<&str> = diagnosis.findings.iter().map(|f| f.rule.as_str()).collect();
        for rule in expected {
            assert!(found.contains(rule), "{name}: {rule} is not in {found:?}");
        }
    }
    let well = diagnose(&machines::root("turin-2xcxl"));
    let bad = well
        .findings
        .iter()
        .filter(|f| f.severity < Severity::Minor);
    assert_eq!(bad.count(), 0, "{:?}", well.findings);
}

/// From devdax mode, from no region and from offline blocks, one command leads back.
#[test]
fn memory_that_cannot_be_used_has_its_command() {
    let commands = |changes: &[(&str, &str)]| {
        let text = std::fs::read_to_string(machines::file("turin-2xcxl")).unwrap();
        let mut text = text;
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        let root = Root::recorded(recording::parse("changed", &text).unwrap());
        let findings = diagnose(&root).findings.into_iter();
        findings.flat_map(|f| f.commands).collect::<Vec<String>>()
    };
    let devdax = commands(&[
        (
            "dax1.0/driver -> /sys/bus/dax/drivers/kmem",
            "dax1.0/driver -> /sys/bus/dax/drivers/device_dax",
        ),
        (
            "/sys/bus/dax/drivers/kmem/",
            "/sys/bus/dax/drivers/kmem/\n/sys/bus/dax/drivers/device_dax/",
        ),
    ]);
    assert!(
        devdax.contains(&"daxctl reconfigure-device --mode=system-ram dax1.0".to_owned()),
        "{devdax:?}"
    );
    let offline = commands(&[(
        "memory[864-927]/state: online",
        "memory[864-927]/state: offline",
    )]);
    assert!(
        offline.iter().any(|c| c.contains("node2/memory*")),
        "{offline:?}"
    );
    let alone = commands(&[("region1/target0: decoder4.0", "region1/target0: decoder9.0")]);
    assert!(
        alone
            .iter()
            .any(|c| c.starts_with("cxl create-region -m -t ram") && c.ends_with("mem1")),
        "{alone:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_too_odd_to_refuse(text in "(?s).{0,400}") {
        let _ = recording::parse("x", &text);
        let _ = recording::parse("x", &format!("{SCHEMA}\n{text}\nend\n"));
    }

    /// Lines of the format, with anything in their places.
    #[test]
    fn no_entry_is_too_odd_to_refuse(
        lines in proptest::collection::vec("/[a-z\\[\\]0-9,/{}+-]{0,20}(: | -> /| ! | <<|/|:).{0,20}", 0..12)
    ) {
        let text = format!("{SCHEMA}\n{}\nend\n", lines.join("\n"));
        if let Ok(tree) = recording::parse("x", &text) {
            let _ = diagnose(&Root::recorded(tree));
        }
    }

    /// One file of a machine with every kind of tier is replaced by anything: the doctor goes on.
    #[test]
    fn a_broken_file_silences_no_other_rule(entry in 0usize..10_000, junk in ".{0,60}") {
        let mut tree = machines::tree("genoa-cxl");
        let files = tree.files();
        tree.set(&files[entry % files.len()], &junk);
        let diagnosis = diagnose(&Root::recorded(tree));
        prop_assert!(diagnosis.unknown.len() <= 3, "{:?}", diagnosis.unknown);
    }
}
