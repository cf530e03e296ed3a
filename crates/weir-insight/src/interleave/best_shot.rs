//! Best-shot interleaving: the share and the gain from one run on local memory (SupMario §6.2).
//!
//! The paper draws lines through streaming kernels, over how hard they press on local memory. A line does
//! not tell a workload that queues from one that merely waits, and the second pays for every page that
//! goes over. Here the same run gives the run time over all shares, by queues:
//!
//! ```text
//! T(x) = 1 - s + s L(x) / L(0)                      run time with a share x over, of that with none
//! L(x) = (1 - x) near Q(u) + x far Q(v)             mean latency; far = near + e (its own - near)
//! Q(u) = 1 + q u / (1 - u)                          how it grows with utilisation
//! u = (1 - x) u0 / T,    v = x B / (T C)            of local memory, and of the slower tier
//! ```
//!
//! `s` is the share of cycles stalled, and `Q(u0)` the latency that the run met over the unloaded one, as
//! it tells workloads that wait for bandwidth. `B` is what the run drew, and `C` what the slower tier gives
//! to streams with as many reads for ownership. `Q` has the form of a queue with one server (Pollaczek and
//! Khinchine), with its factor left open. An out-of-order core hides some of every latency, and a longer one
//! is exposed whole: `e` is what a cycle more counts beside one of those that were stalled. The run time stands on both sides: what runs faster presses
//! harder. The right side falls as it grows, so that there is one solution.

use weir_model::counters::Counter;
use weir_model::insight::InterleaveFit;
use weir_model::units::{Bytes, Cycles, GbPerSec, LINE_BYTES, Nanos};

use super::Weights;
use crate::breakdown::Breakdown;
use crate::{InsightError, Run};

/// What one run on local memory tells of its load there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Share of cycles stalled on misses and on stores.
    pub stalled: f64,
    /// Share of cycles stalled on the caches: prefetches under way.
    pub prefetched: f64,
    /// Mean latency of reads that left the core.
    pub latency: Cycles,
    /// What crossed the memory interface, either way.
    pub traffic: GbPerSec,
    /// Reads for ownership, as a share of all reads.
    pub ownership: f64,
}

impl Load {
    /// Reads it from the counters of a run that took so long.
    ///
    /// # Errors
    /// Counters are missing, no read left the core, or no time passed.
    pub fn of(run: &Run<'_>, time: Nanos) -> Result<Self, InsightError> {
        let lacking = |counters| InsightError::Missing {
            what: "best-shot interleaving".into(),
            counters,
        };
        let get = |counter| {
            let count = run.count(counter);
            count.map_err(|why| lacking(vec![(counter, why.reason)]))
        };
        let reads = get(Counter::OffcoreDataRd)?;
        let owned = get(Counter::OffcoreDemandRfo)?;
        let under_way = get(Counter::OffcoreOutstandingDataRd)?;
        let lines = get(Counter::TorInsertsIaMiss)?;
        if reads <= 0.0 || time.get() <= 0.0 {
            return Err(InsightError::Interleave("no read left the core".into()));
        }
        let breakdown = Breakdown::of(run);
        let lost = breakdown.lost;
        let (Some(dram), Some(cache), Some(store)) = (lost.dram, lost.cache, lost.store) else {
            let missing = breakdown.untold.into_iter();
            return Err(lacking(missing.map(|u| (u.counter, u.why)).collect()));
        };
        Ok(Self {
            stalled: (dram + store).max(0.0),
            prefetched: cache.max(0.0),
            latency: Cycles(under_way / reads),
            traffic: GbPerSec::from_bytes_in(Bytes(lines as u64 * LINE_BYTES), time),
            ownership: owned / (reads + owned),
        })
    }
}

/// Weights, and what is expected there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// Of pages on local memory and on the slower tier.
    pub weights: Weights,
    /// The gain over all local: 0.2 is a fifth more done in the same time.
    pub gain: f64,
    /// By how much less it may gain, likewise.
    pub error: f64,
}

impl Aim {
    /// Whether it is worth moving pages for: more than its own error.
    pub fn is_worth_it(&self) -> bool {
        self.weights.slow > 0 && self.gain > self.error
    }
}

/// The weights at which it runs fastest, in rounds of so many pages, and the gain there. Rounds are not
/// shortened: where few threads stream, 6 : 4 and 3 : 2 are not the same to them.
pub fn aim(fit: &InterleaveFit, load: &Load, round: u32) -> Aim {
    let weights = (1..round).map(|slow| Weights {
        local: round - slow,
        slow,
    });
    let all_local = Weights {
        local: round,
        slow: 0,
    };
    let (weights, time) = weights
        .map(|weights| (weights, run_time(fit, load, weights.share())))
        .fold(
            (all_local, 1.0),
            |best, at| if at.1 < best.1 { at } else { best },
        );
    let gain = 1.0 / time - 1.0;
    Aim {
        weights,
        gain,
        error: fit.error.around(gain * 100.0) / 100.0,
    }
}

/// Run time with a share of pages on the slower tier, of that with none.
pub fn run_time(fit: &InterleaveFit, load: &Load, share: f64) -> f64 {
    let [near, slower] = fit.unloaded.map(Cycles::get);
    let far = near + fit.exposed * (slower - near);
    let stalled = (load.stalled + fit.prefetched * load.prefetched).min(1.0);
    let grown = (load.latency.get() / near).max(1.0);
    // Q(u0) = grown, solved for u0.
    let waits = (grown - 1.0) / fit.queueing;
    let local = (1.0 - share) * waits / (1.0 + waits);
    let slow = share * (load.traffic / capacity(fit, load.ownership));
    let queue = |utilisation: f64| 1.0 + fit.queueing * utilisation / (1.0 - utilisation);
    let follows = |time: f64| {
        let latency = (1.0 - share) * near * queue(local / time) + share * far * queue(slow / time);
        1.0 - stalled + stalled * latency / (near * grown)
    };
    // Below this one of the tiers could not follow; above, what follows falls.
    let mut least = local.max(slow);
    let mut most = 2.0 * least.max(1.0);
    while follows(most) > most {
        most *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (least + most);
        if follows(middle) > middle {
            least = middle;
        } else {
            most = middle;
        }
    }
    most
}

/// Halvings of the interval in which the run time lies.
const HALVINGS: u32 = 40;

/// Kernels whose share of reads for ownership is this close count fully; it is about what theirs are apart.
const CLOSE: f64 = 0.1;

/// What the slower tier gives to a load: a mean over the kernels, in which those count most that read for
/// ownership as often.
fn capacity(fit: &InterleaveFit, ownership: f64) -> GbPerSec {
    let (sum, weights) = (fit.capacity.iter()).fold((0.0, 0.0), |(sum, weights), kernel| {
        let apart = kernel.ownership - ownership;
        let weight = 1.0 / (apart * apart + CLOSE * CLOSE);
        (sum + weight * kernel.bandwidth.get(), weights + weight)
    });
    GbPerSec(sum / weights)
}

/// What interleaving costs a workload that waits for latency: its slowdown on the slower tier, in
/// proportion to the share of pages there (SupMario §6.2).
pub fn latency_bound_slowdown(all_slow: f64, share: f64) -> f64 {
    all_slow * share
}
