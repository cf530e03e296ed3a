//! Figures on their way into the files of a machine, each with what it is from.

use weir_model::platform::Provenance;
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, Nanos};

use super::evidence::Single;
use super::outcome::{FittedParameter, How};
use super::twin::Twin;

/// Puts values into drafts, and lists them.
pub struct Put<'a> {
    from: &'a str,
    pub twin: &'a mut Twin,
    /// Cores of a socket.
    pub cores: u32,
    pub done: Vec<FittedParameter>,
    /// What more threads may exceed.
    pub no_peaks: Vec<String>,
}

impl<'a> Put<'a> {
    pub fn new(from: &'a str, twin: &'a mut Twin) -> Self {
        Self {
            from,
            twin,
            cores: u32::MAX,
            done: Vec::new(),
            no_peaks: Vec::new(),
        }
    }

    pub fn time(
        &mut self,
        tier: Option<&TierName>,
        key: &str,
        what: &str,
        single: Option<&Single>,
    ) {
        if let Some(single) = single {
            self.nanos(tier, key, what, (single.value, single.half));
        }
    }

    /// A time with half of its interval, in ns.
    pub fn nanos(&mut self, tier: Option<&TierName>, key: &str, what: &str, figure: (f64, f64)) {
        self.value(tier, key, what, figure, &|ns| {
            Nanos(rounded(ns)).to_string()
        });
    }

    /// A bandwidth, and with how many threads it still rose, if it did.
    pub fn rate(
        &mut self,
        tier: Option<&TierName>,
        key: &str,
        what: &str,
        single: Option<&Single>,
        rising: Option<u32>,
    ) {
        let shown = |gbps: f64| GbPerSec(rounded(gbps)).to_string();
        match (single, rising.filter(|&threads| threads < self.cores)) {
            (Some(single), None) => {
                self.value(tier, key, what, (single.value, single.half), &shown);
            }
            (Some(single), Some(threads)) => {
                let (low, from) = (shown(single.value), self.from);
                let part = f64::from(self.cores) / f64::from(threads);
                let high = match self.cores {
                    u32::MAX => 2.0 * single.value,
                    _ => single.value * part,
                };
                let place = tier.map_or(String::new(), |tier| format!("{tier}."));
                let why = format!(
                    "{low} with {threads} threads of {from}, where each thread still adds as much as the first ones"
                );
                self.no_peaks.push(format!(
                    "{place}{key} is not measured: {why}; measure with more threads"
                ));
                let known = self.twin.draft_mut(tier).and_then(|draft| draft.get(key));
                let known: Option<GbPerSec> = known.and_then(|value| value.parse().ok());
                // What is known otherwise stays if it is possible.
                if known.is_none_or(|known| known.get() < single.value) {
                    let provenance = Provenance::Assumed {
                        low: low.clone(),
                        high: shown(high),
                        why,
                    };
                    self.twin.set(tier, key, &low, provenance);
                }
            }
            (None, _) => {}
        }
    }

    pub fn share(&mut self, tier: Option<&TierName>, key: &str, what: &str, share: f64) {
        self.value(tier, key, what, (share, 0.0), &|share| {
            rounded(share).to_string()
        });
    }

    /// A figure with half of its interval, in the unit in which it is shown.
    pub fn value(
        &mut self,
        tier: Option<&TierName>,
        key: &str,
        what: &str,
        (figure, half): (f64, f64),
        shown: &dyn Fn(f64) -> String,
    ) {
        let value = shown(figure);
        let range = (half > 0.0).then(|| (shown(figure - half), shown(figure + half)));
        let within = range.as_ref().map_or(String::new(), |(low, high)| {
            format!("; {low} to {high} with its scatter")
        });
        let why = format!("measured: {what}, {}{within}", self.from);
        let provenance = Provenance::Source(why.clone());
        if let Some(part) = self.twin.set(tier, key, &value, provenance) {
            let (low, high) = range.unzip();
            self.done.push(FittedParameter {
                part,
                key: key.into(),
                value,
                low,
                high,
                how: How::Measured,
                why,
            });
        }
    }
}

/// Four digits, which is more than any figure is certain of.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(rounded(69.691_733), 69.69);
        assert_eq!(rounded(255.04), 255.0);
        assert_eq!(rounded(0.012_345_6), 0.012_35);
        assert_eq!(rounded(0.0), 0.0);
    }
}
