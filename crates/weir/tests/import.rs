//! `weir runs import` as a process: what other tools wrote becomes a run that the other verbs take.

use crate::common::Place;

const MLC: &str = include_str!("../../weir-lab/src/import/samples/mlc.txt");
const PERF: &str = include_str!("../../weir-lab/src/import/samples/perf.csv");
const PCM: &str = include_str!("../../weir-lab/src/import/samples/pcm-memory.csv");

/// The figures of a document, without the places that they are from.
fn figures(document: &serde_json::Value) -> Vec<String> {
    let points = document["points"].as_array().unwrap().iter();
    let mut all: Vec<String> = points
        .map(|point| {
            let mut point = point.clone();
            point.as_object_mut().unwrap().remove("conditions");
            point.to_string()
        })
        .collect();
    all.sort();
    all
}

#[test]
fn mlc_becomes_a_run_that_is_shown_compared_reported_and_a_baseline() {
    let place = Place::new();
    place.file("mlc.txt", MLC);
    let done = place.run("runs import mlc.txt --tier 2=cxl0").expect(0);
    let (out, err) = (done.out(), done.err());
    assert!(out.contains("Latency of a dependent load"), "{out}");
    assert!(out.contains("cxl0"), "{out}");
    // MLC's delay is no time.
    assert!(
        out.contains("inject  traffic") && !out.contains("pause"),
        "{out}"
    );
    assert!(
        err.contains("warning: 1 line was not understood: mlc.txt:36"),
        "{err}"
    );
    let shown = place.run("runs show 1 --format json").expect(0).json();
    assert_eq!(shown["points"].as_array().unwrap().len(), 20);
    assert_eq!(shown["points"][0]["conditions"][0], "mlc.txt:6");
    assert_eq!(shown["points"][0]["conditions"][1], "Intel MLC v3.11a");
    let listed = place.run("runs list").expect(0).out();
    assert!(listed.contains("import mlc"), "{listed}");
    // A machine whose figures are worse fails against it.
    let slower = MLC.replace("301.0", "90.0");
    place.file("slower.txt", slower);
    place
        .run("runs import slower.txt --tier 2=cxl0 --machine other")
        .expect(0);
    let compared = place.run("runs compare 1 2 --format json").expect(0).json();
    assert_eq!(compared["comparisons"][0]["a"]["machine"], "mlc");
    place.run("report 1 -o page.html").expect(0);
    let asked = "accept --on emr2s+cxl-a --quick --baseline 2 --format json";
    let document = place.run(asked).expect(4).json();
    let checks = document["checks"].as_array().unwrap();
    let failed = |tier: &str, what: &str| {
        let own = checks
            .iter()
            .find(|c| c["tier"] == tier && c["what"] == what);
        own.unwrap()["passed"] == false
    };
    assert!(failed("cxl0", "latency"));
    assert!(checks.iter().all(|check| check["what"] != "capacity"));
}

/// A median, a number of threads, cores and a size are shown where a file has them.
#[test]
fn what_a_file_does_not_say_is_not_shown_as_a_figure() {
    let place = Place::new();
    place.file("bwlat_100.txt", "200000\t500\n2000\t220\n");
    let out = place.run("runs import bwlat_100.txt --clock 1GHz");
    let out = out.expect(0).out();
    assert!(
        out.contains("Latency on dram with an unknown number of threads of load, reads"),
        "{out}"
    );
    assert!(!out.contains("p50") && !out.contains("pause"), "{out}");
    let page = place.run("report last -o -").expect(0).out();
    for wrong in ["0 cores", ", 0 B", "0 ld threads"] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    // And a time has its unit.
    let perf = " Performance counter stats for 'job':\n\n     1.50 msec task-clock:u\n     140      page-faults\n";
    place.file("perf.txt", perf);
    let read = place.run("runs import perf.txt --format json").expect(0);
    let read = read.json()["readings"].clone();
    let clock = read
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["known_as"] == "task-clock");
    let clock = clock.unwrap();
    assert_eq!(
        (&clock["value"], &clock["unit"]),
        (&1.5e6.into(), &"ns".into())
    );
}

#[test]
fn what_is_exported_for_a_tool_is_imported_again_as_it_was() {
    let place = Place::new();
    place.file(
        "bwlat_50.txt",
        "150000.5\t600.25\n90000\t300\n1000\t220.5\n",
    );
    place.file("bwlat_100.txt", "200000\t500\n2000\t220\n");
    let words = "runs import bwlat_50.txt bwlat_100.txt --clock 1GHz --format json";
    let first = place.run(words).expect(0).json();
    std::fs::create_dir(place.path("curves")).unwrap();
    place.run("runs export 1 --as mess -o curves").expect(0);
    let words =
        "runs import curves/dram-bwlat_50.txt curves/dram-bwlat_100.txt --clock 1GHz --format json";
    let again = place.run(words).expect(0).json();
    assert_eq!(figures(&first), figures(&again));
    place.file(
        "stream.csv",
        "threads,copy,scale,add,triad\n1,8140.5,6716,,6852\n10,21356,21100,22000,22010\n",
    );
    let first = place
        .run("runs import stream.csv --tier cxl0 --format json")
        .expect(0)
        .json();
    place
        .run("runs export 3 --as streamer -o again.csv")
        .expect(0);
    let again = place
        .run("runs import again.csv --tier cxl0 --format json")
        .expect(0)
        .json();
    assert_eq!(figures(&first), figures(&again));
    place.run("runs compare 3 stream.csv").expect(0);
    place
        .run("runs export 3 --as mess")
        .refuses(2, &["no latency under load"]);
}

#[test]
fn counters_and_values_over_time_are_kept_and_counters_are_read_by_run() {
    let place = Place::new();
    place.file("perf.csv", PERF);
    place.file("pcm.csv", PCM);
    place.run("runs import perf.csv --cpu spr").expect(0);
    let theirs = place
        .run("counters show perf.csv --cpu spr --format json")
        .expect(0)
        .json();
    let kept = place.run("counters show 1 --format json").expect(0).json();
    assert_eq!(theirs["total"], kept["total"]);
    let document = place
        .run("runs import pcm.csv --format json")
        .expect(0)
        .json();
    assert_eq!(document["schema"], "weir/readings/1");
    assert_eq!(document["readings"].as_array().unwrap().len(), 39);
    let shown = place.run("runs show 2").expect(0).out();
    assert!(shown.contains("2.73 GB/s read"), "{shown}");
    assert_eq!(
        place.run("runs show 2 --format json").expect(0).json()["readings"],
        document["readings"]
    );
    let csv = place.run("runs export 2 --as csv").expect(0).out();
    assert_eq!(csv.lines().count(), 40, "{csv}");
    place.run("report 2 -o page.html").expect(0);
    place
        .run("counters show 2")
        .refuses(2, &["run 2 is not of perf stat"]);
}

#[test]
fn files_of_no_tool_and_wrong_values_are_refused() {
    let place = Place::new();
    place.file("notes.txt", "nothing here\n");
    place.run("runs import notes.txt").refuses(
        2,
        &[
            "notes.txt: which tool wrote this is not clear",
            "perf-stat, pcm",
        ],
    );
    place.run("runs import notes.txt --as mlc").refuses(
        2,
        &[
            "notes.txt: nothing in it is of mlc",
            "notes.txt:1: nothing here",
        ],
    );
    place
        .run("runs import notes.txt --as vtune")
        .refuses(2, &["no tool is called `vtune`"]);
    place.run("runs import none.txt").refuses(2, &["none.txt"]);
    place.file("mlc.txt", MLC.replace("180.5", "far"));
    place
        .run("runs import mlc.txt")
        .refuses(2, &["mlc.txt:6: `from node 0 to node 1` is `far`"]);
    // Nothing of a refused file is kept.
    assert!(!place.store().exists());
}
