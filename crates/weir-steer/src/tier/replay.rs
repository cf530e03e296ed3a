//! A workload that is no preset under a policy: rebuilt from a profile, or drawn at random.

use serde::{Deserialize, Serialize};
use weir_lab::{Ask, Lab, LabError};
use weir_model::units::Bytes;
use weir_pages::policy::Thresholds;
use weir_pages::{Costs, Host, Memory, Options, PagedWorkload, Simulation, TierCurve, by_name};

use super::study::INTERVAL_S;
use super::thresholds;
use super::trial::bad;

/// Memory of a tier beyond what a workload has, where it has room for everything.
const ROOM: f64 = 1.1;

/// A workload under a policy.
#[derive(Debug, Clone, Serialize)]
pub struct Replay {
    /// The workload.
    pub workload: PagedWorkload,
    /// The policy.
    pub policy: String,
    /// The fast tier's memory; none where it has room for everything.
    pub fast: Option<Bytes>,
    /// Simulated time in seconds.
    pub seconds: f64,
    /// Latency under load of the fast and the slow tier.
    pub curves: [TierCurve; 2],
    /// Of random choices.
    pub seed: u64,
    /// As in [`super::Trial`].
    pub version: u32,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// Accesses in a second, in millions.
    pub maccesses_per_s: f64,
    /// The share of accesses that the fast tier served.
    pub local_pct: f64,
    /// The most pages that were promoted in one second.
    pub promoted_per_s: u64,
    /// Where that second ended.
    pub promoted_most_s: f64,
}

impl Replay {
    /// Runs it. `go_on` is asked before each interval.
    ///
    /// # Errors
    /// The workload, the policy or the memory is not in order.
    pub fn run(
        &self,
        thresholds: Thresholds,
        go_on: impl FnMut() -> bool,
    ) -> Result<Replayed, LabError> {
        let room = Bytes((self.workload.peak().get() as f64 * ROOM) as u64).max(Bytes::mib(16));
        let memory = |capacity, curve: &TierCurve| Memory {
            capacity,
            curve: curve.clone(),
        };
        let host = Host {
            fast: memory(self.fast.unwrap_or(room), &self.curves[0]),
            slow: memory(room, &self.curves[1]),
            swap: true,
            costs: Costs::default(),
            thresholds,
        };
        let options = Options {
            seconds: self.seconds,
            interval_s: INTERVAL_S,
            seed: self.seed,
        };
        let policy = by_name(&self.policy).map_err(bad)?;
        let mut simulation =
            Simulation::new(&self.workload, &host, policy, options).map_err(bad)?;
        let summary = simulation.run(go_on);
        let second = (1.0 / INTERVAL_S) as usize;
        let seconds = simulation.intervals().chunks(second);
        let promoted = seconds.map(|s| (s.iter().map(|i| i.promoted).sum(), s));
        let most = promoted.max_by_key(|(pages, _): &(u64, _)| *pages);
        let (promoted_per_s, in_second) = most.unwrap_or((0, &[]));
        Ok(Replayed {
            promoted_per_s,
            promoted_most_s: in_second.last().map_or(0.0, |last| last.t_s),
            maccesses_per_s: summary.maccesses_per_s,
            local_pct: summary.local_pct,
        })
    }
}

impl Ask for Replay {
    type Got = Replayed;
    const KIND: &'static str = "pages of a workload under a policy";

    fn ask(&self, lab: &Lab<'_>) -> Result<Replayed, LabError> {
        let got = self.run(thresholds(lab), || !lab.stopped())?;
        match lab.stopped() {
            true => Err(LabError::Stopped),
            false => Ok(got),
        }
    }
}
