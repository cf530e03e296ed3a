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

/// Between which samples of `n`, counted from 1 by size, the true quantile lies with a confidence of at least 95 %; `None`
/// where even the largest may be below it. Each sample is above the quantile or not, independently of the others, so that
/// the binomial distribution tells.
pub fn quantile_ranks(n: u64, share: f64) -> Option<(u64, u64)> {
    let above = 1.0 - share;
    if n == 0 || !(above > 0.0 && above < 1.0) {
        return None;
    }
    // Chances relative to that of the likeliest number above, which do not underflow.
    let likeliest = ((n + 1) as f64 * above) as u64;
    let up = |k: u64| (n - k) as f64 / (k + 1) as f64 * (above / share);
    let walk = |to: &dyn Fn(u64) -> Option<(u64, f64)>| {
        let (mut at, mut chance, mut all) = (likeliest, 1.0, Vec::new());
        while let Some((next, factor)) = to(at) {
            (at, chance) = (next, chance * factor);
            if chance < 1e-18 {
                break;
            }
            all.push(chance);
        }
        all
    };
    let below = walk(&|k| Some((k.checked_sub(1)?, 1.0 / up(k - 1))));
    let beyond = walk(&|k| (k < n).then(|| (k + 1, up(k))));
    let first = likeliest - below.len() as u64;
    let chances: Vec<f64> = below
        .iter()
        .rev()
        .chain([&1.0])
        .chain(&beyond)
        .copied()
        .collect();
    let sum: f64 = chances.iter().sum();
    // How many may be above at least and at most, with 2.5 % beyond either.
    let within = |chances: &mut dyn Iterator<Item = &f64>| {
        let mut tail = 0.0;
        let outside = chances.take_while(|chance| {
            tail += **chance;
            tail / sum <= 0.025
        });
        outside.count() as u64
    };
    let least = first + within(&mut chances.iter());
    let most = first + (chances.len() as u64 - 1) - within(&mut chances.iter().rev());
    // With `k` above, the quantile is from rank n-k up to the next one.
    (least > 0).then(|| ((n - most).max(1), n - least + 1))
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
    fn a_quantiles_interval_has_the_ranks_of_the_binomial_distribution() {
        // As for a median (Conover, Practical Nonparametric Statistics, table of the sign test).
        assert_eq!(quantile_ranks(6, 0.5), Some((1, 6)));
        assert_eq!(quantile_ranks(10, 0.5), Some((2, 9)));
        // 0.99 to the power of 367 is 2.5 %: fewer samples have no upper end.
        assert_eq!(quantile_ranks(300, 0.99), None);
        assert_eq!(quantile_ranks(400, 0.99).map(|(_, high)| high), Some(400));
        for n in [1_000, 50_000, 3_000_000] {
            let (low, high) = quantile_ranks(n, 0.99).unwrap();
            let (middle, deviation) = (0.99 * n as f64, (0.0099 * n as f64).sqrt());
            assert!(
                (middle - low as f64 - 1.96 * deviation).abs() < 2.5,
                "{n}: {low}"
            );
            assert!(
                (high as f64 - middle - 1.96 * deviation).abs() < 2.5,
                "{n}: {high}"
            );
        }
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
        let share = |values: [f64; 2]| Estimate::of(values).unwrap().relative_ci();
        assert_eq!(share([-1.0, -3.0]), share([1.0, 3.0]));
    }
}
