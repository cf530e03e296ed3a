//! `weir platforms fit`: what is fitted to a model has the model's curves, the file works, and bad input is refused.

use crate::common::Place;
use serde_json::Value;

/// A server that takes little time.
const SMALL: &str = r#"
kind = "host"
summary = "Eight cores and two channels"
source = "made up"
sockets = 2
[core]
microarchitecture = "skylake-server"
count = 8
clock = "2.2 GHz"
[llc]
size = "11 MiB"
slices = 8
[dram]
media = "ddr4-2400"
channels = 2
capacity = "16 GiB"
idle = "90 ns"
read = "34 GB/s"
nt_write = "25 GB/s"
[remote]
idle = "150 ns"
read = "20 GB/s"
"#;
/// Its card, which differs from the defaults in what curves under load show.
const CARD: &str = r#"
kind = "cxl"
summary = "A card with one rank"
source = "made up"
lanes = 8
media = "ddr5-4800"
channels = 1
ranks = 1
capacity = "16 GiB"
idle = "240 ns"
read = "20 GB/s"
queue = 256
"#;

/// Asks the loaded latency of it, with mixes that a fit holds out.
fn measured(place: &Place) {
    place.file("small.toml", SMALL);
    place.file("card.toml", CARD);
    let on = ["--on", "./small.toml+./card.toml"];
    for words in [
        "bench loaded --tier dram,cxl0 --mix reads,2:1,1:1 --threads 4 --pause 0ns,8ns,12ns,20ns,40ns,200ns",
        "bench bandwidth --tier dram,cxl0 --op ld,st,nt_st --threads 1,4",
    ] {
        let words: Vec<&str> = words.split(' ').chain(on).collect();
        place.run(&words).expect(0);
    }
}

#[test]
fn a_staircase_gives_the_clock_the_caches_and_page_walks() {
    let place = Place::new();
    let asked = [
        "bench latency --op ld --tier dram",
        "bench loaded --tier dram,remote --mix reads --threads 4 --pause 0ns,40ns",
        "bench bandwidth --tier dram,remote --op ld,st,nt_st --threads 1,8",
    ];
    for words in asked {
        let words = words
            .split(' ')
            .chain(["--on", "./small.toml,tlb.walk=45ns,llc.latency=25ns"]);
        place.file("small.toml", SMALL);
        place.run(words.collect::<Vec<_>>()).expect(0);
    }
    let fit = "platforms fit 1 2 3 -o mine.toml --quick --format json";
    let document: Value = serde_json::from_str(&place.run(fit).expect(0).out()).unwrap();
    let parameters = document["parameters"].as_array().unwrap();
    let value = |key: &str| -> f64 {
        let found = parameters.iter().find(|p| p["key"] == key).unwrap();
        assert_eq!(found["how"], "measured", "{found}");
        let value = found["value"].as_str().unwrap();
        value.split(' ').next().unwrap().parse().unwrap()
    };
    let expected = [
        ("core.clock", 2.2, 0.01),
        ("l2.latency", 14.0, 0.05),
        ("llc.latency", 25.0, 0.1),
        ("tlb.walk", 45.0, 0.1),
    ];
    for (key, wanted, within) in expected {
        let found = value(key);
        assert!(
            (found / wanted - 1.0).abs() < within,
            "{key}: {found} in place of {wanted}"
        );
    }
}

#[test]
fn a_fitted_machine_has_the_curves_of_the_one_that_was_measured() {
    let place = Place::new();
    measured(&place);
    let fit = place
        .run("platforms fit 1 2 -o mine.toml --format json")
        .expect(0)
        .out();
    let document: Value = serde_json::from_str(&fit).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let held: Vec<&Value> = checks.iter().filter(|c| c["part"] == "held_out").collect();
    assert!(held.iter().any(|c| c["mix"] == "2:1"), "{checks:?}");
    for check in held {
        // Two held-out points of pure traffic may both be at the bend; a mix has them all. How many written lines the
        // card takes (`queue`) is not fitted, and a mix with many of them shows it.
        let most = if check["mix"] == "2:1" { 8.0 } else { 10.0 };
        assert!(check["median_pct"].as_f64().unwrap() < most, "{check}");
    }
    let parameters = document["parameters"].as_array().unwrap();
    let find = |key: &str| parameters.iter().find(|p| p["key"] == key).unwrap();
    assert_eq!(find("dram.read")["how"], "measured");
    assert_eq!(find("llc.slices")["how"], "assumed");
    assert_eq!(find("core.count")["how"], "given");
    for assumed in parameters.iter().filter(|p| p["how"] == "assumed") {
        assert!(
            assumed["low"].is_string() && assumed["why"].is_string(),
            "{assumed}"
        );
    }

    place
        .run("platforms check mine.toml mine-cxl0.toml")
        .expect(0);
    let topo = place.run("topo --on ./mine.toml").expect(0).out();
    assert!(topo.contains("cxl0"), "{topo}");
    place
        .run("bench latency --quick --on ./mine.toml --tier cxl0")
        .expect(0);
    // What is kept is shown again, and an export is fitted as the run is.
    assert!(
        place
            .run("runs show 3")
            .expect(0)
            .out()
            .contains("Measured")
    );
    place.run("runs export 1 -o run.json").expect(0);
    place
        .run("runs export 2 --as record -o record.json")
        .expect(0);
    place.run("runs export 1 --as csv -o run.csv").expect(0);
    place
        .run("platforms fit --quick run.json record.json -o mine.toml")
        .expect(0);
    let from_csv = "platforms fit --quick run.csv --base ./small.toml+./card.toml -o other.toml";
    let table = place.run(from_csv).expect(0).out();
    assert!(table.contains("Distance from the model's curve"), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
}

#[test]
fn a_limit_of_reads_and_writes_together_is_not_taken_for_turns_of_the_card() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let wide = CARD.replace("lanes = 8", "lanes = 16");
    let wide = wide.replace("channels = 1", "channels = 2");
    let wide = wide.replace("read = \"20", "total = \"40 GB/s\"\nread = \"36");
    place.file("card.toml", &wide);
    for words in [
        "bench loaded --tier dram,cxl0 --mix reads,2:1,1:1 --threads 7 --pause 0ns,4ns,8ns,12ns,20ns,40ns,200ns",
        "bench bandwidth --tier dram,cxl0 --op ld,st,nt_st --threads 1,7",
    ] {
        let on = ["--on", "./small.toml+./card.toml"];
        let words: Vec<&str> = words.split(' ').chain(on).collect();
        place.run(&words).expect(0);
    }
    let fit = "platforms fit 1 2 -o mine.toml --format json";
    let document: Value = serde_json::from_str(&place.run(fit).expect(0).out()).unwrap();
    let parameters = document["parameters"].as_array().unwrap();
    let total = parameters.iter().find(|p| p["key"] == "total").unwrap();
    let gbps = total["value"].as_str().unwrap().split(' ').next().unwrap();
    assert!((39.0..42.1).contains(&gbps.parse().unwrap()), "{total}");
    let checks = document["checks"].as_array().unwrap();
    let is_held_out = |c: &&Value| c["mix"] == "2:1" && c["tier"] == "cxl0";
    let held_out = checks.iter().find(is_held_out).unwrap();
    // Short turns of the card's DRAM cost one read to one write as much, and two reads to one write far less.
    assert!(held_out["median_pct"].as_f64().unwrap() < 5.0, "{held_out}");
}

/// What MLC prints.
const MLC: &str = "\
Intel(R) Memory Latency Checker - v3.11
Command line parameters: --loaded_latency -W0 -k1-6

Inject\tLatency\tBandwidth
Delay\t(ns)\tMB/sec
==========================
 00000\t250.00\t  33500.0
 00200\t130.00\t  28000.0
 00700\t100.00\t  15000.0
 20000\t 90.10\t   1000.0
";

#[test]
fn outputs_of_mlc_are_read_with_a_base() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    place.file("w0.txt", MLC);
    let words = "platforms fit w0.txt --base ./small.toml --tier dram --quick -o mine.toml";
    place.run(words).expect(0);
    let text = std::fs::read_to_string(place.path("mine.toml")).unwrap();
    assert!(
        text.contains("read = { is = \"33.5 GB/s\", source = \"measured"),
        "{text}"
    );
    place.run("platforms check mine.toml").expect(0);
}

#[test]
fn bad_input_is_refused_with_its_place_and_what_to_do() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    place.file("w0.txt", MLC);
    place.file("bad.txt", MLC.replace("130.00", "quick"));
    place.file("bad.csv", "machine,experiment,tier,op,pattern,threads,prefetch,gbps\nx,bandwidth,dram,ld,sequential,1,true,fast\n");
    place.file("short.csv", "machine,experiment,tier\n");
    place.file("other.json", "{\"schema\": \"weir/topo/1\"}");
    place.file("broken.json", "{\n  \"schema\": ");
    place.file(
        "mess.csv",
        "platform,read_percent,bandwidth_mb_s,latency\nx,100,30000,400\n",
    );
    let base = "--base ./small.toml";
    for (words, expected) in [
        ("platforms fit w0.txt -o mine.txt", "ends in .toml"),
        (
            "platforms fit w0.txt -o mine.toml",
            "does not say which tier w0 is; add --tier w0=dram",
        ),
        (
            "platforms fit w0.txt --tier dram -o mine.toml",
            "says nothing of its machine; add --base",
        ),
        (
            "platforms fit w0.txt --tier dram --base emr2 -o mine.toml",
            "--base: no platform or device is called `emr2`; did you mean `emr2s`?",
        ),
        (
            &format!("platforms fit bad.txt {base} --tier dram -o mine.toml"),
            "bad.txt:8:1",
        ),
        (
            &format!("platforms fit bad.csv {base} -o mine.toml"),
            "bad.csv:2: `gbps` is `fast`",
        ),
        (
            &format!("platforms fit short.csv {base} -o mine.toml"),
            "short.csv:1: there is no column `op`",
        ),
        (
            "platforms fit other.json -o mine.toml",
            "is a document weir/topo/1",
        ),
        ("platforms fit broken.json -o mine.toml", "broken.json:2:"),
        (
            "platforms fit mess.csv --tier dram -o mine.toml",
            "add --base PLATFORM or --clock",
        ),
        ("platforms fit nothing.csv -o mine.toml", "nothing.csv"),
        ("platforms fit 7 -o mine.toml", "there are no runs"),
        (
            &format!("platforms fit w0.txt {base} --tier dram --set dram.speed=3 -o mine.toml"),
            "there is no key `dram.speed`",
        ),
        (
            &format!("platforms fit w0.txt {base} --tier dram --set dram.read=fast -o mine.toml"),
            "correct them, or values with --set",
        ),
        (
            &format!("platforms fit w0.txt {base} --tier cxl0 --quick -o My.toml"),
            "lower case",
        ),
    ] {
        let error = place.run(words).expect(2).err();
        assert!(
            error.contains(expected),
            "{words}: {expected:?} is not in:\n{error}"
        );
    }
}
