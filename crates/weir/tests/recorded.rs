//! Every verb that reads the system, on every recorded machine, as a process.
//! `WEIR_BLESS=1 cargo test -p weir-linux -p weir recorded` rewrites what they should print.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Done, Place, text};
use unicode_width::UnicodeWidthStr;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-linux/tests/machines")
}

/// Every recorded machine, by name.
fn names() -> Vec<String> {
    let files = fs::read_dir(home()).unwrap();
    let mut names: Vec<String> = files
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".machine")?.to_owned())
        })
        .collect();
    names.sort();
    names
}

/// A place that holds the recording `NAME.machine`.
fn place(name: &str) -> Place {
    let place = Place::new();
    let file = format!("{name}.machine");
    place.file(&file, text(&home().join(&file)));
    place
}

fn on(place: &Place, name: &str, verb: &str, format: &str) -> Done {
    let machine = format!("{name}.machine");
    place.run([verb, "--on", &machine, "--format", format])
}

#[test]
fn every_verb_prints_what_its_golden_file_says() {
    assert!(names().len() >= 6);
    for name in names() {
        let place = place(&name);
        for verb in ["topo", "doctor"] {
            let done = on(&place, &name, verb, "table").expect(0);
            let golden = home().join("golden").join(format!("{name}.{verb}.txt"));
            if std::env::var_os("WEIR_BLESS").is_some() {
                fs::write(&golden, done.out()).unwrap();
            }
            let expected = fs::read_to_string(&golden).unwrap_or_default();
            let found = done.out();
            assert!(
                found == expected,
                "{verb} {name}:\n{found}\n-- instead of:\n{expected}"
            );
            // A command is one line, to be pasted.
            let lines = found.lines().filter(|line| !line.contains("mend:"));
            for line in lines {
                assert!(line.width() <= 80, "{verb} {name}: {line}");
            }
        }
    }
}

/// Node 2 is 14 from the first socket and 24 from the second one.
#[test]
fn a_node_is_as_far_as_from_the_nearest_processors() {
    let place = place("spr2s-cxl");
    let document = on(&place, "spr2s-cxl", "topo", "json").expect(0).json();
    let distance = |node: usize| document["nodes"][node]["distance"].clone();
    assert_eq!([0, 1, 2].map(distance), [10, 10, 14]);
}

#[test]
fn every_verb_prints_a_document_of_every_machine() {
    for name in names() {
        let place = place(&name);
        for verb in ["topo", "doctor"] {
            let document = on(&place, &name, verb, "json").expect(0).json();
            assert_eq!(document["schema"], format!("weir/{verb}/1"), "{name}");
            assert_eq!(document["machine"]["name"], format!("{name}.machine"));
            let rows = on(&place, &name, verb, "csv").expect(0).out();
            assert!(rows.lines().count() >= 1, "{name}");
        }
    }
}

#[test]
fn a_recording_is_measured_by_no_verb() {
    let place = place("spr2s-cxl");
    for verb in [
        &["bench", "latency"][..],
        &["bench", "bandwidth"],
        &["tour"],
    ] {
        let arguments = [verb, &["--on", "spr2s-cxl.machine"]].concat();
        place.run(&arguments).refuses(
            2,
            &["spr2s-cxl.machine", "recorded machine", "nothing runs"],
        );
    }
    (place.run("explain chase --on spr2s-cxl.machine"))
        .refuses(2, &["spr2s-cxl.machine is a recorded machine"]);
}

#[test]
fn a_name_of_this_host_that_is_none_is_refused() {
    let place = Place::new();
    for verb in ["topo", "doctor", "bench latency"] {
        (place.run(format!("{verb} --on host@4kk").as_str()))
            .refuses(2, &["host@4kk", "host@4k, host@2m"]);
    }
}

#[test]
fn a_file_that_is_no_recording_is_refused_with_its_line() {
    let place = Place::new();
    place.file("old.machine", "weir/machine/0\nend\n");
    place.file(
        "cut.machine",
        "weir/machine/1\n/proc/cpuinfo <<\nmodel name",
    );
    place.file("bytes.machine", b"weir/machine/1\n\xff\xfe\n");
    fs::create_dir(place.path("folder.machine")).unwrap();
    for verb in ["topo", "doctor"] {
        for (file, words) in [
            (
                "old.machine",
                &["old.machine:1:", "weir/machine/0", "weir/machine/1"][..],
            ),
            ("cut.machine", &["cut.machine:2:", "cut"]),
            ("bytes.machine", &["bytes.machine:2:", "UTF-8"]),
            ("folder.machine", &["folder.machine", "not a file"]),
            ("gone.machine", &["gone.machine", "No such file"]),
        ] {
            place.run([verb, "--on", file]).refuses(2, words);
        }
    }
}

#[test]
fn doctor_looks_at_no_model() {
    Place::new()
        .run("doctor --on emr2s+cxl-a")
        .refuses(2, &["emr2s+cxl-a", "model"]);
}

#[test]
fn this_machine_is_recorded_once_and_read_back() {
    let place = Place::new();
    let done = place.run("doctor --record here.machine").expect(0);
    assert!(done.out().contains("here.machine holds"), "{}", done.out());
    assert!(done.out().contains("scrubbed"), "{}", done.out());
    let tiers = |on: &str| {
        let document = place
            .run(["topo", "--on", on, "--format", "json"])
            .expect(0)
            .json();
        (
            document["topology"].clone(),
            document["capabilities"].clone(),
        )
    };
    assert_eq!(tiers("here.machine"), tiers("host"));

    let before = text(&place.path("here.machine"));
    place
        .run("doctor --record here.machine")
        .refuses(2, &["here.machine", "exists"]);
    assert_eq!(text(&place.path("here.machine")), before);
    place
        .run("doctor --record here.txt")
        .refuses(2, &["here.machine"]);
    place
        .run("doctor --record no/such/folder.machine")
        .refuses(2, &["no/such/folder.machine"]);
}
