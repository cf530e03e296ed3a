//! How far a victim's bandwidth moved, and how sure that is.

use super::measured::Measured;
use crate::statistics::{Estimate, Median};
use crate::steadiness;

/// A change in percent of the bandwidth alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The change.
    pub pct: f64,
    /// Between what it lies with 95 %; `None` where the figures have no interval.
    pub between: Option<(f64, f64)>,
    /// Whether the interval is that of repetitions, and not of windows of one run, which follow each other.
    pub repeated: bool,
}

impl Change {
    /// From the victim alone to the victim with another; `None` where either has no figure.
    pub fn of(solo: Measured<'_>, corun: Measured<'_>) -> Option<Self> {
        let (a, b) = (solo.point.gbps?.get(), corun.point.gbps?.get());
        let means = |seen: Measured<'_>| steadiness::means(seen.record);
        let half = solo.point.ci95.zip(corun.point.ci95);
        Self::of_repetitions(&means(solo), &means(corun)).or_else(|| Self::of_windows((a, b), half))
    }

    /// From the means of repetitions alone and together, two at least of either.
    ///
    /// Each repetition with an aggressor is divided by the one without it of the same round. In one round a
    /// model places the tenant's memory at the same addresses, and a real machine is in the same state, so
    /// what changes both figures does not change the ratio. The change of few rounds is their mean, with
    /// Student's interval; that of enough rounds is their median, which one disturbed round does not move.
    pub fn of_repetitions(alone: &[f64], beside: &[f64]) -> Option<Self> {
        if alone.iter().any(|gbps| *gbps <= 0.0) {
            return None;
        }
        let changes = || alone.iter().zip(beside).map(|(a, b)| (b / a - 1.0) * 100.0);
        let (pct, between) = match Median::of(changes()) {
            Some(Median { median, low, high }) => (median, (low, high)),
            None => {
                let Estimate { mean, ci95, .. } = Estimate::of(changes())?;
                let half = ci95?;
                (mean, (mean - half, mean + half))
            }
        };
        Some(Self {
            pct,
            between: Some(between),
            repeated: true,
        })
    }

    /// From one run each, with the intervals of its windows.
    fn of_windows((a, b): (f64, f64), half: Option<(f64, f64)>) -> Option<Self> {
        if a <= 0.0 {
            return None;
        }
        let pct = (b - a) / a * 100.0;
        let half = half.map(|(of_a, of_b)| (of_a / a * b).hypot(of_b) / a * 100.0);
        Some(Self {
            pct,
            between: half.map(|half| (pct - half, pct + half)),
            repeated: false,
        })
    }

    /// The distance to the end of the interval that is further off, in percentage points.
    pub fn half_width(&self) -> Option<f64> {
        let (low, high) = self.between?;
        Some((self.pct - low).max(high - self.pct))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::access::{Op, Pattern};
    use weir_model::document::{Point, Record};
    use weir_model::topology::TierName;
    use weir_model::units::{Bytes, GbPerSec, Nanos};

    use super::*;
    use crate::statistics::Estimate;
    use crate::{Load, PointSpec};

    /// A point of repetitions of one window each.
    fn measured(repetitions: &[f64]) -> (Point, Record) {
        let load = Load::new(
            &TierName::dram(),
            Op::Ld,
            Pattern::Sequential,
            1,
            Bytes::mib(1),
        );
        let spec = PointSpec::alone("interplay", load);
        let mut point = crate::figure::failed(&spec, "");
        let estimate = Estimate::of(repetitions.iter().copied()).unwrap();
        point.gbps = Some(GbPerSec(estimate.mean));
        point.ci95 = estimate.ci95;
        let record = Record {
            samples: repetitions.iter().map(|&v| (Nanos(1.0), v)).collect(),
            repetitions: vec![1; repetitions.len()],
            ..Record::default()
        };
        (point, record)
    }

    fn change(solo: &[f64], corun: &[f64]) -> Change {
        let ((a, of_a), (b, of_b)) = (measured(solo), measured(corun));
        let solo = Measured {
            point: &a,
            record: &of_a,
        };
        let corun = Measured {
            point: &b,
            record: &of_b,
        };
        Change::of(solo, corun).unwrap()
    }

    #[test]
    fn a_machine_that_slows_down_changes_nothing() {
        let solo = [10.0, 9.0, 8.0, 7.0, 6.0, 5.0];
        let corun = solo.map(|gbps| gbps * 0.8);
        let found = change(&solo, &corun);
        assert!((found.pct + 20.0).abs() < 1e-9, "{found:?}");
        assert!(found.half_width().unwrap() < 1e-9);
    }

    #[test]
    fn one_disturbed_round_of_six_widens_the_interval_and_leaves_the_change() {
        let solo = [10.0; 6];
        let found = change(&solo, &[9.7, 9.6, 9.2, 9.6, 9.6, 9.55]);
        assert!(
            found
                .between
                .is_some_and(|(low, high)| low < -5.0 && high > -5.0)
        );
        // One disturbed round of many does not move the change.
        assert!((found.pct + 4.0).abs() < 0.2, "{found:?}");
    }

    #[test]
    fn few_repetitions_are_reported_by_their_means() {
        let found = change(&[10.0, 10.0, 10.0], &[8.9, 9.0, 9.1]);
        assert!((found.pct + 10.0).abs() < 1e-9);
        let (low, high) = found.between.unwrap();
        assert!(low < -10.0 && high > -10.0);
        assert_eq!(change(&[10.0], &[9.0]).between, None);
    }

    proptest! {
        #[test]
        fn the_change_lies_in_its_interval(
            solo in prop::collection::vec(1.0..100.0_f64, 2..12),
            factors in prop::collection::vec(0.1..2.0_f64, 12),
        ) {
            let corun: Vec<f64> = solo.iter().zip(&factors).map(|(a, f)| a * f).collect();
            let found = change(&solo, &corun);
            let (low, high) = found.between.unwrap();
            prop_assert!(low <= found.pct && found.pct <= high);
        }
    }
}
