//! `weir steer` as a process.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Place, signal};

/// A scenario on a model, played for this long.
fn play<'a>(what: &'a str, lasts: &'a str) -> [&'a str; 8] {
    [
        "steer",
        what,
        "--on",
        "gold6130+cxl-a",
        "--scenario",
        "adaptive-bully",
        "--for",
        lasts,
    ]
}

#[test]
fn a_scenario_is_played_kept_explained_and_drawn() {
    let place = Place::new();
    let arguments = [&play("run", "6 s")[..], &["--format", "json"]].concat();
    let done = place.run(&arguments).expect(0);
    let document = done.json();
    assert_eq!(document["schema"], "weir/steer/1");
    let windows = document["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 24, "6 s of 250 ms");
    assert_eq!(windows[0]["sampled"]["parts"], 16);
    assert!(windows[0]["sampled"]["error_pct"]["dram"].as_f64().unwrap() > 0.0);
    assert!(windows[0]["tenants"][0]["error_pct"].as_f64().unwrap() > 0.0);
    for (k, window) in windows.iter().enumerate() {
        let t = window["t_s"].as_f64().unwrap();
        assert!((t - 0.25 * (k + 1) as f64).abs() < 1e-6, "{t}");
        assert!(window["gbps"]["dram"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(
        document["phases"].as_array().unwrap().len(),
        2,
        "5 s, and 1 s of the next"
    );
    let first = &windows[0];
    assert_eq!(
        first["quota_pct"], 100.0,
        "nobody is held before anything is seen"
    );
    let held = windows
        .iter()
        .any(|w| w["quota_pct"].as_f64() < Some(100.0));
    assert!(held, "a tenant is limited later");

    let again = place.run(&arguments).json();
    assert_eq!(
        again["windows"], document["windows"],
        "the same seed, the same windows"
    );

    let table = place.run("runs show 1").expect(0);
    assert!(
        table
            .out()
            .contains("adaptive-bully on gold6130+cxl-a: without limits")
    );
    assert!(table.out().lines().all(|line| line.chars().count() <= 80));
    let csv = place.run("runs export 1 --format csv");
    assert_eq!(csv.out().lines().count(), 25, "{}", csv.out());

    let explained = place.run("steer explain 1 --run 1").expect(0).out();
    for part in [
        "The limit of bully: ",
        "Because:",
        "Tenant bully may be limited:",
        "Tier dram moved",
        "requests waited before the table",
    ] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let none = place.run("steer explain 99999 --run 1");
    assert_eq!(none.code(), 2);

    let report = place.run("report 1 -o -").expect(0);
    assert!(
        report
            .out()
            .contains("Residency: adaptive-bully under weir")
    );
}

#[test]
fn a_program_is_protected_and_its_own_metric_says_by_how_much() {
    let place = Place::new();
    let run = place.run([
        "steer",
        "run",
        "--on",
        "emr2s+cxl-a",
        "--protect",
        "dram:redis-ycsb-a",
        "--rate",
        "40k",
        "--restrain",
        "cxl0:nt_st",
        "--for",
        "1 s",
        "--format",
        "json",
    ]);
    let document = run.expect(0).json();
    let program = &document["phases"][0]["programs"][0];
    assert_eq!(program["tenant"], "dram:redis-ycsb-a");
    let rate = |when: &str| program[when]["rate"].as_f64().unwrap();
    let (alone, free, settled) = (rate("alone"), rate("free"), rate("settled"));
    assert!((alone / 40_000.0 - 1.0).abs() < 0.1, "{alone}");
    assert!(
        free < 0.97 * alone && settled > free,
        "{alone} {free} {settled}"
    );
    let p99 = |when: &str| program[when]["ns"]["p99"].as_f64().unwrap();
    assert!(p99("free") > 2.0 * p99("alone"), "{program}");
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.contains("\n\ndram:redis-ycsb-a: alone "), "{shown}");
    // A sampled part has hardly a request, and thousands of stores.
    let error = |side: &str| {
        document["phases"][0][side]["settled_error_pct"]
            .as_f64()
            .unwrap()
    };
    assert!(error("protected") > 10.0 && error("restrained") < 1.0);
}

#[test]
fn of_several_protected_tenants_the_first_sentence_speaks_of_all() {
    let place = Place::new();
    let run = "steer run --on emr2s+cxl-a --protect dram:pr-kron,dram:ld --restrain cxl0:nt_st --for 500ms";
    let shown = place.run(run).expect(0).out();
    assert!(shown.starts_with("tenants on emr2s+cxl-a: "), "{shown}");
    assert!(shown.contains("\n- dram:pr-kron: alone "), "{shown}");
}

#[test]
fn tenants_of_a_host_and_of_a_model_are_distinguished() {
    let place = Place::new();
    for (on, protect, says) in [
        ("emr2s+cxl-a", "unit:db.service", "TIER:OP or TIER:PROGRAM"),
        ("host", "dram:redis-ycsb-a", "tenant of a model"),
        ("emr2s+cxl-a", "dram:no-such-program", "no-such-program"),
        ("emr2s+cxl-a", "pid:1", "pid 0 and 1"),
    ] {
        let run = place.run([
            "steer",
            "run",
            "--on",
            on,
            "--protect",
            protect,
            "--restrain",
            "cgroup:/b",
        ]);
        let err = run.expect(2).err();
        assert!(err.contains(says), "{protect}: {err}");
    }
}

#[test]
fn a_dry_run_decides_and_holds_nobody() {
    let place = Place::new();
    let arguments = [&play("dry-run", "1 s")[..], &["--format", "json"]].concat();
    let done = place.run(&arguments).expect(0);
    let document = done.json();
    assert_eq!(document["dry"], true);
    let windows = document["windows"].as_array().unwrap();
    assert!(windows.iter().all(|w| w["quota_pct"] == 100.0));
    let decided = windows
        .iter()
        .any(|w| !w["actions"].as_array().unwrap().is_empty());
    assert!(decided, "what would have been done is written down");
}

#[test]
fn top_draws_a_scenario_where_there_is_no_terminal() {
    let place = Place::new();
    let done = place.run(play("top", "1 s")).expect(0);
    assert!(
        done.out()
            .starts_with("gold6130+cxl-a, adaptive-bully under weir"),
        "{}",
        done.out()
    );
    assert!(done.out().contains("4 windows"), "{}", done.out());
    assert!(done.out().lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn what_cannot_be_steered_is_refused_with_what_to_do() {
    let place = Place::new();
    let config = place.file(
        "steer.toml",
        "kind = \"steer\"\n[control]\nfloor_pct = 140\nwindwo = \"1 s\"\n",
    );
    let config = config.to_str().unwrap();
    for (arguments, code, message) in [
        (vec!["steer", "run", "--on", "miku-a"], 2, "--scenario"),
        (
            vec!["steer", "run", "--on", "miku-a", "--scenario", "tetris"],
            2,
            "alternate100s",
        ),
        (
            vec!["steer", "run", "--on", "skx2s", "--scenario", "sql-scan"],
            2,
            "CXL tier",
        ),
        (vec!["steer", "run", "--scenario", "sql-scan"], 2, "--on"),
        (
            "steer run --on miku-a --scenario alternate100s --window 61s"
                .split(' ')
                .collect(),
            2,
            "from 1ms to 60s",
        ),
        (vec!["steer", "run"], 2, "--protect"),
        (
            vec!["steer", "run", "--config", config],
            2,
            "control.floor_pct",
        ),
        (
            vec!["steer", "run", "--config", config],
            2,
            "did you mean `window`?",
        ),
        (
            vec!["steer", "run", "--config", "absent.toml"],
            2,
            "absent.toml",
        ),
        (
            vec![
                "steer",
                "run",
                "--protect",
                "pid:4000000",
                "--restrain",
                "pid:4000000",
                "--fast",
                "110 ns",
            ],
            2,
            "both protected and restrained",
        ),
        (
            vec![
                "steer",
                "run",
                "--protect",
                "cgroup:/a",
                "--restrain",
                "cgroup:/a/b",
                "--fast",
                "110 ns",
            ],
            2,
            "overlaps",
        ),
        (
            vec!["steer", "run", "--protect", "a", "--restrain", "b"],
            2,
            "cgroup:/PATH",
        ),
        (
            vec![
                "steer",
                "run",
                "--protect",
                "cgroup:/a",
                "--restrain",
                "cgroup:/b",
                "--controller",
                "miku",
            ],
            2,
            "`slow_read`",
        ),
        (
            vec!["steer", "status", "--socket", "nobody.sock"],
            1,
            "nobody.sock",
        ),
        (
            vec!["steer", "explain", "--log", "absent.jsonl"],
            2,
            "absent.jsonl",
        ),
        (
            "steer run --on miku-a --scenario hash-map-r0 --log a.jsonl"
                .split(' ')
                .collect(),
            2,
            "cannot be used with '--log",
        ),
        (vec!["steer", "run", "--means", "cores"], 2, "--scenario"),
        (
            vec!["steer", "explain", "soon", "--log", "absent.jsonl"],
            2,
            "`soon`",
        ),
    ] {
        let done = place.run(&arguments);
        assert_eq!(done.code(), code, "{arguments:?}: {}", done.err());
        assert!(
            done.err().contains(message),
            "{arguments:?}: {}",
            done.err()
        );
        assert!(done.out().is_empty(), "{arguments:?}");
    }
}

/// On this machine two processes are watched, and nothing is written; a machine without control groups of
/// version 2 is refused with the code for what is missing. The guests run the first case.
#[test]
fn a_dry_run_on_this_host_tells_how_it_is_or_what_is_missing() {
    let place = Place::new();
    let mut loads: Vec<std::process::Child> = (0..2)
        .map(|_| {
            std::process::Command::new("sleep")
                .arg("60")
                .spawn()
                .unwrap()
        })
        .collect();
    let config = place.file(
        "steer.toml",
        format!(
            "kind = \"steer\"\n[tenants]\nprotect = [\"pid:{}\"]\nrestrain = [\"pid:{}\"]\nown_groups = true\n",
            loads[0].id(),
            loads[1].id()
        ),
    );
    let socket = place.path("steer.sock");
    let log = place.path("steer.jsonl");
    let mut child = place.start([
        "steer",
        "dry-run",
        "--config",
        config.to_str().unwrap(),
        "--controller",
        "isolation",
        "--window",
        "50 ms",
        "--socket",
        socket.to_str().unwrap(),
        "--log",
        log.to_str().unwrap(),
    ]);
    let answered = answer(&socket, &mut child);
    for load in &mut loads {
        load.kill().unwrap();
        load.wait().unwrap();
    }
    match answered {
        Some(text) => {
            let status: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(status["schema"], "weir/steer-status/1");
            assert_eq!(status["dry"], true);
            let looked = place
                .run(["steer", "status", "--socket", socket.to_str().unwrap()])
                .expect(0);
            assert!(looked.out().contains("isolation"), "{}", looked.out());
            signal(&child, "TERM");
            let ended = child.wait().unwrap();
            assert!(ended.success(), "{ended}");
            assert!(!socket.exists(), "the socket is taken away");
            let last = place.run(["steer", "explain", "--log", log.to_str().unwrap()]);
            assert!(last.code() == 0 || last.err().contains("there is no decision"));
        }
        None => {
            let output = child.wait_with_output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{message}");
            assert!(message.contains("control groups"), "{message}");
        }
    }
}

/// A machine whose processor counts demand reads goes on from here; the guests have none.
#[test]
fn tiering_that_this_machine_lacks_is_missing_before_anything_is_changed() {
    if Path::new("/sys/bus/event_source/devices/cpu").exists() {
        return;
    }
    let place = Place::new();
    let (socket, journal) = (place.path("steer.sock"), place.path("journal"));
    let config = place.file(
        "steer.toml",
        format!(
            "kind = \"steer\"\n[tenants]\nprotect = [\"cgroup:/a\"]\nrestrain = [\"cgroup:/b\"]\n\
             [tier]\ncontroller = \"alto\"\npromote_limit = \"1 GB/s\"\n\
             [status]\nsocket = {socket:?}\n[journal]\nfolder = {journal:?}\n"
        ),
    );
    for verb in ["run", "dry-run"] {
        let asked = ["steer", verb, "--controller", "none", "--config"];
        let done = place.run(asked.into_iter().chain(config.to_str()).collect::<Vec<_>>());
        assert_eq!(done.code(), 3, "{}", done.err());
        assert!(done.err().contains("[tier]"), "{}", done.err());
        assert!(!journal.exists() && !socket.exists());
    }
}

/// What a socket reports that knows at least one window; nothing if the process ends instead.
fn answer(socket: &Path, child: &mut std::process::Child) -> Option<String> {
    let patience = Instant::now() + Duration::from_secs(60);
    while Instant::now() < patience {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        if let Ok(mut stream) = UnixStream::connect(socket) {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            if !text.contains("\"windows\":0,") {
                return Some(text);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no line came");
}

/// A journal of an earlier boot, whose changes are gone: its first line, with its checksum.
const JOURNAL: &str = r#"d1c4f157 {"record":"began","form":1,"boot":"another","owner":{"id":1,"start":1}}
"#;

#[test]
fn a_journal_that_cannot_be_read_is_no_all_clear() {
    let place = Place::new();
    let restore = |folder: &str| place.run(["steer", "restore", "--journal", folder]);
    restore("absent").refuses(1, &["there is no journal in absent"]);
    assert!(!place.path("absent").exists());
    std::os::unix::fs::symlink("loop", place.path("loop")).unwrap();
    restore("loop").refuses(1, &["loop"]);
    std::fs::create_dir(place.path("mine")).unwrap();
    let diary = place.file("mine/journal", "today I saw a heron\n");
    restore("mine").refuses(1, &["mine", "give another folder"]);
    assert_eq!(crate::common::text(&diary), "today I saw a heron\n");
    let damaged = place.file("mine/journal", format!("{JOURNAL}0badbad0 {{}}\n"));
    let done = restore("mine").expect(1);
    assert!(
        done.err().contains("lines 2 of the journal are damaged"),
        "{}",
        done.err()
    );
    assert!(done.out().contains("journal.damaged-1"), "{}", done.out());
    assert_ne!(
        crate::common::text(&damaged),
        crate::common::text(&place.path("mine/journal.damaged-1"))
    );

    // A configuration is not needed.
    std::fs::create_dir(place.path("steer")).unwrap();
    place.file("steer/journal", JOURNAL);
    let steer = place.path("steer");
    let folder = format!("[machine]\nfrom = \"/absent\"\n[journal]\nfolder = {steer:?}\n");
    place.file("machine.toml", format!("kind = \"steer\"\n{folder}"));
    place.file("broken.toml", "kind = ");
    for (config, journal) in [("machine.toml", ""), ("broken.toml", "--journal steer")] {
        let done = place.run(format!("steer restore --config {config} {journal}"));
        assert_eq!(done.expect(0).out(), "nothing was left changed\n");
    }
    if !Path::new("/var/lib/weir").exists() {
        for config in ["broken.toml", "absent.toml"] {
            let said = [
                config,
                "warning",
                "there is no journal in /var/lib/weir/steer",
            ];
            place
                .run(["steer", "restore", "--config", config])
                .refuses(1, &said);
        }
        let done = place.run("steer restore").expect(0);
        assert!(
            done.out().contains("there is no journal in"),
            "{}",
            done.out()
        );
    }
}

/// A journal by which a measurement wrote a register of a processor that is not there.
const OF_REGISTER: &str = r#"b0e563da {"record":"writing","path":"/dev/cpu/9999/msr:0x1a4","folder":null,"before":"0x0","text":"0xf"}
70409dfa {"record":"wrote","path":"/dev/cpu/9999/msr:0x1a4","found":"0xf"}
"#;

#[test]
fn a_register_that_cannot_be_restored_is_named_and_kept() {
    let place = Place::new();
    std::fs::create_dir(place.path("bench")).unwrap();
    let journal = place.file("bench/journal", OF_REGISTER);
    for _ in 0..2 {
        let done = place.run("steer restore --journal bench").expect(1);
        let said = done.out().split_whitespace().collect::<Vec<_>>().join(" ");
        let named = "/dev/cpu/9999/msr:0x1a4 was `0x0`: there is no";
        assert!(
            said.contains(named) && said.contains("modprobe msr"),
            "{said}"
        );
        assert!(
            done.err().contains("the journal keeps them"),
            "{}",
            done.err()
        );
        assert!(crate::common::text(&journal).contains("/dev/cpu/9999/msr:0x1a4"));
    }
}

#[test]
fn there_is_a_page_of_the_manual_for_every_verb() {
    let place = Place::new();
    let whole = place.run("man");
    assert_eq!(whole.code(), 0);
    assert!(whole.out().contains(".TH weir 1"), "{}", whole.out());
    let run = place.run("man steer run");
    assert!(run.out().contains("scenario"), "{}", run.out());
    place
        .run("man stear")
        .refuses(2, &["no page for `stear`", "steer"]);
    place.run("man counters-list").refuses(2, &["counters, "]);
    place.run("man --output .").expect(0);
    let version = concat!("\"weir ", env!("CARGO_PKG_VERSION"), "\"");
    let file = crate::common::text(&place.path("weir-steer-run.1"));
    assert!(
        run.out().contains(version) && file.contains(version),
        "{file}"
    );
}

#[test]
fn a_run_on_a_model_says_its_sampling_error() {
    let place = Place::new();
    let loose = [&play("run", "1 s")[..], &["--error", "30%"]].concat();
    let table = place.run(&loose).expect(0).out();
    assert!(table.contains("sampling error"), "{table}");
}

#[test]
fn an_error_that_makes_no_sense_is_refused_in_words() {
    let place = Place::new();
    for (error, message) in [
        ("0%", "above 0 %"),
        ("-1%", "above 0 %"),
        ("100%", "below 100 %"),
        ("nan%", "above 0 %"),
        ("1", "its unit"),
        ("few%", "not a number"),
    ] {
        let done = place.run([&play("run", "1 s")[..], &["--error", error]].concat());
        assert_eq!(done.code(), 2, "{error}");
        assert!(done.err().contains(message), "{error}: {}", done.err());
    }
    let host = place.run("bench latency --error 1%");
    assert_eq!(host.code(), 2);
    assert!(
        host.err().contains("--error is of models"),
        "{}",
        host.err()
    );
    let other = place.run("topo --on emr2s --error 1%");
    assert_eq!(other.code(), 2);
    let close =
        place.run("bench bandwidth --on emr2s --tier dram --op ld --threads 8 --error 0.0001%");
    assert_eq!(close.code(), 1);
    assert!(close.err().contains("did not reach"), "{}", close.err());
}
