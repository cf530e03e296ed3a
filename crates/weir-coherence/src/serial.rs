//! Caches of several hosts and the directory of the device, one access at a time.
//!
//! It knows for each line which hosts share it or which host has it alone, and not whether that host wrote to it, so that another host's
//! read has to ask there too. What an access sends is what the protocol of [`crate::hdm_db`] sends for it; hosts
//! inform the device of clean lines that leave their caches (MemClnEvct).

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::cost::{self, Before, Cost};

/// The number of a line.
pub type Line = u32;
/// The number of a host.
pub type Host = u8;
/// Hosts at most.
pub const MOST_HOSTS: usize = 64;

/// Which hosts have a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Holders {
    /// None: memory has the only copy.
    #[default]
    None,
    /// One host, which may write without a message and perhaps did.
    Alone {
        /// Which.
        host: Host,
        /// Whether its copy is newer than memory's.
        dirty: bool,
    },
    /// Hosts that may read, a bit each.
    Shared(u64),
}

/// Messages between hosts and the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// Lines that hosts read from memory.
    pub fetches: u64,
    /// Requests to write a line that the host has already.
    pub upgrades: u64,
    /// Requests to a host to give up its right to write a line.
    pub snoops: u64,
    /// Requests to a host to give up a line that another wants to write.
    pub invalidations: u64,
    /// Requests to a host to give up a line that leaves the snoop filter.
    pub back_invalidations: u64,
    /// Lines that hosts wrote to memory.
    pub write_backs: u64,
    /// Accesses that waited for the answers of other hosts.
    pub waits: u64,
    /// What went to the device, in half slots of flits.
    pub down: u64,
    /// What came from it.
    pub up: u64,
}

impl Messages {
    /// Adds others.
    pub fn add(&mut self, more: &Self) {
        self.fetches += more.fetches;
        self.upgrades += more.upgrades;
        self.snoops += more.snoops;
        self.invalidations += more.invalidations;
        self.back_invalidations += more.back_invalidations;
        self.write_backs += more.write_backs;
        self.waits += more.waits;
        self.down += more.down;
        self.up += more.up;
    }

    fn of(cost: &Cost) -> Self {
        let [snoops, invalidations] = ["BISnpData", "BISnpInv"].map(|name| cost.count(name));
        Self {
            fetches: cost.count("MemData"),
            upgrades: cost.count("MemInv"),
            snoops,
            invalidations,
            back_invalidations: 0,
            write_backs: cost.count("MemWr"),
            waits: u64::from(snoops + invalidations > 0),
            down: cost.half_slots(true),
            up: cost.half_slots(false),
        }
    }
}

/// What a host keeps, and when it was last accessed.
#[derive(Debug, Clone, Default)]
struct Cache {
    last: HashMap<Line, u64>,
    /// Every access in order, also those that are no longer a line's last.
    order: VecDeque<(Line, u64)>,
}

impl Cache {
    fn touch(&mut self, line: Line, now: u64) {
        self.last.insert(line, now);
        self.order.push_back((line, now));
        if self.order.len() > 2 * self.last.len() + 64 {
            let last = &self.last;
            self.order.retain(|(line, at)| last.get(line) == Some(at));
        }
    }

    /// Removes the line whose last access is the longest ago.
    fn pop_oldest(&mut self) -> Option<Line> {
        loop {
            let (line, at) = self.order.pop_front()?;
            if self.last.get(&line) == Some(&at) {
                self.last.remove(&line);
                return Some(line);
            }
        }
    }
}

/// Lines, the caches that hold them, and the directory.
#[derive(Debug, Clone)]
pub struct Directory {
    lines: HashMap<Line, Holders>,
    caches: Vec<Cache>,
    capacity: usize,
    /// Lines that a host holds, by their last request; `None` where there is an entry for every line.
    filter: Option<(Cache, usize)>,
    costs: HashMap<(Before, bool, bool), Messages>,
    /// What a clean line takes that leaves a cache, and a modified one.
    leaving: [Option<Messages>; 2],
    /// The same of the filter, while this many hosts have it.
    from_filter: HashMap<(bool, u64), Messages>,
    now: u64,
}

impl Directory {
    /// Hosts with empty caches of this many lines each, and a snoop filter with this many entries, or one for every line.
    pub fn new(hosts: usize, capacity: usize, filter: Option<usize>) -> Self {
        Self {
            lines: HashMap::new(),
            caches: vec![Cache::default(); hosts.clamp(1, MOST_HOSTS)],
            capacity: capacity.max(1),
            filter: filter.map(|entries| (Cache::default(), entries.max(1))),
            costs: HashMap::new(),
            leaving: [None; 2],
            from_filter: HashMap::new(),
            now: 0,
        }
    }

    /// Which hosts have a line.
    pub fn holders(&self, line: Line) -> Holders {
        self.lines.get(&line).copied().unwrap_or_default()
    }

    /// A host reads a line, or writes it; returns the messages that this takes.
    pub fn access(&mut self, host: Host, line: Line, write: bool) -> Messages {
        let own = 1_u64 << host;
        let holders = self.holders(line);
        let mut sent = Messages::default();
        // How the protocol sees the line, unless no message is sent.
        let asks = match holders {
            Holders::Alone { host: by, .. } if by == host => None,
            Holders::Shared(all) if all & own != 0 && !write => None,
            Holders::None => Some((Before::None, false)),
            Holders::Alone { dirty: true, .. } => Some((Before::Dirty, false)),
            Holders::Alone { .. } => Some((Before::Clean, false)),
            Holders::Shared(all) => {
                let others = u64::from((all & !own).count_ones());
                Some((Before::Sharers(others), all & own != 0))
            }
        };
        if let Some((before, has)) = asks {
            self.enter_filter(line, &mut sent);
            let costs = self.costs.entry((before, has, write));
            sent.add(costs.or_insert_with(|| Messages::of(&cost::shared(before, has, write))));
        }
        let next = match (holders, write) {
            (Holders::Alone { host: by, dirty }, _) if by == host => Holders::Alone {
                host,
                dirty: dirty || write,
            },
            (Holders::None, false) => Holders::Alone { host, dirty: false },
            (Holders::Alone { host: by, .. }, false) => Holders::Shared(1 << by | own),
            (Holders::Shared(all), false) => Holders::Shared(all | own),
            (_, true) => {
                self.forget(holders, Some(host), line);
                Holders::Alone { host, dirty: true }
            }
        };
        self.lines.insert(line, next);
        self.now += 1;
        let now = self.now;
        if let Some(cache) = self.caches.get_mut(usize::from(host)) {
            cache.touch(line, now);
            if cache.last.len() > self.capacity
                && let Some(oldest) = cache.pop_oldest()
            {
                sent.add(&self.evict(host, oldest));
            }
        }
        sent
    }

    /// A line that is asked for gets an entry of the filter; the one that was asked for the longest ago leaves it.
    fn enter_filter(&mut self, line: Line, sent: &mut Messages) {
        let Some((filter, entries)) = &mut self.filter else {
            return;
        };
        self.now += 1;
        filter.touch(line, self.now);
        if filter.last.len() <= *entries {
            return;
        }
        let Some(oldest) = filter.pop_oldest() else {
            return;
        };
        let holders = self.lines.remove(&oldest).unwrap_or_default();
        let (dirty, count) = match holders {
            Holders::None => return,
            Holders::Alone { dirty, .. } => (dirty, 1),
            Holders::Shared(all) => (false, u64::from(all.count_ones())),
        };
        let taken = self.from_filter.entry((dirty, count)).or_insert_with(|| {
            let mut taken = Messages::of(&cost::leaves(dirty, Some(count)));
            taken.back_invalidations = std::mem::take(&mut taken.invalidations);
            taken
        });
        sent.add(taken);
        self.forget(holders, None, oldest);
    }

    /// Removes a line from the caches of all that hold it but one.
    fn forget(&mut self, holders: Holders, but: Option<Host>, line: Line) {
        let all = match holders {
            Holders::None => 0,
            Holders::Alone { host, .. } => 1 << host,
            Holders::Shared(all) => all,
        };
        for (host, cache) in self.caches.iter_mut().enumerate() {
            if all & 1 << host != 0 && but != Some(host as Host) {
                cache.last.remove(&line);
            }
        }
    }

    /// A host has no room for a line.
    fn evict(&mut self, host: Host, line: Line) -> Messages {
        let (next, dirty) = match self.holders(line) {
            Holders::Alone { dirty, .. } => (Holders::None, dirty),
            Holders::Shared(all) => match all & !(1 << host) {
                0 => (Holders::None, false),
                left => (Holders::Shared(left), false),
            },
            Holders::None => (Holders::None, false),
        };
        self.lines.insert(line, next);
        if let (Holders::None, Some((filter, _))) = (next, &mut self.filter) {
            filter.last.remove(&line);
        }
        let leaves = |dirty| Messages::of(&cost::leaves(dirty, None));
        *self.leaving[usize::from(dirty)].get_or_insert_with(|| leaves(dirty))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum State {
        Modified,
        Exclusive,
        Shared,
    }

    /// Caches that ask all others about each line: no directory, nothing but states.
    struct Naive {
        /// The lines of each host, the last accessed first.
        caches: Vec<Vec<(Line, State)>>,
        capacity: usize,
    }

    impl Naive {
        fn state(&self, host: usize, line: Line) -> Option<State> {
            self.caches[host]
                .iter()
                .find(|(own, _)| *own == line)
                .map(|own| own.1)
        }

        fn set(&mut self, host: usize, line: Line, state: Option<State>) {
            match (
                self.caches[host].iter().position(|(own, _)| *own == line),
                state,
            ) {
                (Some(at), Some(state)) => self.caches[host][at].1 = state,
                (Some(at), None) => drop(self.caches[host].remove(at)),
                _ => {}
            }
        }

        fn access(&mut self, host: usize, line: Line, write: bool) -> Messages {
            let mut sent = Messages::default();
            let own = self.state(host, line);
            let others: Vec<(usize, State)> = (0..self.caches.len())
                .filter(|&other| other != host)
                .filter_map(|other| Some((other, self.state(other, line)?)))
                .collect();
            let mut state = own.unwrap_or(match others.is_empty() {
                true => State::Exclusive,
                false => State::Shared,
            });
            sent.fetches += u64::from(own.is_none());
            if write && own == Some(State::Shared) {
                sent.upgrades += 1;
            }
            let asks = write || own.is_none();
            for &(other, theirs) in others.iter().filter(|_| asks) {
                sent.write_backs += u64::from(theirs == State::Modified);
                if write {
                    sent.invalidations += 1;
                    self.set(other, line, None);
                } else if theirs != State::Shared {
                    sent.snoops += 1;
                    self.set(other, line, Some(State::Shared));
                }
            }
            sent.waits += u64::from(sent.invalidations + sent.snoops > 0);
            if write {
                state = State::Modified;
            }
            self.set(host, line, None);
            self.caches[host].insert(0, (line, state));
            if self.caches[host].len() > self.capacity {
                let gone = self.caches[host].pop().unwrap();
                sent.write_backs += u64::from(gone.1 == State::Modified);
            }
            sent
        }
    }

    #[test]
    fn what_leaves_the_filter_is_taken_back_and_what_leaves_a_cache_leaves_the_filter() {
        let mut one = Directory::new(1, 4, Some(1));
        one.access(0, 0, true);
        let sent = one.access(0, 1, false);
        let taken = (sent.back_invalidations, sent.invalidations);
        assert_eq!((taken, sent.write_backs), ((1, 0), 1));
        // The line that leaves the second host's cache makes room in the filter, and the first host keeps its line.
        let mut two = Directory::new(2, 1, Some(3));
        let all = [(0, 0), (1, 1), (1, 2), (1, 3)];
        let sent = all.map(|(host, line)| two.access(host, line, false).back_invalidations);
        assert_eq!(sent, [0; 4]);
    }

    fn accesses(hosts: u8) -> impl Strategy<Value = Vec<(Host, Line, bool)>> {
        prop::collection::vec((0..hosts, 0..12_u32, prop::bool::weighted(0.3)), 1..300)
    }

    proptest! {
        #[test]
        fn the_directory_is_what_caches_that_ask_everybody_do(
            all in accesses(5), capacity in 1_usize..14,
        ) {
            let mut directory = Directory::new(5, capacity, None);
            let mut naive = Naive { caches: vec![Vec::new(); 5], capacity };
            let mut writes = 0;
            let mut backs = 0;
            for (host, line, write) in all {
                let sent = directory.access(host, line, write);
                let theirs = naive.access(usize::from(host), line, write);
                prop_assert_eq!(Messages { down: 0, up: 0, ..sent }, theirs);
                prop_assert!(sent.down + sent.up >= 2 * (sent.fetches + sent.invalidations));
                writes += u64::from(write);
                backs += sent.write_backs;
                // A line is written back at most once for each write.
                prop_assert!(backs <= writes);
                for line in 0..12 {
                    let states: Vec<State> =
                        (0..5).filter_map(|host| naive.state(host, line)).collect();
                    let alone = states.iter().any(|state| *state != State::Shared);
                    prop_assert!(!alone || states.len() == 1, "one writer and no other copy");
                    let same = match directory.holders(line) {
                        Holders::None => states.is_empty(),
                        Holders::Alone { host, dirty } => {
                            naive.state(host.into(), line) == Some(match dirty {
                                true => State::Modified,
                                false => State::Exclusive,
                            })
                        }
                        // One that is left of several still shares: it is not informed that it is alone.
                        Holders::Shared(all) => all.count_ones() as usize == states.len()
                            && states.iter().all(|state| *state == State::Shared),
                    };
                    prop_assert!(same, "{:?} {:?}", directory.holders(line), states);
                }
            }
        }

        #[test]
        fn a_host_alone_and_hosts_that_only_read_invalidate_nothing(
            all in accesses(6), capacity in 1_usize..14,
        ) {
            let mut alone = Directory::new(1, capacity, None);
            let mut readers = Directory::new(6, capacity, None);
            for (host, line, write) in all {
                let sent = alone.access(0, line, write);
                prop_assert_eq!((sent.invalidations, sent.snoops, sent.waits, sent.upgrades), (0, 0, 0, 0));
                let sent = readers.access(host, line, false);
                prop_assert_eq!((sent.invalidations, sent.write_backs, sent.upgrades), (0, 0, 0));
            }
        }

        #[test]
        fn a_filter_tracks_all_that_is_cached_and_no_more_than_its_entries(
            all in accesses(4), capacity in 1_usize..14, entries in 1_usize..8,
        ) {
            let mut directory = Directory::new(4, capacity, Some(entries));
            let mut taken = 0;
            for &(host, line, write) in &all {
                let sent = directory.access(host, line, write);
                taken += sent.back_invalidations;
                let held = (0..12).filter(|&line| directory.holders(line) != Holders::None);
                prop_assert!(held.count() <= entries);
                for (host, cache) in directory.caches.iter().enumerate() {
                    for &line in cache.last.keys() {
                        let has = match directory.holders(line) {
                            Holders::None => false,
                            Holders::Alone { host: by, .. } => usize::from(by) == host,
                            Holders::Shared(all) => all & 1 << host != 0,
                        };
                        prop_assert!(has, "host {host} has line {line} without an entry");
                    }
                }
            }
            // One with an entry for each of the twelve lines takes nothing back.
            let mut large = Directory::new(4, capacity, Some(12));
            let mut full = Directory::new(4, capacity, None);
            for (host, line, write) in all {
                prop_assert_eq!(large.access(host, line, write), full.access(host, line, write));
            }
            prop_assert!(entries < 12 || taken == 0);
        }
    }
}
