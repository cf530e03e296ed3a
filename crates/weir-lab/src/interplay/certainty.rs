//! When the class of a cell is certain, and what to measure once more until it is.
//!
//! A cell is the largest change over thread counts, so that one count whose interval is wide can be the
//! largest, too. With the intervals of all counts, the largest change is at least as large as the largest of
//! their inner ends; every count that reaches so far may be the one, with each class that it reaches there.

use weir_model::document::Point;
use weir_model::interplay::{ChangeClass, TierOp};

use super::change::Change;
use super::measured::{is_timed, pair_of, tier_op};
use crate::PointSpec;
use crate::figure;
use crate::lab::Enough;

/// How often the points of a cell are measured at least: one repetition does not say how far the next is from it.
pub const LEAST: u32 = 2;
/// How often at most. From six on the median over rounds tells, which is made for a machine that others
/// disturb, and whose interval over six rounds is wider than that of the mean over five.
pub const MOST: u32 = 5;

/// The changes of a pair over thread counts, and what the largest of them may be.
pub struct Reach {
    /// The classes that each change may give to the cell, if it may be the largest.
    each: Vec<Vec<ChangeClass>>,
    /// The place of the largest change.
    largest: Option<usize>,
}

impl Reach {
    /// Of these changes, each with an interval of repetitions; `None` where one has none.
    pub fn of(changes: &[Change]) -> Option<Self> {
        let between: Vec<(f64, f64)> = (changes.iter())
            .map(|change| change.between.filter(|_| change.repeated))
            .collect::<Option<_>>()?;
        let inner = |&(low, high): &(f64, f64)| low.max(-high).max(0.0);
        let floor = between.iter().map(inner).fold(0.0, f64::max);
        let each = between.iter().map(|&(low, high)| {
            let above = (high >= floor).then_some((low.max(floor), high));
            let below = (low <= -floor).then_some((low, high.min(-floor)));
            let mut all: Vec<ChangeClass> = [below, above]
                .into_iter()
                .flatten()
                .flat_map(classes)
                .collect();
            all.dedup();
            all
        });
        let size = |&at: &usize| changes.get(at).map_or(0.0, |change| change.pct.abs());
        Some(Self {
            each: each.collect(),
            // The first of equals, as in a cell.
            largest: (0..changes.len())
                .rev()
                .max_by(|a, b| size(a).total_cmp(&size(b))),
        })
    }

    /// The classes that the cell may be in, from loss to gain; one where it is certain.
    pub fn classes(&self) -> Vec<ChangeClass> {
        let mut all: Vec<ChangeClass> = self.each.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The places of the changes that leave the class open: the largest, and those that reach another class than
    /// its own.
    pub fn open(&self, class: ChangeClass) -> Vec<usize> {
        if self.classes().len() <= 1 {
            return Vec::new();
        }
        let all = self.each.iter().enumerate();
        all.filter(|(at, reached)| Some(*at) == self.largest || reached.iter().any(|c| *c != class))
            .map(|(at, _)| at)
            .collect()
    }
}

/// Every class from one change to a larger one.
fn classes((low, high): (f64, f64)) -> impl Iterator<Item = ChangeClass> {
    let reached = ChangeClass::of(low)..=ChangeClass::of(high);
    ChangeClass::ALL
        .into_iter()
        .filter(move |class| reached.contains(class))
}

/// The places of points of a pair: the victim alone and together.
type Places = Vec<(usize, usize)>;

/// Repeats the points of a pair until its class is certain.
pub struct UntilCertain;

impl Enough for UntilCertain {
    /// What is timed, and what is no victim, has no class.
    fn least(&self, spec: &PointSpec) -> u32 {
        match is_timed(&figure::failed(spec, "")) {
            true => 1,
            false => LEAST,
        }
    }

    fn once_more(&self, so_far: &[(&PointSpec, Vec<f64>)]) -> Vec<usize> {
        let points: Vec<Point> = so_far
            .iter()
            .map(|(spec, _)| figure::failed(spec, ""))
            .collect();
        let mut pairs: Vec<((TierOp, TierOp), Places)> = Vec::new();
        for (at, point) in points.iter().enumerate() {
            let solo = points.iter().position(|other| is_alone(other, point));
            let (Some(pair), Some(solo)) = (pair_of(point), solo) else {
                continue;
            };
            match pairs.iter_mut().find(|(known, _)| *known == pair) {
                Some((_, places)) => places.push((solo, at)),
                None => pairs.push((pair, vec![(solo, at)])),
            }
        }
        let mut more: Vec<usize> = pairs
            .iter()
            .flat_map(|(_, places)| open(so_far, places))
            .collect();
        more.sort_unstable();
        more.dedup();
        more
    }
}

/// Whether a point is the victim of another alone.
fn is_alone(solo: &Point, corun: &Point) -> bool {
    let alone = solo.beside.is_none() && !is_timed(solo) && solo.threads == corun.threads;
    alone && tier_op(solo) == tier_op(corun)
}

/// The points that leave the class of a pair open, whose places alone and together are given.
fn open(so_far: &[(&PointSpec, Vec<f64>)], places: &[(usize, usize)]) -> Vec<usize> {
    let means = |at: usize| so_far.get(at).map(|(_, means)| means.as_slice());
    let known: Vec<((usize, usize), Change)> = (places.iter())
        .filter_map(|&(solo, corun)| {
            let change = Change::of_repetitions(means(solo)?, means(corun)?)?;
            Some(((solo, corun), change))
        })
        .collect();
    let changes: Vec<Change> = known.iter().map(|(_, change)| *change).collect();
    let Some(reach) = Reach::of(&changes) else {
        return Vec::new();
    };
    let class = reach.largest.and_then(|at| changes.get(at));
    let class = class.map_or(ChangeClass::None, |change| ChangeClass::of(change.pct));
    let open = reach.open(class).into_iter();
    open.filter_map(|at| known.get(at))
        .flat_map(|((solo, corun), _)| [*solo, *corun])
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reach(solo: &[f64], coruns: &[Vec<f64>]) -> Reach {
        let changes: Vec<Change> = (coruns.iter())
            .map(|corun| Change::of_repetitions(solo, corun).unwrap())
            .collect();
        Reach::of(&changes).unwrap()
    }

    /// A normal deviate from the state of a generator (SplitMix64; Box and Muller).
    fn normal(state: &mut u64) -> f64 {
        let mut unit = || {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut x = *state;
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (u, v) = (unit(), unit());
        (-2.0 * u.max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Repeats a pair whose true change and scatter in percent are given, as a study does. What repetitions it
    /// took, and the classes that they leave.
    fn until_certain(change: f64, sd: f64, seed: u64) -> (u32, Vec<ChangeClass>) {
        let mut state = seed;
        let (mut solo, mut corun) = (Vec::new(), Vec::new());
        for repetitions in 1..=MOST {
            solo.push(100.0 + sd * normal(&mut state));
            corun.push((100.0 + change).max(1.0) + sd * normal(&mut state));
            if repetitions < LEAST {
                continue;
            }
            let classes = reach(&solo, std::slice::from_ref(&corun)).classes();
            if classes.len() == 1 || repetitions == MOST {
                return (repetitions, classes);
            }
        }
        (MOST, Vec::new())
    }

    proptest! {
        #[test]
        fn figures_that_never_differ_are_certain_after_the_least_repetitions(
            solo in 1.0..500.0_f64,
            coruns in prop::collection::vec(1.0..900.0_f64, 1..9),
        ) {
            let repeated: Vec<Vec<f64>> = coruns.iter().map(|c| vec![*c; LEAST as usize]).collect();
            let found = reach(&[solo; LEAST as usize], &repeated);
            let size = |corun: &f64| (corun / solo - 1.0).abs();
            let largest = coruns.iter().copied().max_by(|a, b| size(a).total_cmp(&size(b))).unwrap();
            prop_assert_eq!(found.classes(), [ChangeClass::of((largest - solo) / solo * 100.0)]);
        }

        #[test]
        fn figures_that_alternate_around_a_boundary_are_never_certain(
            boundary in prop::sample::select(&[-40.0, -10.0, -5.0, 5.0, 10.0, 40.0][..]),
            apart in 0.01..4.0_f64,
            repetitions in LEAST..=MOST,
        ) {
            let sides = |n: u32| if n.is_multiple_of(2) { -apart } else { apart };
            let corun: Vec<f64> = (0..repetitions).map(|n| 100.0 + boundary + sides(n)).collect();
            let found = reach(&vec![100.0; repetitions as usize], &[corun]);
            prop_assert!(found.classes().len() > 1);
        }

        #[test]
        fn the_class_of_the_largest_change_is_among_those_left_and_a_wider_interval_leaves_no_fewer(
            changes in prop::collection::vec((-90.0..90.0_f64, 0.0..30.0_f64), 1..9),
            wider in 0.0..20.0_f64,
        ) {
            let with = |more: f64| -> Vec<Change> {
                let change = |&(pct, half): &(f64, f64)| Change {
                    pct,
                    between: Some((pct - half - more, pct + half + more)),
                    repeated: true,
                };
                changes.iter().map(change).collect()
            };
            let (narrow, wide) = (Reach::of(&with(0.0)).unwrap(), Reach::of(&with(wider)).unwrap());
            let largest = changes.iter().map(|c| c.0).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap();
            prop_assert!(narrow.classes().contains(&ChangeClass::of(largest)));
            for class in narrow.classes() {
                prop_assert!(wide.classes().contains(&class), "{class}");
            }
            // What leaves the class open can be repeated, and nothing is once it is certain.
            let open = narrow.open(ChangeClass::of(largest));
            prop_assert_eq!(open.is_empty(), narrow.classes().len() == 1);
        }
    }

    #[test]
    fn a_class_that_is_called_certain_is_the_true_one_in_nineteen_of_twenty_cases() {
        let changes = (-60..=60).map(|n| f64::from(n) + 0.5);
        let cases = changes.flat_map(|change| [0.1, 0.5, 1.0, 3.0, 10.0].map(|sd| (change, sd)));
        let (mut certain, mut wrong) = (0, 0);
        for (n, (change, sd)) in cases.enumerate() {
            for seed in 0..20 {
                let (_, classes) = until_certain(change, sd, n as u64 * 1000 + seed);
                if let [class] = classes[..] {
                    certain += 1;
                    wrong += u32::from(class != ChangeClass::of(change));
                }
            }
        }
        println!("{wrong} of {certain} are wrong");
        assert!(
            certain > 5000 && f64::from(wrong) <= 0.05 * f64::from(certain),
            "{wrong} of {certain}"
        );
    }

    #[test]
    fn a_count_with_a_wide_interval_leaves_the_class_open_though_another_is_larger() {
        let quiet = vec![88.0, 88.0, 88.0];
        let loud = vec![95.0, 80.0, 60.0];
        let solo = [100.0, 100.0, 100.0];
        assert_eq!(
            reach(&solo, std::slice::from_ref(&quiet)).classes(),
            [ChangeClass::ModerateSuppression]
        );
        let both = reach(&solo, &[quiet, loud]);
        assert!(both.classes().contains(&ChangeClass::DeepSuppression));
        assert_eq!(both.open(ChangeClass::ModerateSuppression), [1]);
    }
}
