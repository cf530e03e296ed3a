//! Calibrated, predicted, measured, interleaved and drawn, by the command on a model.

use std::sync::OnceLock;

use crate::common::{Place, text, with};

const HERE: &[&str] = &["--on", "skx2s", "--tier", "remote", "--format", "json"];

/// One place with a calibrated pair, for all tests: constants are the dear part.
fn calibrated() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Place::new();
        let calibrate = with("calibrate --held-out 6 -o pair.json", HERE);
        let done = place.run(&calibrate).expect(0);
        let document = done.json();
        assert_eq!(document["schema"], "weir/calibrate/1");
        // A micro-workload that the constants miss is warned of, and none else.
        let off = |point: &serde_json::Value| {
            (point["fitted_pct"].as_f64().unwrap() - point["slowdown_pct"].as_f64().unwrap()).abs()
        };
        let fitted = document["model"]["fitted_on"].as_array().unwrap();
        let worst = fitted.iter().map(off).fold(0.0, f64::max);
        assert_eq!(
            done.err().contains("the constants miss"),
            worst > 5.0,
            "{}",
            done.err()
        );
        assert_eq!(document["file"], "pair.json");
        let kept: serde_json::Value =
            serde_json::from_str(&text(&place.path("pair.json"))).unwrap();
        assert_eq!(kept, document["model"]);
        assert_eq!(
            (&kept["from"], &kept["to"]),
            (&"dram".into(), &"remote".into())
        );
        place
    })
}

#[test]
fn what_is_predicted_is_the_same_whether_it_is_verified_or_not() {
    let place = calibrated();
    let predict = with("predict chase --model pair.json", HERE);
    let alone = place.run(&predict).expect(0).json();
    let verified = place.run(with(&predict, "--verify")).expect(0).json();
    let (alone, verified) = (&alone["predictions"][0], &verified["predictions"][0]);
    assert!(alone["measured"].is_null());
    assert_eq!(alone["slowdown_pct"], verified["slowdown_pct"]);
    assert_eq!(alone["components"], verified["components"]);
    // The other socket's memory is further away, and every lost cycle of a chase is memory's.
    let measured = &verified["measured"];
    let slowdown = measured["slowdown_pct"].as_f64().unwrap();
    assert!(slowdown > 0.0);
    let dram = measured["components"]["dram"].as_f64().unwrap();
    assert!(dram > 0.5 * slowdown, "{measured}");
    if let Some(interval) = alone["interval_pct"].as_array() {
        let predicted = alone["slowdown_pct"].as_f64().unwrap();
        assert!(interval[0].as_f64().unwrap() <= predicted);
        assert!(interval[1].as_f64().unwrap() >= predicted);
    }
}

/// One thread of a stencil waits for latency, and every core for bandwidth: so many as are asked for run, of
/// whatever the verb makes.
#[test]
fn a_workload_runs_on_as_many_cores_as_asked_for() {
    let place = Place::new();
    let bound = |threads: &str| {
        let tune = ["tune", "interleave", "stencil-7pt", "--threads", threads];
        place.run(with(tune, HERE)).expect(0).json()["bound"].clone()
    };
    assert_eq!([bound("1"), bound("10")], ["latency", "bandwidth"]);
    let drawn = |threads: &str| {
        let explain = [
            "explain",
            "stencil-7pt",
            "--threads",
            threads,
            "--on",
            "skx2s",
        ];
        let answer = place.run(with(explain, "--format json"));
        answer.expect(0).json()["runs"][0]["gbps"].as_f64().unwrap()
    };
    assert!(drawn("4") > 2.0 * drawn("1"));
    let predicted = |threads: &str| {
        let predict = [
            "predict",
            "stencil-7pt",
            "--model",
            "pair.json",
            "--threads",
            threads,
        ];
        let answer = calibrated().run(with(predict, HERE)).expect(0).json();
        answer["predictions"][0]["bound"].clone()
    };
    assert_eq!([predicted("1"), predicted("10")], ["latency", "bandwidth"]);
    // A command has threads of its own.
    for verb in [&["tune", "interleave"][..], &["explain"], &["predict"]] {
        place
            .run(with(verb, "--threads 4 -- true"))
            .refuses(2, &["--threads"]);
    }
}

/// Advice was that a faster tier has more latency, and to leave the pages where they are.
#[test]
fn a_tier_that_is_faster_is_not_asked_about_as_the_slower_one() {
    let place = Place::new();
    place
        .run("tune interleave chase --on emr2s+cxl-a --from cxl0 --tier dram")
        .refuses(2, &["dram is to be the slower tier", "exchange the two"]);
    place
        .run("place advise gpt2-decode --on emr2s+cxl-a --from cxl0 --tier dram")
        .refuses(2, &["dram is to be the slower tier", "exchange the two"]);
    place
        .run("calibrate --on coaxial-ddr")
        .refuses(2, &["no tier `cxl0` here; there is only dram"]);
}

#[test]
fn a_prediction_of_nothing_is_refused() {
    let place = Place::new();
    // What is missing is named, and not what the machine lacks.
    place
        .run("predict")
        .refuses(2, &["name a workload", "--population"]);
    // This host runs no description, whichever tiers it has.
    place
        .run("predict chase")
        .refuses(3, &["descriptions run on a model; name one with --on"]);
    let none = ["predict", "--model", "pair.json", "--population", "0"];
    calibrated().run(with(none, HERE)).refuses(2, &["'0'"]);
}

#[test]
fn a_chase_is_reported_not_to_interleave_and_every_advice_is_measured() {
    let place = Place::new();
    let tune = with("tune interleave chase --verify", HERE);
    let done = place.run(&tune).expect(0);
    // Best-shot would not use a model here.
    assert!(!done.err().contains("no model"), "{}", done.err());
    let document = done.json();
    assert_eq!(document["bound"], "latency");
    let curve = document["curve"].as_array().unwrap();
    assert_eq!(curve.first().unwrap()["share_pct"], 0.0);
    assert_eq!(curve.last().unwrap()["share_pct"], 100.0);
    // A share of 11 in 20 is 55, and no number next to it.
    for tried in curve {
        assert_eq!(tried["share_pct"].as_f64().unwrap() % 5.0, 0.0, "{tried}");
    }
    assert_eq!(curve[0]["change_pct"], 0.0);
    assert!(curve.last().unwrap()["change_pct"].as_f64().unwrap() > 0.0);
    for advice in document["advice"].as_array().unwrap() {
        let (share, change) = (&advice["share_pct"], &advice["measured_pct"]);
        if advice["method"] == "best-shot" {
            assert_eq!(share, 0.0, "{advice}");
        }
        if share == 0.0 {
            assert_eq!(change, 0.0, "{advice}");
        } else {
            assert!(change.as_f64().unwrap() > 0.0, "{advice}");
        }
    }
    let page = place.run("report -o -").expect(0).out();
    for message in [
        "<h3>Interleaving of chase over dram and remote</h3>",
        "waits for latency: do not interleave it",
        "bandwidth-proportional: ",
    ] {
        assert!(page.contains(message), "{message}");
    }
}

#[test]
fn runs_that_explain_and_predict_are_drawn_on_one_page() {
    let place = Place::new();
    let model = calibrated().path("pair.json");
    let model = model.display().to_string();
    let chosen = ["--on", "skx2s", "--model", &model, "--tier", "remote"];
    place.run("explain bfs-road --on skx2s").expect(0);
    // A run that lacks nothing is shown again, from what was kept.
    let again = place.run("runs resume 1").expect(0).out();
    let shown = place.run("runs show 1").expect(0).out();
    assert!(shown.ends_with(&again) && again.contains("slower, most of it DRAM"));
    let population = ["predict", "--population", "4", "--export", "four.csv"];
    place.run(with(population, chosen)).expect(0);
    let evaluate = ["predict", "--evaluate", "four.csv"];
    let evaluated = place.run(with(evaluate, chosen)).expect(0);
    assert!(evaluated.out().contains("TMA DRAM-bound"));
    assert!(evaluated.out().contains("published DRAM"));
    let page = place.run("report 1 2 3 -o -").expect(0).out();
    for message in [
        "<h1>Slowdown on skx2s",
        "<h3>Slowdown by cause</h3>",
        "<h3>Cycles lost by bfs-road</h3>",
        "<h3>Phases of bfs-road</h3>",
        "<h3>Predicted against measured: the model</h3>",
        "<h3>Predicted slowdown by cause</h3>",
        "<h3>Predicted against measured: as published</h3>",
        "<h3>Predicted against measured: LLC MPKI</h3>",
        "weir explain bfs-road --on skx2s --seed 1",
        "measured slowdown on remote [%]",
    ] {
        assert!(page.contains(message), "{message}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf\""));
}

/// A file from where cycles with a miss were not counted is predicted for by the published form.
#[test]
fn without_the_further_counters_the_published_form_is_used_and_said() {
    let place = Place::new();
    let model = calibrated().path("pair.json").display().to_string();
    let here = with(["--model", &model], HERE);
    let population = ["predict", "--population", "3", "--export", "all.csv"];
    place.run(with(population, &here)).expect(0);
    let all = text(&place.path("all.csv"));
    let mut heads = all.lines().next().unwrap().split(',');
    let column = heads.position(|head| head == "cycle_activity.cycles_l3_miss");
    let column = column.unwrap();
    let without = all.lines().map(|line| {
        let cells = line.split(',').enumerate().filter(|&(n, _)| n != column);
        cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(",") + "\n"
    });
    place.file("fewer.csv", without.collect::<String>());
    let evaluated = |file| {
        let document = place
            .run(with(["predict", "--evaluate", file], &here))
            .expect(0)
            .json();
        document["predictions"].as_array().unwrap().clone()
    };
    for (full, fewer) in evaluated("all.csv").iter().zip(&evaluated("fewer.csv")) {
        assert_eq!(full["published"]["slowdown_pct"], fewer["slowdown_pct"]);
        assert!(fewer["published"].is_null() && full["warnings"] != fewer["warnings"]);
        let warnings = fewer["warnings"].to_string();
        assert!(
            warnings.contains("cycle_activity.cycles_l3_miss"),
            "{warnings}"
        );
    }
}

#[test]
fn a_model_of_another_pair_is_refused() {
    let model = calibrated().path("pair.json");
    let model = model.display().to_string();
    let place = Place::new();
    let predict = ["predict", "chase", "--model", &model];
    let other = place.run(with(predict, "--on emr2s+cxl-a"));
    other.refuses(2, &["skx2s", "emr2s+cxl-a"]);
    // The same machine, another way round.
    let round = ["--on", "skx2s", "--from", "remote", "--tier", "dram"];
    place.run(with(predict, round)).refuses(2, &["remote"]);
    let none = ["predict", "chase", "--on", "skx2s", "--tier", "remote"];
    place
        .run(none)
        .refuses(2, &["there is no model", "weir calibrate"]);
}

#[test]
fn what_holds_no_counters_or_no_model_is_named() {
    let place = Place::new();
    place.file("empty.csv", "");
    place.file("prose.txt", "all is well\n");
    for file in ["empty.csv", "prose.txt"] {
        place
            .run(["explain", "--counters", file, "--cpu", "spr"])
            .refuses(2, &[file]);
        let predict = ["predict", "--counters", "empty.csv", "--model", file];
        let said = format!("{file}: no model that `weir calibrate` wrote");
        place.run(predict).refuses(2, &[&said]);
    }
    let document = place.run("plan latency --format json").expect(0).out();
    place.file("other.json", document);
    place.file("none.json", "{}");
    for (file, said) in [
        (
            "other.json",
            "`schema` is `weir/plan-latency/1`, and this version reads",
        ),
        ("none.json", "it has no `schema`"),
    ] {
        let predict = ["predict", "--counters", "empty.csv", "--model", file];
        place.run(predict).refuses(2, &[file, said]);
    }
    place
        .run("explain chase --on skx2s --tiers dram,cxl7")
        .refuses(2, &["cxl7"]);
    place
        .run("explain chase --on skx2s --threads 200")
        .refuses(2, &["give fewer with --threads"]);
}

#[test]
fn a_model_is_missed_only_where_best_shot_would_use_it() {
    let place = Place::new();
    let said = |workload: &str| {
        let tune = format!("tune interleave {workload} --on skx2s --tier remote");
        place.run(tune).expect(0).err()
    };
    let bandwidth = said("stream-triad --threads 10");
    assert!(bandwidth.contains("there is no best-shot"), "{bandwidth}");
    let latency = said("chase");
    assert!(!latency.contains("best-shot"), "{latency}");
}
