//! `weir tier` as a process: policies on a model, the kernel's tiering on this host, and what is said of wrong requests.

use crate::common::{Place, with};
use weir::verbs::tier::windows::Tiered;
use weir_model::document::Document;
use weir_steer::tier::Simulated;
use weir_steer::tier::advise::Advised;
use weir_steer::tier::population::Compared;
use weir_steer::tier::profile::{Profile, ProfileSource};

const SMALL: &str = "tier simulate --on emr2s,core.count=4+cxl-a --size 64MiB --for 60s";

#[test]
fn policies_are_compared_and_what_is_stored_says_the_same() {
    let place = Place::new();
    let all = with(SMALL, "--policy first-touch,tpp --format json");
    let printed = place.run(&all).expect(0).out();
    let printed: Document<Simulated> = serde_json::from_str(&printed).unwrap();
    let names: Vec<&str> = (printed.output.policies.iter())
        .map(|policy| policy.policy.as_str())
        .collect();
    assert_eq!(names, ["first-touch", "tpp"]);
    let [none, tpp] = &printed.output.policies[..] else {
        panic!("{names:?}")
    };
    assert!(tpp.settled_local_pct > none.settled_local_pct);
    assert!(tpp.demoted_pages > 0 && none.demoted_pages == 0);
    let stored = place.run("runs show 1 --format json").expect(0).out();
    let stored: Document<Simulated> = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored.output, printed.output);
    let page = place.run("runs show 1").expect(0).out();
    assert!(page.contains("first-touch"), "{page}");
    // Nothing is simulated again.
    let again = place.run(&all).expect(0).out();
    let again: Document<Simulated> = serde_json::from_str(&again).unwrap();
    assert_eq!(again.output, printed.output);
}

#[test]
fn policies_are_compared_on_described_programs() {
    let place = Place::new();
    let request = "tier simulate --on emr2s,core.count=4+cxl-a --size 64MiB --for 5s --policy first-touch,tpp --format json";
    let simulated = |workload: &str| -> Simulated {
        let run = place
            .run(with(request, format!("--workload {workload}")))
            .expect(0)
            .out();
        let document: Document<Simulated> = serde_json::from_str(&run).unwrap();
        document.output
    };
    let redis = simulated("redis-ycsb-a");
    assert_eq!(redis, simulated("redis-ycsb-a"));
    let local = redis.local_requests.unwrap();
    for policy in &redis.policies {
        let requests = policy.requests.unwrap();
        assert!(requests.p50_ns <= requests.p99_ns && requests.p99_ns <= requests.p999_ns);
        assert!(
            requests.p50_ns >= local.p50_ns * 0.99,
            "{requests:?} {local:?}"
        );
    }
    let page = place.run("runs show 1").expect(0).out();
    assert!(page.contains("Latency of requests"), "{page}");
    // A name that is a shape and a description.
    let (shape, program) = (simulated("bc-urand"), simulated("described:bc-urand"));
    assert_ne!(shape.assumed, program.assumed);
    assert_eq!(program.policies[0].requests, None);
    let file = place.file("mine.toml", include_str!("../../../workloads/gups.toml"));
    let (mine, theirs) = (simulated(&file.display().to_string()), simulated("gups"));
    assert_eq!(mine.policies, theirs.policies);
}

#[test]
fn policies_are_compared_on_drawn_workloads() {
    let place = Place::new();
    let request = "tier population --on emr2s,core.count=4+cxl-a --size 64MiB --for 20s --count 3 --policy tpp,payback";
    let compared = |more: &str| -> Compared {
        let run = place.run(with(request, more)).expect(0).out();
        let document: Document<Compared> = serde_json::from_str(&run).unwrap();
        document.output
    };
    let one = compared("--format json");
    assert_eq!(one, compared("--format json"));
    let stored = place.run("runs show 1 --format json").expect(0).out();
    let stored: Document<Compared> = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored.output, one);
    let names: Vec<&str> = (one.policies.iter()).map(|p| p.policy.as_str()).collect();
    assert_eq!(names, ["first-touch", "tpp", "payback"]);
    for rows in one.workloads.chunks(3) {
        assert_eq!(rows[0].gain_pct, 0.0);
        for row in rows {
            let others = rows.iter().filter(|other| other.policy != row.policy);
            let best = others.map(|other| other.gain_pct).fold(-100.0, f64::max);
            let against = ((100.0 + row.gain_pct) / (100.0 + best) - 1.0) * 100.0;
            assert!(
                (row.against_best_pct - against).abs() < 1e-9,
                "{row:?} {best}"
            );
        }
    }
    for overall in &one.policies {
        let rows = one
            .workloads
            .iter()
            .filter(|row| row.policy == overall.policy);
        let product: f64 = rows.clone().map(|row| 1.0 + row.gain_pct / 100.0).product();
        assert!((product.cbrt() - 1.0 - overall.gain_pct / 100.0).abs() < 1e-9);
        let least = rows.clone().map(|row| row.against_best_pct);
        assert_eq!(least.fold(f64::INFINITY, f64::min), overall.least_pct);
        let count = |is: fn(f64) -> bool| {
            rows.clone().filter(|row| is(row.against_best_pct)).count() as u32
        };
        assert_eq!(
            (count(|pct| pct < -1.0), count(|pct| pct > 0.0)),
            (overall.below, overall.best)
        );
    }
    // Nothing moves where all memory is fast.
    let all = "tier population --on emr2s,core.count=4+cxl-a --size 64MiB --for 5s --count 1 --policy tpp";
    let said = place.run(all).expect(0).out();
    assert!(
        said.starts_with("1 workload: no policy gains over first touch"),
        "{said}"
    );
    // One policy is not the best of one.
    let alone = "tier simulate --on emr2s,core.count=4+cxl-a --size 64MiB --for 5s --policy tpp";
    let said = place.run(alone).expect(0).out();
    assert!(said.starts_with("web1 at 2:1: tpp: once settled"), "{said}");
    // Its memory grows for ten minutes, and few pages that were demoted come back.
    let growing = "tier simulate --on emr2s,core.count=4+cxl-a --size 256MiB --for 60s --ratio 1:15 --policy tpp,neomem";
    let said = place.run(growing).expect(0).out();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("nothing is settled; give --for 800s or more"),
        "{said}"
    );
    assert!(
        said.contains(" 99.") && !said.contains("back and forth"),
        "{said}"
    );
    let other = compared("--seed 9 --format json");
    assert_eq!(other.workloads.len(), 9);
    assert_ne!(other.workloads, one.workloads);
    for (more, code, said) in [
        ("--policy first-touch", 2, "besides first-touch"),
        ("--policy tp", 2, "tpp"),
        ("--slow cxl9", 2, "cxl9"),
        ("--count 0", 2, "--count"),
    ] {
        let request = format!("tier population --on emr2s,core.count=4+cxl-a {more}");
        let err = place.run(request).expect(code).err();
        assert!(err.contains(said), "{more}: {err}");
    }
}

#[test]
fn without_settings_the_kernels_tiering_is_only_counted() {
    let place = Place::new();
    let run = place.run("tier run --for 300ms --window 100ms --format json");
    let run: Document<Tiered> = serde_json::from_str(&run.expect(0).out()).unwrap();
    assert_eq!(run.output.before, run.output.in_force);
    assert!(run.output.windows.len() >= 3);
    // Free memory is drawn in sizes, not in ten digits.
    let page = place.run("report 1 -o -").expect(0).out();
    let mut ticks = page.split("class=\"tick\"");
    let is_size = |tick: &str| {
        tick.split('<')
            .next()
            .is_some_and(|text| text.ends_with(['M', 'G', 'T']))
    };
    assert!(ticks.any(is_size), "{page}");
    let stored = place.run("runs show 1 --format json").expect(0).out();
    let stored: Document<Tiered> = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored.output, run.output);
}

#[test]
fn wrong_requests_are_refused_with_what_is_right() {
    let place = Place::new();
    for (request, code, said) in [
        ("tier simulate", 3, "--on emr2s+cxl-a"),
        ("tier simulate --on emr2s+cxl-a --size 0MiB", 2, "--size"),
        (
            "tier simulate --on emr2s+cxl-a --size 100TiB",
            2,
            "between 16MiB and 16TiB",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --workload web9",
            2,
            "web1",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --workload redis-ycsb-x",
            2,
            "redis-ycsb-a",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --workload redis-ycsb-d",
            2,
            "no description",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --workload absent.toml",
            2,
            "absent.toml",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --workload web1 --threads 4",
            2,
            "described programs",
        ),
        (
            "tier simulate --on emr2s,core.count=4+2xcxl-a --workload chase --fast cxl0 --slow cxl1",
            2,
            "two kinds",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --workload chase --slow dram",
            2,
            "dram is not slower than itself",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --slow dram",
            2,
            "dram is not slower than itself",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --fast cxl0 --slow dram",
            2,
            "dram is to be the slower tier, and a lone load of it takes 4",
        ),
        (
            "tier simulate --on emr2s,core.count=4,dram.capacity=1GiB+cxl-a --workload chase",
            2,
            "or name a model with more memory: `--on emr2s,dram.capacity=",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --policy alto:alto",
            2,
            "alto:alto is alto on itself",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --policy alto:tmo:alto:tpp",
            2,
            "alto on itself",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --size 4KiB",
            2,
            "between 16MiB and 16TiB",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --policy tpp,tpp",
            2,
            "named twice",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --for 1",
            2,
            "such as 150s",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --policy tpq",
            2,
            "tpp",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --ratio 2",
            2,
            "FAST:SLOW",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --size 64MiB --ratio 100:1",
            2,
            "cxl0 would have",
        ),
        (
            "tier simulate --on emr2s,core.count=4+cxl-a --workload chase --size 64MiB --ratio 1:100",
            2,
            "dram would have",
        ),
        ("tier simulate --on emr2s", 2, "cxl0"),
        (
            "tier population --on emr2s,core.count=4+cxl-a --slow dram",
            2,
            "dram is not slower than itself",
        ),
        ("tier run --on emr2s", 2, "host"),
        ("tier run --window 10ms", 2, "100 ms"),
        ("tier run --for 10ms", 2, "--window"),
        ("tier run --weights dram=0", 2, "1 to 255"),
        ("tier run --for 1s --pressure 5", 2, "--demote"),
        ("tier run --for 1s --move-rate 1GB/s", 2, "--move"),
        ("tier run --promote-limit 0GB/s", 2, "more than 0"),
        ("tier run --demote cgroup:/nobody", 2, "SCOPE=RATE"),
        ("tier run --move pid:4711:1000-2000", 2, "=TIER"),
        ("tier run --move pid:4711:1000-2001=dram", 2, "whole pages"),
        ("tier run --move pid:4711:1000-2000=cxl9", 3, "cxl9"),
        (
            "tier run --move pid:999999999:1000-2000=dram",
            3,
            "no process",
        ),
    ] {
        let err = place.run(request).expect(code).err();
        assert!(err.contains(said), "{request}: {err}");
    }
    // None of them is a run that could go on.
    let runs = place.run("runs list").out();
    assert!(!runs.contains("tier simulate"), "{runs}");
}

#[test]
fn a_scan_has_assumptions_of_its_own() {
    let place = Place::new();
    let request = with(
        SMALL,
        "--workload stream --policy first-touch --format json",
    );
    let run: Document<Simulated> =
        serde_json::from_str(&place.run(request).expect(0).out()).unwrap();
    let assumed = run.output.assumed;
    assert!(assumed.contains("90 % of their time"), "{assumed}");
    assert!(!assumed.contains("Zipf"), "{assumed}");
}

fn profile(text: &str) -> Profile {
    let document: Document<Profile> = serde_json::from_str(text).unwrap();
    document.output
}

#[test]
fn a_profile_of_a_model_is_stored_and_made_once() {
    let place = Place::new();
    let model = "tier profile --on emr2s,core.count=4+cxl-a --size 64MiB --for 60s --format json";
    let printed = profile(&place.run(model).expect(0).out());
    assert_eq!(
        (printed.source, printed.seconds),
        (ProfileSource::Model, 60.0)
    );
    assert!(
        printed
            .intervals
            .iter()
            .all(|row| row.allocated > row.cold && row.cold.get() > 0)
    );
    assert!(!printed.heat.is_empty() && !printed.rates.is_empty());
    let stored = profile(&place.run("runs show 1 --format json").expect(0).out());
    assert_eq!(stored, printed);
    let text = place.run("runs show 1").expect(0).out();
    let words = text.replace("\n  ", " ");
    assert!(words.contains("is hot (touched in the last 6 s)"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert_eq!(profile(&place.run(model).expect(0).out()), printed);
    place.run("report last -o page.html").expect(0);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains(">t [s]<") && !page.contains(">t s<"));
    // Of a run that was stopped before it had an answer, the store has the head.
    let db = rusqlite::Connection::open(place.store()).unwrap();
    let stopped = "UPDATE runs SET state = 'partial', document = json_remove(document, '$.source')";
    db.execute(stopped, []).unwrap();
    let advise = place.run("tier advise 1 --on emr2s+cxl-a --ratio 1:4");
    advise.refuses(
        2,
        &["before it had an answer; `weir runs resume 1` goes on"],
    );
    let described = "--workload kmeans --sampler events";
    let found = profile(&place.run(with(model, described)).expect(0).out());
    assert!(found.rates.iter().any(|row| row.region == "points"));
    let group = place.run(with(model, "--workload type-b"));
    group.refuses(2, &["is a group of workloads"]);
}

#[test]
fn a_profile_of_a_trace_is_right_and_a_wrong_line_is_named() {
    let place = Place::new();
    let mut trace = String::from("time_s,address,kind\n");
    for second in 0..20 {
        for page in 0..100 {
            // At first all pages, then a quarter of them.
            if second == 0 || page % 4 == 0 {
                let kind = if page < 60 { "anon" } else { "file" };
                trace.push_str(&format!(
                    "{second}.5,0x{:x},{kind}\n",
                    0x10_0000 + page * 4096
                ));
            }
        }
    }
    place.file("trace.csv", &trace);
    let run = place.run("tier profile --trace trace.csv --interval 1s --hot 2s --format json");
    let found = profile(&run.expect(0).out());
    assert_eq!((found.source, found.granules), (ProfileSource::Trace, 100));
    for row in found.intervals.iter().rev().take(2) {
        assert_eq!((row.hot_pct, row.cold_pct), (25.0, 75.0));
    }
    // Times are without what their sums have rounded, in the sentence and under the map.
    let text = place
        .run("tier profile --trace trace.csv --interval 0.1s --hot 0.6s")
        .expect(0);
    let text = text.out().replace("\n  ", " ");
    assert!(text.contains("(touched in the last 0.6 s)"), "{text}");
    place.run("report last -o page.html").expect(0);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(!page.contains("00000000"));
    let compared = place.run("runs compare last last").expect(0).out();
    // What names a row is no figure of it.
    let names_rows = compared.contains("  t_s  ");
    assert!(
        compared.contains("anon t_s 0.3 ") && !names_rows,
        "{compared}"
    );
    // A short profile does not know all that a class of pages says.
    let short = place.run("tier profile --trace trace.csv --interval 5s --hot 30s");
    let short = short.expect(0).out().replace("\n  ", " ");
    let said = "was not touched in these 20 s, and may have been in the last 60 s";
    assert!(short.contains(said), "{short}");
    let bad = trace.replacen("0x101000", "0x10100g", 1);
    place.file("bad.csv", bad);
    let err = place.run("tier profile --trace bad.csv").expect(2).err();
    assert!(
        err.contains("bad.csv:3:5: `0x10100g` is no address"),
        "{err}"
    );
    place.file("one.csv", "time_s,address,kind\n0.5,4096,anon\n");
    let one = place.run("tier profile --trace one.csv").expect(0).out();
    assert!(one.contains("seen by: 1 access of a trace"), "{one}");
    place.file("none.csv", "time_s,address,kind\n");
    let err = place.run("tier profile --trace none.csv").expect(2).err();
    assert!(err.contains("no accesses"), "{err}");
    place.file("other.csv", "a,b\n1,2\n");
    let err = place.run("tier profile --trace other.csv").expect(2).err();
    assert!(err.contains("other.csv:1:1: the first line"), "{err}");
}

#[test]
fn wrong_profiles_are_refused_with_what_is_right() {
    let place = Place::new();
    for (request, said) in [
        ("tier profile", "--target"),
        (
            "tier profile --target pid:999999999",
            "no process 999999999",
        ),
        (
            "tier profile --target pid:{own} --for 1s --interval 2s",
            "shorter than one --interval",
        ),
        (
            "tier profile --target pid:{own} --for 1s --interval 1ms",
            "at least 0.1 s",
        ),
        (
            "tier profile --target pid:{own} --min-regions 20 --max-regions 10",
            "--min-regions",
        ),
        (
            "tier profile --on emr2s,core.count=4+cxl-a --for 1s --interval 2s",
            "shorter than one --interval",
        ),
        (
            "tier profile --on emr2s,core.count=4+cxl-a --interval 1.1s",
            "multiple of 0.25 s",
        ),
        (
            "tier profile --on emr2s,core.count=4+cxl-a --workload web9",
            "did you mean `web1`?",
        ),
        (
            "tier profile --on emr2s,core.count=4+cxl-a --period 7",
            "--period is for --sampler events",
        ),
        (
            "tier profile --on emr2s,core.count=4+cxl-a --sampler events --scan 1s",
            "--scan is for --sampler bits",
        ),
        (
            "tier profile --on emr2s,core.count=4+cxl-a --target pid:{own}",
            "remove `--on`",
        ),
        (
            "tier profile --trace missing.csv",
            "cannot open missing.csv",
        ),
        (
            "tier profile --trace a --target pid:{own}",
            "cannot be used with",
        ),
    ] {
        let request = request.replace("{own}", &std::process::id().to_string());
        let err = place.run(&request).expect(2).err();
        assert!(err.contains(said), "{request}: {err}");
    }
}

#[test]
fn advice_is_given_from_a_profile_alone() {
    let place = Place::new();
    let model = "tier profile --on emr2s,core.count=4+cxl-a --size 64MiB --for 30s --sampler events --format json";
    let printed = place.run(model).expect(0).out();
    place.file("profile.json", &printed);
    let advise =
        "--on emr2s,core.count=4+cxl-a --variations 2 --for 20s --policy tpp --format json";
    let advised = |source: &str| -> Advised {
        let run = place.run(with(format!("tier advise {source}"), advise));
        let document: Document<Advised> = serde_json::from_str(&run.expect(0).out()).unwrap();
        document.output
    };
    let of_run = advised("1");
    let policies: Vec<&str> = of_run
        .policies
        .iter()
        .map(|row| row.policy.as_str())
        .collect();
    assert_eq!(policies, ["first-touch", "tpp"]);
    assert!(of_run.policies[1].low_pct <= of_run.policies[1].high_pct);
    // Two of them do not reach the lower end of the share of stalled time.
    let doubt = |run: u32| {
        let said = place.run(format!("runs show {run}")).expect(0).out();
        said.contains("2 workloads do not reach the ends of what the profile does not say")
    };
    assert!(doubt(2));
    let known = "tier advise 1 --on emr2s,core.count=4+cxl-a --variations 2 --for 20s --policy tpp --mlp 2 --stalled 0.4 --writes 0.3";
    assert!(!place.run(known).expect(0).out().contains("do not reach"));
    let assumed: Vec<&str> = of_run.assumed.iter().map(|row| row.what.as_str()).collect();
    assert!(assumed.contains(&"accesses at once"), "{assumed:?}");
    assert_eq!(of_run, advised("profile.json"));
    let stored = place.run("runs show 2 --format json").expect(0).out();
    let stored: Document<Advised> = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored.output, of_run);
    let mut value: serde_json::Value = serde_json::from_str(&printed).unwrap();
    value["bands"] = serde_json::json!([]);
    place.file("empty.json", value.to_string());
    value["schema"] = "weir/tier/1".into();
    place.file("other.json", value.to_string());
    place.file("words.json", "no profile");
    let mut short: serde_json::Value = serde_json::from_str(&printed).unwrap();
    short["seconds"] = 0.1.into();
    place.file("short.json", short.to_string());
    place.file(
        "few.csv",
        "time_s,address,kind\n0.5,0x1000,anon\n9.5,0x2000,file\n",
    );
    let few = place.run("tier profile --trace few.csv --interval 1s --format json");
    place.file("few.json", few.expect(0).out());
    for (request, code, said) in [
        ("profile.json", 3, "--on emr2s+cxl-a"),
        ("empty.json --on emr2s+cxl-a", 2, "no memory"),
        ("other.json --on emr2s+cxl-a", 2, "schema is weir/tier/1"),
        ("words.json --on emr2s+cxl-a", 2, "no profile"),
        ("short.json --on emr2s+cxl-a", 2, "shorter than two"),
        (
            "2 --on emr2s,core.count=4+cxl-a",
            2,
            "not of `weir tier profile`",
        ),
        ("99 --on emr2s+cxl-a", 2, "99"),
        ("1 --on emr2s+cxl-a --fast-memory 0KiB", 2, "16 MiB"),
        ("1 --on emr2s+cxl-a --ratio 0:1", 2, "FAST:SLOW"),
        ("1 --on emr2s+cxl-a --mlp 9..1", 2, "1.2..8"),
        ("1 --on emr2s+cxl-a --stalled 40%", 2, "0.1..0.9"),
        ("1 --on emr2s+cxl-a --loss -3", 2, "percent from 0"),
        ("1 --on emr2s --loss 5%", 2, "cxl0"),
        (
            "1 --on emr2s,core.count=4+cxl-a --ratio 1:9",
            2,
            "--fast-memory",
        ),
        ("1 --on emr2s+cxl-a --policy tpp,tpp", 2, "named twice"),
        (
            "few.json --on emr2s,core.count=4+cxl-a",
            2,
            "too few accesses",
        ),
        (
            "nope.json --on emr2s+cxl-a",
            2,
            "there is no file nope.json",
        ),
        ("/dev/null --on emr2s+cxl-a", 2, "/dev/null is no profile"),
        ("1 --on emr2s", 2, "cxl0"),
    ] {
        let err = place
            .run(format!("tier advise {request}"))
            .expect(code)
            .err();
        assert!(err.contains(said), "{request}: {err}");
    }
    let runs = place.run("runs list").expect(0).out();
    assert!(!runs.contains("partial"), "{runs}");
}
