//! Counters from files: explained, predicted and evaluated, by the command.

use std::fmt::Write as _;

use crate::common::{Place, SMALL};
use serde_json::json;

/// What `perf stat -x,` writes, of a core that loses 30 % of its cycles to misses.
const LOCAL: &[(&str, u64)] = &[
    ("CPU_CLK_UNHALTED.THREAD", 10_000_000_000),
    ("INST_RETIRED.ANY", 4_000_000_000),
    ("EXE_ACTIVITY.BOUND_ON_LOADS", 5_000_000_000),
    ("MEMORY_ACTIVITY.STALLS_L1D_MISS", 4_500_000_000),
    ("MEMORY_ACTIVITY.STALLS_L2_MISS", 4_000_000_000),
    ("MEMORY_ACTIVITY.STALLS_L3_MISS", 3_000_000_000),
    ("EXE_ACTIVITY.BOUND_ON_STORES", 200_000_000),
    ("OFFCORE_REQUESTS.DEMAND_DATA_RD", 20_000_000),
    (
        "OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DEMAND_DATA_RD",
        3_500_000_000,
    ),
    ("OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD", 5_000_000_000),
    ("MEM_LOAD_RETIRED.FB_HIT", 3_000_000),
    ("MEM_LOAD_RETIRED.L1_MISS", 30_000_000),
];

fn perf(events: impl IntoIterator<Item = (&'static str, u64)>) -> String {
    let mut text = String::new();
    for (event, value) in events {
        let _ = writeln!(text, "{value},,{event},1000000000,100.00,,");
    }
    text
}

fn local() -> String {
    perf(LOCAL.iter().copied())
}

/// The same work with 3.2e9 more cycles of misses, and 0.3e9 of nothing that is counted.
fn slower() -> String {
    perf(LOCAL.iter().map(|&(event, value)| match event {
        "CPU_CLK_UNHALTED.THREAD" => (event, value + 3_500_000_000),
        stalls if stalls.contains("STALLS_") || stalls.ends_with("ON_LOADS") => {
            (event, value + 3_200_000_000)
        }
        _ => (event, value),
    }))
}

/// A model whose every constant can be checked by hand.
fn model(place: &Place) -> String {
    let model = json!({
        "schema": "weir/slowdown-model/1",
        "weir": "0",
        "machine": {"kind": "sim", "name": "emr2s+cxl-a", "digest": "0"},
        "processor": "emerald-rapids, 32 cores a socket",
        "from": "dram",
        "to": "cxl0",
        "prefetch": "sapphire_rapids",
        "constants": {"k1": 1.0, "k2": 2.0, "k3": 0.5, "k4": 0.0, "p": 17.5, "q": 0.9},
        "unloaded": 250.0,
        "aol_range": [20.0, 260.0],
        "fitted_on": [],
        "rejected": [{"of": "dram_bound", "slope": 1.0, "intercept": 0.0}],
    });
    place
        .file("model.json", model.to_string())
        .display()
        .to_string()
}

#[test]
fn two_files_are_compared_by_cause() {
    let place = Place::new();
    place.file("local.csv", local());
    place.file("cxl.csv", slower());
    let explain = [
        "explain",
        "--counters",
        "local.csv",
        "--against",
        "cxl.csv",
        "--cpu",
        "spr",
    ];
    let done = place
        .run([&explain[..], &["--format", "json"]].concat())
        .expect(0);
    let document = done.json();
    assert_eq!(document["schema"], "weir/explain/1");
    let difference = &document["difference"];
    let near = |value: &serde_json::Value, wanted: f64| {
        let value = value.as_f64().unwrap();
        assert!((value - wanted).abs() < 1e-6, "{value} is not {wanted}");
    };
    near(&difference["slowdown_pct"], 35.0);
    near(&difference["components"]["dram"], 32.0);
    near(&difference["components"]["other"], 3.0);
    near(&document["runs"][0]["lost"]["l3"], 10.0);
    // A lone chase was not counted, so that the bound is unknown.
    assert!(document["runs"][0]["bound"].is_null());

    let table = place.run(explain);
    assert!(
        table.out().contains("35.0 % slower, most of it DRAM"),
        "{}",
        table.out()
    );
    let shown = place.run("runs show last");
    assert!(shown.out().contains("35.0 % slower"), "{}", shown.out());

    // Either way round, and against itself.
    let [first, second] = [explain[2], explain[4]];
    for (files, message) in [
        ([second, first], "25.9 % faster, most of it DRAM: -23.7"),
        ([first, first], ": as fast\n"),
    ] {
        let mut again = explain;
        (again[2], again[4]) = (files[0], files[1]);
        let output = place.run(again).out();
        assert!(output.contains(message), "{output}");
    }
}

#[test]
fn counters_that_cannot_be_are_named() {
    let place = Place::new();
    let swapped = |&(event, value): &(&'static str, u64)| match event {
        "OFFCORE_REQUESTS.DEMAND_DATA_RD" => (event, 3_500_000_000),
        "OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DEMAND_DATA_RD" => (event, 20_000_000),
        _ => (event, value),
    };
    place.file("swapped.csv", perf(LOCAL.iter().map(swapped)));
    let done = place.run("explain --counters swapped.csv --cpu spr");
    assert_eq!(done.code(), 2);
    assert!(done.err().contains("swapped?"), "{}", done.err());
    assert_eq!(done.out(), "");
}

/// What no number can be made of is named by what needs it, and none of it becomes one.
#[test]
fn values_that_are_none_are_named() {
    const STALLS: &str = "MEMORY_ACTIVITY.STALLS_L3_MISS";
    let place = Place::new();
    let model = model(&place);
    // Of one event another value and share of the time.
    let with = |of: &str, value: &str, share: &str| {
        let line = |&(event, usual): &(&str, u64)| match event == of {
            true => format!("{value},,{event},1000000000,{share},,\n"),
            false => format!("{usual},,{event},1000000000,100.00,,\n"),
        };
        LOCAL.iter().map(line).collect::<String>()
    };
    for (value, share, why) in [
        ("<not supported>", "100.00", "does not support it"),
        ("<not counted>", "0.00", "never on a hardware counter"),
        ("3000000000", "4.00", "4.0 % of the time"),
        ("-3000000000", "100.00", "negative"),
        ("281474976710000", "100.00", "wrapped"),
    ] {
        place.file("bad.csv", with(STALLS, value, share));
        let explained = place.run("explain --counters bad.csv --cpu spr --format json");
        let document = explained.expect(0).json();
        let run = &document["runs"][0];
        assert!(run["lost"]["dram"].is_null(), "{value}: {run}");
        let untold = run["untold"].as_array().unwrap();
        let found = untold
            .iter()
            .find(|u| u["counter"] == "cycle_activity.stalls_l3_miss");
        let found = found.unwrap_or_else(|| panic!("{value}: {run}"));
        assert!(
            found["why"].as_str().unwrap().contains(why),
            "{value}: {found}"
        );
        let predict = [
            "predict",
            "--counters",
            "bad.csv",
            "--cpu",
            "spr",
            "--model",
            &model,
        ];
        place
            .run(predict)
            .refuses(3, &["cycle_activity.stalls_l3_miss", why]);
    }
    // Without cycles nothing is left to say: the file has no time either.
    place.file("zero.csv", with("CPU_CLK_UNHALTED.THREAD", "0", "100.00"));
    for verb in ["explain", "predict"] {
        let mut words = vec![verb, "--counters", "zero.csv", "--cpu", "spr"];
        let mut code = 2;
        if verb == "predict" {
            words.extend(["--model", &model]);
            code = 3;
        }
        place
            .run(&words)
            .refuses(code, &["zero.csv: ", "`cycles`", "zero"]);
    }
    place.file("good.csv", local());
    place
        .run("explain --counters good.csv --against zero.csv --cpu spr")
        .refuses(2, &["zero.csv: ", "`cycles`"]);
    place.file("half.csv", "10.5,,CPU_CLK_UNHALTED.THREAD,1,100.00,,\n");
    place
        .run("explain --counters half.csv --cpu spr")
        .refuses(2, &["half.csv: ", "line 1: it is no whole number"]);
}

#[test]
fn options_that_a_file_of_counters_has_no_use_for_are_refused() {
    let place = Place::new();
    let model = model(&place);
    place.file("local.csv", local());
    let explain = "explain --counters local.csv --cpu spr";
    for (more, words) in [
        ("--idle 111", ["local.csv: ", "`task-clock`"]),
        ("--idle 111,250", ["2 latencies", "1 file"]),
        ("--on emr2s", ["leave --on out", "--cpu"]),
    ] {
        place
            .run(format!("{explain} {more}").as_str())
            .refuses(2, &words);
    }
    // 2.5 cycles of a nanosecond: reads take 250 clk, as one that is alone.
    place.file(
        "clock.csv",
        format!("{}4000.00,msec,task-clock,1,100.00,,\n", local()),
    );
    let idle = "explain --counters clock.csv --cpu spr --idle 100";
    let idle = place.run(idle).expect(0).out();
    assert!(idle.contains("250 clk of a lone"), "{idle}");
    let whole = place.run(explain).expect(0).out();
    assert!(
        whole.starts_with("local.csv: loses most to DRAM: 30.0 % of its cycles; whether"),
        "{whole}"
    );
    let predict = format!("predict --counters local.csv --cpu spr --model {model}");
    for (more, words) in [
        ("--verify", ["--verify", "--counters"]),
        ("--on skx2s", ["of emr2s+cxl-a", "not of skx2s"]),
        ("--tier cxl9", ["dram to cxl0", "--tier"]),
        ("--from cxl0 --tier dram", ["dram to cxl0", "--from"]),
    ] {
        place
            .run(format!("{predict} {more}").as_str())
            .refuses(2, &words);
    }
}

#[test]
fn a_prediction_that_lacks_counters_names_them() {
    let place = Place::new();
    place.file("local.csv", local());
    let model = model(&place);
    let done = place.run([
        "predict",
        "--counters",
        "local.csv",
        "--cpu",
        "spr",
        "--model",
        &model,
    ]);
    assert_eq!(done.code(), 3);
    assert!(
        done.err().contains("ocr.hwpf_l1d.any_response"),
        "{}",
        done.err()
    );
    // Counters of a processor whose prefetches are counted otherwise.
    place
        .run([
            "predict",
            "--counters",
            "local.csv",
            "--cpu",
            "skx",
            "--model",
            &model,
        ])
        .expect(2);
}

#[test]
fn several_files_are_predicted_at_once_and_a_bad_one_is_named() {
    let place = Place::new();
    let model = model(&place);
    let whole = || {
        let more = [
            ("OCR.HWPF_L1D.ANY_RESPONSE", 1_000_000),
            ("OCR.HWPF_L2.ANY_RESPONSE", 3_000_000),
            ("UNC_CHA_TOR_INSERTS.IA_DRD_PREF", 4_000_000),
            ("UNC_CHA_TOR_INSERTS.IA_MISS_DRD_PREF", 1_000_000),
        ];
        perf(LOCAL.iter().copied().chain(more))
    };
    place.file("a.csv", whole());
    place.file("b.csv", whole());
    place.file("c.csv", local());
    let predict = [
        "predict",
        "--model",
        &model,
        "--cpu",
        "spr",
        "--format",
        "json",
        "--counters",
    ];
    let done = place
        .run([&predict[..], &["a.csv", "b.csv"]].concat())
        .expect(0)
        .json();
    let both = done["predictions"].as_array().unwrap();
    assert_eq!(both.len(), 2);
    assert_eq!(both[0]["workload"], "a.csv");
    assert_eq!(both[0]["slowdown_pct"], both[1]["slowdown_pct"]);
    place
        .run([&predict[..], &["a.csv", "c.csv"]].concat())
        .refuses(3, &["c.csv", "ocr.hwpf_l1d.any_response"]);
}

#[test]
fn a_file_of_workloads_is_evaluated() {
    let place = Place::new();
    let model = model(&place);
    let head = "workload,slowdown_pct,dram_pct,cycles,inst_retired.any,cycle_activity.stalls_l2_miss,\
                cycle_activity.stalls_l3_miss,exe_activity.bound_on_stores,mem_load_retired.fb_hit,\
                mem_load_retired.l1_miss,ocr.hwpf_l1d.any_response,ocr.hwpf_l2.any_response,\
                unc_cha_tor_inserts.ia_drd_pref,unc_cha_tor_inserts.ia_miss_drd_pref,\
                offcore_requests.demand_data_rd,\
                offcore_requests_outstanding.cycles_with_demand_data_rd";
    // AOL 175: p / AOL + q is 1, so that slowdown by misses is their share of cycles.
    let row = |name: &str, slowdown: f64, misses: u64| {
        format!("{name},{slowdown},,10000000,4000000,{misses},{misses},0,0,1,0,0,0,0,1000,175000")
    };
    let file = [
        head.to_owned(),
        row("a", 30.0, 3_000_000),
        row("b", 22.0, 1_000_000),
    ]
    .join("\n");
    place.file("many.csv", file);
    let evaluate = [
        "predict",
        "--evaluate",
        "many.csv",
        "--model",
        &model,
        "--format",
        "json",
    ];
    let done = place.run(evaluate).expect(0);
    let document = done.json();
    let predicted = document["predictions"][0]["slowdown_pct"].as_f64().unwrap();
    assert!((predicted - 30.0).abs() < 1e-6, "{predicted}");
    let lines = document["accuracy"]["lines"].as_array().unwrap();
    let total = lines.iter().find(|line| line["what"] == "total").unwrap();
    assert_eq!(total["within_5_pct"], 50.0);
    assert_eq!(document["accuracy"]["worst"][0], "b");

    place.file("broken.csv", format!("{head}\na,1,,-5\n"));
    let broken = place.run(["predict", "--evaluate", "broken.csv", "--model", &model]);
    assert_eq!(broken.code(), 2);
    assert!(broken.err().contains("broken.csv:2"), "{}", broken.err());

    // What no run can have counted is named with its row, not only with its counter.
    for (name, cell, message) in [
        ("zero", "0", "nothing ran"),
        ("wrapped", "1000", "wrapped around"),
        ("missing", "", "its cell is empty"),
    ] {
        let bad = row(name, 10.0, 2_000_000).replace("10000000", cell);
        let file = format!("{name}.csv");
        place.file(&file, [head, &row("a", 30.0, 1), &bad].join("\r\n"));
        let refused = place.run(["predict", "--evaluate", &file, "--model", &model]);
        assert_eq!(refused.code(), if name == "missing" { 3 } else { 2 });
        for message in [message, &format!("{file}:3: `{name}`")] {
            assert!(refused.err().contains(message), "{}", refused.err());
        }
    }
}

#[test]
fn a_program_that_hardly_waits_for_memory_has_no_bound() {
    let place = Place::new();
    let out = place
        .run("explain perlbench-like --on emr2s+cxl-a")
        .expect(0)
        .out();
    assert!(out.contains("dram: hardly waits for memory"), "{out}");
}

#[test]
fn more_requests_than_are_answered_are_named() {
    let place = Place::new();
    let at = |rate: u32| {
        let on = "explain redis-ycsb-a --on emr2s+cxl-a --tier dram --requests 500 --rate";
        place.run(format!("{on} {rate}")).expect(0).err()
    };
    let said = at(200_000);
    assert!(
        said.contains("requests/s are answered of 200000 that arrive: the queue grows without end"),
        "{said}"
    );
    assert!(!at(40_000).contains("that arrive"));
}

#[test]
fn runs_of_every_kind_are_compared() {
    let place = Place::new();
    for verb in [
        "explain chase --on skx2s",
        "explain scan --on skx2s",
        SMALL,
        "place advise rocksdb-get --on emr2s+cxl-a",
        "place advise redis-ycsb-a --on emr2s+cxl-a",
    ] {
        place.run(verb).expect(0);
    }
    let compared = place.run("runs compare 1 2 --format json").expect(0).json();
    let rows = compared["comparisons"][0]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["a"] != row["b"]), "{rows:?}");
    let table = place.run("runs compare 1 2").expect(0).out();
    assert!(table.contains("numbers in both"), "{table}");
    for pair in ["1 3", "4 5"] {
        place
            .run(format!("runs compare {pair}"))
            .refuses(2, &["no figures in common"]);
    }
}
