//! Calibration, prediction and interleaving on this host, as a process. What a machine lacks for them is
//! named: counters, a second node, or weights of interleaving.

use crate::common::Place;
use serde_json::json;

/// Whether this machine has a second tier of memory called so.
fn has(place: &Place, tier: &str) -> bool {
    let topology = place.run("topo --format json").expect(0).json();
    let tiers = topology["topology"]["tiers"].as_array();
    tiers.is_some_and(|tiers| tiers.iter().any(|t| t["name"] == tier))
}

#[test]
fn a_missing_node_is_named_by_what_needs_two() {
    let place = Place::new();
    if has(&place, "cxl0") {
        return;
    }
    for words in [
        &["calibrate"][..],
        &["predict", "--", "true"],
        &["tune", "interleave", "--", "true"],
        &["tune", "interleave", "--verify", "--", "true"],
    ] {
        place.run(words).refuses(3, &["cxl0", "missing"]);
    }
    for words in [
        &["calibrate", "--tier", "remote"][..],
        &["tune", "interleave", "--tier", "remote", "--", "true"],
    ] {
        place.run(words).refuses(3, &["remote", "missing"]);
    }
    // A description is no command.
    place
        .run("tune interleave scan")
        .refuses(3, &["--on", "after `--`"]);
    place.run("tune interleave scan -- true").expect(2);
    place
        .run("tune interleave --on skx2s -- true")
        .refuses(2, &["on this host alone"]);
}

/// A model that was calibrated elsewhere.
fn model(place: &Place) -> String {
    let model = json!({
        "schema": "weir/slowdown-model/1",
        "weir": "0",
        "machine": {"kind": "host", "name": "host", "digest": "0"},
        "processor": "emerald-rapids, 32 cores a socket",
        "from": "dram",
        "to": "cxl0",
        "prefetch": "sapphire_rapids",
        "constants": {"k1": 1.0, "k2": 2.0, "k3": 0.5, "k4": 0.0, "p": 17.5, "q": 0.9},
        "unloaded": 250.0,
        "aol_range": [20.0, 260.0],
        "fitted_on": [],
        "rejected": [],
    });
    place
        .file("model.json", model.to_string())
        .display()
        .to_string()
}

#[test]
fn a_prediction_for_a_command_names_the_counters_that_it_lacks() {
    let place = Place::new();
    let model = model(&place);
    let predict =
        |words: &[&str]| place.run([&["predict", "--model", &model, "--"], words].concat());
    // Either this processor is counted and of the model's family, or it is said what is missing.
    let done = predict(&["true"]);
    match done.code() {
        0 => assert!(done.out().contains("true"), "{}", done.out()),
        2 => assert!(done.err().contains("Sapphire Rapids"), "{}", done.err()),
        code => {
            assert_eq!(code, 3, "{}", done.err());
            assert!(done.err().contains("`cycles`"), "{}", done.err());
            assert_eq!(done.out(), "");
        }
    }
    predict(&["sh", "-c", "exit 7"]).refuses(7, &["exit status 7"]);
    predict(&["/nowhere/to/be/found"]).refuses(2, &["cannot run `/nowhere/to/be/found`"]);
    place
        .run(["predict", "--model", &model, "--on", "emr2s", "--", "true"])
        .refuses(2, &["on this host alone"]);
    place
        .run("predict --model absent.json -- true")
        .refuses(2, &["there is no model absent.json"]);
}
