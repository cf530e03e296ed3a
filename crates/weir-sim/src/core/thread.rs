//! A thread of a tenant on its core.

use weir_model::access::{Op, Pattern};
use weir_model::latency::LatencyHistogram;
use weir_model::units::LINE_BYTES;

use super::offload::Offload;
use super::ooo::Ooo;
use super::private::Private;
use super::program::{Entry, Program};
use super::requests::Requests;
use super::walk::{Cursor, Walk};
use super::window::{Limits, Window};
use crate::clock::{Ps, nanos};
use crate::line::{Kind, Place};

/// The results of a thread.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Accesses that completed.
    pub accesses: u64,
    /// Latencies since they were last taken, for a pattern that times its accesses.
    pub latency: Option<Box<Latencies>>,
}

impl Progress {
    /// Records the latency of a timed access.
    pub fn record(&mut self, latency: Ps) {
        if let Some(latencies) = &mut self.latency {
            latencies.record(latency);
        }
    }
}

/// Latencies of a thread. They are kept one by one up to some number, since a histogram has tens of thousands of counts,
/// which are all looked at when it is added to that of the tenant.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    recent: Vec<Ps>,
    /// Those before.
    older: Option<LatencyHistogram>,
}

impl Latencies {
    /// The most that are kept one by one.
    const MOST: usize = 4096;

    fn record(&mut self, latency: Ps) {
        if self.recent.len() == Self::MOST {
            let mut older = self.older.take().unwrap_or_default();
            self.put_recent(&mut older);
            self.older = Some(older);
        }
        self.recent.push(latency);
    }

    /// Adds all of them to others, and forgets them.
    pub fn put_into(&mut self, all: &mut LatencyHistogram) {
        if let Some(older) = self.older.take() {
            all.merge(&older);
        }
        self.put_recent(all);
    }

    fn put_recent(&mut self, all: &mut LatencyHistogram) {
        for latency in self.recent.drain(..) {
            all.record(nanos(latency));
        }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The rule by which a thread starts its next access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// One instruction, as fast as buffers allow.
    Stream,
    /// Single accesses, each timed.
    Timed,
    /// Several accesses at once, timed together.
    Burst,
    /// A program of rounds and pauses.
    Program,
    /// Threads that alternate on one line.
    Shared,
    /// Descriptors for an accelerator.
    Offload,
    /// Requests to a storage device.
    Requests,
    /// A described program on an out-of-order core.
    Work,
}

/// Accesses that are timed together.
#[derive(Debug, Clone, Copy)]
pub struct Burst {
    /// Their number.
    pub lines: u64,
    /// Accesses of the current burst that were not started yet.
    pub left: u64,
}

/// A thread's role when several threads alternate on a line.
#[derive(Debug, Clone, Copy)]
pub struct LineSharing {
    /// The line.
    pub line: Place,
    /// The core that changed it before this thread's turn.
    pub before: u16,
    /// The thread whose turn is next.
    pub after: usize,
    /// Whether it is this thread's turn and waits for its start.
    pub due: bool,
}

/// Lines of a page.
const PAGE: Ps = 4096 / LINE_BYTES;

/// When a thread that may issue from `next` on, and issues at `time`, may issue again. The gap is that of a
/// core's measured peak, which is a mean: the thread makes up, within the lines of a page, for the time that
/// it lost while it waited for answers. It does not make up for time in which its allocation delayed it.
#[inline]
pub fn paced(next: Ps, time: Ps, gap: Ps, allocated: Ps) -> Ps {
    if allocated == 0 {
        next.max(time.saturating_sub(gap * PAGE)) + gap
    } else {
        next.max(time) + gap.max(allocated)
    }
}

/// Requests between L2 and the mesh per line. An allocation counts all of them: a stored line is read for
/// ownership, and leaves again.
#[inline]
pub fn crossings(op: Op) -> Ps {
    1 + Ps::from(op.reads_for_ownership())
}

/// Whether an allocation lets no request pass at `time`. Without an allocation, a request may be sent a
/// little before it leaves: the gaps are short.
#[inline]
pub fn is_held_back(next: Ps, time: Ps, allocated: Ps) -> bool {
    allocated > 0 && next > time
}

/// A thread. The fields that every access of a stream uses come first, so that they fit few lines of the
/// processor's cache.
#[repr(C, align(64))]
pub struct Thread {
    /// Outstanding accesses.
    pub window: Window,
    /// When it may issue next.
    pub next_issue: Ps,
    /// Requests that hold a buffer.
    pub outstanding: u32,
    /// Write-backs that the uncore has not accepted yet.
    pub write_backs: u32,
    /// Posted stores that memory has not accepted yet.
    pub unobserved: u32,
    /// Its core, for the mesh.
    pub core: u16,
    /// Position of its tenant.
    pub tenant: u16,
    /// Its instruction.
    pub op: Op,
    /// The rule by which it starts its next access.
    pub style: Style,
    /// Whether its run of lines never ends, so that neither a fence nor an end must be checked.
    pub unending: bool,
    /// Whether an event that wakes it is pending.
    pub asleep: bool,
    /// Whether it is a stream whose lines evict none from a cache that keeps lines.
    pub is_plain: bool,
    /// Whether it may not run; it sleeps then.
    pub paused: bool,
    /// Least time between two requests under its bandwidth allocation; 0 for no allocation.
    pub allocated: Ps,
    /// The kinds of requests of its demand, its L1 prefetcher and its L2 prefetcher.
    pub kinds: [Kind; 3],
    /// Its rounds and pauses, if it has any.
    pub program: Option<Box<Program>>,
    /// The limits of its outstanding accesses.
    pub limits: Limits,
    /// Its position in its lines.
    pub cursor: Cursor,
    /// Its results.
    pub progress: Progress,
    /// Its private caches.
    pub private: Private,
    /// For timed accesses: when the current one, or the burst, began.
    pub began: Ps,
    /// The addresses of its lines.
    pub walk: Walk,
    /// Its order of accesses.
    pub pattern: Pattern,
    /// For timed accesses: the pause between two of them.
    pub pause: Ps,
    /// Its bursts, if accesses are timed together.
    pub burst: Option<Burst>,
    /// Its role, if it shares a line.
    pub sharing: Option<LineSharing>,
    /// Its descriptors, if an accelerator moves its lines.
    pub offload: Option<Box<Offload>>,
    /// Its requests, if it sends them to a storage device.
    pub requests: Option<Box<Requests>>,
    /// Its core, if it runs a described program.
    pub ooo: Option<Box<Ooo>>,
    /// When that core will be woken.
    pub wakes: Ps,
    /// Whether its core has another thread.
    pub is_halved: bool,
    /// The other stream on its core, with which it shares buffers, and the buffers which that one has.
    pub beside: Option<u16>,
    pub taken: u32,
    /// Whether the other one is served first when a buffer is free.
    pub yields: bool,
}

impl Thread {
    /// Goes to lines of the page at `from`, of this many lines, where it is now, at `to`.
    pub fn follow_page(&mut self, from: Place, to: Place, lines: u64) {
        self.cursor.forget();
        if let Some(program) = &mut self.program {
            program.forget();
        }
        if let Some(sharing) = &mut self.sharing
            && sharing.line.tier == from.tier
            && (from.line..from.line + lines).contains(&sharing.line.line)
        {
            sharing.line = Place {
                tier: to.tier,
                line: to.line + sharing.line.line - from.line,
            };
        }
    }

    /// Whether it may start its next access now.
    #[inline]
    pub fn may_issue(&self) -> bool {
        // Which of the two limits a stream is unpredictable, but one of them usually does: one branch.
        (self.outstanding + self.write_backs + self.taken < self.limits.outstanding)
            & (self.window.span() < self.limits.window)
            && (self.unending || !self.at_fence())
            && (!self.is_ahead() || self.is_foreseen())
    }

    /// Whether the next access is beyond the reach of demand alone. A write-back that memory cannot accept
    /// holds a fill buffer: a line cannot enter before another one leaves.
    #[inline]
    pub fn is_ahead(&self) -> bool {
        u64::from(self.outstanding + self.write_backs) >= self.limits.demand
    }

    /// Whether it is also beyond the requests of the L1 prefetchers.
    #[inline]
    pub fn is_far_ahead(&self) -> bool {
        u64::from(self.outstanding + self.write_backs) >= self.limits.demand + self.limits.l1_ahead
    }

    /// Whether the next access is further ahead than the prefetchers run while its tier is busy.
    #[inline]
    pub fn is_beyond_busy(&self) -> bool {
        u64::from(self.outstanding + self.write_backs)
            >= self.limits.demand + self.limits.ahead_busy
    }

    /// The first access that demand does not reach: a line found in L2 holds no fill buffer, so only
    /// unfinished accesses count.
    #[inline]
    pub fn reach(&self) -> u64 {
        self.window.next() + self.limits.demand - u64::from(self.outstanding + self.write_backs)
    }

    /// Whether it waits at a fence with stores that are not observed yet.
    fn at_fence(&self) -> bool {
        self.unobserved > 0
            && self.op.is_posted()
            && self
                .walk
                .fenced_block()
                .is_some_and(|n| self.window.next().is_multiple_of(n))
    }

    /// Whether its accesses are dependent loads.
    pub fn is_chase(&self) -> bool {
        matches!(self.pattern, Pattern::Chase { .. })
    }

    /// The slice has read a posted store of its program.
    pub fn store_combined(&mut self) {
        if let Some(program) = &mut self.program {
            program.combining -= 1;
        }
    }

    /// Lines that it accesses.
    pub fn lines(&self) -> u64 {
        let sources = self.program.as_ref().map_or(0, |p| p.source_lines())
            + self.offload.as_ref().map_or(0, |o| o.source_lines());
        self.walk.lines() + sources
    }

    /// Access `index` as its caches see it: the line, and whether it is modified afterwards. `None` if it
    /// bypasses them.
    pub fn cached(&self, index: u64) -> Option<(Place, bool)> {
        let Some(program) = &self.program else {
            let write = self.op.reads_for_ownership();
            return (!self.op.is_posted() && self.op != Op::UcLd)
                .then(|| (self.walk.place(index), write));
        };
        let entry = program.entry(index);
        let write = matches!(entry, Entry::Touch { .. })
            && self.op.reads_for_ownership()
            && self.op != Op::StClwb;
        Some((program.place(entry, &self.walk)?, write))
    }

    /// Whether a prefetcher follows the run of the next access, and runs this far ahead.
    #[inline]
    fn is_foreseen(&self) -> bool {
        // `reach` is as far before the next access.
        let ahead = u64::from(self.outstanding + self.write_backs) - self.limits.demand;
        ahead < self.limits.ahead && (self.unending || self.is_followed())
    }

    /// Whether a prefetcher follows the run of the next access.
    fn is_followed(&self) -> bool {
        let reach = self.reach() + self.limits.l1_ahead;
        let training = self.limits.training;
        self.walk.foresees(self.window.next(), reach, training)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_that_are_kept_for_a_while_are_those_of_a_histogram() {
        let mut latencies = Latencies::default();
        // Those that were taken leave nothing, their maximum neither.
        for number in [10_000, Latencies::MOST + 1, Latencies::MOST, 1] {
            let (mut all, mut expected) = (LatencyHistogram::new(), LatencyHistogram::new());
            for n in 0..number as Ps {
                latencies.record(70_000 + n * n);
                expected.record(nanos(70_000 + n * n));
            }
            latencies.put_into(&mut all);
            assert_eq!(all.buckets(), expected.buckets());
            assert_eq!(all.summary(), expected.summary());
        }
        latencies.record(1);
        latencies.clear();
        let mut none = LatencyHistogram::new();
        latencies.put_into(&mut none);
        assert!(none.is_empty());
    }
}
