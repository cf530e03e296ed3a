//! From figures to places on the paper, and the ticks between.

use super::text_width;

/// How an axis spreads its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Evenly, from zero to a round figure.
    Linear,
    /// Evenly, to round figures on both sides of zero, which always lies on it.
    Signed,
    /// By factors; ticks at powers of two, printed as whole numbers.
    Counts,
    /// By factors; ticks at round figures.
    Log,
    /// Shares of accesses that are slower, from all to the rarest, by factors: each nine of a
    /// quantile takes as much room as the one before it.
    Tail,
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
                let even = matches!(spread, Spread::Linear | Spread::Signed);
                v.is_finite() && (*v > 0.0 || even)
            })
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
        let (low, high) = match (low <= high, spread) {
            (_, Spread::Tail) => (1e-9, rarest(low).recip()),
            (false, _) => (1.0, 10.0),
            (true, Spread::Linear) => {
                // What is zero everywhere has no step of its own.
                let high = if high > 0.0 { high } else { 1.0 };
                let step = step(high / 8.0);
                (0.0, (high / step - 1e-9).ceil().max(1.0) * step)
            }
            (true, Spread::Signed) => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                let step = step((high - low).max(f64::MIN_POSITIVE) / 8.0);
                let out = |side: f64| (side / step - 1e-9).ceil() * step;
                (-out(-low), if high > low { out(high) } else { 1.0 })
            }
            (true, Spread::Counts) => (low / 1.1, high * 1.1),
            (true, Spread::Log) => {
                let factors = ROUND[if high > low * 20.0 { 2 } else { 1 }];
                (
                    round_log(low, factors, false),
                    round_log(high, factors, true),
                )
            }
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

    /// The figures at its ends.
    pub fn reach(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether a figure lies on the scale.
    pub fn holds(&self, figure: f64) -> bool {
        match self.spread {
            Spread::Tail => figure <= 1.0 && figure >= self.high.recip(),
            _ => figure >= self.low && figure <= self.high,
        }
    }

    /// The place of a figure, within the paper even if the figure is beyond the scale.
    pub fn place(&self, figure: f64) -> f64 {
        let share = match self.spread {
            Spread::Linear | Spread::Signed => (figure - self.low) / (self.high - self.low),
            Spread::Log | Spread::Counts | Spread::Sizes => {
                (figure.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
            }
            // The scale keeps how many accesses there are to one of the rarest.
            Spread::Tail => -figure.max(f64::MIN_POSITIVE).ln() / self.high.ln(),
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Ticks of a horizontal axis, at least `apart` from each other, and so few that no label runs into the next.
    pub fn labels(&self, apart: f64) -> Vec<(f64, String)> {
        const GAP: f64 = 6.0;
        let mut apart = apart;
        loop {
            let ticks = self.ticks(apart);
            let ends = |(value, label): &(f64, String)| {
                let (at, half) = (self.place(*value), text_width(label) / 2.0);
                (at - half, at + half)
            };
            let mut pairs = ticks.windows(2);
            let fit = pairs.all(|pair| ends(&pair[0]).1 + GAP <= ends(&pair[1]).0);
            if fit || apart >= (self.end - self.start).abs() {
                return ticks;
            }
            apart *= 1.25;
        }
    }

    /// Ticks with their labels, at least `apart` from each other.
    pub fn ticks(&self, apart: f64) -> Vec<(f64, String)> {
        let most = ((self.end - self.start).abs() / apart).max(2.0);
        match self.spread {
            Spread::Linear | Spread::Signed => {
                let step = step((self.high - self.low) / most);
                // Zero is among them, wherever the axis begins.
                let first = (self.low / step - 1e-9).ceil() as i32;
                let last = (self.high / step + 1e-9).floor() as i32;
                (first..=last)
                    .map(|i| f64::from(i) * step)
                    .map(|v| (v, plain(v, step)))
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
                let ticks = ROUND
                    .into_iter()
                    .map(all)
                    .find(|ticks| ticks.len() as f64 <= most);
                let ticks = ticks.unwrap_or_else(|| every_so_many(all(&[1.0]), most));
                ticks.into_iter().map(|v| (v, plain(v, v * 0.1))).collect()
            }
            Spread::Tail => {
                let nines = (self.high.log10() + 1e-9).floor() as i32;
                std::iter::once(0.5)
                    .chain((1..=nines).map(|n| 10f64.powi(-n)))
                    .map(|share| (share, quantile_name(share)))
                    .collect()
            }
            Spread::Counts | Spread::Sizes => {
                let (from, to) = (
                    self.low.log2().ceil() as i32,
                    self.high.log2().floor() as i32,
                );
                let every = (f64::from(to - from + 1) / most).ceil().max(1.0) as i32;
                (from..=to)
                    .filter(|e| e.rem_euclid(every) == 0)
                    .map(|e| 2f64.powi(e))
                    .map(|v| match self.spread {
                        Spread::Counts => (v, plain(v, v * 0.01)),
                        _ => (v, size(v)),
                    })
                    .collect()
            }
        }
    }
}

/// Factors at which a logarithmic axis may have its ticks, the densest first.
const ROUND: [&[f64]; 4] = [
    &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
    &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
    &[1.0, 2.0, 5.0],
    &[1.0],
];

/// At most this many of these, evenly spread.
fn every_so_many(all: Vec<f64>, most: f64) -> Vec<f64> {
    let every = (all.len() as f64 / most).ceil().max(1.0) as usize;
    all.into_iter().step_by(every).collect()
}

/// The share at which a tail's axis ends: the rarest, but never before the slowest tenth.
fn rarest(share: f64) -> f64 {
    let share = if share.is_finite() { share } else { 0.1 };
    share.clamp(1e-9, 0.1)
}

/// The quantile beyond which this share lies: `p50`, `p90`, `p99.9`.
pub fn quantile_name(beyond: f64) -> String {
    let percent = format!("{:.7}", 100.0 * (1.0 - beyond));
    format!("p{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// The smallest of 1, 2 and 5 times a power of ten that is no less than this.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|f| f * power >= least * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// The nearest of these factors times a power of ten that is no more, or no less, than this.
fn round_log(value: f64, factors: &[f64], up: bool) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let mut steps = factors.iter().chain(&[10.0]).map(|f| f * power);
    let rounded = if up {
        steps.find(|s| *s >= value * 0.999_999)
    } else {
        steps.rfind(|s| *s <= value * 1.000_001)
    };
    rounded.unwrap_or(value)
}

/// A tick's figure without needless zeros, with as many decimals as tell this much apart.
fn plain(value: f64, apart: f64) -> String {
    let decimals = (-apart.log10().floor()).clamp(0.0, 12.0) as usize;
    // Nothing below zero is left of what rounds to it.
    let text = format!("{:.decimals$}", value + 0.0);
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
            labels(Spread::Signed, -31.0, 12.0, 60.0),
            ["-40", "-30", "-20", "-10", "0", "10", "20"]
        );
        assert_eq!(
            labels(Spread::Linear, 0.0, 0.011, 60.0),
            ["0", "0.002", "0.004", "0.006", "0.008", "0.01", "0.012"]
        );
        assert_eq!(
            labels(Spread::Linear, 0.0, 0.0, 60.0),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(
            labels(Spread::Log, 0.001, 0.1, 60.0)[..2],
            ["0.001", "0.01"]
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

    #[test]
    fn labels_of_long_numbers_do_not_run_into_each_other() {
        for high in [23.0, 1.4e6, 1.4e9] {
            let scale = Scale::over(Spread::Linear, [0.0, high].into_iter(), (54.0, 500.0));
            let labels = scale.labels(34.0);
            assert!(labels.len() > 2, "{labels:?}");
            for pair in labels.windows(2) {
                let half = |n: usize| text_width(&pair[n].1) / 2.0;
                let room = scale.place(pair[1].0) - scale.place(pair[0].0);
                assert!(half(0) + half(1) < room, "{labels:?}");
            }
        }
    }

    #[test]
    fn each_nine_of_a_tail_takes_as_much_room() {
        let scale = Scale::over(Spread::Tail, [1.0, 1e-5].into_iter(), (250.0, 0.0));
        let labels: Vec<String> = scale.ticks(10.0).into_iter().map(|(_, l)| l).collect();
        assert_eq!(labels, ["p50", "p90", "p99", "p99.9", "p99.99", "p99.999"]);
        for nines in 0..=5 {
            let place = scale.place(10f64.powi(-nines));
            assert!((place - (250.0 - 50.0 * f64::from(nines))).abs() < 1e-6);
        }
    }

    proptest! {
        #[test]
        fn zero_lies_between_gains_and_losses(
            mut figures in proptest::collection::vec(-1e6f64..1e6, 1..30),
        ) {
            let scale = Scale::over(Spread::Signed, figures.iter().copied(), (40.0, 500.0));
            prop_assert!(scale.ticks(40.0).iter().any(|(v, _)| *v == 0.0));
            figures.push(0.0);
            figures.sort_by(f64::total_cmp);
            prop_assert!(figures.iter().all(|f| scale.holds(*f)));
            let places: Vec<f64> = figures.iter().map(|&f| scale.place(f)).collect();
            prop_assert!(places.windows(2).all(|w| w[0] <= w[1]));
        }

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
            let ticks = scale.ticks(40.0);
            prop_assert!(ticks.iter().all(|(v, _)| (40.0..=500.0).contains(&scale.place(*v))));
        }
    }
}
