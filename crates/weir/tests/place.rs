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
        (
            format!("place apply --pid {own} stack=dram stack=dram"),
            "`stack` is named twice",
        ),
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
    place.file("empty.txt", "");
    place
        .run("place restore empty.txt")
        .refuses(2, &["before a page moved", "remove it"]);
}

/// A thread ends before its process, which would then seem to have ended.
#[test]
fn what_has_no_memory_of_its_own_is_no_process_to_move() {
    let place = Place::new();
    let own = std::process::id();
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().unwrap().to_str().unwrap().to_owned();
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", ended.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    for (process, said) in [
        (
            thread.as_str(),
            format!("{thread} is a thread of process {own}"),
        ),
        (&ended.id().to_string(), "no memory of its own".to_owned()),
    ] {
        for verb in ["objects", "apply stack=dram", "watch --for 1s --tier cxl0"] {
            let done = place.run(format!("place {verb} --pid {process}"));
            // Without a second tier nothing is watched.
            assert!(
                done.err().contains(&said) || verb.starts_with("watch") && done.code() == 3,
                "{verb}: {}",
                done.err()
            );
        }
    }
    ended.wait().unwrap();
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

#[test]
fn the_heat_of_what_is_to_move_is_an_average() {
    let place = Place::new();
    let touched = vec![1_u8; 80 << 20];
    let line = format!(
        "place advise --pid {} --for 1s --free 1%",
        std::process::id()
    );
    let done = place.run(&line);
    if done.code() != 3 {
        let said = done.expect(0).out().replace("\n  ", " ");
        assert!(said.contains("times a second on average"), "{said}");
    }
    drop(touched);
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
fn a_move_whose_pages_cannot_be_noted_leaves_no_note() {
    let place = Place::new();
    if !can_place(&place) {
        return;
    }
    let held = Held::of(&place);
    let line = format!("place apply --pid {} {}=dram", held.pid, held.object);
    let undo = place.path(&format!("weir-place-{}.txt", held.pid));
    let done = place.under_shell("ulimit -f 0", &line).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("cannot write"), "{said}");
    assert!(!undo.exists());
    place.run(&line).expect(0);
}

#[test]
fn a_watch_that_cannot_be_is_refused() {
    let place = Place::new();
    let own = std::process::id();
    for (line, code, said) in [
        ("--hot 0.1 --cold 0.2", 2, "--hot must be more than --cold"),
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
