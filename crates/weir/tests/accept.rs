//! A server against what was promised of it.

use serde_json::Value;

use crate::common::Place;

const MACHINE: &str = "emr2s+cxl-a";

fn spec(read: &str) -> String {
    format!(
        "kind = \"acceptance\"\nsummary = \"one expander\"\n\n[[tier]]\nname = \"cxl0\"\nlatency = \"300 ns\"\n\
         read = \"{read}\"\ncapacity = \"128 GiB\"\nsource = \"data sheet\"\n"
    )
}

fn accept(place: &Place, more: &[&str], code: i32) -> Value {
    let asked = ["accept", "--on", MACHINE, "--quick", "--format", "json"];
    place.run([&asked[..], more].concat()).expect(code).json()
}

fn checks(document: &Value) -> Vec<Value> {
    document["checks"].as_array().unwrap().clone()
}

#[test]
fn a_server_passes_what_it_is_and_fails_what_it_is_not() {
    let place = Place::new();
    place.file("right.toml", spec("20 GB/s"));
    let right = accept(&place, &["--against", "right.toml"], 0);
    assert_eq!(checks(&right).len(), 3);
    assert!(checks(&right).iter().all(|check| check["passed"] == true));

    place.file("wrong.toml", spec("40 GB/s"));
    let wrong = accept(&place, &["--against", "wrong.toml"], 4);
    let failed: Vec<Value> = (checks(&wrong).into_iter())
        .filter(|check| check["passed"] == false)
        .collect();
    assert_eq!(failed.len(), 1);
    assert!(failed[0]["what"] == "read" && failed[0]["least"] == 40.0);
    let said = place
        .run([
            "accept",
            "--on",
            MACHINE,
            "--quick",
            "--against",
            "wrong.toml",
        ])
        .expect(4)
        .out();
    assert!(
        said.starts_with("accept: failed: 2 of 3 figures are as expected (one expander)"),
        "{said}"
    );
    assert!(
        said.contains("! cxl0 read:") && said.contains("data sheet"),
        "{said}"
    );
    // What was measured once is not measured again.
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.contains("accept: failed"), "{shown}");
}

#[test]
fn a_platform_is_like_itself_and_not_like_one_with_another_card() {
    let place = Place::new();
    let like = |name: &str| {
        format!("kind = \"acceptance\"\n[platform]\nname = \"{name}\"\nwithin = 0.02\n")
    };
    place.file("itself.toml", like(MACHINE));
    let itself = accept(&place, &["--against", "itself.toml"], 0);
    // Latency, reads and writes of three tiers.
    assert_eq!(checks(&itself).len(), 9);
    place.file("nope.toml", like("nope"));
    let nope = [
        "accept",
        "--on",
        MACHINE,
        "--quick",
        "--against",
        "nope.toml",
    ];
    let nope = place.run(nope).expect(2).err();
    assert!(
        nope.contains("nope.toml:3: ") && !nope.contains("--on"),
        "{nope}"
    );
    place.file("other.toml", like("emr2s+cxl-c"));
    let other = accept(&place, &["--against", "other.toml"], 4);
    for check in checks(&other) {
        assert_eq!(check["passed"] == true, check["tier"] != "cxl0", "{check}");
    }
}

#[test]
fn a_server_that_became_slower_fails_against_its_baseline() {
    let place = Place::new();
    let first = accept(&place, &[], 0);
    assert!(checks(&first).is_empty() && first["figures"].as_array().unwrap().len() == 12);
    let same = accept(&place, &["--baseline", "1"], 0);
    assert_eq!(checks(&same).len(), 12);

    // With a slower card, one tier is worse and the others are not.
    let slower = [
        "accept",
        "--on",
        "emr2s+cxl-c",
        "--quick",
        "--baseline",
        "1",
        "--format",
        "json",
    ];
    let slower = place.run(slower).expect(4).json();
    for check in checks(&slower) {
        assert!(
            check["tier"] == "cxl0" || check["passed"] == true,
            "{check}"
        );
        assert!(
            check["source"]
                .as_str()
                .unwrap()
                .starts_with("run 1 of emr2s+cxl-a: ")
        );
    }
    for (words, said) in [
        (&["--baseline", "77"][..], "77"),
        (&["--worse", "5"], "--baseline"),
        (&["--baseline", "1", "--worse", "100"], "--worse"),
    ] {
        let asked = [&["accept", "--on", MACHINE, "--quick"], words].concat();
        place.run(asked).refuses(2, &[said]);
    }
}

#[test]
fn mistakes_of_a_file_name_their_line_and_key() {
    let place = Place::new();
    for (text, said) in [
        ("kind = \"acceptance\"\n", "this file expects nothing"),
        ("kind = \"workload\"\n", "`workload`"),
        (
            "kind = \"acceptance\"\n[[tier]]\nname = \"cxl0\"\nraed = \"2 GB/s\"\nsource = \"x\"\n",
            "did you mean `read`",
        ),
        (
            "kind = \"acceptance\"\n[[tier]]\nname = \"cxl0\"\nlatency = \"2 GB/s\"\nsource = \"x\"\n",
            "`tier.latency` must be",
        ),
        (
            "kind = \"acceptance\"\n[firmware]\n",
            "missing key `firmware.within`",
        ),
        (
            "kind = \"acceptance\"\n[platform]\nname = \"host\"\nwithin = 0.1\n",
            "`host` is no platform",
        ),
        (
            "kind = \"acceptance\"\n[platform]\nname = \"emr9\"\nwithin = 0.1\n",
            "bad.toml:3: no platform or device is called `emr9`",
        ),
        (
            "kind = \"acceptance\"\n[platform]\nname = \"./none.toml\"\nwithin = 0.1\n",
            "bad.toml:3: cannot read the platform file ./none.toml",
        ),
    ] {
        place.file("bad.toml", text);
        let done = place.run(["accept", "--on", MACHINE, "--against", "bad.toml"]);
        done.refuses(2, &[said]);
    }
    // A model has no firmware.
    place.file(
        "hmat.toml",
        "kind = \"acceptance\"\n[firmware]\nwithin = 0.2\n",
    );
    let done = place.run(["accept", "--on", MACHINE, "--against", "hmat.toml"]);
    done.refuses(3, &["HMAT"]);
}

#[test]
fn a_run_without_expectations_has_its_figures_in_rows_and_in_the_list_of_runs() {
    let place = Place::new();
    let asked = format!("accept --on {MACHINE} --quick");
    let csv = place.run(format!("{asked} --format csv")).expect(0).out();
    // Four figures of three tiers.
    assert_eq!(csv.lines().count(), 13, "{csv}");
    assert!(csv.contains(",cxl0,capacity,GiB,128.0,"), "{csv}");
    let exported = place.run("runs export last --as csv").expect(0).out();
    assert_eq!(exported.lines().count(), 13, "{exported}");
    let listed = place.run("runs list --format json").expect(0).json();
    assert_eq!(listed["runs"][0]["kept"], 12, "{listed}");
    // With expectations, these are the rows.
    let csv = place
        .run(format!("{asked} --baseline 1 --format csv"))
        .expect(0);
    assert!(csv.out().contains(",passed,"), "{}", csv.out());
    // And figures are compared with figures, each with its interval.
    let compared = place.run("runs compare 1 2 --format json").expect(0).json();
    let rows = compared["comparisons"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 12, "{rows:?}");
    assert!(rows.iter().all(|row| row["field"] == "value"), "{rows:?}");
    let read = rows.iter().find(|row| row["row"] == "cxl0 read GB/s");
    assert_eq!(read.unwrap()["beyond_chance"], false, "{rows:?}");
}

/// Ten per cent is 0.1, and 10 let every machine pass.
#[test]
fn a_percentage_in_place_of_a_share_is_refused() {
    let place = Place::new();
    let like = "kind = \"acceptance\"\n[platform]\nname = \"emr2s+cxl-b\"\nwithin = 10\n";
    place.file("like.toml", like);
    place
        .run(format!("accept --on {MACHINE} --quick --against like.toml"))
        .refuses(
            2,
            &["like.toml:4:10", "platform.within", "between 0.001 and 1"],
        );
}

#[test]
fn a_baseline_of_another_length_is_said() {
    let place = Place::new();
    let quick = format!("accept --on {MACHINE} --quick");
    let first = place.run(quick.as_str()).expect(0).err();
    // Capacities are figures, too, and are not measured.
    assert!(first.contains("accept on emr2s+cxl-a: 9 steps"), "{first}");
    let same = place.run(format!("{quick} --baseline 1")).expect(0).err();
    assert!(!same.contains("--quick"), "{same}");
    let whole = format!("accept --on {MACHINE} --baseline 1");
    let whole = place.run(whole).expect(0).err();
    let said = "warning: run 1 was made with --quick, and this one without it";
    assert!(whole.contains(said), "{whole}");
    // And what is kept says it.
    let kept = place.run("runs show last --format json").expect(0).json();
    assert!(
        kept["warnings"].to_string().contains("run 1 was made with"),
        "{kept}"
    );
}

#[test]
fn a_report_draws_figures_and_their_bounds() {
    let place = Place::new();
    place.file("right.toml", spec("20 GB/s"));
    accept(&place, &["--against", "right.toml"], 0);
    let page = place.run("report last -o -").expect(0).out();
    for chart in [
        "Latency on emr2s+cxl-a",
        "Bandwidth on emr2s+cxl-a",
        "at most",
        "at least",
    ] {
        assert!(page.contains(chart), "{chart}");
    }
}
