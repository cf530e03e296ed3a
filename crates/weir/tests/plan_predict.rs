//! `weir plan insensitive`, `untouched` and `balance` as a process: programs that run on a model, files of counters, traces.

use serde_json::Value;

use crate::common::{Place, text};

fn rows<'d>(document: &'d Value, list: &str) -> &'d Vec<Value> {
    document[list].as_array().unwrap()
}

/// Programs whose slowdown is what they are stalled, so that any predictor learns it.
fn counted(n: usize) -> String {
    let mut file =
        "workload,slowdown_pct,cycles,inst_retired.any,cycle_activity.stalls_l3_miss\n".to_owned();
    for at in 0..n {
        let stalled = 1000 * at / n;
        file.push_str(&format!(
            "p{at},{},10000,5000,{stalled}\n",
            stalled as f64 / 100.0
        ));
    }
    file
}

#[test]
fn programs_of_a_model_are_judged_and_their_counters_judge_the_same_again() {
    let place = Place::new();
    let small = "--programs 24 --splits 4 --false-positives 10%,20% --format json";
    let ran = place
        .run(
            format!(
                "plan insensitive --on skx2s --tier remote {small} --export c.csv --model f.json"
            )
            .as_str(),
        )
        .expect(0)
        .json();
    assert_eq!(ran["schema"], "weir/plan-insensitive/1");
    assert_eq!(
        (rows(&ran, "programs").len(), rows(&ran, "curves").len()),
        (24, 6)
    );
    assert!(text(&place.path("c.csv")).lines().count() == 25);
    let csv = place.run("runs show 1 --format csv").expect(0).out();
    let head = csv.lines().next().unwrap_or_default();
    assert_eq!(head.split(',').filter(|name| *name == "machine").count(), 1);
    let model: Value = serde_json::from_str(&text(&place.path("f.json"))).unwrap();
    assert_eq!(model[0]["schema"], "weir/insensitive-model/1");
    assert_eq!(model[0]["forest"]["trees"].as_array().unwrap().len(), 100);
    let read = place
        .run(format!("plan insensitive --counters c.csv {small}").as_str())
        .expect(0)
        .json();
    for (a, b) in rows(&ran, "curves").iter().zip(rows(&read, "curves")) {
        for key in [
            "predictor",
            "target_pct",
            "marked_pct",
            "false_positives_pct",
        ] {
            assert_eq!(a[key], b[key]);
        }
    }
    // What was kept is shown as it was printed.
    let shown = place.run("runs show last").expect(0).out();
    let printed = place
        .run(
            format!(
                "plan insensitive --counters c.csv {}",
                small.replace("--format json", "")
            )
            .as_str(),
        )
        .expect(0)
        .out();
    assert!(shown.ends_with(&printed), "{shown}\n{printed}");
    place.run("report last -o page.html").expect(0);
    let few = place
        .run("plan insensitive --counters c.csv --splits 2")
        .expect(0)
        .out();
    let few = few.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        few.contains("half of 24 are too few to show that at most 1 or 2 or 3 or 5 % are false")
            && few.contains("5 % takes 38 programs"),
        "{few}"
    );
}

#[test]
fn counters_of_programs_with_mistakes_are_refused_with_their_place() {
    let place = Place::new();
    place.file("few.csv", counted(10));
    place
        .run("plan insensitive --counters few.csv")
        .refuses(2, &["20 or more"]);
    place.file("bad.csv", counted(30).replace("p3,", "p3,x"));
    place
        .run("plan insensitive --counters bad.csv")
        .refuses(2, &["bad.csv:5", "slowdown_pct"]);
    place
        .run("plan insensitive --programs 5 --on skx2s")
        .refuses(2, &["--programs"]);
    place
        .run("plan insensitive --on skx2s --tier cxl7")
        .refuses(2, &["cxl7"]);
    place
        .run("plan insensitive --counters few.csv --false-positives 200%")
        .refuses(2, &["0 % to 100 %"]);
    // Programs without cycles are counted and left out.
    place.file("bare.csv", counted(40).replace("p7,1.75,10000", "p7,1.75,"));
    let done = place
        .run("plan insensitive --counters bare.csv --splits 2 --format json")
        .expect(0)
        .json();
    assert_eq!(rows(&done, "unread")[0]["programs"], 1);
    assert_eq!(rows(&done, "programs").len(), 39);
}

#[test]
fn untouched_memory_is_judged_by_day_kept_and_balanced_with_programs() {
    let place = Place::new();
    let small = "--machines 8 --days 5 --over-predicted 2%,4%,8%";
    let memory = place
        .run(format!("plan untouched {small} --model m.json --format json").as_str())
        .expect(0);
    let json = memory.json();
    assert_eq!(json["schema"], "weir/plan-untouched/1");
    let judged = rows(&json, "days").len();
    assert_eq!(
        judged as u64,
        3 * (5 - json["days_without_model"].as_u64().unwrap())
    );
    assert_eq!(rows(&json, "monitor").len(), 3);
    let model: Value = serde_json::from_str(&text(&place.path("m.json"))).unwrap();
    assert_eq!(
        (
            model["day"].as_u64(),
            model["models"].as_array().unwrap().len()
        ),
        (Some(4), 3)
    );
    let shown = place.run("runs show last").expect(0).out();
    let printed = place
        .run(format!("plan untouched {small}").as_str())
        .expect(0)
        .out();
    assert!(shown.ends_with(&printed), "{shown}\n{printed}");
    place.run("report last -o page.html").expect(0);

    place.file("memory.json", memory.out());
    place.file("c.csv", counted(60));
    let programs = place
        .run("plan insensitive --counters c.csv --splits 5 --format json")
        .expect(0);
    place.file("programs.json", programs.out());
    let balanced = "plan balance --programs programs.json --memory memory.json --tail 90%";
    let done = place
        .run(format!("{balanced} --format json").as_str())
        .expect(0)
        .json();
    // What is stored reads back.
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.contains("The two curves"), "{shown}");
    place.run("report last -o page.html").expect(0);
    let row = &rows(&done, "balances")[0];
    let number = |key: &str| row[key].as_f64().unwrap();
    assert!(number("false_positives_pct") + number("over_predicted_pct") <= 10.0 + 1e-9);
    assert!(number("pooled_pct") > 0.0);
    assert!(
        place
            .run(balanced)
            .expect(0)
            .out()
            .contains("weir plan pool --marked")
    );
    // Errors that no step of either curve has a use for.
    let said = place.run(balanced.replace("90%", "50%")).expect(0).out();
    let said = said.replace("\n  ", " ");
    assert!(said.contains("both curves end there"), "{said}");
    assert!(!said.contains("the most for which"), "{said}");
    place
        .run("plan balance --programs memory.json --memory programs.json")
        .refuses(
            2,
            &["memory.json is no document of weir/plan-insensitive/1: its schema is `weir/plan-untouched/1`"],
        );
    place
        .run("plan balance --programs programs.json --memory memory.json --machine other")
        .refuses(2, &["`other`"]);
}

#[test]
fn a_trace_whose_customers_have_no_history_is_counted_and_one_without_vms_is_refused_or_empty() {
    let place = Place::new();
    let mut trace = "arrival_s,departure_s,cores,memory_gib,customer,touched_pct\n".to_owned();
    for at in 0..600 {
        trace.push_str(&format!(
            "{},{},2,16,{at},{}\n",
            at * 600,
            at * 600 + 300,
            at % 101
        ));
    }
    let nobody = trace
        .lines()
        .map(|line| line.split(',').take(4).collect::<Vec<_>>().join(",") + "\n");
    place.file("nobody.csv", nobody.collect::<String>());
    let done = place.run("plan untouched --trace nobody.csv").expect(0);
    assert!(
        (done.err()).contains("nobody.csv: all VMs are of one customer"),
        "{}",
        done.err()
    );
    place.file("new.csv", trace);
    let json = place
        .run("plan untouched --trace new.csv --over-predicted 10% --format json")
        .expect(0)
        .json();
    assert_eq!(json["without_history"], json["vms"]);
    assert!(json["vms"].as_u64().unwrap() > 0);
    place
        .run("plan untouched --over-predicted 200%")
        .refuses(2, &["0 % to 100 %"]);
    place
        .run("plan untouched --train-days 0")
        .refuses(2, &["--train-days"]);
    place.file(
        "short.csv",
        "arrival_s,departure_s,cores,memory_gib\n0,900,2,8\n",
    );
    let done = place.run("plan untouched --trace short.csv").expect(0);
    assert!(
        done.out().contains("nothing is predicted"),
        "{}",
        done.out()
    );
}

#[test]
fn a_seed_gives_one_answer() {
    let place = Place::new();
    let run = |seed: u32| {
        let words = format!(
            "plan untouched --machines 4 --days 4 --over-predicted 4% --seed {seed} --format csv"
        );
        place.run(words.as_str()).expect(0).out()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
