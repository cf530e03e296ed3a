//! Bandwidth over threads: where it peaks, where it bends, and whether it falls again.

use weir_model::access::Op;
use weir_model::document::Point;
use weir_model::topology::TierName;

/// A thread count is at the peak if it reaches this share of it: on a plateau the highest point is
/// chance.
pub const AT_PEAK: f64 = 0.97;

/// A curve has declined where it stays at or below this share of its peak.
pub const DECLINED: f64 = 0.96;

/// Bandwidth in GB/s by thread count, fewest threads first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve(Vec<(u32, f64)>);

impl FromIterator<(u32, f64)> for Curve {
    fn from_iter<I: IntoIterator<Item = (u32, f64)>>(points: I) -> Self {
        let mut points: Vec<(u32, f64)> = points.into_iter().collect();
        points.sort_by_key(|point| point.0);
        Self(points)
    }
}

impl Curve {
    /// The sequential bandwidth points of one instruction and tier that have a figure.
    pub fn of(points: &[Point], tier: &TierName, op: Op, prefetch: bool) -> Self {
        points
            .iter()
            .filter(|p| p.experiment == "bandwidth" && p.prefetch == prefetch)
            .filter(|p| p.read_share.is_none() && p.threads > 0)
            .filter(|p| p.tier == *tier && p.op == op)
            .filter_map(|p| Some((p.threads, p.gbps?.get())))
            .collect()
    }

    /// Thread counts and figures, fewest threads first.
    pub fn points(&self) -> &[(u32, f64)] {
        &self.0
    }

    /// The highest figure and its threads, the fewest if several have it.
    pub fn peak(&self) -> Option<(u32, f64)> {
        self.0
            .iter()
            .copied()
            .reduce(|best, p| if p.1 > best.1 { p } else { best })
    }

    /// The fewest threads that are at the peak.
    pub fn knee(&self) -> Option<u32> {
        self.reaches(AT_PEAK)
    }

    /// The fewest threads that give this share of the peak.
    pub fn reaches(&self, share: f64) -> Option<u32> {
        self.at_least(share).next()
    }

    /// The most threads that are at the peak: past them the curve has fallen for good, unless they
    /// are the most that were tried.
    pub fn last_at_peak(&self) -> Option<u32> {
        self.at_least(AT_PEAK).last()
    }

    /// The thread count past which the curve has declined; `None` if it has not.
    ///
    /// From the peak's fewest threads on, the curve is taken as two levels: what they are and where
    /// they meet is the fit of least squares, so that one count that happens to lie high or low
    /// decides nothing. It has declined if the second is at least 4 % below the peak and below the
    /// first.
    pub fn declines_past(&self) -> Option<u32> {
        let knee = self.knee()?;
        let (_, peak) = self.peak()?;
        let from = self.0.iter().position(|p| p.0 == knee)?;
        let plateau = self.0.get(from..)?;
        let at = (1..plateau.len()).min_by(|&a, &b| {
            let apart = |at: usize| {
                let (first, second) = plateau.split_at(at);
                spread(first) + spread(second)
            };
            apart(a).total_cmp(&apart(b))
        })?;
        let (first, second) = plateau.split_at(at);
        let level = mean(second);
        let declined = level <= peak * DECLINED && level < mean(first);
        declined.then(|| first.last().map(|p| p.0)).flatten()
    }

    /// The figure with the most threads.
    pub fn last(&self) -> Option<(u32, f64)> {
        self.0.last().copied()
    }

    /// The mean of the figures with more than `threads` threads.
    pub fn mean_beyond(&self, threads: u32) -> Option<f64> {
        let beyond = self.0.iter().filter(|p| p.0 > threads);
        let (sum, count) = beyond.fold((0.0, 0_u32), |(sum, count), p| (sum + p.1, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// The lowest figure beyond the last thread count at the peak, with its threads.
    pub fn low_beyond_peak(&self) -> Option<(u32, f64)> {
        let last = self.last_at_peak()?;
        let beyond = self.0.iter().copied().filter(|p| p.0 > last);
        beyond.reduce(|low, p| if p.1 < low.1 { p } else { low })
    }

    fn at_least(&self, share: f64) -> impl Iterator<Item = u32> + '_ {
        let floor = self.peak().map_or(f64::INFINITY, |(_, peak)| peak * share);
        self.0.iter().filter(move |p| p.1 >= floor).map(|p| p.0)
    }
}

fn mean(points: &[(u32, f64)]) -> f64 {
    points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64
}

/// The sum of squared distances from the mean.
fn spread(points: &[(u32, f64)]) -> f64 {
    let mean = mean(points);
    points.iter().map(|p| (p.1 - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plateau_starts_at_its_first_thread_count_and_not_at_its_highest() {
        let curve: Curve = [(1, 10.0), (8, 99.0), (2, 20.0), (16, 100.0), (32, 99.5)]
            .into_iter()
            .collect();
        assert_eq!(curve.peak(), Some((16, 100.0)));
        assert_eq!(curve.knee(), Some(8));
        assert_eq!(curve.last_at_peak(), Some(32));
        assert_eq!(curve.low_beyond_peak(), None);
    }

    #[test]
    fn a_decline_is_what_follows_the_last_count_at_the_peak() {
        let curve: Curve = [(2, 10.0), (8, 20.0), (12, 19.6), (16, 16.0), (32, 17.0)]
            .into_iter()
            .collect();
        assert_eq!(curve.last_at_peak(), Some(12));
        assert_eq!(curve.low_beyond_peak(), Some((16, 16.0)));
        assert_eq!(curve.mean_beyond(12), Some(16.5));
        assert_eq!(curve.mean_beyond(32), None);
        assert_eq!(curve.declines_past(), Some(12));
    }

    #[test]
    fn a_late_count_that_lies_high_by_chance_hides_no_decline() {
        let figures = [17.0, 16.8, 16.9, 14.4, 15.2, 14.7, 16.6, 14.9, 14.2, 16.7];
        let curve: Curve = (4..).zip(figures).collect();
        assert_eq!(curve.last_at_peak(), Some(13));
        assert_eq!(curve.declines_past(), Some(6));
    }

    #[test]
    fn noise_alone_is_no_decline() {
        let figures = [8.0, 16.8, 17.0, 16.5, 16.9, 16.4, 16.8, 16.6];
        let curve: Curve = (1..).zip(figures).collect();
        assert_eq!(curve.declines_past(), None);
        let rising: Curve = (1..=8).map(|n| (n, f64::from(n))).collect();
        assert_eq!(rising.declines_past(), None);
    }

    #[test]
    fn an_empty_curve_has_no_peak() {
        let empty = Curve::default();
        assert_eq!(
            (empty.peak(), empty.knee(), empty.declines_past()),
            (None, None, None)
        );
    }
}
