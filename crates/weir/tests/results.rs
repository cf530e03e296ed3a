//! Results: whole on standard output, in documents that read back, and nothing else besides them.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Done, Place, SMALL, signal, text, with};
use weir::documents::{PlatformsDocument, RecordDocument, RunsDocument, TopoDocument};
use weir_lab::reproduce::Reproduction;
use weir_model::document::{BenchDocument, Document};

/// A document that reads back and says the same again.
#[track_caller]
fn reads_back<D: serde::Serialize + serde::de::DeserializeOwned>(done: &Done) -> D {
    let document: D = serde_json::from_slice(&done.0.stdout).unwrap();
    assert_eq!(serde_json::to_value(&document).unwrap(), done.json());
    document
}

#[test]
fn every_json_document_reads_back_into_its_type() {
    let place = Place::new();
    let json = |arguments: &str| place.run(with(arguments, "--format json")).expect(0);

    let topo: TopoDocument = reads_back(&json("topo --on emr2s+2xcxl-a"));
    assert_eq!(topo.schema, TopoDocument::SCHEMA);
    assert!(topo.topology.tiers.len() >= 3);

    let platforms: PlatformsDocument = reads_back(&json("platforms list"));
    assert!(platforms.platforms.iter().any(|p| p.name == "emr2s"));
    assert_eq!(
        json("platforms show emr2s").json()["schema"],
        "weir/platform/1"
    );

    let bench: BenchDocument = reads_back(&json(SMALL));
    assert_eq!(bench.header.schema, BenchDocument::SCHEMA);
    assert_eq!(
        bench.points.len(),
        2 * 2 * bench.header.topology.tiers.len()
    );
    assert!(!bench.header.partial);
    assert!(
        bench
            .points
            .iter()
            .all(|p| p.gbps.is_some_and(|g| g.get() > 0.0))
    );

    let again: BenchDocument = reads_back(&json("runs show last"));
    assert_eq!(again, bench, "the store gives back what was printed");

    let page = place.run("report --format json -o page.html").expect(2);
    assert!(page.err().contains("weir runs export"), "{}", page.err());
    assert!(!place.path("page.html").exists());

    let reproduce: Document<Reproduction> = reads_back(&json("reproduce --only SUP-00"));
    assert!(!reproduce.output.rows.is_empty());

    let runs: RunsDocument = reads_back(&json("runs list"));
    assert_eq!(runs.runs.len(), 2);
    let record: RecordDocument = reads_back(&place.run("runs export 1 --as record").expect(0));
    assert_eq!(record.records.len(), bench.points.len());
}

#[test]
fn the_same_seed_gives_the_same_points() {
    let place = Place::new();
    let points = |seed: &str| {
        place
            .run(with(SMALL, ["--format", "json", "--seed", seed]))
            .expect(0)
            .json()["points"]
            .clone()
    };
    assert_eq!(points("7"), points("7"));
}

#[test]
fn csv_has_a_head_and_a_row_for_each_figure() {
    let place = Place::new();
    let csv = place.run(with(SMALL, "--format csv")).expect(0).out();
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("machine,experiment,tier,op,"));
    assert!(lines.len() > 4 && lines[1].starts_with("emr2s+cxl-a,bandwidth,dram,ld,"));

    place.run("runs export last --as csv -o run.csv").expect(0);
    assert_eq!(text(&place.path("run.csv")), csv);
    place
        .run("runs export last --as parquet -o run.parquet")
        .expect(0);
    let piped = place.run("runs export last --as parquet").expect(0);
    let file = std::fs::read(place.path("run.parquet")).unwrap();
    assert!(piped.0.stdout == file && file.starts_with(b"PAR1"));
    // The ending says the format, and a list is of rows.
    place.run("runs export last -o again.csv").expect(0);
    assert_eq!(text(&place.path("again.csv")), csv);
    place
        .run("runs export last --frame nope -o run.json")
        .refuses(2, &["--frame nope"]);
    place
        .run("runs export last --frame nope -o none.csv")
        .refuses(2, &["`nope`"]);
}

#[test]
fn csv_of_every_verb_has_all_columns_in_every_row() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    for arguments in [
        "topo --on spr2s+cxl-b",
        "topo",
        "platforms list",
        "platforms show memo",
        "bench latency --on emr2s --size 4K,1G",
        "reproduce --only MEM-02",
        "runs list",
        "tour --on memo+none --beside memo+none",
    ] {
        let done = place.run(with(arguments, "--format csv")).expect(0);
        let mut reader = csv::Reader::from_reader(done.0.stdout.as_slice());
        let columns = reader.headers().unwrap().len();
        let rows: Vec<_> = reader.records().collect::<Result<_, _>>().unwrap();
        assert!(columns > 2 && !rows.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_tour_of_the_machine_that_it_compares_with_measures_it_once() {
    let place = Place::new();
    let tour = place.run("tour --on memo+none --beside memo+none");
    assert!(tour.expect(0).err().contains("measured once"));
    let runs = place.run("runs list --format json").expect(0).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn tables_are_ascii_where_the_locale_is() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    place.run(SMALL).expect(0);
    for words in [
        "topo --on emr2s",
        "platforms list",
        "platforms show emr2s",
        "runs list",
        "runs compare 1 2",
        "counters list --on emr2s",
        "workload list",
        "workload show gcc-like",
        "place --size 1M",
    ] {
        let mut command = place.command(words);
        let done = command.env("LC_ALL", "C").output().unwrap();
        assert!(!done.stdout.is_empty() && done.stdout.is_ascii(), "{words}");
    }
}

#[test]
fn tables_fit_eighty_columns() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    for arguments in [
        "topo",
        "topo --on emr2s+cxl-a+cxl-b+cxl-c+cxl-d",
        "platforms list",
        "platforms show interplay-a",
        "bench latency --op ld --size 4K,1G --on miku-a+cxl-b --quick",
        "bench bandwidth --on emr2s --threads 1,2,32",
        "reproduce --only MEM-02",
        "runs list",
        "runs show 1",
    ] {
        let out = place.run(arguments).expect(0).out();
        assert!(out.lines().count() > 2, "{arguments:?}");
        for line in out.lines() {
            assert!(
                line.chars().count() <= 80,
                "{arguments:?} is too wide:\n{line}"
            );
        }
    }
}

#[test]
fn a_limit_beyond_the_socket_names_its_link() {
    let place = Place::new();
    let on = ["topo", "--on", "emr2s+cxl-a@remote", "--format", "json"];
    let json = place.run(on).expect(0).json();
    for tier in json["topology"]["tiers"].as_array().unwrap() {
        let basis = tier["limits"]["basis"].as_str().unwrap();
        let behind = tier["name"] != "dram";
        assert_eq!(
            basis.contains("socket link, as measured"),
            behind,
            "{basis}"
        );
    }
}

#[test]
fn standard_output_carries_results_only_and_quiet_silences_the_rest() {
    let place = Place::new();
    let loud = place.run(with(SMALL, "--format json")).expect(0);
    loud.json();
    assert!(loud.err().contains("steps"), "{}", loud.err());
    let quiet = place.run(with(SMALL, "--format json --quiet")).expect(0);
    let warnings_only = quiet
        .err()
        .lines()
        .all(|line| line.starts_with("weir: warning: "));
    assert!(warnings_only, "{}", quiet.err());
    // Papers are of many models, and of no machine.
    let rows = place.run("reproduce flac --only FLA-001 --format json");
    let rows = rows.expect(0);
    assert!(rows.err().contains("reproduce: 21 steps"), "{}", rows.err());
}

#[test]
fn a_run_that_is_done_is_shown_again_without_its_machine() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    let db = rusqlite::Connection::open(place.store()).unwrap();
    db.execute("UPDATE runs SET digest = 'another'", [])
        .unwrap();
    let again = place.run("runs resume 1").expect(0);
    let shown = place.run("runs show 1").expect(0).out();
    assert!(shown.ends_with(&again.out()) && again.out().contains("Bandwidth of"));
    assert_eq!(again.err(), "run 1 is done, and lacks nothing\n");
}

#[test]
fn a_run_that_is_named_twice_is_exported_once() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    let rows = |runs: &str| {
        let words = format!("runs export {runs} --as csv");
        place.run(words).expect(0).out()
    };
    assert_eq!(rows("1 last"), rows("1"));
}

#[test]
fn runs_without_a_figure_in_common_are_refused_with_what_each_has() {
    let place = Place::new();
    for words in ["bandwidth --tier dram --op ld --threads 1", "nodes"] {
        let words = format!("bench {words} --on emr2s+cxl-a");
        place.run(words.as_str()).expect(0);
    }
    for format in ["table", "json"] {
        let words = format!("runs compare 1 2 --format {format}");
        place.run(words.as_str()).refuses(
            2,
            &["runs 1 and 2 have no figures in common: run 1 has bandwidth ld of dram; run 2 has "],
        );
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let place = Place::new();
    let mut child = place.command("platforms show emr2s");
    let mut child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = Done(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(done.err(), "");
}

/// It ended at 24 columns, so that a machine had the name of another one.
#[test]
fn a_bar_on_a_terminal_has_the_whole_name_of_the_machine() {
    let place = Place::new();
    let weir = format!(
        "{} bench nodes --on spr2s+2xcxl-a",
        env!("CARGO_BIN_EXE_weir")
    );
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qec", &weir, "/dev/null"]);
    let done = (terminal
        .env("WEIR_STORE", place.store())
        .env("TERM", "xterm"))
    .stdin(Stdio::null())
    .output()
    .unwrap();
    let shown = Done(done).expect(0).out();
    assert!(shown.contains("bench nodes on spr2s+2xcxl-a "), "{shown}");
}

#[test]
fn results_that_cannot_be_written_are_reported() {
    let place = Place::new();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = Done(place.command(SMALL).stdout(full()).output().unwrap()).expect(1);
    assert!(done.err().contains("standard output"), "{}", done.err());
    // Nor is a closed output one that takes them.
    let closed = place.under_shell("exec >&-", SMALL).output().unwrap();
    let said = Done(closed).expect(1).err();
    assert!(said.contains("cannot write to standard output"), "{said}");
    // What could not be printed is kept all the same.
    assert_eq!(
        place.run("runs list --format json").json()["runs"][0]["partial"],
        false
    );
    // And no process is left to read this one.
    Done(
        place
            .command("runs show 9")
            .stderr(full())
            .output()
            .unwrap(),
    )
    .expect(2);
}

#[test]
fn the_report_stands_alone_and_names_its_runs() {
    let place = Place::new();
    place.run(SMALL).expect(0);
    place
        .run("bench latency --on emr2s+cxl-a --op ld --size 4K,1M,64M")
        .expect(0);
    place.run("report 1 2 -o page.html").expect(0);
    let page = text(&place.path("page.html"));
    for needed in [
        "<svg",
        "run 1 ·",
        "run 2 ·",
        "prefers-color-scheme",
        "save figure",
        "<title>",
        "L1d",
    ] {
        assert!(page.contains(needed), "{needed}");
    }
    let fetched = ["src=", "<link", "@import", "url("];
    assert!(
        fetched.iter().all(|f| !page.contains(f)),
        "the page fetches something"
    );
    let addresses = page.matches("http").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count()
    );
    assert_eq!(place.run("report 1 2 -o -").expect(0).out(), page);
}

#[test]
fn a_report_of_published_figures_alone_says_of_which_paper_they_are() {
    let place = Place::new();
    place.run("reproduce --only MEM-02").expect(0);
    place.run("report 1 -o page.html").expect(0);
    let page = text(&place.path("page.html"));
    assert!(page.contains("<h2>Figures</h2>") && page.contains("<p>memo</p>"));
    assert!(!page.contains("Other runs"));
}

#[test]
fn a_platform_file_of_a_user_is_a_machine() {
    let place = Place::new();
    let card = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms/cxl-a.toml");
    place.file("my-card.toml", text(&card));
    place.run("platforms check my-card.toml").expect(0);
    // Alone it is no machine, but its numbers can be seen.
    let show = |what| {
        place
            .run(["platforms", "show", what, "--format", "csv"])
            .expect(0)
    };
    let rows = show("my-card.toml").out();
    assert!(rows.contains("my-card,lanes,8,"), "{rows}");
    let built_in = show("cxl-a").out();
    assert_eq!(rows.replace("my-card,", "cxl-a,"), built_in);
    assert!(show("emr2s+my-card.toml").out().contains("cxl0: my-card,"));
    let on = ["--on", "emr2s+2x./my-card.toml", "--format", "json"];
    let topo = place.run(with("topo", on)).expect(0).json();
    assert_eq!(topo["machine"]["name"], "emr2s+2xmy-card");
}

#[test]
fn an_empty_name_of_the_store_is_refused_with_the_variable_that_has_it() {
    let place = Place::new();
    let empty = |words: &str, variable: &str| {
        let output = place.command(words).env("WEIR_STORE", variable).output();
        Done(output.unwrap())
    };
    empty("runs list", "").refuses(2, &["the variable WEIR_STORE is empty; unset it"]);
    empty("runs list --store=", "runs.sqlite").refuses(2, &["an empty text names no file"]);
}

/// The XDG base directory specification permits absolute paths only.
#[test]
fn a_relative_home_keeps_no_runs() {
    let place = Place::new();
    for variable in ["HOME", "XDG_DATA_HOME"] {
        let mut command = place.command("bench latency --on emr2s --quick");
        command.env_remove("WEIR_STORE").env_remove("XDG_DATA_HOME");
        command.env("HOME", "relative").env(variable, "relative");
        let done = Done(command.output().unwrap());
        done.refuses(2, &["no home directory", "--store"]);
        assert!(!place.path("relative").exists());
    }
}

#[test]
fn a_run_that_was_stopped_before_it_had_figures_is_not_compared() {
    let place = Place::new();
    let search = place.start("place neighbours --on emr2s+2xcxl-d@interleaved@switch");
    place.wait_for_figures(0);
    signal(&search, "INT");
    Done(search.wait_with_output().unwrap()).expect(1);
    place
        .run("runs compare 1 1")
        .refuses(2, &["run 1 has no figures to compare; `weir runs show 1`"]);
}
