//! Memory of another server, by the method that reaches it.

use crate::common::Place;

const MACHINE: &str = "directcxl+directcxl-blade";

#[test]
fn each_method_is_the_sum_of_its_parts_and_cxl_comes_after_local_memory_alone() {
    let place = Place::new();
    let asked = [
        "place",
        "disaggregated",
        "--on",
        MACHINE,
        "--payload",
        "64B,4K",
    ];
    let document = place.run([&asked[..], &["--format", "json"]].concat());
    let document = document.expect(0).json();
    let rows = document["accesses"].as_array().unwrap();
    let time = |method: &str, bytes: u64| {
        let row = rows
            .iter()
            .find(|row| row["method"] == method && row["payload"] == bytes)
            .unwrap_or_else(|| panic!("{method} {bytes}"));
        let part = |key: &str| row[key].as_f64().unwrap();
        let parts = [
            "cache", "stall", "cxl", "memory", "network", "software", "copy",
        ];
        let sum: f64 = parts.map(part).iter().sum();
        assert!((sum - part("total")).abs() < 1e-6 * sum, "{row}");
        part("total")
    };
    for bytes in [64, 4096] {
        let order = ["local", "cxl", "rdma"].map(|method| time(method, bytes));
        assert!(order.is_sorted(), "{bytes}: {order:?}");
        assert!(time("key-value", bytes) < time("swap", bytes), "{bytes}");
    }
    // Sixteen misses at once: 64 lines take four times as long as the first 16.
    let waves = time("cxl", 4096) / time("cxl", 64);
    assert!((3.5..4.8).contains(&waves), "{waves}");

    let programs = document["programs"].as_array().unwrap();
    for program in ["dlrm", "memdb", "graph"] {
        let of = |method: &str| {
            let mut rows = programs.iter();
            let row = rows.find(|row| row["program"] == program && row["method"] == method);
            row.map(|row| row["time"].as_f64().unwrap())
        };
        let (local, cxl, swap) = (of("local"), of("cxl"), of("swap"));
        assert!(
            local < cxl && cxl < swap,
            "{program}: {local:?} {cxl:?} {swap:?}"
        );
        assert_eq!(of("key-value").is_some(), program != "graph");
    }
}

#[test]
fn a_size_that_is_no_access_and_a_tier_that_is_not_there_are_refused() {
    let place = Place::new();
    // A card of 16 GiB.
    let run = place.run("place disaggregated --on emr2s+cxl-c");
    let err = run.expect(2).err();
    assert!(err.contains("`dlrm-embedding`"), "{err}");
    for (option, value, says) in [
        ("--tier", "dram", "dram is not slower than itself"),
        ("--payload", "100B", "multiple of 64 bytes"),
        ("--payload", "8K", "up to 4 KiB"),
        ("--tier", "cxl7", "cxl7"),
        ("--program", "redis", "dlrm, memdb or graph"),
    ] {
        let run = place.run(["place", "disaggregated", "--on", MACHINE, option, value]);
        let err = run.expect(2).err();
        assert!(err.contains(says), "{option} {value}: {err}");
    }
}
