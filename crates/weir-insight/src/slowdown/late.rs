//! The cache component by exposed cycles: what a longer latency makes of waits for lines that a prefetcher
//! has under way already.
//!
//! The published component weighs the stalls of a level by the share of prefetches that are the L1
//! prefetcher's (SupMario §5.4). Where the L2 prefetcher fetches most lines in time and the L1 prefetcher
//! a few too late, as at the head of every page, those few cause the stalls and the share is next to
//! nothing. So here the cycles themselves are looked at. A line that was asked for *d* cycles before it is
//! needed is waited for *L - d* cycles. With a longer latency *L* each cycle of waiting grows, and the
//! core, which has spent its window on the shorter wait, stands still for what is added: stalled cycles and
//! hidden ones grow alike, as they do during a miss ([`super::exposed`]).
//!
//! Such a wait is counted as a miss of L1 or of L2, and not of the last-level cache, by where the line is on its
//! way to (most at L2 on Skylake, at the last-level cache since Sapphire Rapids, SupMario §4.4), and so is a load
//! that hits L2 or the last-level cache, which no memory slows down. Of the loads that wait there, FB_HIT found
//! their line under way, at most one for each prefetch, and L2_HIT and L3_HIT found it in the cache. Prefetches
//! that hit the last-level cache are not slowed either.
//!
//! Cycles during a miss are the miss's, whatever else waits. The slower tier makes those cycles more: in a run
//! that is longer by `S_DRAM`, all of it during misses, a wait that falls anywhere falls during one more
//! often, and counts as the caches' by 1 / (1 + `S_DRAM`) of its length.
//!
//! What it does not know: lines that come just in time on local memory, and too late on the other. No
//! counter has them.

use weir_model::counters::Counter;
use weir_model::insight::{Late, PrefetchForm};

use super::exposed::solve;
use crate::{Run, prefetch};

/// Counters of the waits at both levels: stalls and cycles, and those of the misses behind them.
const STALLS: [Counter; 2] = [Counter::StallsL1dMiss, Counter::StallsL3Miss];
const CYCLES: [Counter; 2] = [Counter::CyclesL1dMiss, Counter::CyclesL3Miss];
/// Loads that a cache has.
const HITS: [Counter; 2] = [Counter::L2Hit, Counter::L3Hit];

/// What a run says of waits at that level; shares of its cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waits {
    /// Cycles stalled while a demand load is under way that missed L1, and none that missed the last-level
    /// cache.
    pub stalled: f64,
    /// Cycles in which something is executed meanwhile.
    pub hidden: f64,
    /// Share of those loads that wait for a line which a prefetcher has asked memory for.
    pub late: f64,
    /// Demand reads under way at once, in cycles with any; one where there are none. How many prefetched
    /// lines are waited for at once, nothing counts.
    pub mlp: f64,
}

impl Waits {
    /// Reads them from the counters that the processor family has.
    ///
    /// # Errors
    /// The counters that are missing besides those of the published model, each with its reason.
    pub fn of(run: &Run<'_>, form: PrefetchForm) -> Result<Self, Vec<(Counter, String)>> {
        let read = [
            CYCLES[0],
            CYCLES[1],
            HITS[0],
            HITS[1],
            Counter::HwpfL2,
            Counter::OffcoreOutstandingDemandDataRd,
        ];
        let missing = || {
            let why = |&counter: &Counter| Some((counter, run.count(counter).err()?.reason));
            read.iter().filter_map(why).collect()
        };
        let own = |[outer, inner]: [Counter; 2]| {
            let share = run.share(outer).ok()? - run.share(inner).ok()?;
            Some(share.max(0.0))
        };
        let all = || {
            let stalled = own(STALLS)?;
            Some(Self {
                stalled,
                hidden: (own(CYCLES)? - stalled).max(0.0),
                late: late(run, form)?,
                mlp: run.mlp().ok()?.unwrap_or(1.0).max(1.0),
            })
        };
        all().ok_or_else(missing)
    }

    /// Of a hidden cycle, the wait that the core comes to stand still for.
    fn oldest(&self) -> f64 {
        self.hidden / self.mlp
    }

    /// Cycles by which waits for prefetched lines grow on the other memory.
    pub fn grown(&self, c: &Late) -> f64 {
        c.growth * self.late * (self.stalled + c.exposed * self.oldest())
    }

    /// Cycles that the caches cost more on the other memory, where DRAM costs `dram` more; less than none
    /// where more waits fall during misses than grow.
    pub fn lost(&self, c: &Late, dram: f64) -> f64 {
        (self.stalled + self.grown(c)) / (1.0 + dram.max(0.0)) - self.stalled
    }
}

/// Of the loads that wait at the level, those that wait for memory all the same.
fn late(run: &Run<'_>, form: PrefetchForm) -> Option<f64> {
    let count = |counter| run.count(counter).ok();
    let prefetches = count(Counter::HwpfL1d)? + count(Counter::HwpfL2)?;
    let found = count(Counter::FbHit)?.min(prefetches);
    let waits = found + count(HITS[0])? + count(HITS[1])?;
    let share = if waits > 0.0 { found / waits } else { 0.0 };
    Some(share * prefetch::from_memory(run, form)?)
}

/// The constants that come closest to what lists lost to the caches (`lost`) besides DRAM; `None` if they
/// lost nothing that tells.
///
/// What waits grew by is linear in `growth` and in `growth exposed`. As with chases, an `exposed` that lists
/// do not tell, or that cannot be, is left out: no hidden cycle grows by more than a stalled one does.
pub fn fit(lists: &[(Waits, Lost)]) -> Option<Late> {
    let rows: Vec<(Waits, f64)> = (lists.iter())
        .map(|(waits, lost)| (*waits, lost.grown(waits)))
        .collect();
    let full = solve(&rows, |w, _| [w.late * w.stalled, w.late * w.oldest()])
        .map(|[growth, hidden]| (growth, hidden / growth));
    let alike = solve(&rows, |w, _| [w.late * (w.stalled + w.oldest())]).map(|[g]| (g, 1.0));
    let stalls = solve(&rows, |w, _| [w.late * w.stalled]).map(|[growth]| (growth, 0.0));
    let can_be = |&(growth, exposed): &(f64, f64)| growth > 0.0 && (0.0..=1.0).contains(&exposed);
    let (growth, exposed) = [full, alike, stalls].into_iter().flatten().find(can_be)?;
    Some(Late { growth, exposed })
}

/// What a list was measured to lose; shares of its local cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lost {
    /// To the caches.
    pub cache: f64,
    /// To DRAM.
    pub dram: f64,
}

impl Lost {
    /// By how much the waits must have grown.
    fn grown(&self, waits: &Waits) -> f64 {
        (waits.stalled + self.cache) * (1.0 + self.dram.max(0.0)) - waits.stalled
    }
}
