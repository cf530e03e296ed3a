//! Published figures with ours, on machines of formulas.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{CXL_BACKLOG, Toy};
use serde::Serialize;
use weir_lab::lab::NoMachine;
use weir_lab::reproduce::rule::{Figure, On, Open, Rule};
use weir_lab::reproduce::{Engine, Reproduction, of_papers, rules, unanswered};
use weir_lab::{About, Ask, Bench, Keeper, Lab, LabError, Outcome};
use weir_model::document::{ReproduceRow, RowKind};
use weir_model::machine::{Identity, Testbed};
use weir_model::published::{self, Published, PublishedKind};
use weir_model::topology::Topology;

fn row(id: &str, kind: PublishedKind, value: f64, unit: &str) -> Published {
    let paper = match &id[..3] {
        "SUP" => "supmario",
        "MEM" => "memo",
        "MIK" => "miku",
        _ => "interplay",
    };
    Published {
        id: id.into(),
        paper: paper.into(),
        platform: "P".into(),
        kind,
        what: "a figure".into(),
        condition: String::new(),
        value,
        bound: None,
        unit: unit.into(),
        place: "Table 1".into(),
    }
}

fn calibration(id: &str, value: f64, unit: &str) -> Published {
    row(id, PublishedKind::Calibration, value, unit)
}

/// Every platform is the toy, which has tiers `dram` and `cxl0` alone.
fn open(_: On) -> Result<Box<dyn Testbed>, String> {
    Ok(Box::new(Toy {
        noise: 0.0,
        ..Toy::default()
    }))
}

fn rows(
    published: &[Published],
    rules: &[Rule],
    open: &Open<'_>,
    keeper: &dyn Keeper,
) -> Reproduction {
    answered(published, rules, open, keeper, false)
}

fn answered(
    published: &[Published],
    rules: &[Rule],
    open: &Open<'_>,
    keeper: &dyn Keeper,
    with_slow: bool,
) -> Reproduction {
    let bench = Bench {
        testbed: &NoMachine,
        machine: &Identity::default(),
        topology: &Topology::default(),
        capabilities: &[],
        seed: 1,
        rounds: 1,
    };
    let engine = Engine {
        rules,
        open,
        lab: &Lab::new(bench, keeper),
        with_slow,
    };
    engine.rows(published)
}

fn all() -> Vec<Rule> {
    rules().into_iter().chain(unanswered()).collect()
}

fn reproduce(published: &[Published]) -> Reproduction {
    rows(published, &all(), &open, &())
}

/// Ends the work when this many steps have begun.
struct StopAfter(usize, AtomicUsize);

impl Keeper for StopAfter {
    fn step(&self, _: usize) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }

    fn stop(&self) -> bool {
        self.1.load(Ordering::SeqCst) > self.0
    }
}

fn only(published: Published) -> ReproduceRow {
    reproduce(&[published]).rows.remove(0)
}

fn ours(published: Published) -> f64 {
    let row = only(published);
    row.ours.unwrap_or_else(|| panic!("{row:?}"))
}

#[test]
fn idle_latency_and_peak_bandwidth_are_read_off_their_points() {
    let latency = only(calibration("SUP-039", 214.0, "ns"));
    assert!((latency.ours.unwrap() - 220.0).abs() < 0.5, "{latency:?}");
    assert!(
        (latency.difference_pct.unwrap() - 2.8).abs() < 0.3,
        "{latency:?}"
    );
    assert_eq!(latency.kind, RowKind::Calibrated);
    assert!((ours(calibration("SUP-013", 246.0, "GB/s")) - 200.0).abs() < 0.5);
}

#[test]
fn curves_give_their_peak_their_knee_their_decline_and_what_lies_beyond() {
    // The toy's loads from CXL reach 20 GB/s with 6 threads and fall to 14 past 12.
    assert_eq!(ours(calibration("MEM-042", 8.0, "threads")), 6.0);
    assert_eq!(ours(calibration("MEM-044", 12.0, "threads")), 12.0);
    assert!((ours(calibration("MEM-043", 16.8, "GB/s")) - 14.0).abs() < 0.1);
    assert!((ours(calibration("MEM-045", 22.0, "GB/s")) - 20.0).abs() < 0.1);
}

#[test]
fn ratios_and_differences_compare_two_points() {
    assert!((ours(calibration("MEM-031", 4.0, "x")) - 2.0).abs() < 0.01);
    assert!((ours(calibration("MEM-035", 2.6, "x")) - 2.6).abs() < 0.01);
    assert!(ours(calibration("SUP-075", 161.0, "ns")).abs() < 1e-9);
    // One thread of the toy is bound by latency alone: DRAM is twice as fast.
    assert!((ours(calibration("MIK-026", 52.0, "%")) - 100.0).abs() < 1.0);
}

#[test]
fn tails_are_taken_from_enough_accesses() {
    // The toy has no tail: its only spread is the resolution of the distribution.
    assert!(ours(calibration("SUP-094", 45.0, "ns")) < 1.0);
    assert!((ours(calibration("SUP-099", 1000.0, "ns")) - 220.0).abs() < 1.0);
}

#[test]
fn residency_in_the_table_of_requests_is_occupancy_over_inserts_by_the_counted_clock() {
    for id in ["MIK-032", "MIK-033"] {
        assert!((ours(calibration(id, 8.0, "x")) - CXL_BACKLOG).abs() < 0.05);
    }
}

#[test]
fn a_platform_without_the_tier_leaves_the_row_unanswered_with_the_reason() {
    let missing = only(calibration("SUP-005", 191.0, "ns"));
    assert_eq!((missing.ours, missing.kind), (None, RowKind::NotModelled));
    assert_eq!(missing.note, "platform spr2s has no tier remote");
    let missing = only(calibration("MIK-030", 4.0, "x"));
    assert_eq!(missing.note, "platform miku-a has no tier cxl1");
}

#[test]
fn a_platform_that_cannot_be_opened_leaves_its_rows_unanswered_and_no_others() {
    let open = |on: On| match on.platform {
        "spr2s" => Err("no such file".to_string()),
        _ => open(on),
    };
    let published = [
        calibration("SUP-003", 114.0, "ns"),
        calibration("SUP-012", 111.0, "ns"),
    ];
    let found = rows(&published, &all(), &open, &());
    assert_eq!(found.rows[0].note, "platform spr2s: no such file");
    assert!(found.rows[1].ours.is_some());
    assert_eq!(found.platforms.keys().collect::<Vec<_>>(), ["emr2s"]);
}

#[test]
fn figures_without_a_rule_say_what_they_need_and_configurations_are_counted() {
    let published = [
        row("INT-091", PublishedKind::Result, -92.9, "%"),
        row("SUP-999", PublishedKind::Result, 1.0, "%"),
        calibration("SUP-001", 16.0, "DIMMs"),
        row("SUP-082", PublishedKind::Claim, 265.0, "workloads"),
        calibration("SUP-144", 10.0, "%"),
    ];
    let found = reproduce(&published);
    let listed: Vec<(&str, &str)> = found
        .rows
        .iter()
        .map(|row| (row.id.as_str(), row.note.as_str()))
        .collect();
    assert_eq!(
        listed,
        [
            (
                "INT-091",
                "needs tags of the cache where requests alone fill it"
            ),
            ("SUP-999", "no experiment answers it yet"),
            (
                "SUP-144",
                "is a parameter of the model's cores, not a result"
            ),
        ]
    );
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.kind == RowKind::NotModelled)
    );
    assert_eq!(found.left_out, 2);
}

#[test]
fn one_paper_can_be_chosen_and_an_unknown_one_is_refused_with_the_known() {
    let published = [
        calibration("SUP-012", 111.0, "ns"),
        calibration("MEM-031", 4.0, "x"),
    ];
    let of = |papers: &[&str]| {
        let papers: Vec<String> = papers.iter().map(|paper| paper.to_string()).collect();
        of_papers(&papers, published.to_vec())
    };
    assert_eq!(of(&[]).unwrap(), published);
    assert_eq!(of(&["SupMario"]).unwrap(), published[..1]);
    assert_eq!(of(&["memo", "supmario"]).unwrap(), published);
    let error = of(&["memo", "tpp"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no published figures are of `tpp`; there are memo, supmario"
    );
}

/// What a row is answered with does not depend on which others are asked for.
#[test]
fn several_papers_are_answered_as_each_alone() {
    let memo = calibration("MEM-037", 221.0, "GB/s");
    let supmario = calibration("SUP-012", 111.0, "ns");
    let together = reproduce(&[memo.clone(), supmario.clone()]).rows;
    assert_eq!(together, [only(memo), only(supmario)]);
}

#[test]
fn points_that_several_rows_want_are_measured_once() {
    struct Count(Mutex<Vec<usize>>);
    impl Keeper for Count {
        fn step(&self, of: usize) {
            self.0.lock().unwrap().push(of);
        }
    }
    let counted = Count(Mutex::default());
    // Peak and knee of one curve.
    let published = [
        calibration("MEM-037", 221.0, "GB/s"),
        calibration("MEM-038", 26.0, "threads"),
    ];
    rows(&published, &all(), &open, &counted);
    assert_eq!(counted.0.into_inner().unwrap(), vec![17; 17]);
}

#[test]
fn a_stopped_run_keeps_the_rows_that_were_finished() {
    let published = [
        calibration("SUP-012", 111.0, "ns"),
        calibration("MEM-037", 221.0, "GB/s"),
        row("INT-091", PublishedKind::Result, -92.9, "%"),
    ];
    let found = rows(
        &published,
        &all(),
        &open,
        &StopAfter(3, AtomicUsize::new(0)),
    );
    let ids: Vec<&str> = found.rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["SUP-012", "INT-091"]);
    assert!(found.partial);
    assert!(!reproduce(&published).partial);
    assert_eq!(found.unfinished, ["MEM-037"]);
    let about = About {
        machine: &Identity::default(),
        topology: &Topology::default(),
        warnings: &[],
    };
    let said = found.answer(about);
    let missing = said.iter().find(|own| own.about == "not finished");
    assert_eq!(
        missing.unwrap().text,
        "1 row is missing, since the work was stopped: MEM-037"
    );
}

#[test]
fn rows_are_the_same_on_any_number_of_threads() {
    let published: Vec<Published> = (rules().iter())
        .filter_map(|rule| Some(calibration(&rule.id, 1.0, rule.figure.as_ref()?.unit)))
        .step_by(3)
        .collect();
    let with = |parallelism| {
        let open = move |_: On| -> Result<Box<dyn Testbed>, String> {
            Ok(Box::new(Toy {
                parallelism,
                ..Toy::default()
            }))
        };
        rows(&published, &all(), &open, &())
    };
    assert_eq!(with(1), with(7));
}

#[test]
fn every_published_result_is_answered_or_says_what_it_needs() {
    // Other crates simulate pages, pools, crashes and searches, and have the rules of those papers.
    let elsewhere = [
        "tpp",
        "pond",
        "against-pooling",
        "vmware-disagg",
        "post-optane",
        "cxl-anns",
        "coaxial",
    ];
    let published: Vec<Published> = (published::builtin_rows().into_iter())
        .filter(|row| !elsewhere.contains(&row.paper.as_str()))
        .collect();
    let found = reproduce(&published);
    let silent: Vec<&ReproduceRow> = found
        .rows
        .iter()
        .filter(|row| row.note.contains("no experiment answers it"))
        .collect();
    assert!(silent.is_empty(), "{silent:#?}");
    assert_eq!(found.rows.len() + found.left_out, published.len());
}

/// Anything that runs on a platform, besides points.
#[derive(Clone, Serialize)]
struct Custom(Result<f64, &'static str>);

impl Ask for Custom {
    type Got = f64;
    const KIND: &'static str = "custom";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<f64, LabError> {
        assert_eq!(lab.machine().name, "toy");
        self.0.map_err(|why| LabError::Failed(why.into()))
    }
}

fn custom(id: &str, result: Result<f64, &'static str>) -> Rule {
    let figure = |factor: f64| {
        Figure::new("r", move |results| {
            let got = results.read("skx2s".into(), &Custom(result), |got| Ok(*got))?;
            Ok(got * factor)
        })
    };
    Rule {
        own: Some(figure(2.0)),
        is_slow: true,
        ..Rule::predicted(id, figure(1.0)).noting("of ours")
    }
}

#[test]
fn a_rule_may_ask_for_anything_and_show_a_form_of_its_own() {
    let published = [
        row("SUP-158", PublishedKind::Result, 0.5, "r"),
        row("SUP-159", PublishedKind::Result, 0.5, "r"),
    ];
    let rules = [
        custom("SUP-158", Ok(0.6)),
        custom("SUP-159", Err("too much")),
    ];
    let answered = answered(&published, &rules, &open, &(), true);
    let [one, failed] = answered.rows.as_slice() else {
        panic!("{answered:?}");
    };
    assert_eq!((one.ours, one.own_form), (Some(0.6), Some(1.2)));
    assert!((one.difference_pct.unwrap() - 20.0).abs() < 1e-9);
    assert_eq!(
        (one.kind, one.note.as_str()),
        (RowKind::Predicted, "of ours")
    );
    assert_eq!(failed.note, "too much");
    assert_eq!(failed.kind, RowKind::NotModelled);
    assert_eq!(answered.platforms.keys().collect::<Vec<_>>(), ["skx2s"]);

    let later = rows(&published, &rules, &open, &());
    assert!(later.rows[0].ours.is_none() && later.rows[0].note.contains("takes minutes"));
    let about = About {
        machine: &Identity::default(),
        topology: &Topology::default(),
        warnings: &[],
    };
    let said = later.answer(about);
    let of = |about: &str| {
        let mut said = said.iter().filter(|verdict| verdict.about == about);
        said.next().map(|verdict| verdict.text.as_str())
    };
    assert_eq!(of("not run"), Some("2 rows take minutes"));
    assert_eq!(of("not modelled"), None);
}

#[test]
fn rows_without_a_difference_are_counted_apart_from_those_that_miss() {
    let published = [
        row("SUP-158", PublishedKind::Result, 0.5, "r"),
        row("SUP-159", PublishedKind::Result, 0.5, "r"),
    ];
    let change = Rule {
        is_change: true,
        ..custom("SUP-159", Ok(0.5))
    };
    let rules = [custom("SUP-158", Ok(0.6)), change];
    let all = answered(&published, &rules, &open, &(), true);
    let said = |answered: &Reproduction| {
        let about = About {
            machine: &Identity::default(),
            topology: &Topology::default(),
            warnings: &[],
        };
        answered.answer(about)[0].text.clone()
    };
    assert_eq!(
        said(&all),
        "2 rows, 1 with a difference in percent: 0 within 5 %, 1 within 20 %, 20.0 % off in the mean, 20.0 % at worst"
    );
    let one = answered(&published[..1], &rules, &open, &(), true);
    assert!(
        said(&one).starts_with("1 row: 0 within 5 %"),
        "{}",
        said(&one)
    );
}
