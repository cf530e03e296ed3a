//! How good predictions are.

/// A prediction next to what was measured, both as shares of the local run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// What was predicted.
    pub predicted: f64,
    /// What was measured.
    pub measured: f64,
}

impl Judged {
    /// Predicted less measured.
    pub fn error(self) -> f64 {
        self.predicted - self.measured
    }
}

/// The share of predictions that are off by no more than `bound`; `None` of none.
pub fn within(judged: &[Judged], bound: f64) -> Option<f64> {
    let hits = judged.iter().filter(|j| j.error().abs() <= bound).count();
    (!judged.is_empty()).then(|| hits as f64 / judged.len() as f64)
}

/// Pearson's correlation of predicted and measured; `None` where either does not vary.
pub fn pearson(judged: &[Judged]) -> Option<f64> {
    let n = judged.len() as f64;
    let mean = |of: fn(&Judged) -> f64| judged.iter().map(of).sum::<f64>() / n;
    let (p, m) = (mean(|j| j.predicted), mean(|j| j.measured));
    let (mut both, mut predicted, mut measured) = (0.0, 0.0, 0.0);
    for j in judged {
        both += (j.predicted - p) * (j.measured - m);
        predicted += (j.predicted - p).powi(2);
        measured += (j.measured - m).powi(2);
    }
    let r = both / (predicted * measured).sqrt();
    r.is_finite().then_some(r)
}

/// The mean of the errors' magnitudes; `None` of none.
pub fn mean_error(judged: &[Judged]) -> Option<f64> {
    let sum: f64 = judged.iter().map(|j| j.error().abs()).sum();
    (!judged.is_empty()).then(|| sum / judged.len() as f64)
}

/// The smallest of `values` that at least a share of a next one like them does not exceed (split
/// conformal prediction, Lei et al. 2018 §2.2); `None` where there are too few of them to say.
pub fn conformal_quantile(mut values: Vec<f64>, coverage: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = ((values.len() as f64 + 1.0) * coverage).ceil() as usize;
    values.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn correlation_knows_neither_scale_nor_offset(
            values in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 3..40),
            slope in 0.1..10.0_f64,
            offset in -5.0..5.0_f64,
        ) {
            let judged: Vec<Judged> = (values.iter())
                .map(|&(predicted, measured)| Judged { predicted, measured })
                .collect();
            let moved: Vec<Judged> = (judged.iter())
                .map(|j| Judged { predicted: j.predicted * slope + offset, ..*j })
                .collect();
            if let (Some(a), Some(b)) = (pearson(&judged), pearson(&moved)) {
                prop_assert!((a - b).abs() < 1e-6);
                prop_assert!(a.abs() <= 1.0 + 1e-9);
            }
        }

        #[test]
        fn a_conformal_quantile_covers_what_it_was_made_from(
            values in prop::collection::vec(0.0..1.0_f64, 20..200),
        ) {
            let quantile = conformal_quantile(values.clone(), 0.9).unwrap();
            let covered = values.iter().filter(|&&v| v <= quantile).count();
            prop_assert!(covered as f64 >= 0.9 * values.len() as f64);
        }
    }

    #[test]
    fn few_values_promise_nothing() {
        assert_eq!(conformal_quantile(vec![1.0; 8], 0.9), None);
        assert_eq!(conformal_quantile(vec![1.0; 9], 0.9), Some(1.0));
        assert_eq!(pearson(&[]), None);
        assert_eq!(within(&[], 0.1), None);
        // Too high and too low are as bad.
        let off = |predicted: f64| Judged {
            predicted,
            measured: 1.0,
        };
        let judged = [0.5, 0.95, 1.05, 1.5].map(off);
        assert_eq!(within(&judged, 0.1), Some(0.5));
        assert!((mean_error(&judged).unwrap() - 0.275).abs() < 1e-12);
    }
}
