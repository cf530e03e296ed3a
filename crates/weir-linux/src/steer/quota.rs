//! The content of `cpu.max` of a control group: a quota and its period (kernel documentation, admin-guide/cgroup-v2;
//! scheduler/sched-bwc for the minimum of both).

use weir_model::capability::Unavailable;
use weir_model::units::Nanos;

/// The kernel refuses smaller values (`min_cfs_quota_period`) and periods beyond a second.
const LEAST: u64 = 1_000;
const LONGEST: u64 = 1_000_000;

/// A quota in a period, both in microseconds; no quota means all of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    pub quota: Option<u64>,
    pub period: u64,
}

impl Quota {
    /// Reads `max 100000` or `50000 100000`.
    pub fn parse(text: &str) -> Result<Self, Unavailable> {
        let quota = || {
            let (quota, period) = text.split_once(' ')?;
            let quota = match quota {
                "max" => None,
                number => Some(number.parse().ok()?),
            };
            let period = period.trim().parse().ok().filter(|&period| period > 0)?;
            Some(Self { quota, period })
        };
        quota().ok_or_else(|| Unavailable::because(format!("`{text}` is no quota and period")))
    }

    /// Processors' worth of time; `None` for no limit.
    pub fn processors(&self) -> Option<f64> {
        self.quota.map(|quota| quota as f64 / self.period as f64)
    }

    /// This many processors' worth of time in each period, and no more than before.
    pub fn of(processors: f64, period: Nanos, before: Quota) -> Self {
        let period = ((period.get() / 1e3).round() as u64).clamp(LEAST, LONGEST);
        let processors = before
            .processors()
            .map_or(processors, |b| processors.min(b));
        let quota = ((processors * period as f64).round() as u64).max(LEAST);
        Self {
            quota: Some(quota),
            period,
        }
    }
}

/// Whether the kernel has changed one text to another: if its timer cannot keep up with a short period, it
/// doubles period and quota, and writes `period too short, scaling up` to its log (`sched_cfs_period_timer`).
pub(crate) fn is_scaled(ours: &str, now: &str) -> bool {
    let (Ok(ours), Ok(now)) = (Quota::parse(ours), Quota::parse(now)) else {
        return false;
    };
    let (Some(quota), Some(scaled)) = (ours.quota, now.quota) else {
        return false;
    };
    // From the shortest period to the longest it doubles at most ten times.
    (1..=10).any(|n| {
        quota.checked_mul(1 << n) == Some(scaled)
            && ours.period.checked_mul(1 << n) == Some(now.period)
    })
}

impl std::fmt::Display for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.quota {
            Some(quota) => write!(f, "{quota} {}", self.period),
            None => write!(f, "max {}", self.period),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quota_is_one_that_the_kernel_takes_and_never_wider_than_before(
            processors in 0.0..64.0_f64,
            period in 0.0..1e10_f64,
            before in prop::option::of(1_000_u64..10_000_000),
        ) {
            let before = Quota { quota: before, period: 100_000 };
            let quota = Quota::of(processors, Nanos(period), before);
            prop_assert!((LEAST..=LONGEST).contains(&quota.period));
            prop_assert!(quota.quota >= Some(LEAST));
            prop_assert_eq!(Quota::parse(&quota.to_string()), Ok(quota));
            let step = 1.0 / quota.period as f64;
            let given = quota.processors().unwrap();
            if quota.quota > Some(LEAST) {
                prop_assert!(given <= processors + step);
                prop_assert!(before.processors().is_none_or(|b| given <= b + step));
            }
        }

        #[test]
        fn garbage_is_reported(text in "([0-9max ]|.){0,20}") {
            if let Err(why) = Quota::parse(&text) {
                prop_assert!(why.reason.contains("no quota"));
            }
        }
    }

    #[test]
    fn a_period_that_the_kernel_doubled_is_still_ours() {
        for scaled in ["20000 40000", "80000 160000"] {
            assert!(is_scaled("10000 20000", scaled), "{scaled}");
        }
        for other in [
            "10000 20000",
            "20000 50000",
            "30000 60000",
            "max 40000",
            "5000 10000",
            "",
        ] {
            assert!(!is_scaled("10000 20000", other), "{other}");
        }
        assert!(!is_scaled("max 100000", "max 200000"));
    }

    #[test]
    fn what_the_kernel_writes_is_read() {
        let none = Quota::parse("max 100000").unwrap();
        assert_eq!((none.quota, none.processors()), (None, None));
        assert_eq!(
            Quota::parse("150000 100000").unwrap().processors(),
            Some(1.5)
        );
    }
}
