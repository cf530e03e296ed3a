//! Means and medians, and their confidence intervals.

/// The mean of a number of samples, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half-width of the 95 % confidence interval by Student's t; `None` below two samples.
    pub ci95: Option<f64>,
    /// How many samples.
    pub samples: u32,
}

impl Estimate {
    /// From samples; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        // Welford's recurrence: one pass, and no cancellation where the spread is small.
        let (mut samples, mut mean, mut squares) = (0_u32, 0.0, 0.0);
        for value in values {
            samples += 1;
            let before = value - mean;
            mean += before / f64::from(samples);
            squares += before * (value - mean);
        }
        let freedom = samples.checked_sub(1)?;
        let ci95 = (freedom > 0).then(|| {
            let variance = squares / f64::from(freedom);
            student_t975(freedom) * (variance / f64::from(samples)).sqrt()
        });
        Some(Self {
            mean,
            ci95,
            samples,
        })
    }

    /// The half-width as a share of the mean; `None` where there is no interval or the mean is 0.
    pub fn relative_ci(&self) -> Option<f64> {
        self.ci95
            .filter(|_| self.mean != 0.0)
            .map(|ci| ci / self.mean.abs())
    }
}

/// The median of a number of samples, and between which of them the true one lies with a confidence of
/// at least 95 %. Nothing is assumed of how they scatter, so that one that is far off widens the interval
/// and moves the median by a rank at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Median {
    /// From samples; `None` where even the lowest and the highest are no interval of 95 %, as of
    /// five.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let rank = outermost_rank(n)?;
        Some(Self {
            median: f64::midpoint(*sorted.get((n - 1) / 2)?, *sorted.get(n / 2)?),
            low: *sorted.get(rank)?,
            high: *sorted.get(n - 1 - rank)?,
        })
    }
}

/// How many samples of `n` may be left out on either side, so that the true median lies among the
/// others with 95 %. Each sample is above it or below it like a coin (the sign test), so that the
/// binomial distribution tells.
fn outermost_rank(n: usize) -> Option<usize> {
    let mut ways = 0.5_f64.powi(i32::try_from(n).ok()?);
    let (mut tail, mut rank) = (0.0, None);
    for k in 0..n / 2 {
        tail += ways;
        if 2.0 * tail > 0.05 {
            break;
        }
        rank = Some(k);
        ways *= (n - k) as f64 / (k + 1) as f64;
    }
    rank
}

/// The 97.5 % quantile of Student's t, to three decimals, for 1 to 30 degrees of freedom.
const T975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The 97.5 % quantile of Student's t: half of a two-sided 95 % interval, in standard errors.
pub fn student_t975(degrees_of_freedom: u32) -> f64 {
    match degrees_of_freedom {
        0 => f64::INFINITY,
        n @ 1..=30 => T975[n as usize - 1],
        n => expansion(f64::from(n)),
    }
}

/// Expansion around the normal quantile (Abramowitz and Stegun 26.7.5).
fn expansion(n: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let (z3, z5, z7) = (Z.powi(3), Z.powi(5), Z.powi(7));
    Z + (z3 + Z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_expansion_agree_where_they_meet() {
        for n in 8..=30 {
            let difference = expansion(f64::from(n)) - student_t975(n);
            assert!(difference.abs() < 1e-3, "{n}: {difference}");
        }
    }

    #[test]
    fn student_t_has_its_published_values() {
        for (n, t) in [
            (1, 12.706),
            (5, 2.571),
            (40, 2.021),
            (60, 2.000),
            (120, 1.980),
        ] {
            assert!(
                (student_t975(n) - t).abs() < 6e-4,
                "{n}: {}",
                student_t975(n)
            );
        }
        assert!((student_t975(1_000_000) - 1.96).abs() < 1e-3);
    }

    #[test]
    fn a_known_sample_has_its_known_interval() {
        // Mean 5, standard deviation sqrt(32/7), eight samples.
        let estimate = Estimate::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        let expected = 2.365 * (32.0_f64 / 7.0 / 8.0).sqrt();
        assert!((estimate.mean - 5.0).abs() < 1e-12);
        assert!((estimate.ci95.unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn a_medians_interval_has_its_published_ranks() {
        // Ranks from 1 of either end (tables of the sign test).
        for (n, low, high) in [
            (6, 1, 6),
            (8, 1, 8),
            (9, 2, 8),
            (12, 3, 10),
            (15, 4, 12),
            (20, 6, 15),
        ] {
            let found = Median::of((1..=n).map(f64::from)).unwrap();
            let expected = (f64::from(low), f64::from(high));
            assert_eq!((found.low, found.high), expected, "{n}");
            assert_eq!(found.median, f64::from(n + 1) / 2.0);
        }
        assert_eq!(Median::of([1.0; 5]), None);
        assert_eq!(Median::of([]), None);
    }

    #[test]
    fn one_sample_far_off_does_not_move_a_median_far() {
        let quiet = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
        let mut loud = quiet;
        loud[6] = 1e9;
        let (quiet, loud) = (Median::of(quiet).unwrap(), Median::of(loud).unwrap());
        assert_eq!(quiet.median, loud.median);
        assert!(loud.high > quiet.high);
    }

    #[test]
    fn one_sample_has_a_mean_and_no_interval() {
        assert_eq!(Estimate::of([3.0]).unwrap().ci95, None);
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([0.0, 0.0]).unwrap().relative_ci(), None);
    }
}
