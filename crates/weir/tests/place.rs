//! Memory is placed, moved and looked at on whatever Linux this is. What takes several nodes is tried in
//! `tests/vm`.

mod common;

use common::Place;
use serde_json::Value;
use weir::documents::PlaceDocument;

/// Whether this kernel places pages at all: a container may forbid it.
fn can_place(place: &Place) -> bool {
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
    for (arguments, code, told) in [
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
        (&["--size", "1000000G"], 1, "free"),
        (&["--hold", "0"], 2, "--hold"),
    ] {
        let whole: Vec<&str> = ["place"].iter().chain(arguments).copied().collect();
        let said = place.run(&whole).expect(code).err();
        assert!(said.contains(told), "{arguments:?}: {said}");
    }
}
