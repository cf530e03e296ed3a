//! `weir workload` as a process: lists, shows, checks, runs, and what is said of wrong requests.

use crate::common::{Place, with};
use serde_json::Value;
use weir::documents::{WorkloadDocument, WorkloadsDocument};
use weir_lab::workload::WorkloadCost;
use weir_model::document::Document;

fn fits(text: &str) {
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
}

#[test]
fn workloads_are_listed_and_shown() {
    let place = Place::new();
    let table = place.run("workload list").expect(0).out();
    fits(&table);
    assert!(table.contains("bfs-twitter") && table.contains("llama-decode"));
    let list = place.run("workload list --format json");
    let list: WorkloadsDocument = serde_json::from_str(&list.expect(0).out()).unwrap();
    assert!(list.workloads.len() >= 60);

    let page = place.run("workload show bfs-twitter").expect(0).out();
    fits(&page);
    assert!(
        page.contains("bottom up") && page.contains("45 %"),
        "{page}"
    );
    let page = place.run("workload show redis-ycsb-a").expect(0).out();
    fits(&page);
    let says = |part: &str| assert!(page.contains(part), "{page}");
    says("each request: 25.7 k instructions; a thread has the next one");
    says("network: 20.0 k instructions");
    let shown = place.run("workload show chase --format json");
    let shown: WorkloadDocument = serde_json::from_str(&shown.expect(0).out()).unwrap();
    assert_eq!(shown.workload.name, "chase");
}

#[test]
fn a_run_says_what_slower_memory_costs() {
    let place = Place::new();
    let run = |tier: &str| -> Document<WorkloadCost> {
        let on = format!("workload run chase --on emr2s+cxl-a --tier {tier}");
        let all = with(on, "--accesses 2000 --format json");
        serde_json::from_str(&place.run(&all).expect(0).out()).unwrap()
    };
    let (local, far) = (run("dram"), run("cxl0"));
    assert!(far.output.whole.cpi > 1.5 * local.output.whole.cpi);
    assert!(far.output.whole.dram > local.output.whole.dram && far.output.whole.dram <= 1.0);
    let latency = |run: &Document<WorkloadCost>| run.output.whole.latency_ns.unwrap();
    // Half of its reads are of page tables, which the last-level cache has.
    let longer = 2.0 * (latency(&far) - latency(&local));
    assert!((longer - 103.0).abs() < 8.0, "{longer}");
    let table = place
        .run("workload run bfs-road --on emr2s+cxl-a --accesses 1000")
        .expect(0)
        .out();
    fits(&table);
    assert!(
        table.contains("top down") && table.contains("all"),
        "{table}"
    );
}

/// Cores halt while they have no request, which makes no read slower.
#[test]
fn requests_at_a_low_rate_wait_no_longer_for_memory() {
    let place = Place::new();
    let redis = include_str!("../../../workloads/redis-ycsb-a.toml");
    let latency = |requests: &str| {
        let text = redis.replacen("[requests]", &format!("[requests]\n{requests}"), 1);
        let file = place.file("rare.toml", text);
        let on = format!("workload run {} --on emr2s+cxl-a", file.display());
        let ran = place.run(with(on, "--accesses 2000 --format json"));
        let run: Document<WorkloadCost> = serde_json::from_str(&ran.expect(0).out()).unwrap();
        run.output.whole.latency_ns.unwrap()
    };
    let (always, rare) = (latency(""), latency("per_second = 5000"));
    assert!((rare / always - 1.0).abs() < 0.25, "{rare} {always}");
}

#[test]
fn wrong_requests_are_refused_with_what_would_do() {
    let place = Place::new();
    let refused = |arguments: &str, part: &str| {
        let said = place.run(arguments).expect(2).err();
        assert!(said.contains(part), "{said}");
    };
    refused("workload show bfs-twiter", "did you mean `bfs-twitter`");
    refused("workload run chase", "only a model runs");
    refused("workload record --for 0s -- true", "from 10ms to 86400s");
    let on = |more| format!("workload run chase --on emr2s+cxl-a {more}");
    refused(&on("--tier cxl3"), "no tier `cxl3`");
    refused(&on("--threads 900"), "give fewer with --threads");
    refused(
        "workload show type-a --format json",
        "name one of its members: `files-fileserver`",
    );
    let group = place.run("workload show type-a").expect(0).out();
    assert!(
        group.contains("workloads: files-fileserver, files-varmail, which"),
        "{group}"
    );
    // The machine refuses this one, after its run began.
    refused(
        "workload run chase --on emr2s+ssd-nvme4 --tier ssd0",
        "a storage device",
    );
    // Of a file, the place of the region is named.
    let scan = include_str!("../../../workloads/gups.toml").replace("16 GiB", "900 TiB");
    place.file("large.toml", scan);
    for verb in ["workload run", "explain", "tune interleave"] {
        let on = format!("{verb} large.toml --on emr2s+cxl-a");
        refused(
            &on,
            "large.toml:9: `bytes` of the region `table` is 900 TiB: tier `dram`",
        );
    }
    // What is wanted of a tier is what was placed there.
    let scan = include_str!("../../../workloads/bfs-twitter.toml").replace("5.5 GiB", "150 GiB");
    place.file("larger.toml", scan);
    for (tiers, wanted) in [
        (
            "dram --place neighbours=cxl0",
            "`cxl0` has 128 GiB free, but 150 GiB",
        ),
        ("dram=9,cxl0=1", "`dram` has 128 GiB free, but 135.8 GiB"),
    ] {
        let on = format!("workload run larger.toml --on emr2s+cxl-a --tier {tiers}");
        refused(&on, wanted);
    }
    let runs = place.run("runs list").expect(0).out();
    assert!(!runs.contains("workload run"), "{runs}");
    refused(&on("--tier dram=x"), "not a number of pages");
    refused(
        &on("--tier dram,cxl0,dram=2"),
        "--tier: dram is named twice",
    );
    refused(
        "place advise chase --on emr2s+cxl-a --max-loss -1",
        "from 0 to 1000",
    );
    refused(&on("--pages 3k"), "no size of pages");
    refused("workload run chase --pages 4k", "only a model runs");
    refused("workload check missing.toml", "missing.toml");
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../workloads/chase.toml"
    ));
    let quoted = text.unwrap().replacen("cpi = ", "cpi = \"0.45\" # ", 1);
    place.file("quoted.toml", quoted);
    refused(
        "workload check quoted.toml",
        "is text in quotes, but must be a number",
    );
    let json = place.run("workload run nothing.toml --format json");
    assert!(serde_json::from_str::<Value>(&json.expect(2).out()).is_err());
}

#[test]
fn the_size_of_pages_decides_how_often_tables_are_walked() {
    let place = Place::new();
    let cpi = |on: &str, pages: &str| {
        let run = format!("workload run chase --on {on} --pages {pages} --format json");
        let done: Value = serde_json::from_str(&place.run(run.as_str()).expect(0).out()).unwrap();
        assert!(
            done["machine"]["name"]
                .as_str()
                .unwrap()
                .contains("tlb.page")
        );
        done["whole"]["cpi"].as_f64().unwrap()
    };
    let (small, large) = (cpi("emr2s+cxl-a", "4k"), cpi("emr2s+cxl-a", "2m"));
    assert!(small > 1.02 * large, "{small} {large}");
    // A hypervisor's tables are walked for large pages, too, and for small ones longer.
    let guest = "emr2s,tlb.nested=50ns+cxl-a";
    let (small_there, large_there) = (cpi(guest, "4k"), cpi(guest, "2m"));
    assert!(large_there > 1.1 * large, "{large_there} {large}");
    assert!(small_there > large_there && small_there > small);
}
