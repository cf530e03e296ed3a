//! Intervals by how unlike a workload is to those that were held out.
//!
//! Errors differ between workloads: one that hardly waits is predicted well, and one with late prefetches or with
//! many independent misses is predicted badly. So the width of an interval follows the errors of the
//! held-out workloads that are nearest in the space of counters, and grows with the distance to them. A common
//! factor makes the intervals contain the wanted share of the held-out workloads, each judged by the others
//! (conformal prediction with errors normalised by a local estimate, Papadopoulos, Gammerman and Vovk, 2008;
//! here leave-one-out takes the place of a second split).

use weir_model::counters::Counter;
use weir_model::insight::{Near, Neighbour};

use crate::Run;
use crate::score::conformal_quantile;

/// How many of the nearest workloads are used.
const NEAREST: usize = 8;
/// The least error, as a share of the prediction: the nearest workloads may have no error by chance.
const LEAST: f64 = 1e-4;
/// A workload is unlike the held-out ones if its distance to them is this many times their usual distance from each
/// other.
const FAR: f64 = 2.0;

/// Where a workload is in the space of counters: shares of its cycles by what it waits for, and how.
pub type Place = Vec<f64>;

/// Where a run is; `None` where counters are missing.
pub fn place(run: &Run<'_>) -> Option<Place> {
    use Counter as C;
    let share = |counter| run.share(counter).ok();
    let count = |counter| run.count(counter).ok();
    let part = |of: f64, rest: f64| of / (of + rest).max(1.0);
    let prefetches = count(C::HwpfL2)? + count(C::HwpfL1d).unwrap_or(0.0);
    Some(vec![
        share(C::StallsL3Miss)?,
        share(C::CyclesL3Miss)? - share(C::StallsL3Miss)?,
        share(C::StallsL2Miss)? - share(C::StallsL3Miss)?,
        share(C::CyclesL2Miss)? - share(C::CyclesL3Miss)?,
        share(C::BoundOnStores)?,
        // Sixteen at once are one.
        run.mlp().ok()?.unwrap_or(1.0).max(1.0).log2() / 4.0,
        part(count(C::FbHit)?, count(C::L1Miss)?),
        part(prefetches, count(C::OffcoreDemandDataRd)?),
        // Four instructions in a cycle are one.
        share(C::Instructions)? / 4.0,
    ])
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// The mean error of the nearest and the mean distance to them; `None` where there are too few.
fn nearest<'n>(all: impl Iterator<Item = &'n Neighbour>, at: &[f64]) -> Option<(f64, f64)> {
    let mut near: Vec<(f64, f64)> = all.map(|n| (distance(&n.at, at), n.error)).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    let near = near.get(..NEAREST)?;
    let mean = |of: fn(&(f64, f64)) -> f64| near.iter().map(of).sum::<f64>() / NEAREST as f64;
    Some((mean(|n| n.1).max(LEAST), mean(|n| n.0)))
}

/// How many times as far as usual, one at least.
fn times(distance: f64, usual: f64) -> f64 {
    if usual > 0.0 {
        (distance / usual).max(1.0)
    } else {
        1.0
    }
}

/// Intervals that hold a share of each of several groups of held-out workloads, given as places and relative
/// errors; `None` where a group is too small.
pub fn fit(groups: &[Vec<(Place, f64)>], coverage: f64) -> Option<Near> {
    let neighbours: Vec<Neighbour> = (groups.iter().flatten())
        .map(|(at, error)| Neighbour {
            at: at.clone(),
            error: *error,
        })
        .collect();
    let others = |own: usize| {
        let others = neighbours
            .iter()
            .enumerate()
            .filter(move |(at, _)| *at != own);
        others.map(|(_, neighbour)| neighbour)
    };
    let found: Vec<(f64, f64)> = (neighbours.iter().enumerate())
        .map(|(own, neighbour)| nearest(others(own), &neighbour.at))
        .collect::<Option<_>>()?;
    let mut distances: Vec<f64> = found.iter().map(|(_, distance)| *distance).collect();
    distances.sort_by(f64::total_cmp);
    let usual_distance = *distances.get(distances.len() / 2)?;
    let scores: Vec<f64> = (neighbours.iter().zip(&found))
        .map(|(n, (error, distance))| n.error / (error * times(*distance, usual_distance)))
        .collect();
    let mut rest = scores.as_slice();
    let mut factor = 0.0_f64;
    for group in groups {
        let (own, others) = rest.split_at_checked(group.len())?;
        factor = factor.max(conformal_quantile(own.to_vec(), coverage)?);
        rest = others;
    }
    Some(Near {
        neighbours,
        usual_distance,
        factor,
    })
}

/// The half-width of an interval at a place, relative to the prediction's size, and how many times as far as usual
/// the place is from all that was held out.
pub fn relative(near: &Near, at: &[f64]) -> Option<(f64, f64)> {
    let (error, distance) = nearest(near.neighbours.iter(), at)?;
    let times = times(distance, near.usual_distance);
    Some((near.factor * error * times, times))
}

/// What to say of a workload that is this many times as far as usual.
pub fn unlike(times: f64) -> Option<String> {
    (times > FAR).then(|| {
        format!(
            "its counters are unlike those of all workloads that the interval was made from: {times:.1} times as far \
             as these are from each other, and the interval is as many times as wide"
        )
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group() -> impl Strategy<Value = Vec<(Place, f64)>> {
        prop::collection::vec(
            (prop::collection::vec(0.0..1.0_f64, 3), 0.0..0.5_f64),
            20..60,
        )
    }

    proptest! {
        #[test]
        fn it_holds_the_share_of_each_group_that_it_was_made_from(a in group(), b in group()) {
            let near = fit(&[a.clone(), b.clone()], 0.9).unwrap();
            let all: Vec<&Neighbour> = near.neighbours.iter().collect();
            let mut start = 0;
            for group in [a, b] {
                let held = (start..start + group.len()).filter(|&own| {
                    let others = all.iter().enumerate().filter(|(n, _)| *n != own).map(|(_, n)| *n);
                    let (error, distance) = nearest(others, &all[own].at).unwrap();
                    let width = near.factor * error * times(distance, near.usual_distance);
                    // The one that set the factor is at the end of its interval, but for rounding.
                    all[own].error <= width * (1.0 + 1e-12)
                });
                prop_assert!(held.count() as f64 >= 0.9 * group.len() as f64);
                start += group.len();
            }
        }

        #[test]
        fn the_further_the_wider(a in group(), away in 2.0..9.0_f64, further in 1.0..9.0_f64) {
            let near = fit(&[a], 0.9).unwrap();
            let at = |away: f64| relative(&near, &[away, away, away]).unwrap();
            // Beyond all of them in every direction, the same are nearest.
            prop_assert!(at(away * 50.0 + further * 50.0).0 > at(away * 50.0).0 * 0.99);
            let inside = relative(&near, &near.neighbours[0].at).unwrap();
            prop_assert!(inside.1 >= 1.0 && inside.0 >= near.factor * LEAST);
            prop_assert!(at(away * 50.0).1 > FAR && unlike(at(away * 50.0).1).is_some());
        }
    }

    #[test]
    fn the_errors_of_the_nearest_count_alone() {
        let neighbour = |n: usize| Neighbour {
            at: vec![if n < NEAREST { 0.0 } else { 1.0 }],
            error: if n < NEAREST { 0.125 } else { 0.5 },
        };
        let near = Near {
            neighbours: (0..2 * NEAREST).map(neighbour).collect(),
            usual_distance: 0.5,
            factor: 2.0,
        };
        assert_eq!(relative(&near, &[0.0]), Some((0.25, 1.0)));
        assert_eq!(relative(&near, &[1.0]), Some((1.0, 1.0)));
    }

    #[test]
    fn few_workloads_promise_nothing() {
        let few: Vec<(Place, f64)> = (0..8).map(|n| (vec![f64::from(n)], 0.1)).collect();
        assert_eq!(fit(&[few], 0.9), None);
        assert_eq!(fit(&[], 0.9), None);
    }
}
