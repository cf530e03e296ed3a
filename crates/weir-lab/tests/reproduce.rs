//! Published figures beside ours, on machines of formulas.

mod common;

use std::sync::Mutex;

use common::{CXL_BACKLOG, StopAfter, Toy};
use weir_lab::reproduce::{Answer, Answers, Beyond, Open, Reproduction, of_papers, rows, rules};
use weir_model::document::{ReproduceRow, RowKind};
use weir_model::machine::Testbed;
use weir_model::published::{self, Published, PublishedKind};

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
        unit: unit.into(),
        place: "Table 1".into(),
    }
}

fn calibration(id: &str, value: f64, unit: &str) -> Published {
    row(id, PublishedKind::Calibration, value, unit)
}

/// Every platform is the toy, which has tiers `dram` and `cxl0` alone.
fn open(_: &str) -> Result<Box<dyn Testbed>, String> {
    Ok(Box::new(Toy {
        noise: 0.0,
        ..Toy::default()
    }))
}

fn reproduce(published: &[Published]) -> Reproduction {
    rows(published, &open, 1, &(), &())
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
fn a_row_that_sets_no_parameter_is_predicted_whatever_the_paper_calls_it() {
    assert_eq!(
        only(calibration("MEM-042", 8.0, "threads")).kind,
        RowKind::Predicted
    );
    assert_eq!(
        only(row("SUP-039", PublishedKind::Result, 1.0, "ns")).kind,
        RowKind::Predicted
    );
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
    let open = |name: &str| match name {
        "spr2s" => Err("no such file".to_string()),
        other => open(other),
    };
    let published = [
        calibration("SUP-003", 114.0, "ns"),
        calibration("SUP-012", 111.0, "ns"),
    ];
    let found = rows(&published, &open, 1, &(), &());
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
        calibration("SUP-080", 76.0, "%"),
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
            ("INT-091", "needs the cache's occupancy by tenant"),
            ("SUP-999", "no experiment answers it yet"),
            ("SUP-080", "needs a socket whose uncore clock is lowered"),
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
    let counted = Mutex::new(Vec::new());
    struct Count<'a>(&'a Mutex<Vec<usize>>);
    impl weir_lab::Watcher for Count<'_> {
        fn finished(&self, _: &weir_lab::Finished, of: usize) {
            self.0.lock().unwrap().push(of);
        }
        fn stop(&self) -> bool {
            false
        }
    }
    // Peak and knee of one curve.
    let published = [
        calibration("MEM-037", 221.0, "GB/s"),
        calibration("MEM-038", 26.0, "threads"),
    ];
    rows(&published, &open, 1, &Count(&counted), &());
    assert_eq!(*counted.lock().unwrap(), vec![17; 17]);
}

#[test]
fn a_stopped_run_keeps_the_rows_that_were_finished() {
    let published = [
        calibration("SUP-012", 111.0, "ns"),
        calibration("MEM-037", 221.0, "GB/s"),
        row("INT-091", PublishedKind::Result, -92.9, "%"),
    ];
    let found = rows(&published, &open, 1, &StopAfter::new(3), &());
    let ids: Vec<&str> = found.rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["SUP-012", "INT-091"]);
    assert!(found.partial);
    assert!(!reproduce(&published).partial);
}

#[test]
fn rows_are_the_same_on_any_number_of_threads() {
    let published: Vec<Published> = rules::all()
        .map(|rule| calibration(rule.id, 1.0, rule.statistic.unit()))
        .collect();
    let with = |parallelism| {
        let open = move |_: &str| -> Result<Box<dyn Testbed>, String> {
            Ok(Box::new(Toy {
                parallelism,
                ..Toy::default()
            }))
        };
        rows(&published, &open, 9, &(), &())
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(7));
}

#[test]
fn no_row_has_two_rules() {
    let mut ids: Vec<&str> = rules::all().map(|rule| rule.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn every_rule_answers_a_published_row_in_its_unit() {
    let published = published::builtin_rows();
    for rule in rules::all() {
        let row = published.iter().find(|row| row.id == rule.id);
        let row = row.unwrap_or_else(|| panic!("no row {}", rule.id));
        assert_eq!(rule.statistic.unit(), row.unit, "{}", rule.id);
    }
}

#[test]
fn every_published_result_is_answered_or_says_what_it_needs() {
    let found = rows(&published::builtin_rows(), &open, 1, &(), &());
    let silent: Vec<&ReproduceRow> = found
        .rows
        .iter()
        .filter(|row| row.note.contains("no experiment answers it"))
        .collect();
    assert!(silent.is_empty(), "{silent:#?}");
    assert_eq!(
        found.rows.len() + found.left_out,
        published::builtin_rows().len()
    );
}

/// Knows one row, and whether its figure is a published course gone through again.
struct Other(Result<f64, String>, bool);

impl Beyond for Other {
    fn knows(&self, id: &str) -> bool {
        id == "SUP-158"
    }

    fn answer(&self, rows: &[&Published], open: &Open<'_>, _: u64) -> Answers {
        assert_eq!(rows.len(), 1);
        open("skx2s").unwrap();
        let answer = Answer {
            ours: self.0.clone(),
            replayed: self.1,
            note: "of ours".into(),
        };
        Answers {
            rows: [("SUP-158".to_owned(), answer)].into(),
            platforms: [("skx2s".to_owned(), "0".to_owned())].into(),
        }
    }
}

#[test]
fn what_needs_more_than_points_is_answered_by_somebody_else() {
    let published = [
        row("SUP-158", PublishedKind::Result, 0.5, "r"),
        row("SUP-159", PublishedKind::Result, 0.5, "r"),
    ];
    let answered = rows(&published, &open, 1, &(), &Other(Ok(0.6), false));
    let [theirs, nobodys] = answered.rows.as_slice() else {
        panic!("{answered:?}");
    };
    assert_eq!((theirs.ours, theirs.kind), (Some(0.6), RowKind::Predicted));
    assert!((theirs.difference_pct.unwrap() - 20.0).abs() < 1e-9);
    assert_eq!(theirs.note, "of ours");
    assert_eq!(nobodys.kind, RowKind::NotModelled);
    assert_eq!(answered.platforms["skx2s"], "0");
    let failed = rows(
        &published[..1],
        &open,
        1,
        &(),
        &Other(Err("too dear".into()), false),
    );
    assert_eq!(failed.rows[0].note, "too dear");
    assert_eq!(failed.rows[0].kind, RowKind::NotModelled);
    let again = rows(&published[..1], &open, 1, &(), &Other(Ok(0.5), true));
    assert_eq!(again.rows[0].kind, RowKind::Replayed);
}
