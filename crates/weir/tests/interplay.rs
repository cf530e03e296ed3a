//! `weir interplay` as a process.

use crate::common::{Place, with};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;
use weir_model::interplay::ChangeClass;

const REQUEST: &str = "interplay --on interplay-a --victims dram:ld,dram:st --aggressors cxl0:nt_st \
    --threads 4,16 --seed 3";

fn json(place: &Place, arguments: &str) -> Value {
    place.run(with(arguments, "--format json")).expect(0).json()
}

#[test]
fn a_matrix_names_who_is_hurt_by_how_much_and_where() {
    let place = Place::new();
    let document = json(&place, REQUEST);
    assert_eq!(document["schema"], "weir/interplay/1");
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["class"], "deep_suppression", "{cell}");
        assert_eq!(cell["verdict"]["cause"], "tor_congestion");
        assert_eq!(cell["certain"], true);
        assert!(
            (2..=5).contains(&cell["repetitions"].as_u64().unwrap()),
            "{cell}"
        );
        // The victim's own cores see it: what misses L2 waits, what its slice has taken does not.
        let ratio = |name: &str| {
            let all = cell["ratios"].as_array().unwrap();
            let found = all.iter().find(|r| r["name"] == name);
            found.and_then(|r| r["ratio"].as_f64())
        };
        if cell["victim"]["op"] == "ld" {
            assert!(ratio("victim.l2_miss_latency").unwrap() > 3.0);
            let served = ratio("victim.l3_miss_latency").unwrap();
            assert!((0.9..1.25).contains(&served), "{served}");
        }
        let held = |name: &str| {
            let all = cell["queues"].as_array().unwrap();
            let found = all.iter().find(|q| q["place"] == name).unwrap();
            (
                found["solo"].as_f64().unwrap(),
                found["corun"].as_f64().unwrap(),
            )
        };
        assert_eq!(held("LFB aggressor").0, 0.0);
        assert!(held("LFB aggressor").1 > 0.0);
        assert!(held("ToR cxl").1 > held("memory cxl").1);
        assert!(held("memory dram").1 < held("memory dram").0);
        let ns = &cell["ns"];
        assert!(ns["corun_mean"].as_f64() > ns["solo_mean"].as_f64());
        let surface = document["surface"].as_array().unwrap().iter();
        let own: Vec<f64> = surface
            .filter(|p| p["victim"] == cell["victim"])
            .map(|p| p["change_pct"].as_f64().unwrap())
            .collect();
        assert_eq!(own.len(), 4);
        let deepest = own.iter().copied().fold(0.0, f64::min);
        assert_eq!(cell["change_pct"].as_f64(), Some(deepest));
    }

    // What is kept says the same again, in every form.
    let shown = json(&place, "runs show last");
    assert_eq!(shown["cells"], document["cells"]);
    let table = place.run("runs show last");
    assert!(
        table.out().contains("ToR/IRQ congestion"),
        "{}",
        table.out()
    );
    for line in table.out().lines() {
        assert!(line.width() <= 80, "{line}");
    }
    for (list, rows) in [("", 2), ("--frame surface", 8), ("--frame latencies", 2)] {
        let all = with("runs export last --as csv", list);
        let csv = place.run(all).expect(0).out();
        assert!(csv.starts_with("machine,"), "{csv}");
        assert_eq!(csv.lines().count(), 1 + rows, "{csv}");
    }
    let page = place.run("report last -o -");
    assert!(page.out().contains("Who hurts whom"));
}

#[test]
fn a_matrix_repeats_itself() {
    let place = Place::new();
    let (first, again) = (json(&place, REQUEST), json(&place, REQUEST));
    assert_eq!(first["cells"], again["cells"]);
    assert_eq!(first["surface"], again["surface"]);
    // The store answers the second; a place of its own measures again.
    let elsewhere = json(&Place::new(), REQUEST);
    assert_eq!(first["cells"], elsewhere["cells"]);
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let place = Place::new();
    for (arguments, word) in [
        ("--victims cxl7", "dram, cxl0"),
        ("--victims dram:jump", "jump"),
        ("--threads 48", "48 threads"),
        (
            "--victims dram:ld --aggressors cxl0:ld --threads 25",
            "no pair fits",
        ),
        (
            "--victims dram:ld --aggressors cxl0:ld --rate 20k",
            "answer requests",
        ),
        ("--preset table9", "table3"),
        ("--size 64B", "working set"),
        ("--preset table3 --size 1M", "cannot be used"),
        ("--preset table3 --victims dram", "cannot be used with"),
    ] {
        let done = place.run(with("interplay --on interplay-a", arguments));
        assert_eq!(done.code(), 2, "{arguments:?}: {}", done.err());
        assert!(done.err().contains(word), "{arguments:?}: {}", done.err());
        assert!(done.out().is_empty());
    }
}

/// CXL-Interplay, Table III, system A: the changes of memory with memory, row by row.
fn published() -> Vec<f64> {
    let rows = weir_model::published::builtin_rows();
    let number = |id: &str| id.strip_prefix("INT-")?.parse::<u32>().ok();
    rows.iter()
        .filter(|row| number(&row.id).is_some_and(|n| (25..=42).contains(&n)))
        .map(|row| row.value)
        .collect()
}

#[test]
fn the_papers_matrix_comes_out_without_having_been_told() {
    let place = Place::new();
    let document = json(
        &place,
        "interplay --on interplay-a --preset table3 --threads 4,16 --repeat 1",
    );
    let (cells, with_drive): (Vec<_>, Vec<_>) = (document["cells"].as_array().unwrap().iter())
        .partition(|cell| {
            ["victim", "aggressor"]
                .iter()
                .all(|side| cell[side]["tier"] != "ssd0")
        });
    let published = published();
    assert_eq!((cells.len(), published.len()), (18, 18));
    let changes: Vec<f64> = (cells.iter())
        .map(|cell| cell["change_pct"].as_f64().unwrap())
        .collect();
    let near = (changes.iter().zip(&published))
        .filter(|(ours, theirs)| ChangeClass::of(**ours).distance(ChangeClass::of(**theirs)) <= 1)
        .count();
    assert!(near >= 15, "{near} of 18: {changes:?}");
    let [ld, st, nt_st] = [&changes[0..3], &changes[3..6], &changes[6..9]];
    for victim in [ld, st, nt_st] {
        assert!((-96.0..=-80.0).contains(&victim[2]), "{victim:?}");
    }
    for change in [ld[0], ld[1], st[0], st[1]] {
        assert!(change.abs() <= 5.0, "{change}");
    }
    // Two kinds of requests with three of CXL, and back: storage harms no tenant here.
    assert_eq!(with_drive.len(), 12);
    for cell in with_drive {
        let ours = cell["change_pct"].as_f64().unwrap();
        if cell["victim"]["tier"] == "cxl0" {
            assert!(ours.abs() <= 10.0, "{cell}");
        } else {
            assert!(
                ours < 5.0 && cell["ns"]["corun_mean"].as_f64() > Some(0.0),
                "{cell}"
            );
        }
    }
}

/// A matrix of this machine's own memory; `None` on one core.
fn own_memory(place: &Place, repeat: &str) -> Option<Vec<String>> {
    let topology = place.run("topo --format json").expect(0).json();
    if topology["topology"]["cores"].as_array().unwrap().len() < 2 {
        eprintln!("SKIPPED: one core only");
        return None;
    }
    let request = "interplay --victims dram:ld --aggressors dram:ld,dram:nt_st --threads 1 --size 1M --repeat";
    let words = request.split(' ').chain([repeat, "--format", "json"]);
    Some(words.map(str::to_owned).collect())
}

/// A class that repetitions leave open is named as such.
fn classes_are_certain_or_open(place: &Place, document: &Value) {
    let table = place.run("runs show last").out();
    for cell in document["cells"].as_array().unwrap() {
        let change = cell["change_pct"].as_f64().unwrap();
        assert_eq!(
            cell["class"],
            serde_json::to_value(ChangeClass::of(change)).unwrap()
        );
        let reach = cell["change_ci95"].as_f64().unwrap();
        assert!(reach >= 0.0);
        // The interval need not be as wide on both sides; the wider one tells what may be open.
        let open = cell["classes"].as_array().map_or(0, Vec::len);
        let widest = [
            ChangeClass::of(change - reach),
            ChangeClass::of(change + reach),
        ];
        // With one pair of thread counts, its interval alone decides.
        if widest[0] == widest[1] {
            assert_eq!((open, &cell["certain"]), (0, &true.into()), "{cell}");
        }
        assert_ne!(
            (&cell["certain"], &cell["verdict"]["cause"]),
            (&false.into(), &"unharmed".into())
        );
        if open > 1 {
            assert!(table.contains("? marks a change"), "{table}");
            assert!(table.contains("uncertain"), "{table}");
        }
    }
}

#[test]
fn a_matrix_that_is_killed_keeps_its_figures_and_goes_on() {
    let place = Place::new();
    let Some(request) = own_memory(&place, "2") else {
        return;
    };
    let request: Vec<&str> = request.iter().map(String::as_str).collect();
    let mut child = place.start(&request);
    place.wait_for_figures(2);
    crate::common::signal(&child, "KILL");
    child.wait().unwrap();
    let kept = place.run("runs show last --format json");
    let kept = kept.expect(0).json();
    assert_eq!(kept["partial"], true);
    let resumed = place.run("runs resume last --format json");
    let resumed = resumed.expect(0).json();
    assert_eq!(resumed["partial"], false);
    assert_eq!(resumed["cells"].as_array().unwrap().len(), 2);
    for point in resumed["points"].as_array().unwrap() {
        assert_eq!(
            (&point["repetitions"], &point["error"]),
            (&2.into(), &Value::Null)
        );
    }
    classes_are_certain_or_open(&place, &resumed);
}

#[test]
fn a_program_is_a_tenant_with_its_own_metric_and_its_reason() {
    let place = Place::new();
    let arguments = "interplay --on emr2s+cxl-a --victims dram:bfs-twitter --aggressors cxl0:nt_st,cxl0:llama-decode";
    let document = json(&place, arguments);
    assert_eq!(document["schema"], "weir/interplay-programs/1");
    let pairs = document["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    let stores = &pairs[0];
    assert!(stores["change_pct"].as_f64().unwrap() < -40.0, "{stores}");
    assert_eq!(stores["verdict"]["cause"], "tor_congestion");
    let lost = |at: &str| stores[at]["cpi"].as_f64().unwrap();
    assert!(lost("lost_beside") > 2.0 * lost("lost_alone"), "{stores}");
    // Reads of CXL leave the table to others on this machine.
    assert!(
        pairs[1]["change_pct"].as_f64().unwrap() > -40.0,
        "{}",
        pairs[1]
    );
    let table =
        place.run("interplay --on emr2s+cxl-a --victims dram:bfs-twitter --aggressors cxl0:nt_st");
    for line in table.expect(0).out().lines() {
        assert!(line.width() <= 80, "{line}");
    }
}

#[test]
fn the_latency_of_requests_grows_with_load_and_with_slower_memory() {
    let place = Place::new();
    let arguments = "interplay --on memo --victims dram:redis-ycsb-a,cxl0:redis-ycsb-a --rate 20k,60k,90k --requests 1500";
    let document = json(&place, arguments);
    let pairs = document["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 6);
    let p99 = |row: usize| pairs[row]["ns_alone"]["p99"].as_f64().unwrap();
    assert!(p99(0) < p99(1) && p99(1) < p99(2), "DRAM by load");
    for row in 0..3 {
        assert!(p99(row) < p99(row + 3), "DRAM before the card");
    }
    assert_eq!(pairs[0]["saturated"], false);
    assert_eq!(pairs[5]["saturated"], true);
}

#[test]
fn the_first_sentence_has_the_latency_of_the_requests() {
    let place = Place::new();
    let interplay = "interplay --on emr2s+cxl-a --victims dram:redis-ycsb-a --requests 1000 --rate";
    let first = |arguments: &str| {
        let out = place.run(with(interplay, arguments)).expect(0).out();
        let words: Vec<&str> = out.split_whitespace().take(40).collect();
        words.join(" ")
    };
    let alone = first("20k,60k");
    assert!(alone.starts_with("dram:redis-ycsb-a alone: "), "{alone}");
    assert!(
        alone.contains(" us (") && alone.contains(" at 60000/s"),
        "{alone}"
    );
    let beside = first("40k --aggressors cxl0:nt_st,dram:ld");
    let waits = "programs: requests of dram:redis-ycsb-a at 40000/s wait longest, p99 from ";
    assert!(beside.starts_with(waits), "{beside}");
    assert!(beside.contains("with cxl0:nt_st; 2 of 2 pairs"), "{beside}");
}

#[test]
fn a_group_of_workloads_stands_for_its_members() {
    let place = Place::new();
    let group = "interplay --on emr2s+cxl-a --victims dram:type-c --requests 500";
    let document = json(&place, group);
    let pairs = document["pairs"].as_array().unwrap().iter();
    let victims: Vec<&str> = pairs.filter_map(|pair| pair["victim"].as_str()).collect();
    assert_eq!(
        victims,
        [
            "dram:rocksdb-get",
            "dram:pr-kron",
            "dram:redis-ycsb-a",
            "dram:llama-decode"
        ]
    );
    place
        .run("explain bfs-twitter --on emr2s+cxl-a --beside cxl0:type-c")
        .refuses(2, &["give --beside one"]);
}

#[test]
fn a_command_that_fails_costs_its_own_figures_and_no_other() {
    let place = Place::new();
    let mut words = vec!["interplay", "--format", "json", "--repeat", "1"];
    words.extend(["--command", "nap=sleep 0.1", "--command", "bad=false"]);
    words.extend(["--victims", "dram:!nap,dram:!bad"]);
    let aggressors = ["--aggressors", "dram:ld", "--size", "8M", "--threads", "1"];
    let done = place.run(with(words, aggressors)).expect(1);
    assert!(
        done.err().contains("`dram:!bad` failed: exit status 1"),
        "{}",
        done.err()
    );
    let document = done.json();
    let (nap, bad) = (&document["pairs"][0], &document["pairs"][1]);
    assert!(nap["run_s_alone"].as_f64() > Some(0.1), "{nap}");
    assert!(nap["run_s_beside"].as_f64() > Some(0.1), "{nap}");
    assert!(
        bad["failed"].as_str().unwrap().contains("exit status 1"),
        "{bad}"
    );
    // What failed is no pair that loses nothing.
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.contains("\nprograms: "), "{shown}");
    assert!(!shown.contains("of 2 pairs"), "{shown}");
}

#[test]
fn a_matrix_of_programs_that_is_stopped_goes_on_to_the_same_figures() {
    let words = "interplay --on emr2s+cxl-a --victims dram:redis-ycsb-a --rate 40k --requests 500 --aggressors \
        cxl0:nt_st,cxl0:ld --format json";
    let place = Place::new();
    let mut child = place.start(words);
    // Its answers are no figures, so the list of runs does not count them: it has begun, and takes some seconds.
    place.wait_for_figures(0);
    std::thread::sleep(std::time::Duration::from_millis(500));
    crate::common::signal(&child, "INT");
    child.wait().unwrap();
    let kept = place.run("runs show last --format json").expect(0).json();
    assert_eq!(kept["partial"], true, "the run ended before it was stopped");
    let resumed = place.run("runs resume last --format json").expect(0).json();
    let whole = Place::new().run(words).expect(0).json();
    assert_eq!(resumed["partial"], false);
    assert_eq!(resumed["pairs"], whole["pairs"]);
}

#[test]
fn programs_that_cannot_be_tenants_are_refused_with_the_reason() {
    let place = Place::new();
    let cases = [
        (
            "--victims dram:bfs-twiter --aggressors dram:ld",
            "did you mean `bfs-twitter`",
        ),
        (
            "--victims dram:missing.toml --aggressors dram:ld",
            "missing.toml",
        ),
        ("--victims cxl9:bfs-twitter --aggressors dram:ld", "cxl9"),
        (
            "--victims dram=0+cxl0:bfs-twitter --aggressors dram:ld",
            "1 to 255",
        ),
        ("--aggressors dram:bfs-twitter", "--victims"),
        (
            "--victims dram:nonesuch --aggressors dram:ld",
            "`weir workload list` has no workload of that name",
        ),
        (
            "--victims dram:type-a --aggressors dram:ld",
            "`files-fileserver` has no description",
        ),
        (
            "--victims dram:bfs-twitter --aggressors dram:ld --threads 400",
            "400 threads",
        ),
        ("--victims dram:redis-ycsb-a --rate fast", "50k"),
        ("--victims dram:bfs-twitter --rate 20k", "answer requests"),
    ];
    for (arguments, said) in cases {
        place
            .run(with("interplay --on emr2s+cxl-a", arguments))
            .refuses(2, &[said]);
    }
}

#[test]
fn a_command_of_this_host_is_timed_from_its_start_to_its_end() {
    let place = Place::new();
    let command = [
        "interplay",
        "--command",
        "nap=sleep 0.3",
        "--victims",
        "dram:!nap",
        "--repeat",
        "2",
    ];
    let done = place
        .run(with(command, ["--format", "json"]))
        .expect(0)
        .json();
    let alone = done["pairs"][0]["run_s_alone"].as_f64().unwrap();
    assert!((0.3..5.0).contains(&alone), "{alone}");
    for (line, said) in [
        ("bad=/no/such/program", "there is no such program"),
        ("bad='unfinished", "bad"),
        ("other=true", "there is no command `bad`"),
        ("bad=false", "exit status 1"),
    ] {
        let command = [
            "interplay",
            "--command",
            line,
            "--victims",
            "dram:!bad",
            "--repeat",
            "1",
        ];
        let done = place.run(command);
        assert_ne!(done.code(), 0, "{line}");
        assert!(done.err().contains(said), "{line}: {}", done.err());
    }
    let unused = ["interplay", "--command", "nap=sleep 1", "--victims"];
    let victim = ["dram:ld", "--aggressors", "dram:ld"];
    place
        .run(with(unused, victim))
        .refuses(2, &["--command nap is no tenant here"]);
    let other = ["--command", "nap=sleep 1", "--command", "bad=true"];
    let victims = ["interplay", "--victims", "dram:!bad"];
    place
        .run(with(victims, other))
        .refuses(2, &["--command nap is no tenant here"]);
    // A command that is not there is named before another runs.
    let mut words = vec!["interplay", "--command", "long=sleep 60"];
    words.extend(["--command", "bad=no-such-program --now"]);
    let began = std::time::Instant::now();
    place
        .run(with(words, ["--victims", "dram:!long,dram:!bad"]))
        .refuses(
            2,
            &["cannot run `no-such-program`: there is no such program"],
        );
    assert!(began.elapsed().as_secs() < 30);
    let on_model = [
        "interplay",
        "--on",
        "emr2s+cxl-a",
        "--command",
        "ls=ls",
        "--victims",
        "dram:!ls",
    ];
    place.run(on_model).refuses(2, &["runs on a host"]);
}

#[test]
fn a_stream_of_this_host_is_a_victim_of_a_command() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let place = Place::new();
    let mut words = vec!["interplay", "--format", "json", "--repeat", "1"];
    words.extend(["--command", "nap=sleep 0.1", "--threads", "1"]);
    words.extend(["--victims", "dram:ld", "--aggressors", "dram:!nap"]);
    let document = place.run(words).expect(0).json();
    let pair = &document["pairs"][0];
    assert_eq!(pair["unit"], "GB/s", "{pair}");
    for rate in ["alone", "beside"] {
        let rate = pair[rate].as_f64().unwrap();
        assert!((0.1..1000.0).contains(&rate), "{pair}");
    }
    // The nap was over long before the stream was, and was taken again.
    assert!(
        pair["aggressor_change_pct"].as_f64() > Some(-90.0),
        "{pair}"
    );
}
