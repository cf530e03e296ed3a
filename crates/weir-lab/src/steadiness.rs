//! Whether the repetitions of a figure agree: every rule in one file.
//!
//! A repetition is a run from start to stop, other points in between; its windows follow each other.
//! What lies between repetitions (other pages, another clock, a neighbour that came or went) shows
//! in their means and not in the interval of any one of them.

use weir_model::document::{Record, Steadiness};

use crate::statistics::Estimate;

/// Fewer repetitions than this say nothing of each other.
const FEWEST: usize = 3;
/// The interval of a steady figure over its repetitions is at most this share of it.
const STEADY: f64 = 0.05;
/// Two values or the ends of a trend that lie closer than this share of the figure are one.
const APART: f64 = 0.05;
/// Samples below which two values are not distinguished from scatter.
const FEWEST_SAMPLES: usize = 10;
/// The smaller of two groups is at least this share of all samples.
const SMALLER: f64 = 0.2;
/// A trend is one if this many of all pairs of repetitions are in order (Kendall's tau).
const IN_ORDER: f64 = 0.8;

/// How the repetitions in a record agree; `None` where there are fewer than three.
pub fn judge(record: &Record) -> Option<Steadiness> {
    let groups = repetitions(record);
    if groups.len() < FEWEST {
        return None;
    }
    let means: Vec<f64> = groups.iter().filter_map(|windows| mean(windows)).collect();
    let centre = mean(&means).filter(|centre| *centre > 0.0)?;
    if let Some(modes) = Modes::of(&groups)
        && modes.apart > APART * centre
    {
        return Some(if modes.changed_once(&groups) {
            Steadiness::Drifting
        } else {
            Steadiness::Bimodal
        });
    }
    if trend(&means).abs() >= IN_ORDER && change(&means) > APART * centre {
        return Some(Steadiness::Drifting);
    }
    let interval = Estimate::of(means)?.relative_ci()?;
    Some(if interval > STEADY {
        Steadiness::Noisy
    } else {
        Steadiness::Steady
    })
}

/// The windows of each repetition; one group where there was one.
pub fn repetitions(record: &Record) -> Vec<Vec<f64>> {
    let mut windows = record.samples.iter().map(|&(_, figure)| figure);
    if record.repetitions.is_empty() {
        return vec![windows.collect()];
    }
    (record.repetitions.iter())
        .map(|&count| windows.by_ref().take(count as usize).collect())
        .filter(|group: &Vec<f64>| !group.is_empty())
        .collect()
}

/// The mean of each repetition.
pub fn means(record: &Record) -> Vec<f64> {
    let groups = repetitions(record);
    groups.iter().filter_map(|windows| mean(windows)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Kendall's tau of values against their place: 1 if each exceeds the one before, -1 if none does.
fn trend(values: &[f64]) -> f64 {
    let pairs = values
        .iter()
        .enumerate()
        .flat_map(|(at, before)| values.iter().skip(at + 1).map(move |after| after - before));
    let (mut sum, mut count) = (0.0, 0_u32);
    for difference in pairs {
        sum += if difference == 0.0 {
            0.0
        } else {
            difference.signum()
        };
        count += 1;
    }
    sum / f64::from(count.max(1))
}

/// How far apart the first and the last lie.
fn change(values: &[f64]) -> f64 {
    match (values.first(), values.last()) {
        (Some(first), Some(last)) => (last - first).abs(),
        _ => 0.0,
    }
}

/// Two values that samples gather around.
struct Modes {
    /// The distance of their means.
    apart: f64,
    /// Samples above this belong to the upper one.
    boundary: f64,
}

impl Modes {
    /// The split of all samples into two groups whose means lie furthest apart, in standard
    /// deviations within the groups; `None` if scatter around one value would give that too.
    ///
    /// A sample of one normal distribution splits at 2.7 when it is large, and by chance further
    /// when it is small: 20 000 drawn samples of each size split at 4 + 40/n in about 1 of 1000
    /// where n is 10, and in fewer where it is more. Where each repetition lies in one of the two
    /// groups, there are no more independent samples than repetitions.
    fn of(groups: &[Vec<f64>]) -> Option<Self> {
        let mut sorted: Vec<f64> = groups.iter().flatten().copied().collect();
        let n = sorted.len();
        if n < FEWEST_SAMPLES {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let smaller = ((n as f64 * SMALLER).ceil() as usize).max(2);
        let splits = (smaller..=n - smaller).filter_map(|at| {
            let (low, high) = sorted.split_at(at);
            let (below, above) = (mean(low)?, mean(high)?);
            let spread = |part: &[f64], mean: f64| -> f64 {
                part.iter().map(|value| (value - mean).powi(2)).sum()
            };
            let within = (spread(low, below) + spread(high, above)) / (n - 2) as f64;
            let modes = Self {
                apart: above - below,
                boundary: f64::midpoint(*low.last()?, *high.first()?),
            };
            // Samples that are all alike have no scatter and no modes.
            let ratio = if modes.apart > 0.0 {
                modes.apart / within.sqrt()
            } else {
                0.0
            };
            Some((ratio, modes))
        });
        let (ratio, modes) = splits.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let whole = groups.iter().all(|group| {
            let above = group.iter().filter(|v| **v > modes.boundary).count();
            above == 0 || above == group.len()
        });
        let independent = if whole { groups.len() } else { n };
        (ratio > 4.0 + 40.0 / independent as f64).then_some(modes)
    }

    /// Whether all samples of one group came before all of the other.
    fn changed_once(&self, groups: &[Vec<f64>]) -> bool {
        let above: Vec<bool> = (groups.iter().flatten())
            .map(|value| *value > self.boundary)
            .collect();
        above.windows(2).filter(|pair| pair[0] != pair[1]).count() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_model::units::Nanos;

    fn record(groups: &[Vec<f64>]) -> Record {
        Record {
            samples: groups.iter().flatten().map(|&v| (Nanos(1.0), v)).collect(),
            repetitions: groups.iter().map(|group| group.len() as u32).collect(),
            ..Record::default()
        }
    }

    /// A normal deviate from two numbers between 0 and 1 (Box and Muller).
    fn normal((u, v): (f64, f64)) -> f64 {
        (-2.0 * u.max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn uniform_pairs(groups: usize, windows: usize) -> impl Strategy<Value = Vec<Vec<(f64, f64)>>> {
        let pair = (0.0..1.0_f64, 0.0..1.0_f64);
        prop::collection::vec(prop::collection::vec(pair, windows), groups)
    }

    fn drawn(pairs: &[Vec<(f64, f64)>], shift: impl Fn(usize, usize) -> f64, sd: f64) -> Record {
        let group = |(r, windows): (usize, &Vec<(f64, f64)>)| {
            let value = |(w, pair): (usize, &(f64, f64))| shift(r, w) + sd * normal(*pair);
            windows.iter().enumerate().map(value).collect()
        };
        record(&pairs.iter().enumerate().map(group).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn one_normal_is_not_called_bimodal(pairs in uniform_pairs(6, 8), sd in 0.1..20.0_f64) {
            let verdict = judge(&drawn(&pairs, |_, _| 100.0, sd)).unwrap();
            prop_assert_ne!(verdict, Steadiness::Bimodal);
            if sd < 2.0 {
                prop_assert_eq!(verdict, Steadiness::Steady);
            }
        }

        #[test]
        fn two_well_separated_normals_are_bimodal(pairs in uniform_pairs(6, 8), sd in 0.1..2.0_f64) {
            // Windows change sides all the time.
            let sides = |r: usize, w: usize| if (r + w).is_multiple_of(2) { 100.0 } else { 125.0 };
            prop_assert_eq!(judge(&drawn(&pairs, sides, sd)), Some(Steadiness::Bimodal));
        }

        #[test]
        fn repetitions_that_choose_a_side_are_bimodal(pairs in uniform_pairs(8, 5), sd in 0.1..1.0_f64) {
            let sides = |r: usize, _| if r.is_multiple_of(2) { 100.0 } else { 150.0 };
            prop_assert_eq!(judge(&drawn(&pairs, sides, sd)), Some(Steadiness::Bimodal));
        }

        #[test]
        fn a_ramp_and_a_step_are_drifts(
            pairs in uniform_pairs(5, 6), sd in 0.01..0.5_f64, up: bool,
        ) {
            let sign = if up { 1.0 } else { -1.0 };
            let ramp = |r: usize, _| 100.0 + sign * 4.0 * r as f64;
            prop_assert_eq!(judge(&drawn(&pairs, ramp, sd)), Some(Steadiness::Drifting));
            let step = |r: usize, w: usize| 100.0 + if 6 * r + w > 13 { sign * 30.0 } else { 0.0 };
            prop_assert_eq!(judge(&drawn(&pairs, step, sd)), Some(Steadiness::Drifting));
        }

        #[test]
        fn the_unit_of_a_figure_does_not_matter(
            groups in prop::collection::vec(prop::collection::vec(1.0..100.0_f64, 1..8), 0..8),
            power in -6_i32..6,
        ) {
            // Powers of two, so that rounding is the same.
            let scale = 2.0_f64.powi(power);
            let scaled: Vec<Vec<f64>> =
                groups.iter().map(|g| g.iter().map(|v| v * scale).collect()).collect();
            prop_assert_eq!(judge(&record(&groups)), judge(&record(&scaled)));
        }
    }

    #[test]
    fn repetitions_far_apart_without_order_are_noisy() {
        let means = [100.0, 131.0, 84.0, 112.0, 95.0];
        let groups: Vec<Vec<f64>> = means.map(|m| vec![m - 0.5, m, m + 0.5]).to_vec();
        assert_eq!(judge(&record(&groups)), Some(Steadiness::Noisy));
    }

    #[test]
    fn alike_to_the_last_digit_is_steady_and_two_repetitions_say_nothing() {
        assert_eq!(
            judge(&record(&vec![vec![7.0; 4]; 5])),
            Some(Steadiness::Steady)
        );
        assert_eq!(judge(&record(&[vec![1.0; 9], vec![2.0; 9]])), None);
        assert_eq!(judge(&Record::default()), None);
    }
}
