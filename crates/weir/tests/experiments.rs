//! Every experiment as a process: what its document says, and that its tables can be read.

use crate::common::{Place, with};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;
use weir_lab::loaded::{Loaded, Mix};
use weir_lab::{PointSpec, PointStudy};
use weir_model::counters::Counter;
use weir_model::machine::Machine;
use weir_model::platform::Library;
use weir_model::topology::TierName;
use weir_model::units::Nanos;
use weir_sim::{SimMachine, SimTestbed};

/// The smallest request of each experiment that shows all that its points carry.
const REQUESTS: [(&str, &str); 7] = [
    ("tail", "--quick --threads 1 --tier cxl0"),
    (
        "loaded",
        "--tier cxl0 --mix reads,2:1,nt_writes,2:1nt --threads 2 --pause 200ns,0ns",
    ),
    (
        "random",
        "--tier cxl0 --block 1K,64K --threads 1,2 --op ld,nt_st",
    ),
    ("stream", "--tier dram --threads 1,2"),
    (
        "movement",
        "--tier dram,cxl0 --source dram --batch 1,16 --quick",
    ),
    ("share", "--cores 0,1,31"),
    ("nodes", "--tier dram"),
];

fn document(place: &Place, experiment: &str, arguments: &str) -> Value {
    let words = format!("bench {experiment} --on emr2s+cxl-a --format json {arguments}");
    place.run(words).expect(0).json()
}

#[test]
fn every_experiment_names_its_points_and_has_a_figure_for_each() {
    let place = Place::new();
    for (experiment, arguments) in REQUESTS {
        let document = document(&place, experiment, arguments);
        let points = document["points"].as_array().unwrap();
        assert!(!points.is_empty(), "{experiment}");
        for point in points {
            assert_eq!(point["experiment"], experiment);
            assert!(point.get("error").is_none(), "{point:#}");
            assert!(
                point["gbps"].is_f64() || point["ns"]["mean"].is_f64(),
                "{point:#}"
            );
        }
        let mut names: Vec<String> = (points.iter())
            .map(|point| {
                let mut name = point.clone();
                for figure in ["gbps", "ns", "ci95", "samples", "theory", "conditions"] {
                    name.as_object_mut().unwrap().remove(figure);
                }
                if let Some(beside) = name.get_mut("beside").and_then(Value::as_object_mut) {
                    beside.remove("gbps");
                    beside.remove("traffic_gbps");
                }
                name.to_string()
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(
            names.len(),
            points.len(),
            "{experiment}: points that are distinguished"
        );
    }
}

#[test]
fn points_carry_what_their_experiment_is_about() {
    let place = Place::new();
    let of = |at: usize| {
        let (experiment, arguments) = REQUESTS[at];
        document(&place, experiment, arguments)["points"].clone()
    };
    let tail = of(0);
    assert_eq!(tail[0]["threads"], 1);
    assert!(tail[0]["ns"]["p9999"].is_f64(), "{:#}", tail[0]);
    let loaded = of(1);
    assert!(loaded[0].get("beside").is_none());
    assert_eq!(loaded[1]["beside"]["pause_ns"], 200.0);
    assert_eq!(loaded[1]["beside"]["read_share"], 1.0);
    assert!(
        loaded[2]["beside"]["traffic_gbps"].as_f64() > loaded[1]["beside"]["traffic_gbps"].as_f64()
    );
    assert_eq!(loaded[5]["beside"]["read_share"], 0.0);
    // The same share of reads, by other stores.
    assert_eq!(
        loaded[3]["beside"]["read_share"],
        loaded[7]["beside"]["read_share"]
    );
    assert_eq!(
        (&loaded[3]["case"], &loaded[7]["case"]),
        (&"2:1".into(), &"2:1nt".into())
    );
    assert_eq!(of(2)[0]["block_bytes"], 1024);
    assert_eq!(of(3)[6]["kernel"], "triad");
    let movement = of(4);
    let methods: Vec<&str> = movement
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|point| point["kernel"].as_str())
        .collect();
    assert_eq!(
        methods[..7],
        [
            "memcpy",
            "nt_copy",
            "movdir64b",
            "dsa_sync",
            "dsa_sync",
            "dsa_async",
            "dsa_async"
        ]
    );
    assert_eq!(movement[4]["batch"], 16);
    assert_eq!(movement[4]["source"], "dram");
    assert_eq!(of(5)[1]["cores"], serde_json::json!([0, 31]));
    let nodes = of(6);
    let latency = |from: usize| nodes[2 * from]["ns"]["mean"].as_f64();
    assert_eq!(nodes[3]["socket"], 1);
    assert!(latency(1) > latency(0), "{nodes:#}");
}

#[test]
fn tables_of_every_experiment_fit_eighty_columns_and_begin_with_the_answer() {
    let place = Place::new();
    for (experiment, arguments) in REQUESTS {
        let words = format!("bench {experiment} --on emr2s+cxl-a {arguments}");
        let text = place.run(words).expect(0).out();
        for line in text.lines() {
            assert!(line.width() <= 80, "{experiment}: {line}");
        }
        let answer = text.lines().next().unwrap_or_default();
        assert!(
            answer.contains(": "),
            "{experiment} does not begin with its answer:\n{text}"
        );
        let shown = place.run("runs show last").expect(0).out();
        assert!(shown.ends_with(&text), "{shown}");
    }
}

#[test]
fn a_model_that_is_asked_to_repeats_itself_with_other_chance() {
    let place = Place::new();
    let words = "--tier dram --op ld --threads 16 --block 4K --repeat 3";
    let document = document(&place, "random", words);
    let point = &document["points"][0];
    assert_eq!(point["repetitions"], 3);
    assert_eq!(point["samples"], 3);
    assert!(point["steadiness"].is_string(), "{point}");
    assert_eq!(document["warnings"], serde_json::json!([]));
}

#[test]
fn a_machine_without_an_accelerator_says_so_and_exits_three_if_asked_for_it() {
    let place = Place::new();
    let base = "bench movement --on skx2s --tier dram --source dram --quick";
    let done = place.run(base).expect(0);
    assert!(done.err().contains("dsa is left out"), "{}", done.err());
    assert!(done.out().contains("memcpy") && !done.out().contains("dsa_sync"));
    let asked = with(base, "--method dsa_sync");
    place.run(asked).refuses(3, &["dsa", "leave it out"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_see_the_share_of_reads_that_a_mix_asks_for(
        reads in 1_u32..13,
        writes in 1_u32..13,
        non_temporal: bool,
        tier in prop::sample::select(&["dram", "cxl0"][..]),
        threads in 1_u32..=16,
        pause in prop::sample::select(&[0.0, 5.0, 20.0][..]),
    ) {
        prop_assume!(non_temporal || reads >= writes);
        let store = if non_temporal { "nt" } else { "" };
        let mix: Mix = format!("{reads}:{writes}{store}").parse().unwrap();
        let bed = SimTestbed::new(&Library::builtin().compose("emr2s+cxl-a").unwrap()).unwrap();
        let mut machine = SimMachine::new(&bed, 1);
        let study = Loaded {
            tiers: vec![TierName::named(tier)],
            mixes: vec![mix],
            threads: vec![threads.into()],
            pauses: vec![Nanos(pause)],
            ..Loaded::default()
        };
        let load = study.plan(machine.topology()).unwrap()[1].beside.clone().unwrap();
        let tenants = PointSpec::alone("loaded", load).tenants(machine.topology());
        machine.start(&tenants.unwrap()).unwrap();
        machine.observe(Nanos::from_micros(50.0)).unwrap();
        let seen = machine.observe(Nanos::from_micros(200.0)).unwrap();
        let (read, written) = match tier {
            "dram" => (Counter::CasRd, Counter::CasWr),
            _ => (Counter::CxlRxMemData, Counter::CxlTxMemData),
        };
        let [read, written] = [read, written].map(|lines| seen.counters.get(lines).unwrap() as f64);
        let (share, asked) = (read / (read + written), f64::from(reads) / f64::from(reads + writes));
        prop_assert!((share - asked).abs() < 0.01, "{mix} on {tier}: {share:.4} for {asked:.4}");
    }
}

/// Chases of two kinds had one stroke, since other rows of the run came before them.
#[test]
fn lines_of_one_colour_have_strokes_of_their_own() {
    let place = Place::new();
    let bench = "bench latency --quick --on emr2s,core.count=4 --tier dram --size 64K,4M";
    place.run(bench).expect(0);
    let page = place.run("report last -o -").expect(0).out();
    let picture = &page[page.find("Latency by working set").unwrap()..];
    let picture = &picture[..picture.find("</svg>").unwrap()];
    let strokes = ["\"line c0\"", "\"line c0 dashed\""];
    assert!(
        strokes.iter().all(|stroke| picture.contains(stroke)),
        "{picture}"
    );
}
