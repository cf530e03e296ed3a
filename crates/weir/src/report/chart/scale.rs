//! From figures to places on the paper, and the ticks between.

use crate::output::figure;

/// How an axis spreads its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Evenly, from zero to a round figure.
    Linear,
    /// Evenly, whole numbers from zero to just beyond the largest.
    Counts,
    /// By factors; ticks at 1, 2 and 5 times powers of ten.
    Log,
    /// By factors; ticks at powers of two, printed as sizes.
    Sizes,
}

/// An axis: a range of figures over a range of places.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    spread: Spread,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// A scale over the figures, which it widens to whole steps. Places run from `start` to `end`.
    pub fn over(
        spread: Spread,
        figures: impl Iterator<Item = f64>,
        (start, end): (f64, f64),
    ) -> Self {
        let (low, high) = figures
            .filter(|v| {
                v.is_finite() && (matches!(spread, Spread::Linear | Spread::Counts) || *v > 0.0)
            })
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
        let (low, high) = match (low <= high, spread) {
            (false, _) => (1.0, 10.0),
            (true, Spread::Linear) => {
                let step = step(high.max(f64::MIN_POSITIVE) / 8.0);
                (0.0, (high / step - 1e-9).ceil().max(1.0) * step)
            }
            (true, Spread::Counts) => (0.0, high * 1.03),
            (true, Spread::Log) => (round_log(low, false), round_log(high, true)),
            (true, Spread::Sizes) => (low / 1.4, high * 1.4),
        };
        let high = if high > low { high } else { low * 10.0 };
        Self {
            spread,
            low,
            high,
            start,
            end,
        }
    }

    /// The place of a figure, within the paper even if the figure is beyond the scale.
    pub fn place(&self, figure: f64) -> f64 {
        let share = match self.spread {
            Spread::Linear | Spread::Counts => (figure - self.low) / (self.high - self.low),
            Spread::Log | Spread::Sizes => {
                (figure.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Ticks with their labels, at least `apart` from each other.
    pub fn ticks(&self, apart: f64) -> Vec<(f64, String)> {
        let most = ((self.end - self.start).abs() / apart).max(2.0);
        match self.spread {
            Spread::Linear | Spread::Counts => {
                let step = step((self.high - self.low) / most);
                let step = if self.spread == Spread::Counts {
                    step.max(1.0)
                } else {
                    step
                };
                let count = ((self.high - self.low) / step + 1e-9).floor() as u32;
                (0..=count)
                    .map(|i| self.low + f64::from(i) * step)
                    .map(|v| (v, plain(v)))
                    .collect()
            }
            Spread::Log => {
                let all = |factors: &[f64]| -> Vec<f64> {
                    let from = self.low.log10().floor() as i32;
                    let to = self.high.log10().ceil() as i32;
                    (from..=to)
                        .flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e)))
                        .filter(|v| *v >= self.low * 0.999 && *v <= self.high * 1.001)
                        .collect()
                };
                let dense = all(&[1.0, 2.0, 5.0]);
                let ticks = if dense.len() as f64 <= most {
                    dense
                } else {
                    all(&[1.0])
                };
                ticks.into_iter().map(|v| (v, plain(v))).collect()
            }
            Spread::Sizes => {
                let (from, to) = (
                    self.low.log2().ceil() as i32,
                    self.high.log2().floor() as i32,
                );
                let every = (f64::from(to - from + 1) / most).ceil().max(1.0) as i32;
                (from..=to)
                    .filter(|e| e.rem_euclid(every) == 0)
                    .map(|e| 2f64.powi(e))
                    .map(|v| (v, size(v)))
                    .collect()
            }
        }
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is no less than this.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|f| f * power >= least * 0.999_999);
    factor.unwrap_or(10.0) * power
}

fn round_log(value: f64, up: bool) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|f| f * power);
    let rounded = if up {
        steps.into_iter().find(|s| *s >= value * 0.999_999)
    } else {
        steps.into_iter().rfind(|s| *s <= value * 1.000_001)
    };
    rounded.unwrap_or(value)
}

/// A tick's figure without needless zeros.
fn plain(value: f64) -> String {
    let text = figure(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A size as short as a tick allows: `4K`, `32M`, `1G`.
fn size(bytes: f64) -> String {
    let units = [
        (1u64 << 40, "T"),
        (1 << 30, "G"),
        (1 << 20, "M"),
        (1 << 10, "K"),
    ];
    let (divisor, unit) = units
        .into_iter()
        .find(|(divisor, _)| bytes >= *divisor as f64)
        .unwrap_or((1, ""));
    format!("{}{unit}", bytes / divisor as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        let labels = |spread, low, high, apart| -> Vec<String> {
            let scale = Scale::over(spread, [low, high].into_iter(), (0.0, 400.0));
            scale
                .ticks(apart)
                .into_iter()
                .map(|(_, label)| label)
                .collect()
        };
        assert_eq!(
            labels(Spread::Linear, 0.0, 23.0, 60.0),
            ["0", "5", "10", "15", "20", "25"]
        );
        assert_eq!(
            labels(Spread::Log, 1.3, 380.0, 40.0),
            ["1", "2", "5", "10", "20", "50", "100", "200", "500"]
        );
        assert_eq!(
            labels(Spread::Sizes, 4096.0, 4194304.0, 60.0),
            ["4K", "16K", "64K", "256K", "1M", "4M"]
        );
    }

    proptest! {
        #[test]
        fn every_figure_lies_on_the_paper_and_order_is_kept(
            mut figures in proptest::collection::vec(1e-3f64..1e9, 1..30),
            spread in prop_oneof![Just(Spread::Linear), Just(Spread::Counts), Just(Spread::Log), Just(Spread::Sizes)],
        ) {
            figures.sort_by(f64::total_cmp);
            let scale = Scale::over(spread, figures.iter().copied(), (40.0, 500.0));
            let places: Vec<f64> = figures.iter().map(|&f| scale.place(f)).collect();
            prop_assert!(places.iter().all(|p| (40.0..=500.0).contains(p)), "{places:?}");
            prop_assert!(places.windows(2).all(|w| w[0] <= w[1]));
            prop_assert!(scale.ticks(40.0).len() <= 40);
        }
    }
}
