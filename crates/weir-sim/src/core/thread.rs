//! A thread of a tenant on its core.

use weir_model::access::{Op, Pattern};
use weir_model::latency::LatencyHistogram;
use weir_model::units::LINE_BYTES;

use super::offload::Offload;
use super::ooo::Ooo;
use super::private::Private;
use super::program::{Entry, Program};
use super::requests::Requests;
use super::walk::{Cursor, Place, Walk};
use super::window::Window;
use crate::clock::{Ps, nanos};
use crate::uncore::Kind;

/// What a thread may have in flight, from its core's resources, its instruction and the
/// prefetchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that hold a buffer of the core (line-fill buffers, or super-queue entries once the
    /// L2 prefetcher runs ahead).
    pub outstanding: u32,
    /// Accesses between the oldest unfinished one and the newest.
    pub window: u64,
    /// Unfinished accesses that demand alone reaches; further ones are the prefetchers'.
    pub demand: u64,
    /// Lines that the prefetchers run ahead of demand, ...
    pub ahead: u64,
    /// ... and how many of those the L1 prefetchers ask for.
    pub l1_ahead: u64,
    /// Accesses in a run that make a prefetcher follow it.
    pub training: u64,
    /// Posted stores that the store buffer holds.
    pub stores: u64,
    /// Least time between two requests of the instruction.
    pub gap: Ps,
}

/// What a thread has done.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Accesses that completed.
    pub accesses: u64,
    /// Latencies since last taken, of a pattern that times its accesses.
    pub latency: Option<Box<LatencyHistogram>>,
}

impl Progress {
    /// Keeps the latency of a timed access.
    pub fn record(&mut self, latency: Ps) {
        if let Some(histogram) = &mut self.latency {
            histogram.record(nanos(latency));
        }
    }
}

/// What decides when a thread starts its next access.
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
    /// Turns on one line.
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
    /// How many.
    pub lines: u64,
    /// Those of the burst under way that were not started yet.
    pub left: u64,
}

/// The part of a thread in taking turns on a line.
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

/// When a thread that may issue from `next` on and does so at `time` may issue again. The gap is that
/// of a core's measured peak, which is a mean: what a thread lost while it waited for answers it makes
/// up for, within the lines of a page. What its allocation did not let pass it does not make up for.
#[inline]
pub fn paced(next: Ps, time: Ps, gap: Ps, allocated: Ps) -> Ps {
    if allocated == 0 {
        next.max(time.saturating_sub(gap * PAGE)) + gap
    } else {
        next.max(time) + gap.max(allocated)
    }
}

/// Requests between L2 and the mesh that a line takes, all of which an allocation counts: a stored one is read
/// for ownership, and leaves again.
#[inline]
pub fn crossings(op: Op) -> Ps {
    1 + Ps::from(op.reads_for_ownership())
}

/// Whether an allocation lets no request pass at `time`. Without one, a request may be sent a little before
/// it leaves: the gaps are short.
#[inline]
pub fn is_held_back(next: Ps, time: Ps, allocated: Ps) -> bool {
    allocated > 0 && next > time
}

/// A thread. What every access of a stream touches comes first, in as few lines of the processor's
/// cache as it fits into.
#[repr(C, align(64))]
pub struct Thread {
    /// Accesses in flight.
    pub window: Window,
    /// When it may issue next.
    pub next_issue: Ps,
    /// Requests that hold a buffer.
    pub outstanding: u32,
    /// Write-backs that the uncore has not taken yet.
    pub write_backs: u32,
    /// Posted stores that memory has not taken yet.
    pub unobserved: u32,
    /// Its core, for the mesh.
    pub core: u16,
    /// Position of its tenant.
    pub tenant: u16,
    /// Its instruction.
    pub op: Op,
    /// What decides when it starts its next access.
    pub style: Style,
    /// Whether its run of lines never ends, so that there is neither fence nor end to watch for.
    pub unending: bool,
    /// Whether an event will wake it.
    pub asleep: bool,
    /// Whether it is a stream whose lines drive none out of a cache that keeps any.
    pub is_plain: bool,
    /// Whether it is not let run; it is asleep then.
    pub paused: bool,
    /// Least time between two requests that its bandwidth allocation lets pass; 0 for no allocation.
    pub allocated: Ps,
    /// What its demand, the L1 and the L2 prefetchers ask the uncore for.
    pub kinds: [Kind; 3],
    /// Its rounds and pauses, where it has any.
    pub program: Option<Box<Program>>,
    /// What it may have in flight.
    pub limits: Limits,
    /// Where it is in its lines.
    pub cursor: Cursor,
    /// What it has done.
    pub progress: Progress,
    /// Its private caches.
    pub private: Private,
    /// For timed accesses: when the one under way, or the burst, began.
    pub began: Ps,
    /// Where its lines are.
    pub walk: Walk,
    /// Its order.
    pub pattern: Pattern,
    /// For timed accesses: time elsewhere between two of them.
    pub pause: Ps,
    /// Its bursts, if accesses are timed together.
    pub burst: Option<Burst>,
    /// Its turns, if it shares a line.
    pub sharing: Option<LineSharing>,
    /// Its descriptors, if an accelerator moves its lines.
    pub offload: Option<Box<Offload>>,
    /// Its requests, if it puts them to a storage device.
    pub requests: Option<Box<Requests>>,
    /// Its core, if it runs a described program.
    pub ooo: Option<Box<Ooo>>,
    /// When that will be woken.
    pub wakes: Ps,
}

impl Thread {
    /// Whether it may start its next access now.
    #[inline]
    pub fn may_issue(&self) -> bool {
        // Which of the two holds a stream up is anyone's guess, that one does is not: one branch.
        (self.outstanding + self.write_backs < self.limits.outstanding)
            & (self.window.span() < self.limits.window)
            && (self.unending || !self.at_fence())
            && (!self.is_ahead() || self.is_foreseen())
    }

    /// Whether the next access is beyond what demand alone reaches. A write-back that memory has no room
    /// for holds a fill buffer up: a line cannot come in before another one leaves.
    #[inline]
    pub fn is_ahead(&self) -> bool {
        u64::from(self.outstanding + self.write_backs) >= self.limits.demand
    }

    /// Whether it is even beyond what the L1 prefetchers ask for.
    #[inline]
    pub fn is_far_ahead(&self) -> bool {
        u64::from(self.outstanding + self.write_backs) >= self.limits.demand + self.limits.l1_ahead
    }

    /// The first access that demand does not reach: what is found in L2 holds no fill buffer, so that
    /// only unfinished accesses count.
    #[inline]
    pub fn reach(&self) -> u64 {
        self.window.next() + self.limits.demand - u64::from(self.outstanding + self.write_backs)
    }

    /// Whether it stands before a fence with stores still unobserved.
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

    /// The slice has pulled a posted store of its program.
    pub fn store_combined(&mut self) {
        if let Some(program) = &mut self.program {
            program.combining -= 1;
        }
    }

    /// Lines that it touches.
    pub fn lines(&self) -> u64 {
        let sources = self.program.as_ref().map_or(0, |p| p.source_lines())
            + self.offload.as_ref().map_or(0, |o| o.source_lines());
        self.walk.lines() + sources
    }

    /// Access `index` as its caches see it: which line, and whether it leaves it modified. `None` if
    /// it passes them by.
    pub fn cached(&self, index: u64) -> Option<(Place, bool)> {
        let Some(program) = &self.program else {
            let write = self.op.reads_for_ownership();
            return (!self.op.is_posted()).then(|| (self.walk.place(index), write));
        };
        let entry = program.entry(index);
        let write = matches!(entry, Entry::Touch { .. })
            && self.op.reads_for_ownership()
            && self.op != Op::StClwb;
        Some((program.place(entry, &self.walk)?, write))
    }

    /// Whether a prefetcher has come to follow the run of the next access, and runs so far ahead.
    #[inline]
    fn is_foreseen(&self) -> bool {
        // `reach` lies as far before the next access.
        let ahead = u64::from(self.outstanding + self.write_backs) - self.limits.demand;
        ahead < self.limits.ahead && (self.unending || self.is_followed())
    }

    /// Whether a prefetcher has come to follow the run of the next access.
    fn is_followed(&self) -> bool {
        let reach = self.reach() + self.limits.l1_ahead;
        let training = self.limits.training;
        self.walk.foresees(self.window.next(), reach, training)
    }
}
