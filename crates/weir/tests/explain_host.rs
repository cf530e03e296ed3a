//! `weir explain` of commands and processes of this host, as a process. Where the machine has no
//! counters of its cores, as most virtual ones, time and the kernel's counts remain.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Done, Place, is_installed, signal, text};

const JSON: [&str; 2] = ["--format", "json"];

fn run_of(document: &serde_json::Value) -> &serde_json::Value {
    &document["runs"][0]
}

#[test]
fn a_command_is_explained_in_one_step() {
    let place = Place::new();
    let words = ["explain", "-o", "why.json", "--", "echo", "its own"];
    let done = place.run([&words[..1], &JSON, &words[1..]].concat());
    let done = done.expect(0);
    assert_eq!(done.out(), "its own\n");
    let text = std::fs::read_to_string(place.path("why.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "weir/explain/1");
    assert_eq!(document["machine"]["kind"], "host");
    let run = run_of(&document);
    assert_eq!(
        (&run["workload"], &run["exit_status"]),
        (&"echo its own".into(), &0.into())
    );
    assert!(run["time_ns"].as_f64().unwrap() > 0.0);
    // Either cycles were counted, or it is said why not and nothing is made of them.
    let untold = run["untold"].as_array().cloned().unwrap_or_default();
    let missing = untold.iter().find(|untold| untold["counter"] == "cycles");
    if let Some(missing) = missing {
        assert!(missing["why"].is_string(), "{run}");
        assert!(run["ipc"].is_null() && run["bound"].is_null(), "{run}");
        assert_eq!(run["lost"], serde_json::json!({}));
    } else {
        assert!(run["lost"].is_object(), "{run}");
    }
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.contains("time [ms]"), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    if missing.is_some() {
        assert!(shown.contains("cycles were not counted"), "{shown}");
    }
    let page = place.run("report last -o -").expect(0).out();
    assert!(!page.contains("NaN"));
}

#[test]
fn a_latency_that_belongs_to_no_run_is_refused_before_the_command_runs() {
    let place = Place::new();
    let done = place.run("explain --idle 90,100 -- touch ran");
    let error = done.expect(2).err();
    assert!(error.contains("2 latencies for 1 run"), "{error}");
    assert!(!place.path("ran").exists());
}

#[test]
fn forks_are_counted_with_the_command() {
    let place = Place::new();
    let faults = |script: &str| {
        let done = place.run([&["explain"], &JSON[..], &["--", "sh", "-c", script]].concat());
        run_of(&done.expect(0).json())["kernel"]["page_faults"].as_u64()
    };
    let one = faults("true");
    let many = faults("/bin/true; /bin/true; /bin/true; (/bin/true; /bin/true)");
    // Where this user may count at all.
    if let (Some(one), Some(many)) = (one, many) {
        assert!(many > 2 * one, "{one} and {many}");
    }
}

#[test]
fn how_a_command_ended_is_said_and_passed_on() {
    let place = Place::new();
    let explain = |words: &[&str]| place.run([&["explain", "--"], words].concat());
    let failed = explain(&["sh", "-c", "exit 7"]).expect(7);
    assert!(failed.err().contains("exit status 7"), "{}", failed.err());
    assert!(failed.out().contains("time [ms]"), "{}", failed.out());
    explain(&["sh", "-c", "kill -TERM $$"]).expect(143);
    explain(&["/nowhere/to/be/found"]).refuses(2, &["cannot run `/nowhere/to/be/found`"]);
    // What is over before it could be looked at is named, however fast this machine is.
    let short = explain(&["true"]).expect(0);
    let elapsed = |text: &str| -> Option<f64> {
        let line = text.lines().find(|line| line.contains("time [ms]"))?;
        line.split_whitespace().last()?.parse().ok()
    };
    let ms = elapsed(&short.out()).unwrap();
    assert_eq!(
        short.err().contains("within a millisecond"),
        ms < 1.0,
        "{ms} {}",
        short.err()
    );
}

#[test]
fn a_command_that_is_stopped_is_explained_and_kept_as_a_part() {
    let place = Place::new();
    for (script, code) in [
        ("touch begun; exec sleep 60", None),
        // Its own exit code says nothing of the stop.
        (
            "trap 'exit 0' INT TERM; touch begun; while :; do sleep 0.1; done",
            Some(1),
        ),
    ] {
        let child = place.start(["explain", "--", "sh", "-c", script]);
        let patience = Instant::now() + Duration::from_secs(60);
        while !place.path("begun").exists() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        signal(&child, "INT");
        let done = Done(child.wait_with_output().unwrap());
        assert_ne!(done.code(), 0, "{}", done.err());
        assert!(
            code.is_none_or(|code| code == done.code()),
            "{}",
            done.err()
        );
        let runs = place.run("runs list --format json").expect(0).json();
        assert_eq!(runs["runs"][0]["partial"], true, "{runs}");
        std::fs::remove_file(place.path("begun")).unwrap();
    }
}

#[test]
fn phases_over_time_are_intervals() {
    let place = Place::new();
    let script = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; sleep 0.03; \
                  while [ $i -lt 80000 ]; do i=$((i+1)); done";
    let words = ["explain", "-I", "10", "--", "sh", "-c", script];
    let done = place.run([&words[..1], &JSON, &words[1..]].concat());
    let document = done.expect(0).json();
    let run = run_of(&document);
    // Where the kernel counts nothing for this user, nothing is made up.
    if run["kernel"]["cpu_ns"].is_number() {
        let phases = run["phases"].as_array().unwrap();
        assert!(phases.len() >= 2, "{run}");
        let all: f64 = phases.iter().filter_map(|p| p["share_pct"].as_f64()).sum();
        assert!((all - 100.0).abs() < 1.0, "{all}");
        let table = place.run("runs show last").expect(0).out();
        assert!(table.contains(" s "), "{table}");
        // Intervals without work are rows, too.
        let words = ["explain", "-I", "50", "--", "sleep", "0.4"];
        let idle = place.run([&words[..1], &JSON, &words[1..]].concat());
        let document = idle.expect(0).json();
        let run = run_of(&document);
        let phases = run["phases"].as_array().unwrap();
        assert!(run["ipc"].is_number() || phases.len() > 3, "{run}");
    }
}

#[test]
fn a_process_is_explained_while_a_command_runs_or_until_it_ends() {
    let place = Place::new();
    let mut busy = std::process::Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let pid = busy.id().to_string();
    let during = place.run(
        [
            &["explain", "--pid", &pid],
            &JSON[..],
            &["--", "sleep", "0.1"],
        ]
        .concat(),
    );
    busy.kill().unwrap();
    busy.wait().unwrap();
    // With no counter at all nothing can be said, and that is a missing capability.
    match during.code() {
        0 => {
            let document = during.json();
            let run = run_of(&document);
            assert!(run["workload"].as_str().unwrap().starts_with("process "));
            assert!(run["time_ns"].is_null(), "{run}");
        }
        code => assert_eq!(code, 3, "{}", during.err()),
    }
    let mut idle = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let pid = idle.id().to_string();
    // Its start has to be over.
    let asleep = || text(format!("/proc/{pid}/stat").as_ref()).contains(") S ");
    while !asleep() {
        std::thread::yield_now();
    }
    let nothing = place.run(["explain", "--pid", &pid, "--", "sleep", "0.1"]);
    idle.kill().unwrap();
    idle.wait().unwrap();
    if during.code() == 0 && run_of(&during.json())["kernel"]["cpu_ns"].is_number() {
        let said = format!("process {pid} used no processor time");
        nothing.refuses(2, &[&said]);
    }
    let mut short = std::process::Command::new("sleep")
        .arg("0.3")
        .spawn()
        .unwrap();
    let pid = short.id().to_string();
    let until = place.run(["explain", "--pid", &pid]);
    short.wait().unwrap();
    assert!([0, 3].contains(&until.code()), "{}", until.err());
    place
        .run("explain --pid 4194999")
        .refuses(2, &["no process 4194999", "/proc/4194999/task"]);
    place
        .run([
            "explain",
            "--pid",
            &std::process::id().to_string(),
            "--tier",
            "dram",
            "--",
            "true",
        ])
        .refuses(2, &["stays where it is"]);
}

#[test]
fn a_command_on_tiers_has_its_memory_there_or_is_refused() {
    let place = Place::new();
    // One node, and so nothing to compare with: what is missing is named.
    place
        .run("explain --tier dram --tier cxl7 -- true")
        .refuses(3, &["no tier `cxl7` here; there ", "missing"]);
    place
        .run("explain --tier dram,dram -- true")
        .refuses(2, &["not slower than itself"]);
    place
        .run("explain --on emr2s -- true")
        .refuses(2, &["on this host alone"]);
    place
        .run("explain --no-prefetch -- true")
        .refuses(2, &["--no-prefetch"]);
    place.run("explain").expect(2);
    place.run("explain chase -- true").expect(2);
    let bound = place.run("explain --tier dram -- cat /proc/self/numa_maps");
    // A kernel that places no pages says so.
    if bound.code() == 0 {
        assert!(bound.out().contains(" bind:"), "{}", bound.out());
    } else {
        assert_eq!(bound.code(), 3, "{}", bound.err());
    }
}

/// A program of Weir's own, with little data.
#[test]
fn a_command_is_compared_with_itself_beside_an_application() {
    let place = Place::new();
    let column = include_str!("../../../workloads/scan-column.toml");
    let column = column
        .replace("16 GiB", "8 MiB")
        .replace("512 MiB", "256 KiB");
    place.file("column.toml", column);
    let words = "explain --beside dram:column.toml --format json -o why.json -- sleep 0.2";
    let done = place.run(words);
    if std::thread::available_parallelism().unwrap().get() < 2 {
        done.refuses(3, &["need two cores"]);
        return;
    }
    done.expect(0);
    let text = std::fs::read_to_string(place.path("why.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let beside = |index: usize| document["runs"][index]["beside"].as_str();
    assert_eq!([beside(0), beside(1)], [None, Some("dram:column.toml")]);
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.contains("the figures have no interval"), "{shown}");
    // A description without a real program.
    place
        .run("explain --beside dram:chase -- true")
        .refuses(2, &["whose real program the host runs"]);
    place
        .run("explain --beside dram:!nap -- true")
        .refuses(2, &["`dram:!nap` is a command", "weir interplay --command"]);
}

/// What `perf stat` writes where the processor has no counters to give.
fn timed(seconds: &str) -> String {
    format!(
        " Performance counter stats for './service':\n\n     1,200,000      task-clock\n   \
         <not supported>      cycles\n           140      page-faults\n\n      {seconds} seconds time elapsed\n"
    )
}

#[test]
fn two_files_without_cycles_are_compared_by_their_times() {
    let place = Place::new();
    place.file("near.txt", timed("2.000000000"));
    place.file("far.txt", timed("3.000000000"));
    let words = ["explain", "--counters", "near.txt", "--against", "far.txt"];
    let document = place.run([&words[..], &JSON].concat()).expect(0).json();
    let difference = &document["difference"];
    assert_eq!(difference["by"], "time");
    assert_eq!(difference["slowdown_pct"], 50.0);
    assert_eq!(difference["components"], serde_json::json!({}));
    let table = place.run(words).expect(0).out();
    assert!(
        table.contains("slower by time; causes are unknown"),
        "{table}"
    );
}

/// Servers that this command has started and not ended.
fn servers_of(weir: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{weir}/task"));
    let of = |task: std::fs::DirEntry| {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let ids = children.split_whitespace().filter_map(|id| id.parse().ok());
        ids.collect::<Vec<u32>>()
    };
    tasks.into_iter().flatten().flatten().flat_map(of).collect()
}

/// The command, whose private folders are in the place.
fn with_own_folder(place: &Place, words: &[&str]) -> Command {
    let folder = place.path("t");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = place.command(words);
    command.env("TMPDIR", folder);
    command
}

/// Private folders of servers that were not ended.
fn left(place: &Place) -> usize {
    std::fs::read_dir(place.path("t")).unwrap().count()
}

#[test]
fn a_preset_is_started_observed_explained_and_ended() {
    let place = Place::new();
    for (program, name) in [
        ("redis-server", "redis-ycsb-a"),
        ("memcached", "memcached-ycsb-c"),
    ] {
        if !is_installed(program) {
            let done = place.run(["explain", name]);
            done.refuses(3, &["not installed", "apt-get install"]);
            continue;
        }
        let words = [
            "explain", name, "--size", "8M", "--for", "600ms", "-I", "200",
        ];
        let done = with_own_folder(&place, &[&words[..], &JSON].concat()).output();
        let document = crate::common::Done(done.unwrap()).expect(0).json();
        assert_eq!(left(&place), 0);
        let run = run_of(&document);
        assert_eq!(
            (&run["workload"], &run["tier"]),
            (&name.into(), &"dram".into())
        );
        // Its own metric, its memory, and how long it was looked at are known on any host.
        assert_eq!(run["metric"]["unit"], "requests/s");
        assert!(run["metric"]["rate"].as_f64() > Some(0.0), "{run}");
        assert!(run["metric"]["ns"]["p50"].as_f64() > Some(0.0), "{run}");
        assert!(run["memory"].as_u64() > Some(8 << 20), "{run}");
        assert!(run["time_ns"].as_f64() >= Some(600e6), "{run}");
        let untold = run["untold"].as_array().cloned().unwrap_or_default();
        if untold.iter().any(|untold| untold["counter"] == "cycles") {
            assert!(run["bound"].is_null() && run["ipc"].is_null(), "{run}");
            let shown = place.run("runs show last").expect(0).out();
            assert!(shown.contains("cycles were not counted"), "{shown}");
            assert!(shown.contains("requests/s, p50"), "{shown}");
            assert!(
                shown.lines().all(|line| line.chars().count() <= 80),
                "{shown}"
            );
        }
        if run["kernel"]["cpu_ns"].is_number() {
            assert!(
                run["phases"].as_array().is_some_and(|all| all.len() >= 2),
                "{run}"
            );
        }
    }
}

#[test]
fn a_preset_that_dies_while_it_is_observed_is_not_explained() {
    if !is_installed("redis-server") {
        return;
    }
    let place = Place::new();
    let words = ["explain", "redis-ycsb-a", "--size", "4M", "--for", "60s"];
    let mut command = with_own_folder(&place, &[&words[..], &JSON].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let weir = command.spawn().unwrap();
    let began = Instant::now();
    let server = loop {
        let loaded = |pid: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let pages = status
                .split(' ')
                .nth(1)
                .and_then(|pages| pages.parse::<u64>().ok());
            // Pages of 4 KiB of the server and its data.
            line.contains("unixsocket") && pages > Some(3000)
        };
        if let Some(server) = servers_of(weir.id()).into_iter().find(loaded) {
            break server;
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "no server was started"
        );
        std::thread::sleep(Duration::from_millis(10));
    };
    // Until its data are loaded and it is observed.
    std::thread::sleep(Duration::from_secs(1));
    let killed = Command::new("kill")
        .args(["-9", &server.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let done = crate::common::Done(weir.wait_with_output().unwrap());
    done.refuses(1, &["redis-server ended during the run", "signal: 9"]);
    assert_eq!(left(&place), 0);
    assert_eq!(
        place
            .run("runs list --format csv")
            .expect(0)
            .out()
            .lines()
            .count(),
        1
    );
}

#[test]
fn a_program_of_a_description_is_explained_beside_another_and_without_one_refused() {
    let place = Place::new();
    let column = include_str!("../../../workloads/scan-column.toml");
    place.file("large.toml", column);
    let column = column
        .replace("16 GiB", "8 MiB")
        .replace("512 MiB", "256 KiB");
    place.file("column.toml", column);
    place.file(
        "other.toml",
        std::fs::read(place.path("column.toml")).unwrap(),
    );
    if std::thread::available_parallelism().unwrap().get() > 1 {
        let words = "explain column.toml --for 300ms --beside dram:other.toml --format json";
        let document = place.run(words).expect(0).json();
        let of = |index: usize, key: &str| document["runs"][index][key].clone();
        assert_eq!(of(0, "beside"), serde_json::Value::Null);
        assert_eq!(of(1, "beside"), "dram:other.toml");
        if of(0, "ipc").is_null() && of(1, "metric").is_object() {
            assert_eq!(document["difference"]["by"], "rate", "{document}");
        }
        // Both have the size that was asked for.
        let words =
            "explain column.toml --size 8M --for 300ms --beside dram:large.toml --format json";
        let document = place.run(words).expect(0).json();
        let warnings = document["warnings"].to_string();
        assert!(!warnings.contains("the data take"), "{warnings}");
        let shown = place.run("explain column.toml --for 300ms").expect(0);
        let begins = shown.err().starts_with("column on host: 2 steps");
        assert!(begins, "{}", shown.err());
    }
    for (words, code, said) in [
        ("explain chase", 2, "only a model runs a description"),
        ("explain column.toml --rate 1000", 2, "--rate is of a model"),
        (
            "explain column.toml --no-prefetch",
            2,
            "--no-prefetch is of a model",
        ),
        ("explain column.toml --for 1ms", 2, "--for is from 100 ms"),
        ("explain column.toml --tier cxl7", 3, "cxl7"),
        (
            "explain chase --on emr2s+cxl-a --for 1s",
            2,
            "--for is of what runs on this host",
        ),
        (
            "explain chase --on emr2s+cxl-a -I 100",
            2,
            "--interval is of what runs on this host",
        ),
        ("explain --for 1s -- true", 2, "--for"),
    ] {
        place.run(words).refuses(code, &[said]);
    }
}
