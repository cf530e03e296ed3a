//! Real applications of this host, as a process: figures and answers, a server that dies, Weir that is killed or stopped, and
//! what is not installed. Without `redis-server` its tests say that they are skipped.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Done, Place, is_installed, signal};
use weir_lab::workload::application::ApplicationRun;
use weir_model::document::Document;

fn read(done: &Done) -> ApplicationRun {
    let document: Document<ApplicationRun> = serde_json::from_str(&done.out()).unwrap();
    document.output
}

/// The command, whose private folders are in the place.
fn command(place: &Place, arguments: &str) -> Command {
    let folder = place.path("t");
    fs::create_dir_all(&folder).unwrap();
    let mut command = place.command(arguments);
    command
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(place: &Place, arguments: &str) -> Done {
    Done(command(place, arguments).output().unwrap())
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}

/// The server that a command has started, once it holds this much memory.
fn server_of(weir: &Child, kib: u64) -> u32 {
    let id = weir.id();
    wait_for("no server was started", || {
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        let child = children.split_whitespace().next()?.parse().ok()?;
        let status = fs::read_to_string(format!("/proc/{child}/status")).ok()?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let resident: u64 = resident.split_whitespace().next()?.parse().ok()?;
        // A process that only says its version has no socket.
        let line = fs::read_to_string(format!("/proc/{child}/cmdline")).ok()?;
        (line.contains("unixsocket") && resident >= kib).then_some(child)
    })
}

fn is_gone(process: u32) -> Option<()> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    (!status.contains("redis-server") || status.contains("State:\tZ")).then_some(())
}

fn left(place: &Place) -> usize {
    fs::read_dir(place.path("t")).unwrap().count()
}

const REDIS: &str = "workload run redis-ycsb-a --size 4M --connections 4";

#[test]
fn redis_answers_rightly_at_every_rate_and_leaves_nothing() {
    if !is_installed("redis-server") {
        return;
    }
    let place = Place::new();
    let done = run(
        &place,
        &format!("{REDIS} --rate 500,2000 --for 1s --format json"),
    )
    .expect(0);
    let run_of = read(&done);
    let [slow, fast] = run_of.figures.as_slice() else {
        panic!("{run_of:?}");
    };
    for (figure, rate) in [(slow, 500.0), (fast, 2000.0)] {
        assert_eq!(
            (figure.wrong, figure.error.as_deref(), figure.unanswered),
            (0, None, Some(0))
        );
        // Arrivals are drawn: their number is within five standard deviations.
        let offered = figure.offered_per_s.unwrap();
        assert!(
            (offered - rate).abs() < 5.0 * f64::sqrt(rate),
            "{offered} of {rate}"
        );
        assert!(figure.p50_ns <= figure.p99_ns.or(figure.p50_ns));
    }
    assert_eq!(run_of.misplaced(), None);
    assert_eq!(left(&place), 0);

    let closed = run(&place, &format!("{REDIS} --for 300ms")).expect(0);
    let text = closed.out();
    assert!(
        text.contains("answers/s") && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let shown = run(&place, "runs show 1 --format json").expect(0);
    assert_eq!(read(&shown).figures, run_of.figures);
    run(&place, "report 1 --output page.html").expect(0);
}

#[test]
fn every_core_workload_of_ycsb_is_answered_rightly_by_the_server_that_can() {
    let place = Place::new();
    let short = "--size 2M --connections 4 --for 200ms --format json";
    for server in ["redis", "memcached"] {
        if !is_installed(if server == "redis" {
            "redis-server"
        } else {
            server
        }) {
            continue;
        }
        for workload in ["a", "b", "c", "d", "e", "f"] {
            let name = format!("{server}-ycsb-{workload}");
            let done = run(&place, &format!("workload run {name} {short}"));
            if name == "memcached-ycsb-e" {
                done.refuses(2, &["memcached has no scans", "redis-ycsb-e"]);
                continue;
            }
            let run_of = read(&done.expect(0));
            let [figure] = run_of.figures.as_slice() else {
                panic!("{run_of:?}");
            };
            assert_eq!((figure.wrong, figure.error.as_deref()), (0, None), "{name}");
            assert!(figure.answered_per_s > Some(0.0), "{name}");
        }
    }
}

#[test]
fn a_server_that_dies_costs_its_figure_and_no_other() {
    if !is_installed("redis-server") {
        return;
    }
    let place = Place::new();
    let weir = command(
        &place,
        &format!("{REDIS} --rate 200,300 --for 2s --format json"),
    )
    .spawn()
    .unwrap();
    let server = server_of(&weir, 10_000);
    std::thread::sleep(Duration::from_millis(500));
    let killed = Command::new("kill")
        .args(["-9", &server.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let done = Done(weir.wait_with_output().unwrap()).expect(1);
    let figures = read(&done).figures;
    assert_eq!(figures.len(), 2);
    let why = figures[0].error.as_deref().unwrap();
    assert!(
        why.contains("redis-server ended during the run") && why.contains("signal: 9"),
        "{why}"
    );
    assert_eq!((figures[1].error.as_deref(), figures[1].wrong), (None, 0));
    assert!(
        done.err().contains("1 of 2 figures could not be taken"),
        "{}",
        done.err()
    );
    assert_eq!(left(&place), 0);
}

#[test]
fn the_server_ends_with_weir_however_that_ends() {
    if !is_installed("redis-server") {
        return;
    }
    let place = Place::new();
    let long = format!("{REDIS} --rate 200,300 --for 60s --format json");
    let mut weir = command(&place, &long).spawn().unwrap();
    let server = server_of(&weir, 1);
    signal(&weir, "KILL");
    weir.wait().unwrap();
    wait_for("the server outlives Weir", || is_gone(server));
    assert_eq!(left(&place), 1, "its folder is left");

    let weir = command(&place, &long).spawn().unwrap();
    let server = server_of(&weir, 1);
    assert_eq!(
        left(&place),
        1,
        "the folder of the killed run is removed at the next start"
    );
    signal(&weir, "INT");
    let done = Done(weir.wait_with_output().unwrap()).expect(1);
    assert!(done.err().contains("stopped"), "{}", done.err());
    assert_eq!(is_gone(server), Some(()));
    assert_eq!(left(&place), 0);
}

#[test]
fn a_program_that_is_stopped_before_its_first_figure_leaves_no_run_that_cannot_go_on() {
    let place = Place::new();
    let mut weir = command(&place, "workload run pr-kron --size 1G --threads 1");
    let mut weir = weir.spawn().unwrap();
    let mut said = BufReader::new(weir.stderr.take().unwrap()).lines();
    said.find(|line| line.as_ref().unwrap().contains("3 steps"));
    signal(&weir, "INT");
    let rest: Vec<String> = said.map(Result::unwrap).collect();
    assert_eq!(weir.wait().unwrap().code(), Some(1), "{rest:?}");
    let end = "weir: stopped before the first figure: no run is kept";
    assert_eq!(rest.last().unwrap(), end);
    let runs = place.run("runs list --format json").expect(0).json();
    assert_eq!(runs["runs"], serde_json::json!([]));
}

#[test]
fn graph_kernels_and_sqlite_check_their_own_results() {
    let place = Place::new();
    let graphs = ["pr", "bfs", "cc", "bc", "tc"];
    let graphs = graphs
        .iter()
        .flat_map(|kernel| [format!("{kernel}-kron"), format!("{kernel}-urand")]);
    let others = [
        ("dlrm-embedding", 2),
        ("knn-graph", 2),
        ("spark-shuffle", 4),
        ("btree-lookup", 5),
    ];
    let others = others.map(|(name, figures)| (name.to_owned(), figures));
    for (name, figures) in graphs.map(|name| (name, 2)).chain(others) {
        if name == "btree-lookup" && !is_installed("python3") {
            continue;
        }
        let threads = if name == "btree-lookup" {
            ""
        } else {
            "--threads 2"
        };
        let arguments = format!("workload run {name} --size 2M --repeat 2 {threads} --format json");
        let done = run(&place, arguments.trim()).expect(0);
        let run_of = read(&done);
        assert_eq!(
            (run_of.figures.len(), run_of.wrong()),
            (figures, 0),
            "{run_of:?}"
        );
        assert!(
            run_of
                .figures
                .iter()
                .all(|figure| figure.time_ns.is_some() && figure.rows > Some(0)),
            "{name}: {run_of:?}"
        );
        assert!(run_of.misplaced().is_none(), "{run_of:?}");
    }
}

/// The processes that a command has started, by a word of their lines.
fn below(folder: &Path) -> Vec<String> {
    let word = folder.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|one| fs::read_to_string(one.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&word)).collect()
}

#[test]
fn a_chain_of_services_answers_rightly_and_ends_with_weir() {
    let place = Place::new();
    let chain = "workload run service-chain --size 2M --repeat 1";
    let run_of = read(&run(&place, &format!("{chain} --for 300ms --format json")).expect(0));
    let figure = &run_of.figures[0];
    assert_eq!(
        (figure.wrong, figure.unit.as_deref()),
        (0, Some("requests"))
    );
    // Each of the five thinks for a millisecond in the mean.
    assert!(
        figure.p50_ns.is_some_and(|p50| p50.get() > 1e6),
        "{figure:?}"
    );
    assert_eq!(left(&place), 0);
    for end in ["KILL", "INT"] {
        let mut weir = command(&place, &format!("{chain} --for 60s"))
            .spawn()
            .unwrap();
        let folder = place.path("t");
        wait_for("no services were started", || {
            (below(&folder).len() >= 6).then_some(())
        });
        signal(&weir, end);
        weir.wait().unwrap();
        wait_for("services outlive Weir", || {
            below(&folder).is_empty().then_some(())
        });
    }
    assert_eq!(
        left(&place),
        0,
        "the folder of the killed run is removed at the next start"
    );
}

/// A program of ours before, or in place of, all others.
fn with_stand_in(place: &Place, name: &str, script: &str, arguments: &str) -> Done {
    let tools = place.path("tools");
    fs::create_dir_all(&tools).unwrap();
    let program = tools.join(name);
    let write = "printf %s \"$1\" > \"$2\"; chmod +x \"$2\"";
    let written = Command::new("bash")
        .args(["-c", write, "-", script])
        .arg(&program)
        .status();
    assert!(written.unwrap().success());
    Done(
        command(place, arguments)
            .env("PATH", format!("{}:/bin", tools.display()))
            .output()
            .unwrap(),
    )
}

#[test]
fn what_is_missing_or_wrong_is_reported_with_what_to_do() {
    let place = Place::new();
    let without = |workload: &str| {
        let mut weir = command(&place, &format!("workload run {workload} --size 2M"));
        Done(weir.env("PATH", place.path("nothing")).output().unwrap())
    };
    without("redis-ycsb-a").refuses(3, &["apt-get install redis-server"]);
    without("memcached-etc").refuses(3, &["apt-get install memcached"]);
    without("tpch").refuses(3, &["pip install duckdb"]);
    without("tpcds").refuses(3, &["pip install duckdb-extension-tpcds"]);
    without("postgres-tpcb").refuses(3, &["apt-get install python3 postgresql"]);
    without("rocksdb-get").refuses(3, &["rocksdb-tools"]);
    without("llama-decode").refuses(3, &["llama-cpp-python"]);
    without("files-varmail").refuses(3, &["fio"]);
    let lacks = "#!/bin/sh\necho lacks python3 has no module duckdb: pip install duckdb\n";
    with_stand_in(&place, "python3", lacks, "workload run tpch --size 2M")
        .refuses(3, &["pip install duckdb"]);
    let odd = with_stand_in(
        &place,
        "python3",
        "#!/bin/sh\necho figure load -1 x\n",
        "workload run tpch --size 2M",
    );
    let said = odd.expect(1).err();
    assert!(said.contains("wrote `figure load -1 x`"), "{said}");
    let fails = "#!/bin/sh\n[ $1 = --version ] && exit 0\necho no room >&2; exit 7\n";
    let ended = with_stand_in(
        &place,
        "redis-server",
        fails,
        &format!("{REDIS} --rate 10,20"),
    )
    .expect(1);
    // Words of a table are wrapped.
    let said = ended.out().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("(exit status: 7): no room"), "{said}");
    let deaf = "#!/bin/sh\n[ $1 = --version ] && exit 1\n";
    with_stand_in(&place, "redis-server", deaf, REDIS).refuses(3, &["does not say its version"]);

    let refused = |arguments: &str, word: &str| run(&place, arguments).refuses(2, &[word]);
    refused("workload run redis-ycsb-a --repeat 2", "run time");
    refused("workload run pr-kron --rate 5", "servers");
    refused("workload run pr-kron --size 1K", "caches");
    refused("workload run pr-kron --size 900T", "free");
    refused("workload run pr-kron --no-prefetch", "model");
    refused(
        "workload run chase --on emr2s+cxl-a --rate 5",
        "--rate is of real applications",
    );
    refused("workload run chase", "redis-ycsb-a");
    refused("workload run pr-kron --for 2s", "servers");
    refused("workload run redis-ycsb-e --on emr2s", "no model runs it");
    refused("workload run btree-lookup --threads 2", "one thread");
    if is_installed("redis-server") {
        refused("workload run redis-ycsb-a --threads 2", "one thread");
        let long = place.path("d").join("d".repeat(90));
        fs::create_dir_all(&long).unwrap();
        let mut weir = command(&place, REDIS);
        Done(weir.env("TMPDIR", &long).output().unwrap()).refuses(2, &["TMPDIR"]);
        assert!(fs::read_dir(Path::new(&long)).unwrap().next().is_none());
    }
}

#[test]
fn an_application_is_a_tenant_of_interplay_and_leaves_nothing_running() {
    if !is_installed("redis-server") {
        return;
    }
    let place = Place::new();
    let arguments = "interplay --victims dram:redis-ycsb-a --aggressors dram:ld --size 16M --repeat 1 --format json";
    let found: serde_json::Value =
        serde_json::from_str(&run(&place, arguments).expect(0).out()).unwrap();
    let pair = &found["pairs"][0];
    assert_eq!(pair["unit"], "requests/s", "{pair}");
    assert!(
        pair["alone"].as_f64() > Some(0.0) && pair["beside"].as_f64() > Some(0.0),
        "{pair}"
    );
    for latency in ["ns_alone", "ns_beside"] {
        let of = |key: &str| pair[latency][key].as_f64().unwrap();
        assert!(0.0 < of("p50") && of("p50") <= of("p99"), "{pair}");
    }
    // Its private folder is gone with its server.
    assert_eq!(fs::read_dir(place.path("t")).unwrap().count(), 0);
}

#[test]
fn a_tenant_that_is_not_installed_is_named_before_anything_runs() {
    let place = Place::new();
    let mut command = command(
        &place,
        "interplay --victims dram:redis-ycsb-a --aggressors dram:ld",
    );
    let done = Done(command.env("PATH", place.path("empty")).output().unwrap());
    done.refuses(3, &["redis-server is not installed", "apt-get install"]);
}
