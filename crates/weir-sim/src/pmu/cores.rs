//! What the core of one thread counts.

use weir_model::access::Op;
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};

use crate::clock::Ps;
use crate::core::Level;
use crate::params::Params;
use crate::uncore::Kind;

/// What became of the requests of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct OfKind {
    /// Requests that ended: reads for which demand was waiting, or that it found in a fill buffer, and all
    /// others; and reads that came before demand, so that it finds their lines in L2.
    ended: [u64; 2],
    /// Requests that did not end.
    under_way: u64,
    /// Time that all of them held a buffer, summed.
    time: u64,
    /// When the last of them ended, and the time before with none of them under way.
    until: Ps,
    without: u64,
    /// Lines found in the last-level cache.
    l3_hits: u64,
}

/// Counters of one thread's core since it started. Requests count when they end; those under way are
/// added when the counters are read ([`CoreCounts::under_way`]), so that each costs little.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub struct CoreCounts {
    kinds: [OfKind; Kind::COUNT],
    /// Demand loads that hit L1, ...
    l1_hits: u64,
    /// ... and those that missed it and hit L2.
    l2_hits: u64,
}

impl CoreCounts {
    /// The line of a read that left at `issued` is at the core; `early` if demand had not come to it.
    #[inline]
    pub fn filled(&mut self, kind: Kind, early: bool, issued: Ps, at: Ps) {
        let of = &mut self.kinds[kind as usize];
        of.ended[usize::from(early)] += 1;
        of.time += at - issued;
        of.without += issued.saturating_sub(of.until);
        of.until = of.until.max(at);
    }

    /// A request that brings no line leaves, and holds its buffer for so long.
    #[inline]
    pub fn ended(&mut self, kind: Kind, held: Ps) {
        let of = &mut self.kinds[kind as usize];
        of.ended[0] += 1;
        of.time += held;
    }

    /// A request left at `issued` and is under way at `now`.
    pub fn under_way(&mut self, kind: Kind, issued: Ps, now: Ps) {
        let of = &mut self.kinds[kind as usize];
        of.under_way += 1;
        of.time += now.saturating_sub(issued);
        of.without += issued.min(now).saturating_sub(of.until);
        of.until = of.until.max(now);
    }

    /// Data reads of the prefetchers, and those of them that missed the last-level cache.
    pub fn prefetched(&self) -> (u64, u64) {
        const READS: [Kind; 2] = [Kind::DrdL1Pref, Kind::DrdL2Pref];
        let hits: u64 = READS.iter().map(|&k| self.kinds[k as usize].l3_hits).sum();
        let all = self.left(&READS);
        (all, all.saturating_sub(hits))
    }

    /// A read hit the last-level cache.
    #[inline]
    pub fn hit_l3(&mut self, kind: Kind) {
        self.kinds[kind as usize].l3_hits += 1;
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
        let left = |k: &Kind| {
            let of = &self.kinds[*k as usize];
            of.ended[0] + of.ended[1] + of.under_way
        };
        kinds.iter().map(left).sum()
    }

    /// Time that requests of these kinds held a buffer.
    fn time(&self, kinds: &[Kind]) -> u64 {
        kinds.iter().map(|&k| self.kinds[k as usize].time).sum()
    }

    /// Adds what another core counted.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.ended[0] += theirs.ended[0];
            mine.ended[1] += theirs.ended[1];
            mine.under_way += theirs.under_way;
            mine.time += theirs.time;
            // Of a sum, only the difference of these two means something.
            mine.until += theirs.until;
            mine.without += theirs.without;
            mine.l3_hits += theirs.l3_hits;
        }
        self.l1_hits += other.l1_hits;
        self.l2_hits += other.l2_hits;
    }

    /// The counters as hardware would show them at `now`, of `cores` cores together.
    pub fn read(&self, now: Ps, cores: usize, p: &Params) -> CounterSet {
        let cycles = |ps: u64| (ps as f64 / 1e3 / p.core.cycle) as u64;
        let prefetched = |early: usize| {
            let of = |kind: Kind| self.kinds[kind as usize].ended[early];
            of(Kind::DrdL1Pref) + of(Kind::DrdL2Pref)
        };
        let mut set = CounterSet::default();
        set.set_unavailable(
            Counter::Instructions,
            Unavailable::because("a modelled stream consists of its accesses alone"),
        );
        let mut put = |counter, value| set.set(counter, value);
        put(Counter::Cycles, cycles(now * cores as u64));
        // Every demand load that leaves the core missed L1 and L2.
        let demand = self.left(&[Kind::Drd]);
        let l3_hits = |kind: Kind| self.kinds[kind as usize].l3_hits;
        put(Counter::L1Hit, self.l1_hits);
        put(Counter::L1Miss, self.l2_hits + demand);
        put(Counter::FbHit, prefetched(0));
        put(Counter::L2Hit, self.l2_hits + prefetched(1));
        put(Counter::L3Hit, l3_hits(Kind::Drd));
        put(Counter::L3Miss, demand.saturating_sub(l3_hits(Kind::Drd)));
        put(Counter::OffcoreDemandDataRd, demand);
        put(
            Counter::OffcoreOutstandingDemandDataRd,
            cycles(self.time(&[Kind::Drd])),
        );
        let demand_reads = &self.kinds[Kind::Drd as usize];
        put(
            Counter::OffcoreCyclesDemandDataRd,
            cycles(demand_reads.until - demand_reads.without),
        );
        put(Counter::OffcoreDataRd, self.left(&Kind::LOADS));
        put(
            Counter::OffcoreOutstandingDataRd,
            cycles(self.time(&Kind::LOADS)),
        );
        const OWNED: [Kind; 2] = [Kind::Rfo, Kind::RfoSnoop];
        put(Counter::OffcoreDemandRfo, self.left(&OWNED));
        put(
            Counter::OffcoreOutstandingDemandRfo,
            cycles(self.time(&OWNED)),
        );
        put(Counter::OffcoreAllRequests, self.left(&Kind::OF_CORES));
        put(Counter::HwpfL1d, self.left(&[Kind::DrdL1Pref]));
        put(Counter::HwpfL1dL3Hit, l3_hits(Kind::DrdL1Pref));
        put(
            Counter::HwpfL2,
            self.left(&[Kind::DrdL2Pref, Kind::RfoPref]),
        );
        put(Counter::StreamingWr, self.left(&[Kind::Wcilf]));
        set
    }
}
