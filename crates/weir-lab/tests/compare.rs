//! What holds of every comparison of two runs.

use proptest::collection::vec;
use proptest::prelude::*;
use weir_lab::compare::{Figure, Quantile, Unit, compare};
use weir_lab::figure::failed;
use weir_lab::{Load, PointSpec};
use weir_model::access::{Op, Pattern};
use weir_model::document::Point;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec};

fn point(
    experiment: &'static str,
    op: Op,
    threads: u32,
    mib: u64,
    figure: Option<(f64, f64)>,
) -> Point {
    let tier = TierName::dram();
    let load = Load::new(&tier, op, Pattern::Sequential, threads, Bytes::mib(mib));
    let mut point = failed(&PointSpec::alone(experiment, load), "not measured");
    if let Some((gbps, ci95)) = figure {
        point.error = None;
        point.gbps = Some(GbPerSec(gbps));
        point.ci95 = Some(ci95);
    }
    point
}

fn points() -> impl Strategy<Value = Vec<Point>> {
    let figure = prop::option::weighted(0.9, (1.0..100.0_f64, 0.0..10.0_f64));
    let one = (0..3_usize, 1..6_u32, figure)
        .prop_map(|(op, threads, figure)| point("bandwidth", Op::ALL[op], threads, 64, figure));
    vec(one, 0..12).prop_map(|mut points| {
        points.sort_by_key(|p| (p.op, p.threads));
        points.dedup_by_key(|p| (p.op, p.threads));
        points
    })
}

proptest! {
    #[test]
    fn a_run_beside_itself_is_no_different(points in points()) {
        let same = compare(&points, &points, Figure::Main);
        let figures = points.iter().filter(|p| p.gbps.is_some()).count();
        prop_assert_eq!(same.pairs.len(), figures);
        prop_assert_eq!((same.only_a, same.only_b), (0, 0));
        prop_assert!(same.pairs.iter().all(|p| p.ratio() == 1.0 && p.beyond == Some(false)));
    }

    #[test]
    fn every_figure_is_counted_once_and_sides_change_with_their_order(
        a in points(),
        b in points(),
    ) {
        let there = compare(&a, &b, Figure::Main);
        let back = compare(&b, &a, Figure::Main);
        let figures = |points: &[Point]| points.iter().filter(|p| p.gbps.is_some()).count();
        prop_assert_eq!(there.pairs.len() + there.only_a, figures(&a));
        prop_assert_eq!(there.pairs.len() + there.only_b, figures(&b));
        prop_assert_eq!((there.only_a, there.only_b), (back.only_b, back.only_a));
        for (one, other) in there.pairs.iter().zip(&back.pairs) {
            prop_assert_eq!((one.a, one.b, one.beyond), (other.b, other.a, other.beyond));
            prop_assert_eq!(one.unit, Unit::GbPerSec);
        }
        prop_assert!(there.pairs.windows(2).all(|two| two[0].effect() >= two[1].effect()));
    }

    #[test]
    fn wider_intervals_never_make_a_difference_certain(
        (a, b) in (1.0..100.0_f64, 1.0..100.0_f64),
        (narrow, wide) in (0.0..10.0_f64, 0.0..10.0_f64),
    ) {
        let beyond = |ci95| {
            let one = [point("bandwidth", Op::Ld, 1, 64, Some((a, ci95)))];
            let other = [point("bandwidth", Op::Ld, 1, 64, Some((b, 0.5)))];
            compare(&one, &other, Figure::Main).pairs[0].beyond
        };
        prop_assert!(beyond(narrow + wide) <= beyond(narrow));
    }
}

#[test]
fn sizes_that_follow_the_caches_match_and_steps_of_a_staircase_do_not() {
    let of = |experiment, mib| [point(experiment, Op::Ld, 4, mib, Some((10.0, 1.0)))];
    let (small, large) = (of("bandwidth", 64), of("bandwidth", 96));
    assert_eq!(compare(&small, &large, Figure::Main).pairs.len(), 1);
    let (small, large) = (of("latency", 64), of("latency", 96));
    let apart = compare(&small, &large, Figure::Main);
    assert_eq!((apart.pairs.len(), apart.only_a, apart.only_b), (0, 1, 1));
}

#[test]
fn a_point_that_could_be_two_others_is_not_matched_by_guess() {
    let of = |mib| point("bandwidth", Op::Ld, 4, mib, Some((10.0, 1.0)));
    let (one, two) = ([of(64)], [of(96), of(128)]);
    let guess = compare(&one, &two, Figure::Main);
    assert_eq!((guess.pairs.len(), guess.only_a, guess.only_b), (0, 1, 2));
}

#[test]
fn bandwidths_have_no_quantiles() {
    let a = [point("bandwidth", Op::Ld, 4, 64, Some((10.0, 1.0)))];
    let none = compare(&a, &a, Figure::Quantile(Quantile::P99));
    assert_eq!((none.pairs.len(), none.only_a), (0, 0));
}
