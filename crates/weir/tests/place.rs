//! Memory is placed, moved and looked at on whatever Linux this is. What takes several nodes is tried in
//! `tests/vm`.

use std::io::BufRead as _;

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
        (&["--size", "1000000G"], 1, "free"),
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
    assert_eq!(of("log")["advice"], "move");
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
    // At both ends the expected loss is the measured one.
    let all = found["placings"].as_array().unwrap().last().unwrap();
    let [expected, measured] =
        ["expected_pct", "measured_pct"].map(|key| all[key].as_f64().unwrap());
    assert!((expected - measured).abs() < 0.1, "{all}");

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
fn objects_of_a_process_are_shown_and_what_cannot_move_is_refused() {
    let place = Place::new();
    let own = std::process::id();
    let shown = place
        .run(format!("place objects --pid {own} --format json"))
        .expect(0)
        .out();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let names: Vec<&str> = (shown["objects"].as_array().unwrap().iter())
        .map(|object| object["object"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"stack") && names.contains(&"anon"),
        "{names:?}"
    );
    for gone in [
        "place objects --pid 4194303",
        "place apply --pid 4194303 stack=dram",
        "place advise --pid 4194303 --for 1s",
    ] {
        place.run(gone).refuses(2, &["no process 4194303"]);
    }
    place
        .run(format!("place apply --pid {own} stack=cxl7"))
        .refuses(3, &["cxl7"]);
    for (arguments, said) in [
        (
            format!("place apply --pid {own} odd=dram"),
            "has no object `odd`",
        ),
        (format!("place apply --pid {own} stack"), "heap=cxl0"),
        ("place restore missing.txt".into(), "missing.txt"),
    ] {
        place.run(&arguments).refuses(2, &[said]);
    }
    std::fs::write(
        place.path("odd.txt"),
        "weir place apply 1\nprocess 7 started x\n",
    )
    .unwrap();
    let odd = format!("place restore {}", place.path("odd.txt").display());
    place.run(&odd).refuses(2, &["line 2"]);
}

/// Memory that `weir place` holds and does not touch: its process and the name of the object.
struct Held {
    child: std::process::Child,
    pid: u32,
    object: String,
}

impl Held {
    fn of(place: &Place) -> Self {
        let mut child = place.start("place --size 80M --hold 120");
        let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(" holds ") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0);
        }
        let word = |at: usize| line.split(' ').nth(at).unwrap();
        Self {
            pid: word(1).parse().unwrap(),
            object: format!(
                "anon-{}",
                line.split(" at ")
                    .nth(1)
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap()
            ),
            child,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Advice for a process, and the object with this name.
fn live(place: &Place, pid: u32, named: &dyn Fn(&str) -> bool) -> Option<(Value, Value)> {
    let line = format!("place advise --pid {pid} --for 3s --interval 1s --format json");
    let done = place.run(&line);
    if done.code() == 3 {
        assert!(done.err().contains("nothing here sees"), "{}", done.err());
        return None;
    }
    let found = done.expect(0).json();
    let mut objects = found["objects"].as_array().unwrap().iter();
    let object = objects.find(|object| named(object["object"].as_str().unwrap()));
    let object = object.unwrap_or_else(|| panic!("{found}")).clone();
    Some((found, object))
}

#[test]
fn memory_that_is_not_touched_is_distinguished_from_memory_that_is() {
    let place = Place::new();
    if !can_place(&place) {
        return;
    }
    let held = Held::of(&place);
    let Some((advice, cold)) = live(&place, held.pid, &|name| name == held.object) else {
        return;
    };
    assert!(cold["heat"].as_f64() < Some(0.01), "{advice}");
    assert_eq!(cold["advice"], "move", "{advice}");
    let command = advice["command"].as_str().unwrap();
    assert!(
        command.contains(&format!("{}=cxl0", held.object)),
        "{command}"
    );
    assert!(advice["source"].is_string() && advice["unseen"].as_array().unwrap().len() >= 3);
    let more = format!("place advise --pid {} --for 1s --free 100G", held.pid);
    place.run(&more).refuses(2, &["less than the 100 GiB"]);

    // This process touches what it has, all the time.
    let mut hot = vec![1_u8; 80 << 20];
    let address = hot.as_ptr() as usize;
    let on = std::sync::atomic::AtomicBool::new(true);
    let hot_object = std::thread::scope(|scope| {
        scope.spawn(|| {
            while on.load(std::sync::atomic::Ordering::Relaxed) {
                hot.iter_mut()
                    .step_by(4096)
                    .for_each(|byte| *byte = byte.wrapping_add(1));
            }
        });
        let holds = |name: &str| {
            let start = name
                .strip_prefix("anon-")
                .and_then(|start| usize::from_str_radix(start, 16).ok());
            start.is_some_and(|start| start.abs_diff(address) < 80 << 20)
        };
        let found = live(&place, std::process::id(), &holds);
        on.store(false, std::sync::atomic::Ordering::Relaxed);
        found.unwrap().1
    });
    assert!(hot_object["heat"].as_f64() > Some(0.1), "{hot_object}");
    assert_eq!(hot_object["advice"], "stays");
}

#[test]
fn a_move_is_measured_before_and_after() {
    let place = Place::new();
    if !can_place(&place) {
        return;
    }
    let held = Held::of(&place);
    let apply = |more: &str| {
        let line = format!("place apply --pid {} {}=dram", held.pid, held.object);
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        words.extend(shell_words::split(more).unwrap());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        place.run(&words)
    };
    let undo = place.path(&format!("weir-place-{}.txt", held.pid));
    for (more, code, said) in [
        ("--measure 'echo 5'", 2, "--verify"),
        (
            "--verify --measure 'echo some'",
            2,
            "does not end with a number",
        ),
        ("--verify --measure 'exit 3'", 1, "exit status: 3"),
    ] {
        apply(more).refuses(code, &[said]);
        assert!(!undo.exists(), "{more} has moved");
    }
    // Each measurement is one more than the last, so that after the move all are higher.
    let measure = "--verify --repeats 3 --settle 1ms --format json --measure 'echo $WEIR_PID > pid; echo >> n; wc -l < n'";
    let found = apply(measure).expect(0).json();
    let verified = &found["verified"];
    assert_eq!(verified["before"], serde_json::json!([1.0, 2.0, 3.0]));
    assert_eq!(verified["after"], serde_json::json!([4.0, 5.0, 6.0]));
    assert_eq!(verified["change_pct"], 150.0);
    let text = std::fs::read_to_string(place.path("pid")).unwrap();
    assert_eq!(text.trim(), held.pid.to_string());
    let back = format!("place restore weir-place-{}.txt", held.pid);
    place.run(&back).expect(0);
    std::fs::remove_file(&undo).unwrap();
    let same = apply("--verify --repeats 3 --settle 1ms --measure 'echo 5'")
        .expect(0)
        .out();
    assert!(same.contains("no change that is more than noise"), "{same}");
}

#[test]
fn a_watch_that_cannot_be_is_refused() {
    let place = Place::new();
    let own = std::process::id();
    for (line, code, said) in [
        ("--hot 0.1 --cold 0.2", 2, "--hot is more than --cold"),
        ("--window 1ms", 2, "--window is from"),
        ("--free 0%", 2, "above 0 %"),
        ("--tier cxl7", 3, "cxl7"),
        ("--tier dram", 2, "dram"),
    ] {
        let line = format!("place watch --pid {own} {line}");
        place.run(&line).refuses(code, &[said]);
    }
    assert!(!place.path(&format!("weir-place-{own}.txt")).exists());
}

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
        ("--on skx2s --tier dram", "no tier besides dram"),
        ("--on emr2s+cxl-a --max-loss NaN", "from 0 to 1000"),
        ("--on emr2s+cxl-a --tier cxl0,cxl0", "named twice"),
        ("--on sap23+sap23-card", "buffer pages of `rocksdb-get`"),
    ] {
        place
            .run(format!("place levels {asked}"))
            .refuses(2, &[says]);
    }
}
