//! `weir plan` as a process: figures, and files of prices and rates with mistakes.

use crate::common::Place;

fn rows<'d>(document: &'d serde_json::Value, list: &str) -> &'d Vec<serde_json::Value> {
    document[list].as_array().unwrap()
}

#[test]
fn every_verb_keeps_a_run() {
    let place = Place::new();
    let small = "--machines 4 --days 2";
    for (words, schema) in [
        ("plan latency".to_owned(), "weir/plan-latency/1"),
        ("plan cost".to_owned(), "weir/plan-cost/1"),
        (
            "plan coherence --walks 2 --break bogus-data".to_owned(),
            "weir/plan-coherence/1",
        ),
        ("plan kernels".to_owned(), "weir/plan-kernels/1"),
        (format!("plan packing {small}"), "weir/plan-packing/1"),
        (
            format!("plan pool {small} --clusters 2"),
            "weir/plan-pool/1",
        ),
        (
            format!("plan failures {small} --pools 4,8 --moments 20"),
            "weir/plan-failures/1",
        ),
    ] {
        let json = place
            .run(format!("{words} --format json").as_str())
            .expect(0)
            .json();
        assert_eq!(json["schema"], schema);
        let csv = place
            .run(format!("{words} --format csv").as_str())
            .expect(0)
            .out();
        assert!(csv.lines().count() > 1, "{csv}");
        let shown = place.run("runs show last").expect(0).out();
        let printed = place.run(words.as_str()).expect(0).out();
        assert!(shown.ends_with(&printed), "{shown}\n{printed}");
    }
    place.run("report last -o page.html").expect(0);
    // A bar of the second copy is named once.
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains(">4 sockets: "), "{page}");
    assert!(!page.contains(">4, 4 sockets: "), "{page}");
}

#[test]
fn latencies_and_break_even_points_are_the_published_ones() {
    let place = Place::new();
    let json = place
        .run("plan latency --sockets 8,16,32 --format json")
        .expect(0)
        .json();
    let totals: Vec<f64> = rows(&json, "paths")
        .iter()
        .map(|row| row["total"].as_f64().unwrap())
        .collect();
    assert_eq!(totals, [85.0, 155.0, 230.0, 180.0, 280.0, 280.0]);
    let json = place.run("plan cost --format json").expect(0).json();
    let servers = |reading: &str, gb: f64, price: f64| {
        let row = rows(&json, "pools").iter().find(|row| {
            row["reading"] == reading && row["gb_per_vcpu"] == gb && row["pool_price_pct"] == price
        });
        row.unwrap()["servers_exact"].as_f64().unwrap()
    };
    assert!(
        (servers("a", 4.0, 0.0) - 24.55).abs() < 0.05
            && (servers("a", 8.0, 50.0) - 19.4).abs() < 0.05
    );
    assert!(
        (servers("b", 4.0, 0.0) - 33.4).abs() < 0.05
            && (servers("b", 8.0, 50.0) - 24.55).abs() < 0.05
    );
    // It would pay with 26 % saved, but --saved is at most --cut.
    let flips = rows(&json, "flips").iter();
    let saved: Vec<_> = flips.filter(|row| row["what"] == "memory saved").collect();
    assert!(saved.len() == 1 && saved[0]["at"].is_null(), "{saved:?}");
}

#[test]
fn a_file_of_prices_changes_the_answer_and_its_mistakes_are_reported_with_their_place() {
    let place = Place::new();
    let shipped = include_str!("../../weir-plan/src/prices.toml");
    place.file(
        "half.toml",
        shipped.replace("value = 38500", "value = 19250"),
    );
    let net = |words: &str| place.run(words).expect(0).json()["net"].as_f64().unwrap();
    let (dear, cheap) = (
        net("plan cost --format json"),
        net("plan cost --prices half.toml --format json"),
    );
    assert!((cheap - dear - 19_250.0).abs() < 1e-6);
    place.file(
        "bad.toml",
        shipped.replace("value = 3\n", "value = \"three\"\n"),
    );
    place
        .run("plan cost --prices bad.toml")
        .refuses(2, &["bad.toml:11:9", "server_dram.value"]);
    place
        .run("plan cost --saved 30%")
        .refuses(2, &["--saved", "at most --cut"]);
    place
        .run("plan cost --dimm 33")
        .refuses(2, &["--dimm is 33", "32, 48, 64, 96 or 128 GB"]);
    place
        .run("plan latency --sockets 65")
        .refuses(2, &["2 to 64 sockets"]);
    for day in ["-1", "NaN"] {
        let words = format!("plan packing --shift-day={day}");
        place
            .run(words)
            .refuses(2, &["--shift-day is", "0 or a later day"]);
    }
    let negative = place.run("plan latency --port -5ns").expect(2).err();
    assert_eq!(
        negative,
        "error: `--port -5ns`: a value must not be negative\n"
    );
    for (words, said) in [
        (
            "--machine-id 3",
            "--machine-id is of traces --as azure-packing",
        ),
        (
            "--low-priority",
            "--low-priority is of traces --as azure-packing or google-2019",
        ),
        (
            "--trace a.csv --as azure-vm --low-priority",
            "--low-priority is of",
        ),
        (
            "--trace a.csv --as google-2019 --machine-id 3",
            "--machine-id is of",
        ),
        ("--as azure-vm", "--as is of files that --trace names"),
        (
            "--trace a.csv --trace a.csv",
            "--trace a.csv is named twice",
        ),
    ] {
        place
            .run(format!("plan packing {words}"))
            .refuses(2, &[said]);
    }
    place
        .run("plan failures --share 150%")
        .refuses(2, &["--share is 150 %", "0 % to 100 %"]);
    place
        .run("plan cost --gb-per-vcpu 10,1e9")
        .refuses(2, &["--gb-per-vcpu is 1000000000", "at most 1000000 GB"]);
    for words in [
        "plan latency --on skx2s",
        "reproduce --only MEM-02 --on nope",
    ] {
        place
            .run(words)
            .refuses(2, &["--on", "would change nothing"]);
    }
}

#[test]
fn failures_of_optional_memory_kill_nobody_and_wrong_topologies_are_refused() {
    let place = Place::new();
    let killed = |optional: &str| {
        let words = format!(
            "plan failures --machines 8 --days 3 --pools 4,8 --moments 20 --optional {optional} --format json"
        );
        let json = place.run(words.as_str()).expect(0).json();
        let all = rows(&json, "failures").iter();
        let devices = all.filter(|row| row["part"] == "pool device");
        let of = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
        devices
            .map(|row| (of(row, "killed"), of(row, "told")))
            .collect::<Vec<_>>()
    };
    let (vital, optional) = (killed("0%"), killed("100%"));
    assert_eq!(vital.len(), 2);
    for ((killed, notified), (none, instead)) in vital.into_iter().zip(optional) {
        assert!(killed > 0.0 && notified == 0.0);
        assert_eq!((none, instead), (0.0, killed));
    }
    for (words, expected) in [
        ("--pools 9", "a multiple of the 2 sockets"),
        (
            "--machines 6 --pools 8",
            "has 4 machines, and --machines 6 is",
        ),
        ("--devices 0", "1 to 64"),
        ("--share 101%", "0 % to 100 %"),
    ] {
        let words = format!("plan failures {words}");
        place.run(words.as_str()).refuses(2, &[expected]);
    }
    for (words, expected) in [
        ("--inflate 0", "--inflate is 0"),
        ("--machines-per-pool 0", "--machines-per-pool is 0"),
    ] {
        let words = format!("plan packing --machines 4 --days 1 {words}");
        place.run(words.as_str()).refuses(2, &[expected]);
    }
    let rates = include_str!("../../weir-plan/src/failures/failures.toml");
    place.file("none.toml", rates.replace("a_year = 1.3", "a_year = 0"));
    place
        .run("plan failures --rates none.toml")
        .refuses(2, &["`dimm.a_year`", "none.toml:"]);
}

#[test]
fn classes_of_memory_are_compared_and_a_fault_slows_remote_swap_alone() {
    let place = Place::new();
    let small = "plan failures --machines 8 --days 3 --pools 8 --moments 20 --format json";
    let classes = |words: &str| {
        let json = place.run(format!("{small} {words}")).expect(0).json();
        rows(&json, "classes").clone()
    };
    let (all, slow) = (
        classes("--classes --share 50%"),
        classes("--classes --share 50% --fault 20us"),
    );
    let names: Vec<&str> = all
        .iter()
        .map(|row| row["class"].as_str().unwrap())
        .collect();
    let expected = [
        "local only",
        "targeted pool",
        "transparent",
        "spill",
        "remote swap",
    ];
    assert_eq!(names, expected);
    let of = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    let (local, pool, open) = (&all[0], &all[1], &all[2]);
    assert_eq!(
        (of(local, "times_local"), of(local, "killed_total")),
        (1.0, 0.0)
    );
    assert!(of(pool, "pooled_pct") > 0.0 && of(pool, "killed_total") >= of(pool, "killed_partial"));
    assert!(of(open, "saved_pct") >= 0.0);
    assert_eq!(all[..4], slow[..4]);
    assert!(of(&slow[4], "load") >= of(&all[4], "load"));
    let found = classes("--classes --share 50% --optional 100%");
    assert_eq!(
        (of(&found[1], "killed_total"), of(&found[1], "told_total")),
        (0.0, of(pool, "killed_total"))
    );
    let json = place.run(small).expect(0).json();
    assert!(json.get("classes").is_none());
    place
        .run("plan failures --classes --fault 2s")
        .refuses(2, &["0 ns to 1 s"]);
}

#[test]
fn a_killed_replay_goes_on_with_the_clusters_that_are_left() {
    let words = "plan pool --clusters 6 --machines 16 --days 10 --format json";
    let savings = |json: serde_json::Value| (json["savings"].clone(), json["days"].clone());
    let (place, fresh) = (Place::new(), Place::new());
    let mut child = place.start(words);
    place.wait_for_figures(0);
    crate::common::signal(&child, "KILL");
    child.wait().unwrap();
    let again = place.run(words).expect(0);
    let known: u32 = (again.err().split(' ').find_map(|word| word.parse().ok()))
        .unwrap_or_else(|| panic!("{}", again.err()));
    assert!((1..=6).contains(&known) && again.err().contains("of 6 clusters, and kept"));
    assert_eq!(
        savings(again.json()),
        savings(fresh.run(words).expect(0).json())
    );
    // Another price asks for no other replay, and another seed does.
    let dear = place.run(format!("{words} --pool-price 50%")).expect(0);
    assert!(dear.err().contains("6 of 6 clusters"), "{}", dear.err());
    let other = place.run("plan pool --clusters 1 --machines 16 --days 10 --seed 9");
    assert!(!other.expect(0).err().contains("were replayed"));
}

#[test]
fn the_protocol_breaks_no_rule_and_each_planted_mistake_is_found() {
    let place = Place::new();
    let run = "plan coherence --walks 2 --break no-wait,stale-memrd --format json";
    let done = place.run(run).expect(0);
    assert!(
        done.err().starts_with("plan coherence: 9 steps\n"),
        "{}",
        done.err()
    );
    let json = done.json();
    let checks = json["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 8);
    for check in checks {
        assert_eq!(
            check["fault"].is_null(),
            check["broken"].is_null(),
            "{check}"
        );
        assert_eq!(check["steps"].is_null(), check["fault"].is_string());
    }
    let took = json["elapsed_s"].as_f64().unwrap();
    assert!(took > 0.01, "{took} s for half a million states");
    let steps = |fault: &str| {
        let ways = json["ways"].as_array().unwrap().iter();
        ways.filter(|way| way["fault"] == fault).count()
    };
    assert_eq!((steps("no-wait"), steps("stale-memrd")), (6, 5));
    // A load of the device takes what its platform says, however it is split.
    let transactions = json["transactions"].as_array().unwrap();
    let alone = transactions
        .iter()
        .find(|one| one["transaction"] == "load, no agent has it");
    let latency = alone.unwrap()["latency"].as_f64().unwrap();
    assert!((latency - 214.0).abs() < 1.0, "{latency}");
    for (words, said) in [
        ("coherence --break nonsense", "bias-flip"),
        ("coherence --on emr2s", "emr2s+cxl-a"),
        ("coherence --on emr2s+cxl-a@switch", "port of the host"),
        ("kernels --on emr2s+cxl-a", "no flash"),
    ] {
        place.run(format!("plan {words}")).refuses(2, &[said]);
    }
}

#[test]
fn vms_that_find_no_room_are_said_first_and_no_pool_is_larger_than_the_cluster() {
    let place = Place::new();
    let out = place.run("plan pool --machines 4 --days 2").expect(0).out();
    let begin: Vec<&str> = out.split_whitespace().take(25).collect();
    let begin = begin.join(" ");
    let policy = "a pool of 8 sockets with the policy pond ";
    assert!(begin.starts_with(policy), "{begin}");
    assert!(begin.contains("VMs that found no machine"), "{begin}");
    let all = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all.contains("GiB of memory are saved for "), "{all}");
    assert!(all.contains("intervals: one cluster gives none;"), "{all}");
    let several = "plan pool --machines 4 --days 2 --clusters 3 --pools 8 --format json";
    let json = place.run(several).expect(0).json();
    for row in rows(&json, "savings") {
        let half = |field: &str| row[field].as_f64().is_some_and(|half| half >= 0.0);
        assert!(half("saved_each_ci95_gib") && half("net_ci95"), "{row}");
    }
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("16 or 32 or 64 sockets is for one pool of all 8"),
        "{out}"
    );
}

#[test]
fn kernels_move_fewer_bytes_and_an_early_notice_hides_flash() {
    let place = Place::new();
    let json = place.run("plan kernels --format json").expect(0).json();
    for row in json["kernels"].as_array().unwrap() {
        let [with, without] = ["with", "without"].map(|key| row[key].as_u64().unwrap());
        assert!(with <= without, "{row}");
        assert_eq!(with == 0, row["kernel"] == "buffer", "{row}");
    }
    let program = json["flash_program"].as_f64().unwrap();
    let longest = |device: &str| -> Vec<f64> {
        let rows = json["commits"].as_array().unwrap().iter();
        let rows = rows.filter(|row| row["device"].as_str().unwrap().starts_with(device));
        rows.map(|row| row["longest"].as_f64().unwrap()).collect()
    };
    let (early, late) = (longest("Type 2, shares"), longest("Type 3"));
    assert!(early[0] > 0.9 * program && early.is_sorted_by(|a, b| a >= b));
    // As much work as flash takes, and more: nothing is left to wait for.
    assert!(
        early[5] < 0.01 * program && early[5] == early[7],
        "{early:?}"
    );
    assert!(late.iter().all(|&time| time > program), "{late:?}");
    // A small throughput is none of 0.
    let table = place.run("runs show last").expect(0).out();
    assert!(table.contains("ssd            0.0011"), "{table}");
}

/// A pool of 4 sockets is not compared with one of 8 because both are the first of their policy.
#[test]
fn rows_of_the_same_words_are_compared_by_the_numbers_that_name_them() {
    let place = Place::new();
    for pools in ["4,8", "8,16"] {
        let words = format!("plan pool --machines 8 --days 3 --pools {pools}");
        place.run(words).expect(0);
    }
    let compared = place.run("runs compare 1 2 --format json").expect(0).json();
    let compared = &compared["comparisons"][0];
    let rows = rows(compared, "rows");
    let is_of_eight =
        |row: &serde_json::Value| row["row"].as_str().unwrap().ends_with(" sockets 8");
    assert!(rows.iter().all(is_of_eight), "{rows:?}");
    assert!(rows.iter().all(|row| row["a"] == row["b"]), "{rows:?}");
    assert_eq!(
        (&compared["only_a"], &compared["only_b"]),
        (&4.into(), &4.into())
    );
}

#[test]
fn a_run_of_no_machine_is_compared_without_one() {
    let place = Place::new();
    place.run("plan latency").expect(0);
    place.run("plan latency --retimer 20ns").expect(0);
    let table = place.run("runs compare 1 2").expect(0).out();
    assert!(table.starts_with("A is run 1, B is run 2\n"), "{table}");
    let runs = place.run("runs list --format json").expect(0).json();
    let of = |key: &str| runs["runs"][0][key].clone();
    assert_eq!((of("machine"), of("machine_kind")), ("".into(), "".into()));
    // Two hosts have one name in a store that was merged, and another version may compute otherwise.
    let db = rusqlite::Connection::open(place.store()).unwrap();
    let other = "UPDATE runs SET digest = 'd2', weir = '0.0.9' WHERE id = 2";
    db.execute_batch(other).unwrap();
    let table = place
        .run("runs compare 1 2")
        .expect(0)
        .out()
        .replace("\n  ", " ");
    for words in [
        "not the same machine",
        "and d2)",
        "A is of Weir 0.1.0, B of Weir 0.0.9",
    ] {
        assert!(table.contains(words), "{table}");
    }
}
