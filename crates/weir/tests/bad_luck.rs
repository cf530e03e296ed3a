//! Bad luck: full disks, damaged stores, interrupts, and two Weirs at once. Nothing is lost.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Done, LONG, Place, SMALL, signal, with};

#[test]
fn a_request_that_the_machine_lacks_something_for_keeps_no_run() {
    let place = Place::new();
    place
        .run("steer run --on gold6130 --protect dram:ld --restrain dram:st")
        .refuses(3, &["no CXL tier"]);
    let listed = place.run("runs list --format json").expect(0).json();
    assert_eq!(listed["runs"], serde_json::json!([]));
}

#[test]
fn an_interrupt_keeps_finished_figures_and_marks_them_partial() {
    let place = Place::new();
    let child = place.start(with(LONG, "--format json"));
    place.wait_for_figures(1);
    signal(&child, "INT");
    let done = Done(child.wait_with_output().unwrap()).expect(1);
    assert!(done.err().contains("stopped"), "{}", done.err());
    let document = done.json();
    assert_eq!(document["partial"], true);
    let printed = document["points"].as_array().unwrap().len();
    assert!(printed >= 1);

    let stored = place.run("runs show last --format json").expect(0).json();
    assert_eq!(stored["partial"], true);
    assert_eq!(stored["points"], document["points"]);
    let said = place.run("runs show last").expect(0).out();
    assert!(said.contains("\nstopped: not all figures"), "{said}");
    let line = &place.run("runs list --format json").json()["runs"][0];
    assert!(line["kept"].as_u64() < line["planned"].as_u64(), "{line}");
}

#[test]
fn work_that_asks_no_machine_is_given_up_too() {
    let place = Place::new();
    for arguments in [
        "reproduce --only PON-033 --format json",
        "reproduce --only PON-086 --format json",
        "plan packing --clusters 5000 --format json",
        "plan coherence --walks 100000 --format json",
        "plan trace --days 3650 --machines 2500 -o vms.csv",
    ] {
        let child = place.start(arguments);
        // Each is at its work by then, of which it has more than a minute's.
        std::thread::sleep(Duration::from_secs(1));
        signal(&child, "TERM");
        let done = Done(child.wait_with_output().unwrap()).expect(1);
        assert!(done.err().contains("stopped"), "{}", done.err());
        // A row that was given up is not one without a figure.
        assert!(!done.out().contains("\"id\": \"PON-0"), "{}", done.out());
    }
}

#[test]
fn a_command_that_waits_for_a_silent_pipe_ends_at_the_first_signal() {
    let place = Place::new();
    let pipe = place.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let pipe = pipe.to_str().unwrap();
    for from in ["-", pipe] {
        for arguments in [
            format!("bench --file {from} --on small"),
            format!("workload import {from}"),
            format!("plan pool --trace {from}"),
            format!("persist check {from} --check true"),
            format!("steer dry-run --config {from}"),
            format!("steer explain --log {from}"),
            format!("place restore {from}"),
        ] {
            let mut command = place.command(arguments.clone());
            command.stdin(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let open = child.stdin.take();
            std::thread::sleep(Duration::from_millis(300));
            signal(&child, "TERM");
            for _ in 0..100 {
                if child.try_wait().unwrap().is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            child.kill().unwrap();
            let done = Done(child.wait_with_output().unwrap());
            drop(open);
            assert!(
                done.err().contains("stop was requested") && done.code() == 1,
                "{arguments}: {}",
                done.err()
            );
        }
    }
}

#[test]
fn a_line_that_does_not_end_does_not_fill_the_memory() {
    let place = Place::new();
    let disk = std::fs::File::create(place.path("disk")).unwrap();
    disk.set_len(20 << 20).unwrap();
    for asked in [
        "place restore disk",
        "steer explain --log disk",
        "tier profile --trace disk",
        "plan pool --trace disk",
    ] {
        let done = place.run(asked);
        assert!([1, 2].contains(&done.code()), "{asked}: {}", done.code());
        let said = done.err();
        assert!(
            said.contains("a line is longer than 16 MiB"),
            "{asked}: {said}"
        );
        assert!(said.contains("disk"), "{asked}: {said}");
    }
}

#[test]
fn a_terminal_that_closes_ends_a_run_as_an_interrupt_does() {
    let place = Place::new();
    let child = place.start(LONG);
    place.wait_for_figures(1);
    for _ in 0..5 {
        signal(&child, "HUP");
    }
    let done = Done(child.wait_with_output().unwrap()).expect(1);
    assert!(done.err().contains("stopped"), "{}", done.err());
}

#[test]
fn signals_that_ask_for_nothing_do_not_end_a_run() {
    let place = Place::new();
    // As nohup does.
    let mut child = place.under_shell("trap '' HUP", LONG);
    let mut child = child.stdout(std::process::Stdio::null()).spawn().unwrap();
    place.wait_for_figures(1);
    for name in [
        "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "XFSZ", "HUP",
    ] {
        signal(&child, name);
    }
    let kept = || {
        let runs = place.run("runs list --format json").json();
        runs["runs"][0]["kept"].as_u64().unwrap()
    };
    place.wait_for_figures(kept() + 2);
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, "XCPU");
    Done(child.wait_with_output().unwrap()).expect(1);
}

#[test]
fn a_killed_run_keeps_what_it_had() {
    let place = Place::new();
    let mut child = place.start(LONG);
    place.wait_for_figures(2);
    signal(&child, "KILL");
    child.wait().unwrap();
    let stored = place.run("runs show last --format json").expect(0).json();
    assert_eq!(stored["partial"], true);
    assert!(stored["points"].as_array().unwrap().len() >= 2);
    place.run(SMALL).expect(0);
}

#[test]
fn a_second_interrupt_leaves_at_once() {
    let place = Place::new();
    let mut child = place.start(LONG);
    place.wait_for_figures(1);
    // With the store held by another process, the first interrupt cannot be obeyed yet.
    let mut other = rusqlite::Connection::open(place.store()).unwrap();
    other.busy_timeout(Duration::from_secs(60)).unwrap();
    let held = other
        .transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)
        .unwrap();
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(500));
    assert!(
        child.try_wait().unwrap().is_none(),
        "it waits for the store"
    );
    let began = Instant::now();
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(10));
    drop(held);
    let text = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(text.contains("stopping: this waits for figure"), "{text}");
}

#[test]
fn an_interrupt_reports_the_repetitions_that_are_kept() {
    let place = Place::new();
    let child = place.start(with(LONG, "--repeat 3 --quiet"));
    place.wait_for_figures(1);
    signal(&child, "INT");
    let done = Done(child.wait_with_output().unwrap()).expect(1);
    let runs = place.run("runs list --format json").json();
    let planned = runs["runs"][0]["planned"].as_u64().unwrap();
    let kept = format!(
        "of {} repetitions (0 of {planned} figures have all of theirs) are kept in run 1",
        3 * planned
    );
    assert!(done.err().contains(&kept), "{}", done.err());
}

#[test]
fn figures_wait_in_memory_while_the_store_takes_none() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    let full = "CREATE TRIGGER full BEFORE INSERT ON results WHEN NEW.run > 1
                BEGIN SELECT RAISE(ABORT, 'no room'); END";
    let db = rusqlite::Connection::open(place.store()).unwrap();
    db.busy_timeout(Duration::from_secs(60)).unwrap();
    db.execute_batch(full).unwrap();
    let mut child = place.start(with(LONG, "--format json"));
    let mut text = BufReader::new(child.stderr.take().unwrap()).lines();
    let waits = text.find(|line| line.as_ref().unwrap().contains("wait in memory"));
    assert!(waits.is_some());
    db.execute_batch("DROP TRIGGER full").unwrap();
    place.wait_for_figures(3);
    signal(&child, "INT");
    let rest: Vec<String> = text.map(Result::unwrap).collect();
    let done = Done(child.wait_with_output().unwrap()).expect(1);
    assert!(
        rest.iter().any(|line| line.contains("takes figures again")),
        "{rest:?}"
    );
    let stored = place.run("runs show last --format json").json();
    assert_eq!(stored["points"], done.json()["points"]);
}

/// A link that leads nowhere is no file that SQLite makes, as none is made in a folder that may not be written.
#[test]
fn what_lies_beside_a_store_and_is_not_read_is_told() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    let beside = |end: &str| format!("{}-{end}", place.store().display());
    let _ = fs::remove_file(beside("shm"));
    std::os::unix::fs::symlink("nowhere", beside("shm")).unwrap();
    let read = || place.run("runs list").expect(0);
    assert!(!read().err().contains("warning"), "{}", read().err());
    fs::write(beside("wal"), "what another command wrote").unwrap();
    let done = read();
    for words in ["warning", &beside("wal"), "may be older or incomplete"] {
        assert!(done.err().contains(words), "{}", done.err());
    }
}

#[test]
fn a_store_that_is_not_there_is_an_error_for_whatever_reads_it() {
    let place = Place::new();
    let reads = ["runs list", "runs show 1", "runs export 1", "runs resume 1"];
    place
        .run("report --store typo.sqlite")
        .refuses(2, &["typo.sqlite"]);
    for verb in reads {
        let verb = with(verb, "--store typo.sqlite");
        place.run(&verb).refuses(2, &["typo.sqlite"]);
        place
            .run(with(&verb, "--format json"))
            .refuses(2, &["typo.sqlite"]);
    }
    assert!(!place.path("typo.sqlite").exists());
}

#[test]
fn odd_stores_are_refused() {
    let place = Place::new();
    let made = Command::new("mkfifo").arg(place.store()).status().unwrap();
    assert!(made.success());
    place
        .run("runs list")
        .refuses(2, &["it is a device or a pipe"]);
    std::fs::remove_file(place.store()).unwrap();
    place.run(SMALL).expect(0);
    let runs = place.run("runs list --format json").expect(0).json();
    let started = runs["runs"][0]["started"].as_str().unwrap();
    // A run takes one line, and its time is to the minute.
    let list = place.run("runs list").expect(0).out();
    assert!(
        list.contains(&started[..16]) && !list.contains(started),
        "{list}"
    );
    assert_eq!(list.lines().count(), 3, "{list}");
    // What is written replaces no store.
    let store = place.store().display().to_string();
    for verb in ["runs export 1 -o", "report 1 -o"] {
        place
            .run(format!("{verb} {store}"))
            .refuses(2, &["it is a database"]);
    }
    place
        .run("runs export 1 --as csv -o x.csv --samples x.csv")
        .refuses(2, &["--samples x.csv is the file of -o"]);
    place.run("runs show 1").expect(0);
    let db = rusqlite::Connection::open(place.store()).unwrap();
    db.pragma_update(None, "user_version", -1).unwrap();
    drop(db);
    for verb in ["runs list", SMALL] {
        place.run(verb).refuses(2, &["not a store of Weir"]);
    }
}

#[test]
fn a_page_that_cannot_be_written_ends_a_tour_before_it_measures() {
    let place = Place::new();
    place
        .run("tour -o no/such/folder/page.html")
        .refuses(2, &["page.html", "No such file"]);
    assert!(!place.store().exists());
}

#[test]
fn a_page_that_cannot_be_finished_leaves_the_old_one() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    let page = place.file("page.html", "old");
    let mut limited = place.under_shell("trap '' XFSZ; ulimit -f 40", "report -o page.html");
    let done = Done(limited.output().unwrap()).expect(1);
    assert!(done.err().contains("page.html"), "{}", done.err());
    assert_eq!(std::fs::read_to_string(page).unwrap(), "old");
    let left = std::fs::read_dir(place.path(".")).unwrap();
    let left = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("page.html")
    });
    assert_eq!(left.count(), 1);
}

#[test]
fn two_processes_on_one_store_both_finish() {
    let place = Place::new();
    let children: Vec<_> = (0..3).map(|_| place.start(SMALL)).collect();
    for child in children {
        Done(child.wait_with_output().unwrap()).expect(0);
    }
    let runs = place.run("runs list --format json").expect(0).json();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    assert!(
        runs.iter()
            .all(|run| run["partial"] == false && run["kept"] == run["planned"])
    );
}

#[test]
fn a_full_disk_is_reported_and_the_results_are_still_printed() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    // A limit on file size stands in for a full disk: writes fail in the middle of the run.
    let limit = "trap '' XFSZ; ulimit -f 120";
    let threads = ["--threads", "1..8", "--format", "json"];
    let sweep = with("bench bandwidth --on emr2s --op ld,st,nt_st", threads);
    let done = Done(place.under_shell(limit, &sweep).output().unwrap()).expect(1);
    assert!(
        done.err().contains("no room") && done.err().contains("runs.sqlite"),
        "{}",
        done.err()
    );
    let document = done.json();
    let planned = 24 * document["topology"]["tiers"].as_array().unwrap().len();
    assert_eq!(document["points"].as_array().unwrap().len(), planned);
    // What was kept before is whole.
    assert_eq!(
        place.run("runs show 1 --format json").expect(0).json()["partial"],
        false
    );
}

/// Verbs that work first and keep what came of it afterwards.
const KEEP_AFTERWARDS: [&str; 5] = [
    "calibrate --on skx2s --tier remote",
    "explain chase --on skx2s",
    "predict --population 300 --on skx2s",
    "steer run --on miku-a --scenario sql-scan",
    "tune interleave scan --on skx2s --tier remote",
];

#[test]
fn a_store_that_cannot_be_made_is_refused_before_anything_is_measured() {
    let place = Place::new();
    place.file("file", "");
    for verb in KEEP_AFTERWARDS.iter().chain([&LONG]) {
        for (store, words) in [
            ("file/runs.sqlite", ["file/runs.sqlite", "--store"]),
            (".", ["folder", "--store"]),
        ] {
            let done = place.run(with(verb, ["--store", store])).expect(2);
            // Work would have reported its progress.
            assert_eq!(done.err().lines().count(), 1, "{}", done.err());
            done.refuses(2, &words);
        }
    }
}

#[test]
fn what_the_store_has_no_room_for_is_still_printed() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    let explain = "explain chase --on skx2s --format json";
    // Enough to open the store (32 KiB of shared memory), too little to add to it.
    let mut limited = place.under_shell("trap '' XFSZ; ulimit -f 40", explain);
    let done = Done(limited.output().unwrap()).expect(1);
    assert!(done.err().contains("runs.sqlite"), "{}", done.err());
    assert!(!done.json()["runs"].as_array().unwrap().is_empty());
}

#[test]
fn a_half_written_store_is_refused_and_left_alone() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    let whole = std::fs::read(place.store()).unwrap();
    let cut = &whole[..whole.len() / 2];
    std::fs::write(place.store(), cut).unwrap();
    for arguments in [SMALL, "runs list", "report"] {
        place
            .run(arguments)
            .refuses(2, &["runs.sqlite", "damaged", "move it aside"]);
    }
    assert_eq!(std::fs::read(place.store()).unwrap(), cut);
}

#[test]
fn a_store_from_a_newer_version_is_refused() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    let db = rusqlite::Connection::open(place.store()).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    for arguments in [SMALL, "runs list"] {
        place
            .run(arguments)
            .refuses(2, &["format 99", "update Weir"]);
    }
}

#[test]
fn a_report_that_cannot_be_written_is_reported() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    place
        .run("report -o no/such/folder/page.html")
        .refuses(2, &["page.html", "No such file"]);
}

#[test]
fn advice_that_was_stopped_is_finished_from_the_answers_that_were_kept() {
    let place = Place::new();
    let tune = "tune interleave chase --on skx2s --tier remote --format json";
    let whole = place.run(tune).expect(0).json();
    // What the store holds of a run that was stopped before its study had an answer.
    let db = rusqlite::Connection::open(place.store()).unwrap();
    db.execute_batch(
        "UPDATE runs SET state = 'partial', planned = 0, kept = 0, list_key = 'points',
             document = json_remove(document, '$.workload', '$.evidence', '$.from', '$.to', '$.bound');
         DELETE FROM results;",
    )
    .unwrap();
    drop(db);
    let shown = place.run("runs show 1").expect(0);
    assert!(
        shown.out().contains("weir runs resume 1"),
        "{}",
        shown.out()
    );
    let resumed = place.run("runs resume 1 --format json");
    let resumed = resumed.expect(0).json();
    assert_eq!(resumed["advice"], whole["advice"]);
    let kept = place.run("runs show 1 --format json");
    let kept = kept.expect(0).json();
    assert_eq!(
        [&kept["advice"], &kept["partial"]],
        [&whole["advice"], &serde_json::json!(false)]
    );
}

#[test]
fn a_stopped_run_without_a_plan_of_points_is_listed_with_what_it_has() {
    let place = Place::new();
    place.run("plan latency").expect(0);
    let db = rusqlite::Connection::open(place.store()).unwrap();
    db.execute_batch("UPDATE runs SET state = 'partial'")
        .unwrap();
    drop(db);
    let list = place.run("runs list").expect(0).out();
    assert!(list.contains("partial") && !list.contains('/'), "{list}");
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.contains("7 figures so far, began"), "{shown}");
}

#[test]
fn runs_of_any_study_that_was_stopped_are_read() {
    // Of the last, nothing is kept as a point.
    for (arguments, verb, points) in [
        (
            "place disaggregated --on emr2s+cxl-a",
            "place disaggregated",
            33,
        ),
        (
            "place share --on emr2s+cxl-a --operations 200",
            "place share",
            1,
        ),
        ("place levels --on emr2s+cxl-a", "place levels", 0),
    ] {
        let place = Place::new();
        place.run(arguments).expect(0);
        // What the store holds of a run that was stopped before its study had an answer: the head, and points.
        let db = rusqlite::Connection::open(place.store()).unwrap();
        let whole: String =
            (db.query_row("SELECT document FROM runs", [], |row| row.get(0))).unwrap();
        let mut head: serde_json::Value = serde_json::from_str(&whole).unwrap();
        head.as_object_mut().unwrap().retain(|name, _| {
            [
                "schema",
                "weir",
                "machine",
                "topology",
                "capabilities",
                "processor",
                "seed",
                "warnings",
            ]
            .contains(&name.as_str())
        });
        db.execute(
            "UPDATE runs SET state = 'partial', list_key = 'points', document = ?1",
            [head.to_string()],
        )
        .unwrap();
        db.execute("DELETE FROM results WHERE address IS NULL", [])
            .unwrap();
        let shown = place.run("runs show 1").expect(0).out();
        let words = match verb {
            "place share" => "stopped: ",
            _ => "weir runs resume 1",
        };
        assert!(shown.contains(words) && shown.contains(verb), "{shown}");
        let json = place.run("runs show 1 --format json").expect(0).json();
        let found = json["points"].as_array().map_or(0, Vec::len);
        assert!(found >= points && (found > 0) == (points > 0), "{json}");
        place.run("report 1 -o page.html").expect(0);
        place.run("runs export 1 --as csv").expect(0);
        // The reason why it cannot go on is what is said.
        db.execute("UPDATE runs SET digest = 'another'", [])
            .unwrap();
        let refused = place.run("runs resume 1").expect(2);
        assert!(
            refused.err().contains("digest another"),
            "{}",
            refused.err()
        );
    }
}
