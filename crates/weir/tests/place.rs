//! Memory is placed, moved and looked at on whatever Linux this is. What takes several nodes is tried in
//! `tests/vm`.

use crate::common::Place;
use serde_json::Value;
use weir::documents::PlaceDocument;

/// Whether this kernel places pages at all: a container may forbid it.
pub fn can_place(place: &Place) -> bool {
    let topo = place.run("topo --format json").expect(0).out();
    let topo: Value = serde_json::from_str(&topo).unwrap();
    let capabilities = topo["capabilities"].as_array().unwrap();
    capabilities
        .iter()
        .any(|c| c["feature"] == "numa_policy" && c["present"] == true)
        && topo["topology"]["tiers"][0]["node"].is_u64()
}

#[test]
fn every_policy_puts_every_page_where_it_was_asked_for() {
    let place = Place::new();
    if !can_place(&place) {
        place.run("place").expect(3);
        return;
    }
    for policy in ["bind", "preferred", "interleave"] {
        let mut arguments = vec!["place", "--size", "1M", "--move-to", "dram"];
        arguments.extend(["--policy", policy, "--format", "json"]);
        let document = place.run(&arguments).expect(0).out();
        let document: PlaceDocument = serde_json::from_str(&document).unwrap();
        assert_eq!(document.policy, policy);
        let pages = document.bytes / document.page_bytes;
        let steps: Vec<&str> = document.steps.iter().map(|s| s.what.as_str()).collect();
        assert_eq!(steps, ["placed", "moved to dram"]);
        for step in &document.steps {
            assert_eq!((step.misplaced, step.refused.len()), (0, 0), "{step:?}");
            assert_eq!(step.nodes.iter().map(|n| n.found).sum::<u64>(), pages);
        }
    }
}

#[test]
fn a_table_names_tier_and_node() {
    let place = Place::new();
    if can_place(&place) {
        let table = place.run("place --size 1M").expect(0).out();
        assert!(
            table.contains("placed by policy bind") && table.contains("dram"),
            "{table}"
        );
        assert!(
            table.lines().all(|line| line.chars().count() <= 80),
            "{table}"
        );
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let place = Place::new();
    for (arguments, code, text) in [
        (&["--tier", "dram=0"][..], 2, "dram"),
        (&["--tier", "dram=256"], 2, "256"),
        (&["--tier", "attic"], 2, "no tier `attic`"),
        (&["--on", "emr2s"], 2, "the machine on which Weir runs"),
        (
            &["--policy", "interleave", "--tier", "dram=2"],
            2,
            "weighted_interleave",
        ),
        (
            &["--policy", "preferred", "--tier", "dram,dram"],
            2,
            "takes one tier",
        ),
        (&["--size", "1000000G"], 2, "free"),
        (&["--hold", "0"], 2, "--hold"),
    ] {
        let whole: Vec<&str> = ["place"].iter().chain(arguments).copied().collect();
        let said = place.run(&whole).expect(code).err();
        assert!(said.contains(text), "{arguments:?}: {said}");
    }
}

fn advice(place: &Place, arguments: &str) -> Value {
    let line = format!("place advise {arguments} --on emr2s+cxl-a --format json");
    serde_json::from_str(&place.run(&line).expect(0).out()).unwrap()
}

/// A job with an object that the cores wait for, and a larger one that they hardly touch.
pub const JOB: &str = r#"
kind = "workload"
summary = "An index that is walked while a log is written"
source = "a test"

[[phase]]
cpi = 0.5
apki = 20
regions = [
    { name = "index", bytes = "2 GiB", order = "chase", element = "64 B", share = 0.9 },
    { name = "log", bytes = "6 GiB", order = "sequential", element = "8 B", stores = 1.0, share = 0.1 },
]
"#;

#[test]
fn advice_names_what_may_move_and_what_it_costs() {
    let place = Place::new();
    place.file("job.toml", JOB);
    let found = advice(&place, "job.toml --max-loss 5 --verify");
    let objects = found["objects"].as_array().unwrap();
    let of = |name: &str| objects.iter().find(|o| o["object"] == name).unwrap();
    assert_eq!(of("log")["advice"], "free to move");
    assert_eq!(of("log")["share_pct"], 100.0);
    assert_ne!(of("index")["advice"], "move");
    assert!(
        of("index")["alone_pct"].as_f64() > Some(40.0),
        "{objects:?}"
    );
    assert!(
        of("index")["waits_pct"].as_f64() > Some(50.0),
        "{objects:?}"
    );
    let advised = &found["placings"][0];
    assert!(advised["bytes"].as_f64() >= Some(6.0 * 1024f64.powi(3)));
    assert!(advised["measured_pct"].as_f64() < Some(8.0), "{advised}");
    assert!(advised["within_pct"].as_f64() > Some(0.0), "{advised}");
    assert!(
        of("log")["alone_within_pct"].as_f64() < Some(1.0),
        "{objects:?}"
    );
    // What a run tells needs no interval.
    assert!(of("index")["alone_within_pct"].is_null(), "{objects:?}");
    assert!(found["placings"].as_array().unwrap().last().unwrap()["within_pct"].is_null());
    // At both ends the expected loss is the measured one, but for the rows of memory that lines happen to share.
    let all = found["placings"].as_array().unwrap().last().unwrap();
    let [expected, measured] =
        ["expected_pct", "measured_pct"].map(|key| all[key].as_f64().unwrap());
    assert!((expected - measured).abs() < 0.5, "{all}");

    let halves = advice(&place, "job.toml --free 50%");
    assert!(halves["placings"][0]["bytes"].as_f64() >= halves["free"].as_f64());
    assert!(halves["max_loss_pct"].is_null());
    let nothing = place
        .run("place advise job.toml --on emr2s+cxl-a --max-loss 0 --whole")
        .expect(0)
        .out();
    assert!(
        nothing.lines().all(|line| line.chars().count() <= 80),
        "{nothing}"
    );
}

#[test]
fn an_object_that_costs_nothing_is_free_to_move_whether_or_not_it_moves() {
    let place = Place::new();
    let cached = r#"{ name = "cached", bytes = "64 KiB", order = "sequential", share = 0.2 },"#;
    place.file(
        "job.toml",
        JOB.replace("regions = [", &format!("regions = [ {cached}")),
    );
    for arguments in ["--max-loss 0", "--max-loss 5", "--free 100%"] {
        let found = advice(&place, &format!("job.toml --whole {arguments}"));
        let objects = found["objects"].as_array().unwrap();
        let cached = objects.iter().find(|o| o["object"] == "cached").unwrap();
        assert_eq!(cached["advice"], "free to move", "{arguments}: {cached}");
    }
}

#[test]
fn advice_that_cannot_be_given_says_why() {
    let place = Place::new();
    place.file("job.toml", JOB);
    let refused = |line: &str, code: i32, words: &[&str]| {
        place.run(line).refuses(code, words);
    };
    refused("place advise", 2, &["weir workload list", "--pid"]);
    refused(
        "place advise job.toml --for 3s --on emr2s+cxl-a",
        2,
        &["--for is for"],
    );
    refused(
        "place advise --pid 1 --max-loss 3",
        2,
        &["cannot be used with"],
    );
    refused(
        "place advise job.toml",
        3,
        &["a description runs on a model", "weir platforms fit"],
    );
    refused("place advise job.toml --on emr2s", 2, &["no tier `cxl0`"]);
    refused(
        "place advise job.toml --on emr2s+cxl-a --free 9G",
        2,
        &["less than is to be freed"],
    );
    refused(
        "place advise job.toml --on emr2s+cxl-a --free 101%",
        2,
        &["at most 100 %"],
    );
    refused(
        "place advise job.toml --on emr2s+cxl-a --free 0B",
        2,
        &["more than 0 bytes"],
    );
    refused(
        "place advise job.toml --on emr2s+cxl-a --from cxl0",
        2,
        &["name another tier"],
    );
    refused(
        "place advise job.toml --on emr2s+cxl-a --threads 100",
        2,
        &["give fewer with --threads"],
    );
    refused(
        "place advise none.toml --on emr2s+cxl-a",
        2,
        &["description none.toml"],
    );
}

#[test]
fn a_program_that_is_larger_than_a_tier_has_advice_where_the_model_has_more_memory() {
    let place = Place::new();
    let text = "kind = \"workload\"\nsummary = \"large\"\nsource = \"a test\"\n[[phase]]\ncpi = 0.5\napki = 20\nregions = [\n\
        { name = \"hot\", bytes = \"1 GiB\", order = \"random\", share = 0.9 },\n\
        { name = \"cold\", bytes = \"190 GiB\", order = \"random\", share = 0.1 },\n]\n";
    place.file("big.toml", text);
    let larger = "emr2s,dram.capacity=210GiB+cxl-a,capacity=210GiB";
    place.run("place advise big.toml --on emr2s+cxl-a").refuses(
        2,
        &[
            "big.toml:9: `bytes` of the region `cold` is 190 GiB",
            "`dram`",
            larger,
            "--free",
        ],
    );
    let run = format!("place advise big.toml --on {larger} --free 64GiB --format json");
    let advice: Value = serde_json::from_str(&place.run(run).expect(0).out()).unwrap();
    let moved = advice["placings"][0]["bytes"].as_u64().unwrap();
    assert!(moved >= 64 << 30, "{advice}");
}

#[test]
fn objects_of_a_description_are_placed_together() {
    let place = Place::new();
    let run = "workload run column-olap --on sap23+sap23-card --accesses 100000 --format json";
    let found = |placed: &str| -> Value {
        let found = place.run(format!("{run} {placed}")).expect(0).out();
        serde_json::from_str(&found).unwrap()
    };
    let (near, far) = (found(""), found("--place main=cxl0"));
    let object = |of: &Value, name: &str| -> Value {
        let objects = of["objects"].as_array().unwrap();
        let own = objects.iter().find(|object| object["object"] == name);
        own.cloned().unwrap()
    };
    assert_eq!(near["objects"].as_array().unwrap().len(), 2, "{near}");
    assert_eq!(object(&far, "main")["on"], "cxl0");
    assert_eq!(object(&far, "heap")["on"], "dram");
    // Columns are read, and waited for longer on the card.
    let waits = |of| object(of, "main")["waits_pct"].as_f64().unwrap();
    assert!(waits(&far) > 2.0 * waits(&near), "{near} {far}");
    assert_eq!(object(&far, "main")["write_gbps"], 0.0);
    for (odd, said) in [
        (
            "--place columns=cxl0",
            "has no object `columns`; it has main, heap",
        ),
        ("--place main=cxl7", "cxl7"),
        ("--place main", "main=cxl0"),
    ] {
        place.run(format!("{run} {odd}")).refuses(2, &[said]);
    }
}

#[test]
fn threads_on_both_tiers_lose_nothing_below_the_ratio_of_bandwidths() {
    let place = Place::new();
    let run = "place offload --on emr2s+cxl-a --local 8,16 --far 2,8 --format json";
    let found: Value = serde_json::from_str(&place.run(run).expect(0).out()).unwrap();
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap();
    let ratio = 100.0 * number(&found, "far_gbps") / number(&found, "near_gbps");
    assert!((number(&found, "ratio_pct") - ratio).abs() < 0.1, "{found}");
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 12);
    for cell in cells
        .iter()
        .filter(|cell| number(cell, "share_pct") < ratio / 1.5)
    {
        assert!(number(cell, "system_pct") > 99.0, "{cell}");
    }
    for (odd, said) in [
        ("--tier dram", "not slower than itself"),
        ("--tier cxl9", "cxl9"),
        ("--share 0", "above 0"),
        ("--local 100 --far 100", "need as many cores"),
    ] {
        place
            .run(format!("place offload --on emr2s+cxl-a {odd}"))
            .refuses(2, &[said]);
    }
}

#[test]
fn second_threads_of_cores_cost_local_threads_and_more_the_larger_their_buffers_are() {
    let place = Place::new();
    let run = "place offload --on emr2s+cxl-a --local 24,32 --far 2,16 --share 5%,40% --hyper-threads --format json";
    let found: Value = serde_json::from_str(&place.run(run).expect(0).out()).unwrap();
    let shared: Vec<Option<u64>> = (found["pairs"].as_array().unwrap().iter())
        .map(|pair| pair["shared_cores"].as_u64())
        .collect();
    assert_eq!(shared, [None, Some(8), Some(2), Some(16)]);
    let system = |share: f64, local: u64, far: u64| {
        let cells = found["cells"].as_array().unwrap();
        let is = |cell: &&Value| {
            (
                cell["share_pct"].as_f64(),
                cell["local"].as_u64(),
                cell["far"].as_u64(),
            ) == (Some(share), Some(local), Some(far))
        };
        cells.iter().find(is).unwrap()["system_pct"]
            .as_f64()
            .unwrap()
    };
    assert!(system(5.0, 32, 2) > 98.0, "{found}");
    for (local, far) in [(24, 16), (32, 16)] {
        assert!(
            system(40.0, local, far) < 0.9 * system(5.0, local, far),
            "{found}"
        );
    }
    let said = "place offload --on emr2s+cxl-a --local 32 --far 2 --share 9% --hyper-threads";
    let said = place.run(said).expect(0).out();
    let why = "bandwidth: 2 local threads share their cores with others, and end last";
    assert!(said.contains(why), "{said}");
    place
        .run("place offload --on emr2s+cxl-a --local 32 --far 2")
        .refuses(2, &["on a model --hyper-threads puts two on one"]);
}
