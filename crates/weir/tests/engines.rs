//! Workers that share the work of a verb: the result is that of one process, whatever is killed on the way.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Place, Words};

const BENCH: &str = "bench bandwidth --on emr2s+cxl-a --op ld,nt_st --threads 1,2,4 --format json";
/// Enough that it is not over before something is killed.
const LONGER: &str = "bench random --on emr2s+cxl-a --tier cxl0 --op ld,nt_st --block 4K,64K --threads 4,6,8,10,12 --size 256M --format json";
const SPACE: &str = r#"
kind = "design"
base = "emr2s+cxl-a"
[[axis]]
key = "threads"
values = [1, 2, 4]
[[axis]]
key = "policy"
values = ["dram", "dram=2,cxl=1"]
[[workload]]
name = "chase"
[[objective]]
name = "speed"
[[objective]]
name = "watts"
"#;

fn with(words: &str, more: &str) -> Vec<String> {
    [words.words(), more.words()].concat()
}

/// A document without what differs between two runs of one command.
fn result(document: &Value, list: &str) -> Value {
    assert_eq!(document["partial"], false, "{document}");
    document[list].clone()
}

fn program(place: &Place, name: &str, text: &str) -> String {
    let path = place.file(name, format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn folders(place: &Place) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(place.path(".")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.is_dir() && path.display().to_string().contains("weir-workers"))
        .collect()
}

/// Figures that are kept in the stores of a folder.
fn kept(folder: &Path) -> i64 {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let stores = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?.to_owned();
        (name.starts_with("round") && name.ends_with(".sqlite")).then_some(path)
    });
    stores.map(|store| figures(&store)).sum()
}

fn figures(store: &Path) -> i64 {
    let read = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = rusqlite::Connection::open_with_flags(store, read);
    db.and_then(|db| db.query_row("SELECT count(*) FROM results", [], |row| row.get(0)))
        .unwrap_or(0)
}

/// Waits until workers have kept so many figures.
fn workers_keep(place: &Place, figures: i64) {
    let patience = Instant::now() + Duration::from_secs(60);
    while folders(place).first().map_or(0, |folder| kept(folder)) < figures {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn workers_give_what_the_command_gives_alone() {
    let place = Place::new();
    place.file("space.toml", SPACE);
    for (words, list) in [
        (BENCH, "points"),
        (
            "design --file space.toml --accesses 2000 --format json",
            "designs",
        ),
        (
            "reproduce --only MEM-02 --only MEM-01 --format json",
            "rows",
        ),
    ] {
        let alone = Place::new();
        alone.file("space.toml", SPACE);
        let whole = alone.run(words).expect(0).json();
        let shared = place.run(with(words, "--engine local --workers 2"));
        let shared = shared.expect(0).json();
        assert_eq!(result(&shared, list), result(&whole, list), "{words}");
        assert!(folders(&place).is_empty());
    }
    // Every part that measured something is a run, and the whole is one.
    let runs = place.run("runs list --format json").expect(0).json();
    let runs = runs["runs"].as_array().unwrap();
    assert!(runs.len() > 3, "{runs:?}");
    assert!(runs.iter().all(|run| run["partial"] == false), "{runs:?}");
    // It is all there: nothing is measured again.
    let again = place.run(with(BENCH, "--engine local")).expect(0);
    assert!(
        again.err().contains("come from the store"),
        "{}",
        again.err()
    );
}

#[test]
fn a_file_of_sweeps_on_several_machines_is_shared() {
    let place = Place::new();
    place.file(
        "sweep.toml",
        "[[sweep]]\nexperiment = \"bandwidth\"\non = [\"emr2s\", \"spr2s\"]\nmatrix = { op = [\"ld\"], threads = [1, 2, 3] }\n",
    );
    let words = "bench --file sweep.toml --format json";
    let shared = place
        .run(with(words, "--engine local --workers 2"))
        .expect(0);
    let elsewhere = Place::new();
    fs::copy(place.path("sweep.toml"), elsewhere.path("sweep.toml")).unwrap();
    let whole = elsewhere.run(words).expect(0).json();
    let points = |document: &Value| -> Vec<Value> {
        let all = document.as_array().unwrap().iter();
        all.map(|one| result(one, "points")).collect()
    };
    assert_eq!(points(&shared.json()), points(&whole));
}

#[test]
fn a_worker_that_is_killed_is_started_again_and_loses_one_figure() {
    let place = Place::new();
    let child = place.start(with(LONGER, "--engine local --workers 2"));
    let patience = Instant::now() + Duration::from_secs(60);
    let killed = loop {
        assert!(Instant::now() < patience);
        let measured = folders(&place).first().map_or(0, |folder| kept(folder));
        let id = child.id();
        let workers = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let workers = workers.unwrap_or_default();
        if let (true, Some(worker)) = (measured > 1, workers.split_whitespace().next()) {
            let done = std::process::Command::new("kill")
                .args(["-9", worker])
                .status();
            if done.unwrap().success() {
                break measured;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(killed > 0);
    let done = crate::common::Done(child.wait_with_output().unwrap()).expect(0);
    let whole = Place::new().run(LONGER).expect(0).json();
    assert_eq!(result(&done.json(), "points"), result(&whole, "points"));
    // All figures of parts, and those of the whole: none is there twice.
    let planned = whole["points"].as_array().unwrap().len() as i64;
    assert_eq!(figures(&place.store()), 2 * planned);
}

#[test]
fn a_head_that_is_killed_goes_on_from_what_workers_had() {
    let place = Place::new();
    let words = with(LONGER, "--engine local --workers 2 --worker-folder common");
    fs::create_dir(place.path("common")).unwrap();
    let mut child = place.start(&words);
    let patience = Instant::now() + Duration::from_secs(60);
    let folder = || fs::read_dir(place.path("common")).unwrap().next();
    let mut had = 0;
    while had < 3 {
        assert!(Instant::now() < patience);
        had = folder().map_or(0, |folder| kept(&folder.unwrap().path()));
        std::thread::sleep(Duration::from_millis(5));
    }
    crate::common::signal(&child, "KILL");
    child.wait().unwrap();
    let done = place.run(&words).expect(0);
    let whole = Place::new().run(LONGER).expect(0).json();
    assert_eq!(result(&done.json(), "points"), result(&whole, "points"));
    let planned = whole["points"].as_array().unwrap().len() as i64;
    assert_eq!(figures(&place.store()), 2 * planned);
    assert!(folder().is_none());
}

#[test]
fn an_interrupt_ends_workers_and_what_they_measured_is_kept() {
    let place = Place::new();
    let child = place.start(with(LONGER, "--engine local --workers 2"));
    workers_keep(&place, 2);
    crate::common::signal(&child, "TERM");
    let done = crate::common::Done(child.wait_with_output().unwrap()).expect(1);
    assert!(
        done.err().contains("the same command goes on"),
        "{}",
        done.err()
    );
    assert!(figures(&place.store()) >= 2);
}

#[test]
fn a_worker_that_is_stopped_does_not_outlast_an_interrupt() {
    let place = Place::new();
    let mut child = place.start(with(LONGER, "--engine local --workers 1"));
    let id = child.id();
    workers_keep(&place, 1);
    let worker = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let stopped = std::process::Command::new("kill")
        .args(["-STOP", worker.trim()])
        .status();
    assert!(stopped.unwrap().success());
    crate::common::signal(&child, "TERM");
    let patience = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    // A head that is killed kills its workers.
    let _ = child.kill();
    let done = crate::common::Done(child.wait_with_output().unwrap()).expect(1);
    assert!(
        done.err().contains("the same command goes on"),
        "{}",
        done.err()
    );
}

#[test]
fn a_worker_that_is_stopped_is_named_while_the_head_waits() {
    let place = Place::new();
    let mut child = place.start(with(LONGER, "--engine local --workers 1 --quiet"));
    let id = child.id();
    workers_keep(&place, 1);
    let worker = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let worker = worker.trim();
    let ask = |signal: &str| {
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args([signal, worker]).status().unwrap().success());
    };
    ask("-STOP");
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = said.next().unwrap().unwrap();
    for words in [
        "the worker of part 1/4, process ",
        "has kept no figure for",
        &format!("`kill -CONT {worker}` lets it go on"),
    ] {
        assert!(line.contains(words), "{line}");
    }
    ask("-CONT");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn two_heads_do_not_share_a_folder_of_workers() {
    let place = Place::new();
    let words = with(LONGER, "--engine local --workers 1");
    let mut first = place.start(&words);
    workers_keep(&place, 1);
    place.run(&words).refuses(
        1,
        &[
            "another command has its workers in",
            "weir-workers",
            "--worker-folder",
        ],
    );
    assert!(!folders(&place).is_empty());
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_part_that_is_interrupted_is_not_whole() {
    let place = Place::new();
    let child = place.start(with(LONGER, "--part 1/2"));
    place.wait_for_figures(1);
    crate::common::signal(&child, "TERM");
    let done = crate::common::Done(child.wait_with_output().unwrap()).expect(1);
    assert!(
        done.err().contains("the same command goes on"),
        "{}",
        done.err()
    );
    let kept = place.run("runs show last --format json").expect(0).json();
    assert_eq!(kept["partial"], true);
}

#[test]
fn workers_that_cannot_be_are_refused_with_what_they_say() {
    let place = Place::new();
    let other = ["--part", "1/2", "--head", "0.0.1, physics 1"];
    place.run([BENCH.words(), other.words()].concat()).refuses(
        2,
        &[
            "this worker is Weir 0.",
            "its head is Weir 0.0.1, physics 1",
        ],
    );
    let named = |program: &str, more: &str| {
        let mut command = place.command(with(BENCH, more));
        command
            .env("WEIR_WORKER", program)
            .env("WEIR_PYTHON", program);
        command.env("PATH", place.path("."));
        crate::common::Done(command.output().unwrap())
    };
    let older = program(
        &place,
        "older",
        "echo 'weir: this worker is Weir 9, physics 9' >&2; exit 2",
    );
    named(&older, "--engine local").refuses(2, &["part ", "this worker is Weir 9"]);
    let dies = program(&place, "dies", "echo died >&2; kill -9 $$");
    named(&dies, "--engine local --workers 1").refuses(1, &["part ", "3 times", "died", "goes on"]);
    for (name, does, says) in [
        (
            "full",
            ": >\"$store\"; echo 'weir: no room' >&2; exit 1",
            "no room",
        ),
        ("silent", "exit 1", "it said: nothing, as on a full disk"),
        (
            "gone",
            "rm -r \"$(dirname \"$store\")\"; exit 1",
            "cannot write",
        ),
    ] {
        let words = "for word; do store=$word; done";
        let worker = program(
            &place,
            name,
            &format!("{words}; PATH=/usr/bin:/bin; {does}"),
        );
        named(&worker, "--engine local --workers 1").refuses(1, &["part", says]);
    }
    // A Python without Ray ends so.
    let without = program(
        &place,
        "without",
        "echo \"No module named 'ray'\" >&2; exit 3",
    );
    named(&without, "--engine ray").refuses(3, &["No module named", "pip install ray"]);
    named("/no/python", "--engine ray").refuses(3, &["pip install ray"]);
    named("weir", "--engine slurm").refuses(3, &["apt install slurm-client"]);
    named(" ", "--engine local").refuses(2, &["WEIR_WORKER is empty"]);
}

#[test]
fn a_request_reaches_ray_while_no_task_ends() {
    let place = Place::new();
    let python = program(
        &place,
        "python",
        "cat >input; trap 'exit 1' TERM; kill -TERM $PPID; sleep 3 & wait; echo >late",
    );
    let mut command = place.command(with(BENCH, "--engine ray --workers 1"));
    command.env("WEIR_PYTHON", python);
    let done = crate::common::Done(command.output().unwrap());
    done.refuses(1, &["the same command goes on"]);
    assert!(!place.path("late").exists());
}

/// What stands for Slurm here runs the tasks of an array in turn; the first time, it loses one.
#[test]
fn an_array_of_slurm_is_submitted_and_lost_tasks_again() {
    let place = Place::new();
    program(
        &place,
        "sbatch",
        r#"cd "$(dirname "$0")"
for word; do case $word in --array=*) tasks=${word#--array=} ;; esac; script=$word; done
echo "${tasks}" >>arrays
for task in $(echo "${tasks%\%*}" | tr , ' '); do
    [ "$task" = 1 ] && [ "$(wc -l <arrays)" = 1 ] && continue
    SLURM_ARRAY_TASK_ID=$task sh "$script"
done
echo '17;cluster'"#,
    );
    program(&place, "squeue", "exit 0");
    let mut command = place.command(with(BENCH, "--engine slurm --workers 1"));
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.path("").display()));
    let shared = crate::common::Done(command.output().unwrap()).expect(0);
    let whole = Place::new().run(BENCH).expect(0).json();
    assert_eq!(result(&shared.json(), "points"), result(&whole, "points"));
    let arrays = fs::read_to_string(place.path("arrays")).unwrap();
    assert_eq!(arrays, "0,1,2,3%1\n1%1\n");
}

/// What stands for Slurm here does the tasks once it is asked for them a third time.
#[test]
fn a_controller_that_does_not_answer_still_has_the_array() {
    let place = Place::new();
    program(
        &place,
        "sbatch",
        r#"cd "$(dirname "$0")"
for word; do case $word in --array=*) tasks=${word#--array=} ;; esac; script=$word; done
echo "${tasks}" >>arrays
echo "$script" >script
echo 17"#,
    );
    program(
        &place,
        "squeue",
        r#"cd "$(dirname "$0")"
echo asked >>asked
case $(wc -l <asked) in
1) echo 17 ;;
2) echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1 ;;
*) for task in 0 1 2 3; do SLURM_ARRAY_TASK_ID=$task sh "$(cat script)"; done
    echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;;
esac"#,
    );
    let mut command = place.command(with(BENCH, "--engine slurm --workers 1"));
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.path("").display()));
    crate::common::Done(command.output().unwrap()).expect(0);
    let arrays = fs::read_to_string(place.path("arrays")).unwrap();
    assert_eq!(arrays, "0,1,2,3%1\n");
}

#[test]
fn what_workers_cannot_share_is_refused() {
    let place = Place::new();
    for (words, says) in [
        (
            "topo --engine local",
            "is of `weir bench`, `weir design` and `weir reproduce`",
        ),
        (
            "interplay --on emr2s+cxl-a --part 1/2",
            "--part is of `weir bench`",
        ),
        (
            "bench latency --quick --engine local",
            "measured where it is",
        ),
        ("bench latency --on emr2s --workers 2", "--engine"),
        ("bench latency --on emr2s --engine cloud", "local"),
        ("bench latency --on emr2s --part 3/2", "1/4"),
        (
            "reproduce --sensitivity --engine local",
            "one row after the other",
        ),
        (
            "bench latency --on emr2s --engine local --worker-folder /proc/nowhere",
            "folder of workers",
        ),
    ] {
        place.run(words).refuses(2, &[says]);
    }
    let bayesian = format!("search = \"bayesian\"\npoints = 2\n{SPACE}");
    place.file("space.toml", bayesian);
    place
        .run("design --file space.toml --engine local")
        .refuses(2, &["a Bayesian search", "workers cannot share"]);
}
