//! Counters of the core of one thread.

use weir_model::access::Op;
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};

use crate::clock::Ps;
use crate::line::{Kind, Level};
use crate::params::Params;

/// A number of requests, and the sum of the times that they held a buffer.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    number: u64,
    time: u64,
}

impl Sum {
    #[inline]
    fn put(&mut self, time: Ps) {
        self.number += 1;
        self.time += time;
    }

    fn add(&mut self, other: Self) {
        self.number += other.number;
        self.time += other.time;
    }
}

/// The results of the requests of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct OfKind {
    /// Requests that ended: first, reads that demand was waiting for or found in a fill buffer, and all
    /// requests that are not reads; second, reads that ended before demand came, so that demand finds their
    /// lines in L2.
    ended: [Sum; 2],
    /// Requests that did not end yet.
    under_way: Sum,
    /// When the last of them ended, and the total time before with no such request outstanding.
    until: Ps,
    without: u64,
    /// Time that they waited for an entry of their slice's table.
    waited: u64,
    /// Requests that hit the last-level cache, and their latency without waiting.
    l3_hits: Sum,
}

impl OfKind {
    /// All requests that left the core.
    fn all(&self) -> Sum {
        let mut all = self.under_way;
        for sum in self.ended {
            all.add(sum);
        }
        all
    }
}

/// Counters of one thread's core since it started. A request counts when it ends; requests that are
/// outstanding are added when the counters are read ([`CoreCounts::under_way`]). This keeps the cost per
/// request small.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub struct CoreCounts {
    kinds: [OfKind; Kind::COUNT],
    /// Demand loads that hit L1.
    l1_hits: u64,
    /// Demand loads that missed L1 and hit L2.
    l2_hits: u64,
    /// Lines that came with poison.
    pub poisoned: u64,
    /// Lines that were written to a device that is gone.
    pub lost: u64,
}

impl CoreCounts {
    /// The line of a read that left at `issued` has arrived at the core; `early` if no demand access had
    /// asked for it yet.
    #[inline]
    pub fn filled(&mut self, kind: Kind, early: bool, issued: Ps, at: Ps) {
        let of = &mut self.kinds[kind as usize];
        of.ended[usize::from(early)].put(at - issued);
        of.without += issued.saturating_sub(of.until);
        of.until = of.until.max(at);
    }

    /// A read hits the last-level cache; `latency` from its core and back without waiting.
    pub fn hit_l3(&mut self, kind: Kind, time: Ps) {
        self.kinds[kind as usize].l3_hits.put(time);
    }

    /// A request that brings no line leaves the core and holds its buffer for this time.
    #[inline]
    pub fn ended(&mut self, kind: Kind, held: Ps) {
        self.kinds[kind as usize].ended[0].put(held);
    }

    /// A request got the entry for which it had waited.
    #[inline]
    pub fn waited(&mut self, kind: Kind, time: Ps) {
        self.kinds[kind as usize].waited += time;
    }

    /// A request left at `issued` and is outstanding at `now`. If it waits for an entry, it has waited since
    /// `arrived`.
    pub fn under_way(&mut self, kind: Kind, issued: Ps, arrived: Option<Ps>, now: Ps) {
        let of = &mut self.kinds[kind as usize];
        of.under_way.put(now.saturating_sub(issued));
        of.waited += arrived.map_or(0, |at| now.saturating_sub(at));
        of.without += issued.min(now).saturating_sub(of.until);
        of.until = of.until.max(now);
    }

    /// Data reads of the prefetchers, and the part of them that missed the last-level cache.
    pub fn prefetched(&self) -> (u64, u64) {
        const READS: [Kind; 2] = [Kind::DrdL1Pref, Kind::DrdL2Pref];
        let hits: u64 = READS.iter().map(|&k| self.of(k).l3_hits.number).sum();
        let all = self.left(&READS);
        (all, all.saturating_sub(hits))
    }

    /// An access hit a private cache.
    #[inline]
    pub fn hit(&mut self, op: Op, level: Level) {
        if op == Op::Ld {
            match level {
                Level::L1 => self.l1_hits += 1,
                Level::L2 => self.l2_hits += 1,
            }
        }
    }

    /// Requests of these kinds that left the core.
    pub fn left(&self, kinds: &[Kind]) -> u64 {
        kinds.iter().map(|&k| self.of(k).all().number).sum()
    }

    /// Time that requests of these kinds held a buffer.
    fn time(&self, kinds: &[Kind]) -> u64 {
        kinds.iter().map(|&k| self.of(k).all().time).sum()
    }

    fn of(&self, kind: Kind) -> &OfKind {
        &self.kinds[kind as usize]
    }

    /// Adds the counts of another core.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            for (mine, theirs) in mine.ended.iter_mut().zip(theirs.ended) {
                mine.add(theirs);
            }
            mine.under_way.add(theirs.under_way);
            // Only the difference of these two sums has a meaning.
            mine.until += theirs.until;
            mine.without += theirs.without;
            mine.waited += theirs.waited;
            mine.l3_hits.add(theirs.l3_hits);
        }
        self.l1_hits += other.l1_hits;
        self.l2_hits += other.l2_hits;
        self.poisoned += other.poisoned;
        self.lost += other.lost;
    }

    /// The counters at `now` as hardware would show them, of `cores` cores together.
    pub fn read(&self, now: Ps, cores: usize, p: &Params) -> CounterSet {
        use Counter as C;
        const OWNED: [Kind; 2] = [Kind::Rfo, Kind::RfoSnoop];
        let cycles = |ps: u64| (ps as f64 / 1e3 / p.core.cycle) as u64;
        let [demand, l1_pref, l2_pref] = Kind::LOADS.map(|kind| self.of(kind));
        let prefetched = |early: usize| l1_pref.ended[early].number + l2_pref.ended[early].number;
        // Every demand load that leaves the core has missed L1 and L2.
        let (missed, hits) = (demand.all(), demand.l3_hits);
        let l3_miss_time = missed.time.saturating_sub(hits.time + demand.waited);
        let counts = [
            (C::Cycles, cycles(now * cores as u64)),
            (C::L1Hit, self.l1_hits),
            (C::L1Miss, self.l2_hits + missed.number),
            (C::FbHit, prefetched(0)),
            (C::L2Hit, self.l2_hits + prefetched(1)),
            (C::L3Hit, hits.number),
            (C::L3Miss, missed.number.saturating_sub(hits.number)),
            (C::OffcoreDemandDataRd, missed.number),
            (C::OffcoreOutstandingDemandDataRd, cycles(missed.time)),
            (
                C::OffcoreCyclesDemandDataRd,
                cycles(demand.until - demand.without),
            ),
            (
                C::OffcoreL3MissDemandDataRd,
                missed.number.saturating_sub(hits.number),
            ),
            (
                C::OffcoreOutstandingL3MissDemandDataRd,
                cycles(l3_miss_time),
            ),
            (C::OffcoreDataRd, self.left(&Kind::LOADS)),
            (C::OffcoreOutstandingDataRd, cycles(self.time(&Kind::LOADS))),
            (C::OffcoreDemandRfo, self.left(&OWNED)),
            (C::OffcoreOutstandingDemandRfo, cycles(self.time(&OWNED))),
            (C::L1dPendMiss, cycles(missed.time + l1_pref.ended[0].time)),
            (C::LfbOccupancy, cycles(self.time(&Kind::OF_CORES))),
            (
                C::OffcoreAllRequests,
                self.left(&Kind::OF_CORES) + self.left(&[Kind::LlcPref]),
            ),
            (C::HwpfL1d, self.left(&[Kind::DrdL1Pref])),
            (C::HwpfL1dL3Hit, l1_pref.l3_hits.number),
            (C::HwpfL2, self.left(&[Kind::DrdL2Pref, Kind::RfoPref])),
            (
                C::HwpfL2L3Hit,
                l2_pref.l3_hits.number + self.of(Kind::RfoPref).l3_hits.number,
            ),
            (C::StreamingWr, self.left(&[Kind::Wcilf])),
        ];
        let mut set = CounterSet::default();
        for (counter, count) in counts {
            set.set(counter, count);
        }
        if p.longest_miss().is_some() || p.fails() {
            set.set(C::MediumPoison, self.poisoned);
        }
        if p.fails() {
            set.set(C::CxlLostWrites, self.lost);
        }
        set.set_unavailable(
            C::Instructions,
            Unavailable::because("a modelled stream consists of its accesses alone"),
        );
        set
    }
}
