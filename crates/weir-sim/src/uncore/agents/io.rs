//! Lines of devices on ports of the socket: they are written into the I/O ways of the last-level cache
//! (DDIO), and read from there, from the cache of the core that wrote them, or from memory.
//!
//! If the cache keeps no tags, since no tenant's lines survive in it, this module tracks the lines of
//! devices: a line stays until devices wrote as many other lines as the I/O ways hold, or until cores
//! received as many lines as the whole cache holds.

use std::collections::{HashMap, VecDeque};

use super::Uncore;
use super::writes::sent_over;
use crate::clock::Ps;
use crate::line::Place;
use crate::params::IoParams;
use crate::pmu::TorClass;
use crate::uncore::Class;
use crate::uncore::request::{RequestId, Stage};

/// The uncore's data of devices and of the threads that they serve.
pub struct Io {
    params: IoParams,
    /// For each thread that sends requests to devices: its core, and whether the data that it writes is in
    /// that core's L2.
    owners: Vec<Option<(u16, bool)>>,
    kept: UntaggedLines,
}

impl Io {
    /// `threads` says which threads send requests to devices. `cache` is the number of lines of the
    /// last-level cache.
    pub fn new(params: IoParams, owners: Vec<Option<(u16, bool)>>, cache: u64) -> Self {
        Self {
            owners,
            kept: UntaggedLines::new(params.lines, cache),
            params,
        }
    }

    /// Whether a line that a core reads is in the last-level cache because devices or the kernel's work for
    /// them put it there. `filled` is the number of lines that cores received so far.
    #[inline]
    pub fn has(&mut self, thread: u16, place: Place, filled: u64) -> bool {
        match self.owners.get(thread as usize) {
            Some(Some(_)) => self.kept.read(place.key(), filled),
            _ => false,
        }
    }
}

/// Lines in a cache without tags. Ages are counted in lines that cores received.
#[derive(Debug)]
struct UntaggedLines {
    /// Lines that the I/O ways hold, and the whole cache.
    ways: u64,
    cache: u64,
    /// Lines that devices wrote: the number of the latest write, and its time.
    written: HashMap<u64, (u64, u64)>,
    /// The writes in order, including writes that were repeated later.
    order: VecDeque<(u64, u64)>,
    number: u64,
    /// Lines of the kernel, and when each was read last.
    kernel: HashMap<u64, u64>,
}

impl UntaggedLines {
    fn new(ways: u64, cache: u64) -> Self {
        Self {
            ways,
            cache,
            written: HashMap::new(),
            order: VecDeque::new(),
            number: 0,
            kernel: HashMap::new(),
        }
    }

    /// A device writes a line; returns a modified line that must leave the cache, if any.
    fn write(&mut self, key: u64, now: u64) -> Option<u64> {
        self.number += 1;
        self.written.insert(key, (self.number, now));
        self.order.push_back((key, self.number));
        while let Some(&(oldest, number)) = self.order.front() {
            let latest = self.written.get(&oldest);
            match latest.filter(|(latest, _)| *latest == number) {
                Some(&(_, then)) => {
                    let full = self.written.len() as u64 > self.ways;
                    if !full && now - then <= self.cache {
                        break;
                    }
                    self.order.pop_front();
                    self.written.remove(&oldest);
                    return Some(oldest);
                }
                None => {
                    self.order.pop_front();
                }
            }
        }
        None
    }

    /// Whether a line is there.
    fn holds(&self, key: u64, now: u64) -> bool {
        let written = self.written.get(&key);
        written.is_some_and(|(_, then)| now - then <= self.cache)
    }

    /// A core reads a line; returns whether it is there.
    fn read(&mut self, key: u64, now: u64) -> bool {
        let Some(then) = self.kernel.get_mut(&key) else {
            return self.holds(key, now);
        };
        let there = now - *then <= self.cache;
        *then = now;
        there || self.holds(key, now)
    }
}

impl Uncore {
    /// Lets threads send requests to devices. Lines that the kernel reads repeatedly are in the cache.
    pub fn serve(&mut self, mut io: Io, kernel: impl Iterator<Item = Place>) {
        io.kept.kernel = kernel.map(|place| (place.key(), 0)).collect();
        self.io = Some(Box::new(io));
    }

    /// A device on a port writes a line: into the I/O ways, where it may evict another line, or to memory if
    /// there are no such ways. The entry is held until the data is at its destination.
    #[cold]
    #[inline(never)]
    pub(super) fn admit_io_write(&mut self, id: RequestId, now: Ps) {
        let Some(io) = &mut self.io else {
            return;
        };
        let request = &mut self.pool[id];
        let place = request.place();
        let after = now + self.params.uncore.lookup;
        request.stage = Stage::Answered;
        let to_memory = match &mut self.llc {
            _ if io.params.lines == 0 => Some(place),
            Some(llc) => llc
                .put(
                    place.line,
                    place.tier,
                    true,
                    Class::of_devices(io.params.mask),
                    request.slice,
                )
                .filter(|victim| victim.dirty)
                .map(|victim| Place {
                    tier: victim.tier,
                    line: victim.line,
                }),
            None => (io.kept)
                .write(place.key(), self.filled)
                .map(Place::from_key),
        };
        let (class, answered) = match to_memory {
            None => (TorClass::Io, now + self.params.uncore.hit),
            Some(out) => {
                self.targets[out.tier].begin(&mut self.distressed);
                request.tier = out.tier;
                request.class = TorClass::Evict;
                self.pmu.tor(request.host, TorClass::Evict).up(now);
                let there = sent_over(self.links.get_mut(request.slice as usize), after);
                self.write(id, out.line, there);
                return;
            }
        };
        request.class = class;
        self.pmu.tor(request.host, class).up(now);
        self.wheel.push(answered, id, &mut self.pool);
    }

    /// A device on a port reads a line: from the L2 of the core that wrote it, which the slice snoops, from
    /// the cache, or from memory.
    #[cold]
    #[inline(never)]
    pub(super) fn admit_io_read(&mut self, id: RequestId, now: Ps) {
        let Some(io) = &mut self.io else {
            return;
        };
        let request = &mut self.pool[id];
        let place = request.place();
        let u = &self.params.uncore;
        request.stage = Stage::Answered;
        let owner = io.owners.get(request.thread as usize).copied().flatten();
        let cached = match &mut self.llc {
            Some(llc) => (llc.take(place.line, place.tier, false, request.slice)).is_some(),
            None => io.kept.holds(place.key(), self.filled),
        };
        let (class, answered) = match owner {
            Some((core, true)) => {
                let there = self.mesh.delay(core, request.slice);
                let snooped = u.lookup + there + self.params.core.l2_hit + there;
                (TorClass::Io, now + snooped)
            }
            _ if cached => (TorClass::Io, now + u.hit),
            _ => {
                let target = &mut self.targets[request.tier];
                target.begin(&mut self.distressed);
                let (line, after) = (request.line, now + u.lookup);
                request.class = target.class;
                self.pmu.tor(request.host, target.class).up(now);
                let memory = &mut self.memories[usize::from(target.memory)];
                let data = memory.read(id, line, false, after, &mut self.shared);
                return self.asked(id, data);
            }
        };
        request.class = class;
        self.pmu.tor(request.host, class).up(now);
        self.wheel.push(answered, id, &mut self.pool);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A line stays until as many others came as the ways hold. Each written line has either left once or
        /// is still there.
        #[test]
        fn lines_leave_in_the_order_in_which_they_were_written_last(
            ways in 1u64..20,
            cache in 1u64..200,
            writes in prop::collection::vec((0u64..40, 0u64..20), 1..400),
        ) {
            let mut kept = UntaggedLines::new(ways, cache);
            let (mut now, mut order, mut inside) = (0, Vec::<(u64, u64)>::new(), 0u64);
            for (key, filled) in writes {
                now += filled;
                inside += u64::from(!order.iter().any(|&(k, _)| k == key));
                order.retain(|&(k, _)| k != key);
                order.push((key, now));
                if let Some(out) = kept.write(key, now) {
                    let (oldest, _) = order.remove(0);
                    prop_assert_eq!(out, oldest);
                    inside -= 1;
                }
                prop_assert_eq!(kept.written.len() as u64, inside);
                prop_assert!(inside <= ways);
                for &(key, then) in &order {
                    prop_assert_eq!(kept.holds(key, now), now - then <= cache);
                }
            }
        }
    }
}
