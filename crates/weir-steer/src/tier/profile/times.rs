//! How long a profile is, and what it calls hot and warm.

use weir_lab::LabError;
use weir_model::units::Nanos;

use super::MOST_INTERVALS;

/// Pages touched in the last minute are hot in the paper (TPP, ASPLOS 2023, Fig. 7); a shorter profile takes a tenth of
/// its length.
const HOT_S: f64 = 60.0;
const HOT_SHARE: f64 = 0.1;
/// Intervals in the time after which pages are no longer hot, unless one is asked for.
const IN_HOT: f64 = 6.0;

/// Lengths, as options.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ProfileTimes {
    /// How long [default: 600s on a model, 60s on this host].
    #[arg(long = "for", value_name = "TIME")]
    pub lasts: Option<Nanos>,
    /// The length of an interval: a page was touched in it or was not [default: a sixth of --hot].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Nanos>,
    /// Pages touched within this time are hot [default: 60s, or a tenth of a shorter profile].
    #[arg(long, value_name = "TIME")]
    pub hot: Option<Nanos>,
    /// Pages touched within this time are warm, if not hot [default: twice --hot].
    #[arg(long, value_name = "TIME")]
    pub warm: Option<Nanos>,
}

/// Lengths in seconds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Times {
    /// Intervals.
    pub intervals: usize,
    /// The length of one.
    pub interval_s: f64,
    /// Seconds after which pages are no longer hot.
    pub hot_s: f64,
    /// Seconds after which pages are no longer warm.
    pub warm_s: f64,
}

impl ProfileTimes {
    /// The lengths, where the profile lasts `usual_s` unless it was asked for, and an interval that was not asked for is
    /// a multiple of `step_s`.
    ///
    /// # Errors
    /// The profile is shorter than its interval, has too many, or thresholds are out of order.
    pub fn check(&self, usual_s: f64, step_s: f64) -> Result<Times, LabError> {
        let wrong = |text: String| Err(LabError::Nothing(text));
        let seconds = |time: Option<Nanos>| time.map(|time| time.as_secs());
        let lasts = seconds(self.lasts).unwrap_or(usual_s);
        let hot = seconds(self.hot).unwrap_or(HOT_S.min(lasts * HOT_SHARE));
        let steps = (hot / IN_HOT / step_s).round().max(1.0);
        let interval_s = seconds(self.interval).unwrap_or(steps * step_s);
        let hot_s = match self.hot {
            Some(_) => hot,
            None => hot.max(interval_s),
        };
        let warm_s = seconds(self.warm).unwrap_or(2.0 * hot_s);
        if !(lasts > 0.0 && lasts.is_finite() && interval_s > 0.0) {
            return wrong("--for and --interval must be above 0".into());
        }
        if lasts < interval_s {
            return wrong(format!(
                "--for {lasts} s is shorter than one --interval of {interval_s} s"
            ));
        }
        let intervals = (lasts / interval_s * (1.0 + 1e-9)).floor();
        if intervals > f64::from(MOST_INTERVALS) {
            return wrong(format!(
                "a profile has at most {MOST_INTERVALS} intervals, not {intervals}; give a longer --interval"
            ));
        }
        if hot_s < interval_s {
            return wrong(format!(
                "--hot must be an --interval at least, which is {interval_s} s"
            ));
        }
        if warm_s < hot_s {
            return wrong(format!("--warm must be at least --hot, which is {hot_s} s"));
        }
        Ok(Times {
            intervals: intervals as usize,
            interval_s,
            hot_s,
            warm_s,
        })
    }
}
