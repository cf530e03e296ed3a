//! Best-shot interleaving: the share and the gain from one run on local memory (SupMario §6.2).
//!
//! The paper draws lines through streaming kernels, over how hard they press on local memory. A line does
//! not tell a workload that queues from one that merely waits, and the second pays for every page that
//! goes over. Here the same run gives the run time over all shares, by queues:
//!
//! ```text
//! T(x) = 1 - s + s L(x) / L(0)                      run time with a share x over, of that with none
//! L(x) = (1 - x) near Q(q, u) + x far Q(q', v)      mean latency; far = near + e (its own - near)
//! Q(q, u) = 1 + q u / (1 - u)                       how it grows with utilisation
//! u = (1 - x) u0 / T,    v = x B / (T C)            of local memory, and of the slower tier
//! ```
//!
//! `s` is the share of cycles stalled, and `Q(q, u0)` the latency that the run met over the unloaded one, as
//! it tells workloads that wait for bandwidth. `B` is what the run drew, `u0` that with what local memory
//! gives, and `C` what the slower tier gives, both to streams that write as many lines back. Traffic and
//! latency together give the load a `q` of its own: lines that follow each other through open rows wait
//! less than others where memory is as full. `Q` has the form of a queue with one server (Pollaczek and
//! Khinchine), with its factor left open for either tier. An out-of-order core hides some of every latency,
//! and a longer one is exposed whole: `e` is what a cycle more counts against one of those that were stalled.
//! The run time stands on both sides: what runs faster presses harder. The right side falls as it grows, so
//! that there is one solution.

use weir_model::counters::Counter;
use weir_model::insight::{Capacity, InterleaveFit, LoadKind};
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
    /// Mean latency of reads that missed the last-level cache; of all reads where those are not counted, or
    /// are next to none.
    pub latency: Cycles,
    /// What crossed the memory interface, either way.
    pub traffic: GbPerSec,
    /// Which lines it asks for.
    pub kind: LoadKind,
}

impl Load {
    /// Reads it from the counters of a run that took this long.
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
        let streamed = get(Counter::StreamingWr).ok();
        let under_way = get(Counter::OffcoreOutstandingDataRd)?;
        let missed = get(Counter::OffcoreL3MissDemandDataRd).unwrap_or(0.0);
        let missed_under_way = get(Counter::OffcoreOutstandingL3MissDemandDataRd);
        let lines = get(Counter::TorInsertsIaMiss)?;
        let (read, written) = (get(Counter::CasRd), get(Counter::CasWr));
        // What passes the caches on its way is a kind of its own.
        let past = streamed.unwrap_or(0.0);
        // Processors differ in whether lines written back count as misses.
        let alone = |read: f64, written: f64| {
            read > 0.0 && read < lines * (1.0 + OTHERS) && read + written > lines * (1.0 - OTHERS)
        };
        if reads <= 0.0 || time.get() <= 0.0 {
            return Err(InsightError::Interleave("no read left the core".into()));
        }
        let breakdown = Breakdown::of(run);
        let lost = breakdown.lost;
        let (Some(dram), Some(cache), Some(store)) = (lost.dram, lost.cache, lost.store) else {
            let missing = breakdown.untold.into_iter();
            return Err(lacking(missing.map(|u| (u.counter, u.why)).collect()));
        };
        // Of all reads it is too short where some hit, and no tier changes those.
        let latency = match missed_under_way {
            Ok(missed_under_way) if missed > FEW * reads => missed_under_way / missed,
            _ => under_way / reads,
        };
        Ok(Self {
            stalled: (dram + store).max(0.0),
            prefetched: cache.max(0.0),
            latency: Cycles(latency),
            traffic: GbPerSec::from_bytes_in(Bytes(lines as u64 * LINE_BYTES), time),
            kind: LoadKind {
                ownership: owned / (reads + owned),
                written: match (read, written) {
                    (Ok(read), Ok(written)) if alone(read, written) => {
                        Some((written - past).max(0.0) / read)
                    }
                    _ => None,
                },
                followed: get(Counter::HwpfL2).ok().map(|n| n / (reads + owned)),
                past_caches: streamed.map(|n| n / (reads + owned + n)),
            },
        })
    }
}

/// Memory controllers count what all programs draw. Where that differs by more than this share from the
/// misses of this one, it is of others, or from other memory.
const OTHERS: f64 = 0.1;

/// With no more misses on demand than this share of the reads, their latency says little of the others.
const FEW: f64 = 0.005;

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
    /// Whether it is worth moving pages for: more than its own error, and not next to nothing.
    pub fn is_worth_it(&self) -> bool {
        self.weights.slow > 0 && self.gain > self.error.max(NEXT_TO_NOTHING)
    }
}

/// No advice fills the slower tier more than this: of a queue that is all but full, what gives way is not
/// known.
const FULLEST: f64 = 0.95;

/// No one moves pages for a smaller gain.
const NEXT_TO_NOTHING: f64 = 0.0025;

/// The weights at which it runs fastest, in rounds of this many pages, and the gain there. Rounds are not
/// shortened: where few threads stream, 6 : 4 and 3 : 2 are not the same to them.
///
/// They are those that are best if the slower tier gives no more than to any kernel of this kind, and what
/// is lost if so is an error: a share too small costs little, one too large may cost most of the speed.
///
/// No more than half goes to a tier that gives less: with the shares exchanged both tiers would wait less.
pub fn aim(fit: &InterleaveFit, load: &Load, round: u32) -> Aim {
    let given = given(fit, load.kind);
    let least = [given[0], least(fit, load.kind).min(given[1]) * FULLEST];
    let most = match given[1] > given[0] {
        true => round - 1,
        false => round / 2,
    };
    let weights = (1..=most).map(|slow| Weights {
        local: round - slow,
        slow,
    });
    let all_local = Weights {
        local: round,
        slow: 0,
    };
    let (weights, longest) = weights
        .map(|weights| (weights, run_time_given(fit, load, least, weights.share())))
        .fold(
            (all_local, 1.0),
            |best, at| if at.1 < best.1 { at } else { best },
        );
    let gain = 1.0 / run_time_given(fit, load, given, weights.share()) - 1.0;
    let short = gain - (1.0 / longest - 1.0);
    Aim {
        weights,
        gain,
        error: (fit.error.around(gain * 100.0) / 100.0).max(short),
    }
}

/// Run time with a share of pages on the slower tier, of that with none.
pub fn run_time(fit: &InterleaveFit, load: &Load, share: f64) -> f64 {
    run_time_given(fit, load, given(fit, load.kind), share)
}

/// The same where either tier gives this much.
fn run_time_given(
    fit: &InterleaveFit,
    load: &Load,
    [here, there]: [GbPerSec; 2],
    share: f64,
) -> f64 {
    let [near, slower] = fit.unloaded.map(Cycles::get);
    let far = near + fit.exposed * (slower - near);
    let stalled = (load.stalled + fit.prefetched * load.prefetched).min(1.0);
    let grown = (load.latency.get() / near).max(1.0);
    let busy = (load.traffic / here).clamp(IDLE, FULL);
    // Q(q, u0) = grown, solved for the q of this load.
    let queueing = (grown - 1.0) * (1.0 - busy) / busy;
    let local = (1.0 - share) * busy;
    let slow = share * (load.traffic / there);
    let queue = |q: f64, utilisation: f64| 1.0 + q * utilisation / (1.0 - utilisation);
    let follows = |time: f64| {
        let latency = (1.0 - share) * near * queue(queueing, local / time)
            + share * far * queue(fit.slow_queueing, slow / time);
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

/// No run has its memory fuller than this, and none that reads has it emptier.
const FULL: f64 = 0.99;
const IDLE: f64 = 1e-6;

/// Kernels whose share of lines written back is this close count fully; theirs are a third apart.
const CLOSE: f64 = 0.2;

/// What local memory and the slower tier give to a load at most: a mean over the kernels, in which those
/// count most that write as much back.
fn given(fit: &InterleaveFit, kind: LoadKind) -> [GbPerSec; 2] {
    let weighted = fit.capacity.iter().map(|kernel| {
        let apart = write_backs_apart(kernel.kind, kind);
        (1.0 / (apart * apart + CLOSE * CLOSE), kernel)
    });
    let (here, there, weights) = weighted.fold((0.0, 0.0, 0.0), |sum, (weight, kernel)| {
        (
            sum.0 + weight * local(fit, kernel).get(),
            sum.1 + weight * kernel.bandwidth.get(),
            sum.2 + weight,
        )
    });
    [GbPerSec(here / weights), GbPerSec(there / weights)]
}

/// What the slower tier gives at least to kernels of a kind: strides that leave channels or banks out look
/// to a core like accesses in no order. Of none that is alike the nearest tells, if it is not far off;
/// without bound where it is.
fn least(fit: &InterleaveFit, kind: LoadKind) -> GbPerSec {
    let all = fit.capacity.iter().chain(&fit.unfollowed);
    let off: Vec<(f64, GbPerSec)> = all
        .map(|kernel| (apart(kernel.kind, kind), kernel.bandwidth))
        .filter(|(off, _)| *off < FAR_OFF)
        .collect();
    let nearest = off.iter().map(|(off, _)| *off).fold(FAR_OFF, f64::min);
    let alike = off.iter().filter(|(off, _)| *off <= nearest.max(ALIKE));
    alike
        .map(|(_, bandwidth)| *bandwidth)
        .fold(GbPerSec(f64::INFINITY), GbPerSec::min)
}

/// Kinds are alike that are no further apart. From `FAR_OFF` on one says nothing of the other.
const ALIKE: f64 = 0.2;
const FAR_OFF: f64 = 0.3;

/// By how much two kinds differ in lines written back: as counted, if they were counted for both.
fn write_backs_apart(a: LoadKind, b: LoadKind) -> f64 {
    match (a.written, b.written) {
        (Some(a), Some(b)) => a - b,
        _ => a.ownership - b.ownership,
    }
}

/// How far apart two kinds are, in what is known of both.
fn apart(a: LoadKind, b: LoadKind) -> f64 {
    let squared = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b) * (a - b),
        _ => 0.0,
    };
    (write_backs_apart(a, b).powi(2)
        + squared(a.followed, b.followed)
        + squared(a.past_caches, b.past_caches))
    .sqrt()
}

/// What local memory gives to a kernel at most: what it draws, over how full that makes it by its latency.
fn local(fit: &InterleaveFit, kernel: &Capacity) -> GbPerSec {
    let waits = (kernel.latency / fit.unloaded[0] - 1.0) / fit.queueing;
    GbPerSec(kernel.local.get() * (1.0 + waits) / waits)
}

/// What interleaving costs a workload that waits for latency: its slowdown on the slower tier, in
/// proportion to the share of pages there (SupMario §6.2).
pub fn latency_bound_slowdown(all_slow: f64, share: f64) -> f64 {
    all_slow * share
}
