//! Placement where tiers or their links are shared, on models: by queries, by operators that are off-loaded, by hosts, and by
//! objects of each kind.

use crate::common::Place;
use serde_json::Value;

#[test]
fn the_slower_tier_is_read_once_for_what_queries_share() {
    let place = Place::new();
    for operator in ["sum", "join"] {
        let run = format!(
            "place stage --on emr2s+cxl-a --operator {operator} --queries 1,4,16 --shared 512M --own 32M --format json"
        );
        let found: Value = serde_json::from_str(&place.run(run).expect(0).out()).unwrap();
        let mut gains = Vec::new();
        for run in found["runs"].as_array().unwrap() {
            let number = |key: &str| run[key].as_f64().unwrap();
            let (queries, mib) = (number("queries"), f64::from(1 << 20));
            let needed = match run["way"].as_str().unwrap() {
                "grouped" => 512.0 + queries * 32.0,
                _ => queries * (512.0 + 32.0),
            };
            assert_eq!(number("least_bytes") / mib, needed, "{run}");
            // Counted in the model, where prefetchers run past the end of what is needed now and then.
            let read = number("far_bytes") / mib;
            assert!((read / needed - 1.0).abs() < 0.03, "{operator}: {run}");
            if run["way"] == "grouped" {
                gains.push(number("faster"));
            }
        }
        assert!(gains.is_sorted(), "more queries gain more: {gains:?}");
        // With one query there is nothing to keep; a sum waits for the tier and nothing else.
        assert!(gains[0] < 1.0, "{gains:?}");
        assert_eq!(gains[2] > 3.0, operator == "sum", "{gains:?}");
    }
    // Columns that no tier has room for are no silent assumption.
    let large = "place stage --on emr2s+cxl-a --queries 2 --shared 127G --own 2G";
    let said = place.run(large).expect(0).err();
    let words =
        "the columns on cxl0 have 131 GiB, and it has 128 GiB: more of such memory is assumed";
    assert!(said.contains(words) && !said.contains("on dram"), "{said}");
    for (odd, code, said) in [
        ("--on emr2s+cxl-a --tier dram", 2, "dram is both tiers"),
        (
            "--on emr2s+cxl-a --operator sort",
            2,
            "known are sum, filter, join",
        ),
        ("--on emr2s+cxl-a --threads 32", 2, "33 threads"),
        ("--on skx2s --tier remote", 3, "dsa is missing"),
    ] {
        place
            .run(format!("place stage {odd}"))
            .refuses(code, &[said]);
    }
}

#[test]
fn an_operator_is_off_loaded_up_to_the_ratio_of_bandwidths() {
    let place = Place::new();
    for (on, half) in [
        ("emr2s+cxl-a", 16),
        ("spr8480+agilex-2x2666", 28),
        ("miku-b", 42),
    ] {
        let run = format!(
            "place offload --on {on} --operator filter --local {half} --far 2,{half} --format json"
        );
        let found: Value = serde_json::from_str(&place.run(run).expect(0).out()).unwrap();
        assert_eq!(found["operator"], "filter");
        let number = |value: &Value, key: &str| value[key].as_f64().unwrap();
        let ratio = number(&found, "ratio_pct");
        for pair in found["pairs"].as_array().unwrap() {
            if pair["far"] == half {
                let knee = number(pair, "level_pct");
                assert!((knee / ratio - 1.0).abs() < 0.1, "{on}: {ratio} {pair}");
            }
        }
        for cell in found["cells"].as_array().unwrap() {
            let (share, system) = (number(cell, "share_pct"), number(cell, "system_pct"));
            if share < ratio / 1.5 {
                assert!(system > 99.0, "{on}: {cell}");
            }
            if share > ratio * 1.5 && cell["far"] == half {
                assert!(system < 90.0, "{on}: {cell}");
            }
        }
    }
}

#[test]
fn threads_that_poll_slow_others_only_where_all_cores_are_in_use() {
    let place = Place::new();
    for (on, cores) in [("gold6130", 16), ("skx8s", 28)] {
        let run = format!(
            "place offload --on {on} --rdma 12.5GB/s --share 5%,10% --local {},{cores} --far 4,{} --format json",
            cores / 2,
            cores / 2
        );
        let found: Value = serde_json::from_str(&place.run(run).expect(0).out()).unwrap();
        assert_eq!(found["to"], "rdma");
        for cell in found["cells"].as_array().unwrap() {
            if cell["local"] == cores / 2 {
                assert!(
                    cell["system_pct"].as_f64().unwrap() >= 100.0,
                    "{on}: {cell}"
                );
            }
        }
    }
    let run = "place offload --on gold6130 --rdma 12.5GB/s --share 10% --local 16 --far 16";
    let found = place.run(format!("{run} --format json")).expect(0).json();
    let cell = &found["cells"][0];
    assert!(cell["system_pct"].as_f64().unwrap() < 90.0, "{cell}");
    assert_eq!(found["pairs"][0]["shared_cores"], 16);
    place
        .run("place offload --on gold6130 --rdma 0GB/s")
        .refuses(2, &["12.5GB/s"]);
    place
        .run("place offload --on gold6130 --rdma 12.5GB/s --local 17")
        .refuses(2, &["17"]);
}

#[test]
fn hosts_that_share_a_structure_pay_by_the_latency_of_the_tier() {
    let place = Place::new();
    let run = "place share --hosts 1,8 --items 5000 --operations 2000 --format json --on";
    let [near, behind] = ["emr2s+cxl-a", "emr2s+cxl-a@switch"]
        .map(|on| place.run(format!("{run} {on}")).expect(0).json());
    let latency = |found: &Value| found["latency"].as_f64().unwrap();
    assert!(latency(&behind) > latency(&near) + 100.0);
    for (one, other) in near["runs"]
        .as_array()
        .unwrap()
        .iter()
        .zip(behind["runs"].as_array().unwrap())
    {
        let number = |run: &Value, key: &str| run[key].as_f64().unwrap();
        assert_eq!(
            one["invalidations"], other["invalidations"],
            "the tier counts nothing: {one}"
        );
        let requests = number(one, "fetches") + number(one, "upgrades") + number(one, "waits");
        for (run, found) in [(one, &near), (other, &behind)] {
            assert!(
                (number(run, "time") - requests * latency(found)).abs()
                    < 1e-6 * (1.0 + number(run, "time")),
                "{run}"
            );
        }
        if one["hosts"] == 1 {
            assert_eq!(number(one, "invalidations"), 0.0, "{one}");
        }
        let shares = one["hosts"] == 8 && one["structure"] != "partitions";
        assert_eq!(number(one, "invalidations") > 0.0, shares, "{one}");
    }
    let run = "place share --hosts 4 --structure table --items 5000 --operations 2000 --format json --on emr2s+cxl-a";
    let of = |filter: &str| {
        let run = &place.run(format!("{run} {filter}")).expect(0).json()["runs"][0];
        ["back_invalidations", "down", "time"].map(|key| run[key].as_f64().unwrap())
    };
    let (all, few) = (of(""), of("--snoop-filter 500"));
    assert_eq!(all[0], 0.0);
    assert!(
        few[0] > 0.1 && few[1] > all[1] && few[2] > all[2],
        "{few:?}"
    );
    for (odd, said) in [
        ("--snoop-filter 0", "0 is not in"),
        ("--structure heap", "known are locks, own_locks"),
        ("--hosts 65", "64"),
        ("--skew 9", "from 0 to 3"),
        ("--tier cxl7", "cxl7"),
    ] {
        place
            .run(format!("place share --on emr2s+cxl-a {odd}"))
            .refuses(2, &[said]);
    }
}

#[test]
fn objects_lose_more_behind_a_switch() {
    let place = Place::new();
    let run = "place levels --on emr2s+cxl-a+cxl-a@switch --tier cxl0,cxl1 --format json";
    let found = place.run(run).expect(0).json();
    let kinds = found["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), 18);
    let loss = |one: &Value| one["loss_pct"].as_f64().unwrap();
    for pair in kinds.chunks(2) {
        assert_eq!(pair[0]["kind"], pair[1]["kind"]);
        // What hardly waits for memory differs by chance.
        assert!(
            loss(&pair[0]) < 5.0 || loss(&pair[1]) > loss(&pair[0]),
            "{pair:?}"
        );
    }
    let of = |kind: &str| loss(kinds.iter().find(|one| one["kind"] == kind).unwrap());
    assert!(of("index") > of("inner nodes of it") && of("index") > 20.0);
    assert!(of("log") < 5.0, "a log is written and not waited for");
    for one in kinds {
        let half = one["loss_ci95_pct"].as_f64().unwrap();
        assert!(half > 0.0, "{one}");
        assert_eq!(one["may_move"], loss(one) + half <= 5.0, "{one}");
    }
    for (asked, says) in [
        (
            "--on skx2s --tier dram",
            "dram has the objects already (--from)",
        ),
        ("--on skx2s --threads 1000", "to run 1000 threads"),
        ("--on emr2s+cxl-a --max-loss NaN", "from 0 to 1000"),
        ("--on emr2s+cxl-a --max-loss -3", "from 0 to 1000"),
        ("--on emr2s+cxl-a --tier cxl0,cxl0", "named twice"),
        ("--on sap23+sap23-card", "buffer pages of `rocksdb-get`"),
    ] {
        place
            .run(format!("place levels {asked}"))
            .refuses(2, &[says]);
    }
}
