//! When the class of a cell is certain, and what to measure once more until it is.
//!
//! A cell is the largest change over thread counts, so that one count whose interval is wide can be the
//! largest, too. With the intervals of all counts, the largest change is at least as large as the largest of
//! their inner ends; every count that reaches so far may be the one, with each class that it reaches there.

use weir_model::document::Point;
use weir_model::interplay::{ChangeClass, TierOp};

use super::change::Change;
use super::matrix::{is_timed, pair_of, tier_op};
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
        let mut pairs: Vec<((TierOp, TierOp), Vec<(usize, usize)>)> = Vec::new();
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

/// The points that leave the class of a pair open, whose places alone and beside are given.
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
