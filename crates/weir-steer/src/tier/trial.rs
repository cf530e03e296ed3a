//! A workload under a policy on two tiers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_lab::{Ask, Lab, LabError};
use weir_model::latency::{LatencyHistogram, LatencySummary};
use weir_model::units::{Bytes, Nanos};
use weir_pages::requests::Requested;
use weir_pages::{
    Costs, Host, Interval, Memory, Options, PagedWorkload, PagesError, Simulation, Summary,
    TierCurve, Vmstat, by_name, presets,
};

use super::described::RequestShape;
use super::thresholds;

/// Capacities of the fast and the slow tier, as parts: `2:1`, `1:4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ratio {
    /// Parts of the fast tier.
    pub fast: u32,
    /// Parts of the slow tier.
    pub slow: u32,
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.fast, self.slow)
    }
}

impl FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':');
        let part = |s: &str| s.parse().ok().filter(|n| (1..=1000).contains(n));
        let ratio = parts.and_then(|(fast, slow)| {
            Some(Self {
                fast: part(fast)?,
                slow: part(slow)?,
            })
        });
        ratio.ok_or_else(|| {
            format!("`{text}` is not FAST:SLOW, such as 2:1, with parts from 1 to 1000")
        })
    }
}

/// Memory of the machine beyond what the workload has allocated at its peak: TPP's machines never swap.
const SPARE: f64 = 1.05;
/// The last part of a run is taken as settled.
pub(super) const SETTLED: f64 = 0.75;

/// A workload under a policy.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// The workload.
    pub workload: PagedWorkload,
    /// Its requests, if their latency can be determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestShape>,
    /// The policy; none for a machine whose fast tier has room for everything.
    pub policy: Option<String>,
    /// Capacities.
    pub ratio: Ratio,
    /// Simulated time in seconds.
    pub seconds: f64,
    /// An interval in seconds.
    pub interval_s: f64,
    /// Latency under load of the fast and the slow tier.
    pub curves: [TierCurve; 2],
    /// The version of the model of pages ([`weir_pages::VERSION`]): results of another are not taken from the store.
    pub version: u32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// All of it.
    pub whole: Summary,
    /// Its last quarter.
    pub settled: Summary,
    /// Intervals, at most a hundred.
    pub over_time: Vec<Interval>,
    /// Latency of requests over all of it, and over its last quarter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<[LatencySummary; 2]>,
}

/// Points of a line.
const POINTS: usize = 100;

pub(super) fn bad(error: PagesError) -> LabError {
    LabError::Nothing(error.to_string())
}

/// A simulated time from a second to a day.
pub(super) fn lasts(text: &str) -> Result<Nanos, String> {
    let no_time = |_| format!("`{text}` is no time such as 150s");
    let time: Nanos = text.parse().map_err(no_time)?;
    match (1.0..=86_400.0).contains(&time.as_secs()) {
        true => Ok(time),
        false => Err(format!("`{text}` is not between 1s and 86400s")),
    }
}

/// Memory of a workload whose regions all have pages, and that fits into a simulation.
pub(super) fn sized(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text
        .parse()
        .map_err(|_| format!("`{text}` is no size such as 16GiB"))?;
    match (Bytes::mib(16)..=Bytes::gib(16 << 10)).contains(&size) {
        true => Ok(size),
        false => Err(format!("`{text}` is not between 16MiB and 16TiB")),
    }
}

/// Refuses names that are no policies, and a policy that is named twice.
pub(super) fn each_once(policies: &[String]) -> Result<(), LabError> {
    for (n, policy) in policies.iter().enumerate() {
        by_name(policy).map_err(bad)?;
        if policies[..n].contains(policy) {
            return Err(LabError::Nothing(format!(
                "policy {policy} is named twice; name each once"
            )));
        }
    }
    Ok(())
}

/// The names of shapes of workloads, which are no described programs.
pub fn shapes() -> impl Iterator<Item = &'static str> {
    presets::names().map(|(name, _)| *name)
}

/// A preset by its name.
///
/// # Errors
/// There is none of this name; the names there are.
pub(super) fn preset(name: &str, size: Bytes) -> Result<PagedWorkload, LabError> {
    presets::by_name(name, size).ok_or_else(|| {
        let known: Vec<&str> = shapes().collect();
        LabError::Nothing(format!(
            "no workload `{name}`; there are {}",
            known.join(", ")
        ))
    })
}

/// Bytes of the fast and the slow tier; without a ratio the fast one has room for everything.
pub(super) fn capacities(workload: &PagedWorkload, ratio: Option<Ratio>) -> [f64; 2] {
    let total = workload.peak().get() as f64 * SPARE;
    let Some(Ratio { fast, slow }) = ratio else {
        return [total * SPARE, total];
    };
    let fast = total * f64::from(fast) / f64::from(fast + slow);
    [fast, total - fast]
}

impl Trial {
    /// Runs it until it ends or the lab is stopped.
    ///
    /// # Errors
    /// There is no such workload or policy, or a value is out of its range.
    pub fn run(&self, lab: &Lab<'_>) -> Result<TrialResult, LabError> {
        let workload = &self.workload;
        let [fast, slow] = capacities(workload, self.policy.as_ref().map(|_| self.ratio));
        let [fast_curve, slow_curve] = self.curves.clone();
        let memory = |bytes: f64, curve| Memory {
            capacity: Bytes(bytes as u64),
            curve,
        };
        let host = Host {
            fast: memory(fast, fast_curve),
            slow: memory(slow, slow_curve),
            swap: true,
            costs: Costs::default(),
            thresholds: thresholds(lab),
        };
        let options = Options {
            seconds: self.seconds,
            interval_s: self.interval_s,
            seed: lab.seed(),
        };
        let policy = by_name(self.policy.as_deref().unwrap_or("first-touch")).map_err(bad)?;
        let mut simulation = Simulation::new(workload, &host, policy, options).map_err(bad)?;
        let split = (simulation.length() as f64 * SETTLED) as usize;
        let mut before = Vmstat::default();
        let seed = lab.seed();
        let requests = self.requests.as_ref();
        let mut requested = requests.map(|of| Requested::new(of.accesses, of.spread, seed));
        let mut latencies = [LatencyHistogram::new(), LatencyHistogram::new()];
        for n in 0..simulation.length() {
            if lab.stopped() {
                return Err(LabError::Stopped);
            }
            if n == split {
                before = *simulation.counters();
            }
            simulation.step();
            if let Some(requested) = &mut requested {
                let part = usize::from(n >= split);
                requested.add(&simulation.moment(), &mut latencies[part]);
            }
        }
        let all = simulation.intervals();
        let counters = *simulation.counters();
        let [mut whole, settled] = latencies;
        whole.merge(&settled);
        let latency = whole.summary().zip(settled.summary());
        let every = all.len().div_ceil(POINTS).max(1);
        Ok(TrialResult {
            whole: Summary::of(all, self.interval_s, counters),
            settled: Summary::of(&all[split..], self.interval_s, counters.since(&before)),
            over_time: all.iter().copied().skip(every - 1).step_by(every).collect(),
            latency: latency.map(|(whole, settled)| [whole, settled]),
        })
    }

    /// The time that the whole run's accesses of another take at this run's speed.
    pub(super) fn time_of(&self, of: &TrialResult, own: &TrialResult) -> Nanos {
        let faster = of.whole.maccesses_per_s / own.whole.maccesses_per_s.max(1e-12);
        Nanos(self.seconds * faster * 1e9)
    }
}

impl Ask for Trial {
    type Got = TrialResult;
    const KIND: &'static str = "pages under a policy";

    fn ask(&self, lab: &Lab<'_>) -> Result<TrialResult, LabError> {
        self.run(lab)
    }
}
