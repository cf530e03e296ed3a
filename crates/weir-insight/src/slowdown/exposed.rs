//! The DRAM component by exposed cycles: what a longer latency makes of cycles that were stalled, and of
//! those that were not.
//!
//! The published component stretches stalled cycles (SupMario §5.3). An out-of-order core executes on
//! while a miss is under way, and those *hidden* cycles are no stalls on local memory. A longer latency
//! outlasts them: the reorder buffer holds no more instructions than before, so that each cycle of latency
//! that is added to a lone miss is a stalled one, whatever part of the miss was hidden. Hence both grow
//! alike, as far as the window is spent before the data is there (`exposed`).
//!
//! Where misses are under way together, the core comes to wait for the oldest of them alone: of a hidden
//! cycle during MLP misses 1 / MLP counts. And cycles during another miss are not all the memory's, as one
//! miss walks the page tables while another is under way (`beside`).
//!
//! Everything is counted: CYCLE_ACTIVITY.CYCLES_L3_MISS less CYCLE_ACTIVITY.STALLS_L3_MISS is what is
//! hidden, and MLP is the occupancy of demand reads in cycles with any. The three constants are found on
//! the random chases, as `p` and `q` are.

use weir_model::counters::Counter;
use weir_model::insight::Exposed;

use crate::{Run, least_squares};

/// The counters that it reads; the published model has the first two as well.
const READ: [Counter; 4] = [
    Counter::StallsL3Miss,
    Counter::OffcoreCyclesDemandDataRd,
    Counter::CyclesL3Miss,
    Counter::OffcoreOutstandingDemandDataRd,
];

/// What a run says of its misses; shares of its cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Misses {
    /// Cycles stalled while a demand load is under way that missed the last-level cache (P4 / P1).
    pub stalled: f64,
    /// Cycles in which something is executed meanwhile.
    pub hidden: f64,
    /// Demand reads under way at once, in cycles with any; one where there are none.
    pub mlp: f64,
}

impl Misses {
    /// Reads them.
    ///
    /// # Errors
    /// The counters that are missing, each with its reason.
    pub fn of(run: &Run<'_>) -> Result<Self, Vec<(Counter, String)>> {
        let missing: Vec<(Counter, String)> = (READ.iter())
            .filter_map(|&counter| Some((counter, run.count(counter).err()?.reason)))
            .collect();
        let all = || {
            let stalled = run.share(Counter::StallsL3Miss).ok()?;
            Some(Self {
                stalled,
                hidden: (run.share(Counter::CyclesL3Miss).ok()? - stalled).max(0.0),
                mlp: run.mlp().ok()?.unwrap_or(1.0).max(1.0),
            })
        };
        all().ok_or(missing)
    }

    /// Of a hidden cycle, the miss that the core comes to wait for.
    fn oldest(&self) -> f64 {
        self.hidden / self.mlp
    }

    /// Share of misses that wait during another.
    fn overlapped(&self) -> f64 {
        1.0 - 1.0 / self.mlp
    }

    /// Cycles that DRAM costs more on the other memory.
    pub fn lost(&self, c: &Exposed) -> f64 {
        let waited = self.stalled + c.exposed * self.oldest();
        c.growth * waited / (1.0 + c.beside * self.overlapped())
    }
}

/// The constants that come closest to what chases lost to DRAM; `None` if they lost nothing that tells.
///
/// `lost (1 + beside overlapped) = growth stalled + growth exposed oldest` is linear in `growth`, in
/// `growth exposed` and in `beside`. A constant that chases do not tell, or that cannot be, is left out: no
/// hidden cycle exposes more than a stalled one does, and none during another miss costs more for that.
pub fn fit(chases: &[(Misses, f64)]) -> Option<Exposed> {
    let beside = |m: &Misses, lost: f64| -lost * m.overlapped();
    let full = solve(chases, |m, lost| [m.stalled, m.oldest(), beside(m, lost)])
        .map(|[growth, hidden, beside]| (growth, hidden / growth, beside));
    let alike = solve(chases, |m, lost| [m.stalled + m.oldest(), beside(m, lost)])
        .map(|[growth, beside]| (growth, 1.0, beside));
    let apart = solve(chases, |m, _| [m.stalled, m.oldest()])
        .map(|[growth, hidden]| (growth, hidden / growth, 0.0));
    let stalls = solve(chases, |m, lost| [m.stalled, beside(m, lost)])
        .map(|[growth, beside]| (growth, 0.0, beside));
    let least = solve(chases, |m, _| [m.stalled]).map(|[growth]| (growth, 0.0, 0.0));
    let can_be = |&(growth, exposed, beside): &(f64, f64, f64)| {
        growth > 0.0 && (-SLACK..=1.0 + SLACK).contains(&exposed) && beside >= -SLACK
    };
    let (growth, exposed, beside) = [full, alike, apart, stalls, least]
        .into_iter()
        .flatten()
        .find(can_be)?;
    Some(Exposed {
        growth,
        exposed: exposed.clamp(0.0, 1.0),
        beside: beside.max(0.0),
    })
}

/// What rounding may do to a constant.
const SLACK: f64 = 1e-6;

/// Least squares of what was lost over these columns.
pub(super) fn solve<T, const N: usize>(
    lost: &[(T, f64)],
    columns: impl Fn(&T, f64) -> [f64; N],
) -> Option<[f64; N]> {
    let (rows, lost): (Vec<[f64; N]>, Vec<f64>) = (lost.iter())
        .map(|(seen, lost)| (columns(seen, *lost), *lost))
        .unzip();
    least_squares::solve(&rows, &lost)
}
