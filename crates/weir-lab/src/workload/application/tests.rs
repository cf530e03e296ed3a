//! Laws of what an application gave.

use super::*;
use proptest::prelude::*;

fn run(figures: Vec<ApplicationFigure>, memory: Vec<ApplicationMemory>) -> ApplicationRun {
    ApplicationRun {
        workload: "redis-ycsb-a".into(),
        application: Application::Redis,
        version: "7".into(),
        threads: 1,
        processors: 2,
        bytes: Bytes::mib(1),
        connections: Some(8),
        figures,
        memory,
    }
}

fn on(asked: f64, share: f64) -> ApplicationMemory {
    ApplicationMemory {
        placement: "cxl0".into(),
        tier: None,
        node: 1,
        resident_bytes: Bytes::mib(1),
        share,
        asked,
    }
}

proptest! {
    #[test]
    fn bound_pages_may_not_be_elsewhere(share in 0.0_f64..1.0) {
        prop_assert_eq!(run(vec![], vec![on(1.0, share)]).misplaced().is_none(), share >= 0.99);
        prop_assert_eq!(run(vec![], vec![on(0.0, share)]).misplaced().is_none(), share <= 0.01);
    }
}

#[test]
fn long_latencies_are_in_milliseconds() {
    let figure = |p99| ApplicationFigure {
        placement: "dram".into(),
        what: "1000/s".into(),
        answered_per_s: Some(990.0),
        p99_ns: Some(Nanos(p99)),
        ..ApplicationFigure::default()
    };
    let said = run(vec![figure(95e3), figure(2_150_704_873.0)], vec![]).sentence();
    let words = "990 answers/s with 99 % within 95 µs (dram 1000/s); 990 answers/s with 99 % within 2151 ms (dram 1000/s)";
    assert_eq!(said, words);
}

#[test]
fn answers_that_differ_between_places_are_wrong() {
    let figure = |placement: &str, rows| ApplicationFigure {
        placement: placement.into(),
        what: "q1".into(),
        rows: Some(rows),
        ..ApplicationFigure::default()
    };
    let mut same = run(vec![figure("dram", 6), figure("cxl0", 6)], vec![]);
    same.compare_answers(&["a".into(), "a".into()]);
    assert_eq!(same.wrong(), 0);
    same.compare_answers(&["a".into(), "b".into()]);
    assert_eq!(same.wrong(), 1);
    let mut fewer = run(vec![figure("dram", 6), figure("cxl0", 5)], vec![]);
    fewer.compare_answers(&["a".into(), "a".into()]);
    assert_eq!(fewer.wrong(), 1);
}
