//! The counts of a core, with the meaning of its performance events. Requests that leave the core are counted
//! where they leave (`pmu::CoreCounts`).

use weir_model::counters::{Counter, CounterSet};

use crate::clock::Ps;

/// Counts of a core since it started, or of several together. Times are in picoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Lines that the program accessed.
    pub touched: u64,
    /// Instructions.
    pub instructions: f64,
    /// Time.
    pub time: Ps,
    /// Time in which nothing was executed with an outstanding demand load that missed L1, L2, and the
    /// last-level cache.
    pub stalls: [Ps; 4],
    /// Time with an outstanding demand load that missed L1, L2, and the last-level cache, with or without
    /// execution.
    pub missing: [Ps; 3],
    /// The same with a full store buffer and no outstanding load.
    pub bound_on_stores: Ps,
    /// Accesses of loads that found their line in L1.
    pub l1_hits: u64,
    /// Accesses that found it neither there nor in a fill buffer.
    pub l1_misses: u64,
    /// Accesses that found it in a fill buffer.
    pub fill_buffer_hits: u64,
    /// Accesses that missed L1 and hit L2.
    pub l2_hits: u64,
}

impl Tally {
    /// The counters that it sets.
    pub const COUNTERS: &[Counter] = &[
        Counter::Cycles,
        Counter::Instructions,
        Counter::StallsMemAny,
        Counter::StallsL1dMiss,
        Counter::StallsL2Miss,
        Counter::StallsL3Miss,
        Counter::CyclesL1dMiss,
        Counter::CyclesL2Miss,
        Counter::CyclesL3Miss,
        Counter::BoundOnStores,
        Counter::L1Hit,
        Counter::L1Miss,
        Counter::FbHit,
        Counter::L2Hit,
    ];

    /// Adds the counts of another core.
    pub fn add(&mut self, other: &Self) {
        self.touched += other.touched;
        self.instructions += other.instructions;
        self.time += other.time;
        for (mine, theirs) in self.stalls.iter_mut().zip(other.stalls) {
            *mine += theirs;
        }
        for (mine, theirs) in self.missing.iter_mut().zip(other.missing) {
            *mine += theirs;
        }
        self.bound_on_stores += other.bound_on_stores;
        self.l1_hits += other.l1_hits;
        self.l1_misses += other.l1_misses;
        self.fill_buffer_hits += other.fill_buffer_hits;
        self.l2_hits += other.l2_hits;
    }

    /// Replaces the counters of a stream by those that hardware would show, at `cycle` picoseconds a cycle.
    pub fn put_into(&self, set: &mut CounterSet, cycle: f64) {
        let cycles = |ps: Ps| (ps as f64 / cycle) as u64;
        let [any, l1, l2, l3] = self.stalls;
        let [missed_l1, missed_l2, missed_l3] = self.missing;
        let values = [
            cycles(self.time),
            self.instructions as u64,
            cycles(any),
            cycles(l1),
            cycles(l2),
            cycles(l3),
            cycles(missed_l1),
            cycles(missed_l2),
            cycles(missed_l3),
            cycles(self.bound_on_stores),
            self.l1_hits,
            self.l1_misses,
            self.fill_buffer_hits,
            self.l2_hits,
        ];
        for (&counter, value) in Self::COUNTERS.iter().zip(values) {
            set.set(counter, value);
        }
    }
}
