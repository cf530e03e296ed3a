//! `weir persist record` as a process: what programs do to a pool becomes a trace, and its check finds their mistakes.

use std::io::Read as _;
use std::process::Command;
use std::time::Duration;

use crate::common::{Done, Place, signal, text};

const PROGRAMS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../weir-persist/tests/programs"
);
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../weir-persist/include");

/// Compiles a program of the tests.
fn compiled(place: &Place, name: &str, more: &[&str]) {
    let done = Command::new("cc")
        .args(["-g", "-O1", "-w", "-pthread", "-I", INCLUDE, "-o"])
        .arg(place.path(name))
        .arg(format!("{PROGRAMS}/{name}.c"))
        .args(more)
        .status();
    assert!(done.unwrap().success(), "{name}");
}

/// Whether this host can record; where it cannot, the command has to say so.
fn can_record(place: &Place) -> bool {
    let there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let can = cfg!(target_arch = "x86_64") && there("qemu-x86_64") && there("cc");
    if !can {
        let words = ["persist", "record", "--pool", "p", "-o", "t", "--", "true"];
        place.run(&words[..]).refuses(3, &[]);
    }
    can
}

/// Runs a program with the pool and more words, and records it.
fn record(place: &Place, name: &str, more: &[&str]) -> Done {
    let (program, pool) = (format!("./{name}"), "the.pool");
    let words = ["persist", "record", "--pool", pool, "-o", "x.trace", "--"];
    // Each run begins without a pool.
    let _ = std::fs::remove_file(place.path(pool));
    place.run(&[&words[..], &[&program, pool], more].concat()[..])
}

/// Events of the trace, without their places.
fn events(place: &Place) -> Vec<String> {
    let trace = text(&place.path("x.trace"));
    let events = trace.lines().skip(2).filter(|line| !line.starts_with('#'));
    events
        .map(|line| line.split(" @").next().unwrap_or_default().to_owned())
        .collect()
}

/// The line of a program that has a comment.
fn line(name: &str, comment: &str) -> String {
    let source = std::fs::read_to_string(format!("{PROGRAMS}/{name}.c")).unwrap();
    let comment = format!("/* {comment} */");
    let at = source.lines().position(|line| line.contains(&comment));
    format!("{name}.c:{}", at.unwrap() + 1)
}

#[test]
fn mistakes_of_recorded_programs_are_found_with_their_lines_and_mended_ones_are_consistent() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    for (name, after, without) in [
        ("missing_flush", "flag", Some("data")),
        ("reordered_publish", "link", None),
        ("torn_record", "first half", None),
    ] {
        compiled(&place, name, &[]);
        record(&place, name, &[]).expect(0);
        let first = text(&place.path("x.trace"));
        record(&place, name, &[]).expect(0);
        assert_eq!(first, text(&place.path("x.trace")), "{name}");
        let found = place.run("persist check x.trace --format json").expect(4);
        let found = found.json();
        assert_eq!(found["crash_after"], line(name, after).as_str(), "{name}");
        let stores = found["stores"].as_array().unwrap().iter();
        let missing = stores.filter(|store| store["arrived"] == false);
        let missing: Vec<&str> = missing
            .map(|store| store["store"].as_str().unwrap())
            .collect();
        let wanted: Vec<String> = without.iter().map(|comment| line(name, comment)).collect();
        assert_eq!(missing, wanted, "{name}");
        compiled(&place, name, &["-DMENDED"]);
        record(&place, name, &[]).expect(0);
        place.run("persist check x.trace").expect(0);
    }
}

#[test]
fn each_kind_of_instruction_is_one_event_with_its_bytes() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    compiled(&place, "cases", &[]);
    record(&place, "cases", &["instructions"]).expect(0);
    let bytes = |byte: &str, count: usize| byte.repeat(count);
    let wanted = [
        format!("store 60 {}", bytes("01", 32)),
        format!("store 128 {}", bytes("02", 16)),
        "nt-store 192 0300000000000000".into(),
        format!("nt-store 256 {}", bytes("04", 16)),
        format!("nt-store 320 {}", bytes("05", 32)),
        "fence".into(),
        "locked 384 0600000000000000".into(),
        "locked 448 0700000000000000".into(),
        format!("store 512 {}", bytes("08", 70)),
        "clflush 512".into(),
        "flush 576".into(),
        "fence".into(),
    ];
    assert_eq!(events(&place), wanted);
    let pool = std::fs::read(place.path("the.pool")).unwrap();
    assert_eq!((pool[60], pool[384], pool[581]), (1, 6, 8));
}

#[test]
fn every_mapping_thread_process_and_system_call_of_the_pool_is_followed() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    compiled(&place, "cases", &[]);
    let published = |at: u32, value: &str| {
        [
            format!("store {at} {value}"),
            format!("flush {at}"),
            "fence".into(),
        ]
    };
    let by = |thread: u32| vec![format!("by 0.{thread}")];
    for (case, wanted) in [
        (
            "maps-twice",
            (0..4)
                .map(|n| format!("store {n} 0{}", n + 1))
                .chain(["store 64 05".into()])
                .collect(),
        ),
        (
            "forks",
            [&published(64, "02")[..], &by(1), &published(0, "01")].concat(),
        ),
        (
            "threads",
            [
                &published(0, "01")[..],
                &by(1),
                &published(64, "01"),
                &by(2),
                &published(128, "01"),
                &by(3),
                &published(192, "01"),
            ]
            .concat(),
        ),
        (
            "synchronises",
            [
                "store 0 01",
                "sync 0 4096",
                "store 100 78797a",
                "store 200 6162",
                "store 202 6364",
                "store 300 21",
                "sync 0 4096",
            ]
            .map(String::from)
            .to_vec(),
        ),
    ] {
        record(&place, "cases", &[case]).expect(0);
        assert_eq!(events(&place), wanted, "{case}");
    }
    // The last one makes the pool longer at its end.
    assert!(text(&place.path("x.trace")).contains("\npool 8192"));
    // What the pool has before is there when the trace begins, and zeros are left out.
    let mut before = vec![0; 4096];
    before[2000] = 7;
    place.file("full.pool", before);
    let words = "persist record --pool full.pool -o x.trace -- ./cases full.pool threads";
    place.run(words).expect(0);
    let init = format!("init 1984 {}07{}", "00".repeat(16), "00".repeat(47));
    assert_eq!(events(&place)[0], init);
}

#[test]
fn what_a_trace_cannot_say_leaves_no_file() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    compiled(&place, "cases", &[]);
    for (case, code, words) in [
        ("never-maps", 2, "never mapped the.pool: is --pool the file"),
        ("private", 2, "with MAP_PRIVATE"),
        ("shortens", 1, "makes the pool shorter"),
    ] {
        record(&place, "cases", &[case]).refuses(code, &[words]);
        assert!(!place.path("x.trace").exists(), "{case}");
    }
    place.file("script", "#!/bin/sh\n");
    for (asked, code, words) in [
        ("--pool p -o t -- ./missing", 2, "no such program"),
        (
            "--pool no/p -o t -- ./cases p",
            2,
            "--pool no/p: its folder",
        ),
        ("--pool . -o t -- ./cases p", 2, "is a folder"),
        ("--pool p -o no/t -- ./cases p", 2, "cannot write no/t"),
        ("--pool p -o /dev/null -- ./cases p", 2, "regular file"),
        ("--pool p -o t -- ./script", 2, "is a script"),
        ("--pool p -o ./p -- ./cases p", 2, "is the pool"),
        ("--on emr2s --pool p -o t -- ./cases p", 2, "this host"),
    ] {
        place
            .run(format!("persist record {asked}").as_str())
            .refuses(code, &[words]);
    }
}

#[test]
fn a_program_that_dies_or_is_ended_leaves_what_it_did() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    compiled(&place, "cases", &[]);
    let died = record(&place, "cases", &["dies"]).expect(137).err();
    assert!(died.contains("was killed by signal 9"), "{died}");
    assert_eq!(events(&place), ["store 0 01", "flush 0"]);
    let started = record(&place, "cases", &["starts"]).expect(0).err();
    assert!(
        started.contains("started /bin/sh, which is not"),
        "{started}"
    );
    let words = "persist record --for 5s --pool the.pool -o x.trace -- ./cases the.pool sleeps";
    place.run(words).expect(0);
    assert!(!events(&place).is_empty());
    std::fs::remove_file(place.path("x.trace")).unwrap();
    let mut child = place.start(&words.replace("--for 5s ", "")[..]);
    // The file has another name until it is whole, and is written in pieces.
    let growing = place.path(&format!("x.trace.{}", child.id()));
    while std::fs::metadata(&growing).map_or(0, |file| file.len()) < 4096 {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, "INT");
    let status = child.wait().unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(events(&place).len() > 10, "{said}");
    place
        .run("persist check x.trace --check true --images 1 --states 2")
        .expect(0);
}

#[test]
fn a_program_that_never_fences_is_checked_in_part_and_that_is_said() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    compiled(&place, "cases", &[]);
    record(&place, "cases", &["never-fences"]).expect(0);
    let check = "persist check x.trace --check true --images 10";
    let said = place.run(check).expect(0).out();
    for words in ["! not all states", "! not all images"] {
        assert!(said.contains(words), "{said}");
    }
    // What recovery does not use needs no fence.
    let left_out = format!("{check} --volatile 0+4096");
    let said = place.run(left_out.as_str()).expect(0).out();
    assert!(!said.contains("not all"), "{said}");
    place
        .run("persist check x.trace --check true --volatile 7")
        .refuses(2, &["OFFSET+BYTES"]);
}

#[test]
fn a_file_system_without_map_sync_is_named_and_refused_where_it_matters() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    compiled(&place, "cases", &[]);
    let said = record(&place, "cases", &["threads"]).expect(0).err();
    // No host of these tests has a file system on persistent memory.
    assert!(said.contains("does not do MAP_SYNC"), "{said}");
    place
        .run("persist record --map-sync --pool q -o y.trace -- ./cases q threads")
        .refuses(3, &["does not do MAP_SYNC"]);
    assert!(!place.path("y.trace").exists());
}

#[test]
fn a_program_writes_its_trace_itself_through_the_header() {
    let place = Place::new();
    let printed = place.run("persist header").expect(0).out();
    assert_eq!(printed, text(format!("{INCLUDE}/weir_persist.h").as_ref()));
    if Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let check = || {
        let trace = place.path("own.trace");
        let run = Command::new(place.path("api"))
            .env("WEIR_PERSIST_TRACE", trace)
            .status();
        assert!(run.unwrap().success());
        place.run("persist check own.trace")
    };
    compiled(&place, "api", &["-DMENDED"]);
    check().expect(0);
    compiled(&place, "api", &[]);
    let found = check().expect(4).out();
    assert!(found.contains("without api.c:"), "{found}");
}
