//! Storage of this machine, as a process: the real `fio` where there is one, and stand-ins for one
//! that fails.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Place;
use serde_json::Value;
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr;

/// A folder on the disk that this is built on.
fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Whether requests can be put to a folder here; says what is skipped if not.
fn can_run(place: &Place, folder: &Path) -> bool {
    let asked = ["topo", "--storage", text(folder), "--format", "json"];
    let done = place.run(asked);
    let has = done.code() == 0 && {
        let all = done.json()["capabilities"].as_array().unwrap().clone();
        let storage = all.iter().find(|c| c["feature"] == "storage").unwrap();
        storage["present"] == true
    };
    let two = done.code() == 0 && done.json()["topology"]["cores"].as_array().unwrap().len() > 1;
    if !(has && two) {
        eprintln!(
            "SKIPPED: no fio, no direct requests, or one core only: {}",
            done.err()
        );
    }
    has && two
}

fn matrix<'a>(folder: &'a Path, repeat: &'a str) -> Vec<&'a str> {
    [
        "interplay --victims dram:ld,ssd0:randread --aggressors ssd0:randwrite --threads 1 --repeat",
        repeat,
        "--storage",
        text(folder),
    ]
    .iter()
    .flat_map(|words| words.split(' '))
    .collect()
}

/// Processes that were asked to use a file of `owner`.
fn left_behind(owner: u32) -> usize {
    let mark = format!("/proc/{owner}/fd/");
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(&mark))
        .count()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status();
    assert!(sent.unwrap().success());
}

fn cells(document: &Value) -> Vec<(String, String)> {
    let cells = document["cells"].as_array().unwrap().iter();
    let name = |participant: &Value| {
        format!("{}:{}", participant["tier"], participant["op"]).replace('"', "")
    };
    cells
        .map(|cell| (name(&cell["victim"]), name(&cell["aggressor"])))
        .collect()
}

#[test]
fn memory_and_storage_are_set_beside_each_other() {
    let (place, folder) = (Place::new(), folder());
    if !can_run(&place, folder.path()) {
        return;
    }
    let mut request = matrix(folder.path(), "1");
    request.extend(["--format", "json"]);
    let done = place.run(&request).expect(0);
    let document = done.json();
    let pair = |victim: &str| (victim.to_owned(), "ssd0:randwrite".to_owned());
    assert_eq!(cells(&document), [pair("dram:ld"), pair("ssd0:randread")]);
    for point in document["points"].as_array().unwrap() {
        assert!(point["error"].is_null(), "{point}");
    }
    // A request takes longer than a load, and is timed in the same run as its bandwidth.
    let of = |cell: usize, what: &str| document["cells"][cell]["ns"][what].as_f64().unwrap();
    assert!(of(1, "solo_mean") > of(0, "solo_mean"));
    assert!(of(1, "corun_p99") > 1000.0 && of(1, "corun_mean") > 1000.0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let table = place.run("runs show last");
    assert!(
        table.out().contains("Latency of requests"),
        "{}",
        table.out()
    );
    for line in table.out().lines() {
        assert!(line.width() <= 80, "{line}");
    }
    every_request_is_timed(&place, &document);
}

#[test]
fn the_limit_of_a_drive_says_that_its_flash_sets_it() {
    let topo = Place::new().run("topo --on emr2s+ssd-nvme4 --format csv");
    let out = topo.expect(0).out();
    let flash = "its flash, as measured: 6.8 GB/s read, 4.0 GB/s written";
    assert!(out.contains(flash), "{out}");
}

/// As many requests were timed as their bytes say, but for those under way at a window's edges.
fn every_request_is_timed(place: &Place, document: &Value) {
    let export = ["runs", "export", "--as", "record", "last"];
    let records = place.run(export).expect(0).json();
    let points = document["points"].as_array().unwrap().iter();
    let mut seen = 0;
    for (point, record) in points.zip(records["records"].as_array().unwrap()) {
        if point["tier"] != "ssd0" {
            continue;
        }
        let windows = record["samples"].as_array().unwrap();
        let bytes = |w: &Value| w[0].as_f64().unwrap() * w[1].as_f64().unwrap();
        let requests: f64 = windows.iter().map(bytes).sum::<f64>() / 4096.0;
        let timed = point["ns"]["samples"].as_f64().unwrap();
        let under_way = 32.0 * windows.len() as f64;
        assert!(timed + under_way >= requests, "{timed} of {requests}");
        seen += 1;
    }
    assert!(seen >= 3, "alone twice and together once");
}

#[test]
fn neither_ctrl_c_nor_a_kill_nor_an_abort_leaves_a_process_or_a_file() {
    let (place, folder) = (Place::new(), folder());
    if !can_run(&place, folder.path()) {
        return;
    }
    for how in ["-INT", "-KILL", "-ABRT"] {
        // Memory alone would take half a minute before.
        let mut request = matrix(folder.path(), "40");
        request[2] = "ssd0:randread";
        let mut child = place.start(request);
        let own = child.id();
        wait_until("no fio came", || left_behind(own) > 0);
        signal(&child, how);
        child.wait().unwrap();
        wait_until("fio stays", || left_behind(own) == 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{how}");
    }
}

#[test]
fn a_run_on_storage_is_taken_up_where_the_storage_is_named_again() {
    let (place, folder) = (Place::new(), folder());
    if !can_run(&place, folder.path()) {
        return;
    }
    let mut child = place.start(matrix(folder.path(), "1"));
    place.wait_for_figures(1);
    signal(&child, "-INT");
    child.wait().unwrap();
    let unnamed = place.run("runs resume last").expect(2);
    assert!(
        unnamed.err().contains("--storage PATH"),
        "{}",
        unnamed.err()
    );
    let taken_up = place
        .run(["runs", "resume", "last", "--storage", text(folder.path())])
        .expect(0);
    assert!(
        taken_up.out().contains("ssd0:randwrite"),
        "{}",
        taken_up.out()
    );
}

/// The command with a `fio` of our own before all others.
fn with_stand_in(place: &Place, script: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let tools = place.path("tools");
    fs::create_dir_all(&tools).unwrap();
    let program = tools.join("fio");
    let written = Command::new("bash")
        .args([
            "-c",
            "printf %s \"$1\" > \"$2\"; chmod +x \"$2\"",
            "-",
            script,
        ])
        .arg(&program)
        .status();
    assert!(written.unwrap().success());
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let done = place
        .command(arguments)
        .env("PATH", path)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

#[test]
fn a_fio_that_is_missing_too_old_or_failing_is_reported_with_what_to_do() {
    let (place, folder) = (Place::new(), folder());
    let probe = place.run(["topo", "--storage", text(folder.path())]);
    if probe.code() != 0 {
        eprintln!("SKIPPED: {}", probe.err());
        return;
    }
    let request = matrix(folder.path(), "1");
    let none = place
        .command(&request)
        .env("PATH", place.path("nowhere"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(3), "{said}");
    assert!(said.contains("fio is not installed"), "{said}");
    assert!(said.contains("apt-get install fio"), "{said}");

    let (code, said) = with_stand_in(&place, "#!/bin/sh\necho fio-2.1\n", &request);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("fio-2.1 is too old"), "{said}");

    let failing = "#!/bin/sh\ncase \"$1\" in --version) echo fio-3.33;; --enghelp) echo libaio;; \
        *) echo 'fio: io_u error on file x: No space left on device' >&2; exit 1;; esac\n";
    let (code, said) = with_stand_in(&place, failing, &request);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn an_aggressor_that_dies_spoils_its_own_cells_only() {
    let (place, folder) = (Place::new(), folder());
    if !can_run(&place, folder.path()) {
        return;
    }
    // The real one for everything but writes, which is killed.
    let script = "#!/bin/bash\nreal=$(PATH=${PATH#*:} command -v fio)\n\
        case \"$*\" in *--rw=randwrite*) pid=$$; (sleep 0.2; \
        [ \"$(cat /proc/$pid/comm)\" = fio ] && kill -KILL $pid) > /dev/null 2>&1 & ;; esac\n\
        exec \"$real\" \"$@\"\n";
    let mut request = matrix(folder.path(), "1");
    request.extend(["--format", "json"]);
    let (code, said) = with_stand_in(&place, script, &request);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("killed by signal 9"), "{said}");
    assert!(said.contains("dmesg"), "{said}");

    let kept = place.run("runs show last --format json");
    let document = kept.expect(0).json();
    for point in document["points"].as_array().unwrap() {
        let spoiled = point["op"] == "randwrite" || point["beside"]["op"] == "randwrite";
        assert_eq!(point["error"].is_null(), !spoiled, "{point}");
    }
    let cells = document["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["error"].as_str().is_some()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_disk_without_room_for_the_scratch_file_is_reported_with_what_to_do() {
    let (place, folder) = (Place::new(), folder());
    if !can_run(&place, folder.path()) {
        return;
    }
    // A limit on file size stands in for a full disk; the store stays below it.
    let limit = "trap '' XFSZ; ulimit -f 20000";
    let request = matrix(folder.path(), "1");
    let done = crate::common::Done(place.under_shell(limit, &request).output().unwrap()).expect(1);
    assert!(
        done.err().contains("filling a scratch file"),
        "{}",
        done.err()
    );
    assert!(done.err().contains("more free space"), "{}", done.err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // What needs no storage was measured and kept.
    let kept = place.run("runs show last --format json");
    let document = kept.expect(0).json();
    let figures = document["points"].as_array().unwrap().iter();
    let memory = figures.filter(|p| p["tier"] == "dram" && p["beside"].is_null());
    assert!(memory.clone().count() > 0);
    assert!(memory.clone().all(|point| point["error"].is_null()));
}

#[test]
fn storage_that_cannot_be_is_refused_before_anything_runs() {
    let place = Place::new();
    let file = place.file("file", "");
    for (arguments, word) in [
        (&["--storage", "/no/such/place"][..], "there is no"),
        (&["--storage", text(&file)], "neither a folder nor"),
        (&["--storage", "/dev/shm"], "keeps its files in memory"),
        (&["--storage", "/tmp", "--on", "interplay-a"], "is a model"),
        (
            &["--storage", "/tmp", "--write-device", "/dev/null"],
            "not a block device",
        ),
        (&["--write-device", "/dev/null"], "--storage"),
    ] {
        for verb in ["topo", "interplay"] {
            let done = place.run([&[verb], arguments].concat());
            assert_eq!(done.code(), 2, "{arguments:?}: {}", done.err());
            assert!(done.err().contains(word), "{arguments:?}: {}", done.err());
            assert!(done.out().is_empty());
        }
    }
}
