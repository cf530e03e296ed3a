//! Limits of tenants: how many of their cores they may use, and for which part of the time.
//!
//! A quota gives a tenant its time at the start of each period, to all its threads at once. When the time is
//! used up, none of them runs (cgroup v2 `cpu.max`). Periods are thousands of times longer than a queue takes
//! to fill or to drain. So a period is a few slices, each in a steady state: first all tenants run, then
//! those with more time, at last only tenants without a limit. The results of the slices are added, weighted
//! by length.

use weir_model::units::Gigahertz;

/// The limits of one tenant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regulation {
    /// Threads that may run at once.
    pub cores: Option<u32>,
    /// Part of the time in which they may run.
    pub share: f64,
    /// Clock of its cores.
    pub clock: Option<Gigahertz>,
    /// Percent of the bandwidth between its cores and the mesh.
    pub bandwidth: u32,
}

impl Regulation {
    /// No limit.
    pub const NONE: Regulation = Regulation {
        cores: None,
        share: 1.0,
        clock: None,
        bandwidth: 100,
    };
}

/// A part of a period in which the same threads run.
#[derive(Debug, Clone, PartialEq)]
pub struct DutySlice {
    /// Its length, as a part of the period.
    pub part: f64,
    /// How many threads of each tenant run.
    pub running: Vec<u32>,
}

/// The slices of a period under these limits; their parts add up to 1.
pub fn duty_slices(regulations: &[Regulation]) -> Vec<DutySlice> {
    let mut ends: Vec<f64> = regulations.iter().map(|r| r.share).collect();
    ends.push(1.0);
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    let mut from = 0.0;
    let mut found = Vec::new();
    for end in ends {
        if end > from {
            let running = |r: &Regulation| {
                if r.share >= end {
                    r.cores.unwrap_or(u32::MAX)
                } else {
                    0
                }
            };
            found.push(DutySlice {
                part: end - from,
                running: regulations.iter().map(running).collect(),
            });
            from = end;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn everybody_runs_for_its_share(shares in prop::collection::vec(0.001..1.0, 1..6)) {
            let regulations: Vec<Regulation> = (shares.iter())
                .map(|&share| Regulation { share, ..Regulation::NONE })
                .collect();
            let duty_slices = duty_slices(&regulations);
            let whole: f64 = duty_slices.iter().map(|s| s.part).sum();
            prop_assert!((whole - 1.0).abs() < 1e-12);
            for (i, share) in shares.iter().enumerate() {
                let ran: f64 = duty_slices.iter().filter(|s| s.running[i] > 0).map(|s| s.part).sum();
                prop_assert!((ran - share).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn without_limits_the_period_is_one_slice() {
        let duty_slices = duty_slices(&[Regulation::NONE; 3]);
        assert_eq!(duty_slices.len(), 1);
        assert_eq!(duty_slices[0].running, [u32::MAX; 3]);
    }
}
