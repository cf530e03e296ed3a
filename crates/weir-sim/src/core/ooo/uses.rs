//! What each region of a program reads and writes, and how long the core waits for it.
//!
//! Time in which dispatch stalls belongs to the region of the oldest load, if its line comes from memory: this is what
//! processors sample as the retire latency of a load (Intel, Software Developer's Manual, volume 3B, "PEBS retire
//! latency"). If the store buffer is full, it belongs to the region of the oldest store once all loads before that have
//! retired.

use super::Ooo;
use super::stores::PAST_CACHES;
use crate::clock::Ps;
use crate::line::Kind;

/// What one region was used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Lines that were read from memory, for loads, for stores and by prefetchers.
    pub read: u64,
    /// Lines that were written to memory.
    pub written: u64,
    /// Time in which dispatch stalled for a line of it.
    pub waited: Ps,
    /// How many accesses it stalled for.
    pub waits: u64,
}

impl Use {
    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            read: self.read + other.read,
            written: self.written + other.written,
            waited: self.waited + other.waited,
            waits: self.waits + other.waits,
        }
    }
}

/// The uses of all regions.
#[derive(Default)]
pub struct Uses {
    all: Vec<Use>,
    /// The load or store that was last waited for: its number or its instruction.
    last: u64,
    /// Its region.
    last_region: usize,
}

impl Uses {
    /// Of this many regions.
    pub fn new(regions: usize) -> Self {
        Self {
            all: vec![Use::default(); regions],
            last: 0,
            last_region: 0,
        }
    }

    /// A line of a region crosses the memory interface.
    #[inline(always)]
    pub fn cross(&mut self, region: usize, kind: Kind) {
        if let Some(of) = self.all.get_mut(region) {
            let lines = match kind {
                Kind::Wcilf | Kind::WbMtoI => &mut of.written,
                _ => &mut of.read,
            };
            *lines += 1;
        }
    }

    /// The core waits this long for an access of the region that `find` says.
    #[inline(always)]
    fn wait(&mut self, time: Ps, access: u64, find: impl FnOnce() -> usize) {
        if self.last != access || access == 0 {
            self.last_region = find();
        }
        if let Some(of) = self.all.get_mut(self.last_region) {
            of.waited += time;
            of.waits += u64::from(self.last != access);
            self.last = access;
        }
    }
}

impl Ooo {
    /// The use of each region so far, in the order of [`Workload::memory`](weir_model::workload::Workload::memory).
    pub fn uses(&self) -> &[Use] {
        &self.uses.all
    }

    /// Dispatch stalls for this long, for a branch's load or for the oldest one.
    #[inline(always)]
    pub(super) fn wait_for_load(&mut self, time: Ps) {
        let oldest = self.loads.numbers().0;
        let number = self.branch.map_or(oldest, |(number, _)| number);
        if self.loads.is_empty() || number < oldest {
            return;
        }
        let load = *self.loads.get_mut(number);
        if load.from_memory {
            let find = || self.script.region_of(load.line);
            self.uses.wait(time, number, find);
        }
    }

    /// Dispatch stalls for this long because the store buffer is full: for the oldest store, or a load before it.
    pub(super) fn wait_for_stores(&mut self, time: Ps) {
        let senior = self.stores.front().filter(|store| self.is_senior(store));
        let Some(&store) = senior else {
            return self.wait_for_load(time);
        };
        // A line that is not under way waits for a buffer.
        let under_way = self.flights.find(store.line);
        if under_way.is_none_or(|slot| !self.flights[slot].cached) {
            let find = || self.script.region_of(store.line & !PAST_CACHES);
            self.uses.wait(time, store.at.to_bits(), find);
        }
    }
}
