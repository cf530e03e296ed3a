//! A directory that keeps the caches of several hosts coherent, line by line, with every message counted.
//!
//! The states are those of MESI. The directory is at the memory device, as for memory that hosts share since CXL 3.0
//! (HDM-DB): it knows for each line who shares it or which host has it alone, and not whether that host wrote to it, so
//! that another host's read has to ask there too (back-invalidate snoop).

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

/// The number of a line.
pub type Line = u32;
/// The number of a host.
pub type Host = u8;
/// Hosts at most.
pub const MOST_HOSTS: usize = 64;

/// Who has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Holders {
    /// Nobody: memory has the only copy.
    #[default]
    Nobody,
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
    /// Requests to a host to give up a line.
    pub invalidations: u64,
    /// Lines that hosts wrote to memory.
    pub write_backs: u64,
    /// Accesses that waited for the answers of other hosts.
    pub waits: u64,
}

impl Messages {
    /// Adds others.
    pub fn add(&mut self, more: &Self) {
        self.fetches += more.fetches;
        self.upgrades += more.upgrades;
        self.snoops += more.snoops;
        self.invalidations += more.invalidations;
        self.write_backs += more.write_backs;
        self.waits += more.waits;
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
    now: u64,
}

impl Directory {
    /// Hosts with empty caches of so many lines each.
    pub fn new(hosts: usize, capacity: usize) -> Self {
        Self {
            lines: HashMap::new(),
            caches: vec![Cache::default(); hosts.clamp(1, MOST_HOSTS)],
            capacity: capacity.max(1),
            now: 0,
        }
    }

    /// Who has a line.
    pub fn holders(&self, line: Line) -> Holders {
        self.lines.get(&line).copied().unwrap_or_default()
    }

    /// A host reads a line, or writes it; returns the messages that this takes.
    pub fn access(&mut self, host: Host, line: Line, write: bool) -> Messages {
        let mut sent = Messages::default();
        let own = 1_u64 << host;
        let next = match (self.holders(line), write) {
            (Holders::Alone { host: by, dirty }, _) if by == host => Holders::Alone {
                host,
                dirty: dirty || write,
            },
            (Holders::Shared(all), false) if all & own != 0 => Holders::Shared(all),
            (Holders::Nobody, _) => {
                sent.fetches += 1;
                Holders::Alone { host, dirty: write }
            }
            (Holders::Alone { host: by, dirty }, _) => {
                sent.fetches += 1;
                sent.waits += 1;
                sent.write_backs += u64::from(dirty);
                if write {
                    sent.invalidations += 1;
                    self.forget(by, line);
                    Holders::Alone { host, dirty: true }
                } else {
                    sent.snoops += 1;
                    Holders::Shared(1 << by | own)
                }
            }
            (Holders::Shared(all), false) => {
                sent.fetches += 1;
                Holders::Shared(all | own)
            }
            (Holders::Shared(all), true) => {
                let others = all & !own;
                if all & own == 0 {
                    sent.fetches += 1;
                } else {
                    sent.upgrades += 1;
                }
                sent.invalidations += u64::from(others.count_ones());
                sent.waits += u64::from(others != 0);
                for by in (0..MOST_HOSTS as Host).filter(|by| others & 1 << by != 0) {
                    self.forget(by, line);
                }
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
                sent.write_backs += self.evict(host, oldest);
            }
        }
        sent
    }

    fn forget(&mut self, host: Host, line: Line) {
        if let Some(cache) = self.caches.get_mut(usize::from(host)) {
            cache.last.remove(&line);
        }
    }

    /// A host has no room for a line; returns whether it writes the line to memory.
    fn evict(&mut self, host: Host, line: Line) -> u64 {
        let (next, wrote) = match self.holders(line) {
            Holders::Alone { dirty, .. } => (Holders::Nobody, u64::from(dirty)),
            Holders::Shared(all) => match all & !(1 << host) {
                0 => (Holders::Nobody, 0),
                left => (Holders::Shared(left), 0),
            },
            Holders::Nobody => (Holders::Nobody, 0),
        };
        self.lines.insert(line, next);
        wrote
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

    fn accesses(hosts: u8) -> impl Strategy<Value = Vec<(Host, Line, bool)>> {
        prop::collection::vec((0..hosts, 0..12_u32, prop::bool::weighted(0.3)), 1..300)
    }

    proptest! {
        #[test]
        fn the_directory_is_what_caches_that_ask_everybody_do(
            all in accesses(5), capacity in 1_usize..14,
        ) {
            let mut directory = Directory::new(5, capacity);
            let mut naive = Naive { caches: vec![Vec::new(); 5], capacity };
            let mut writes = 0;
            let mut backs = 0;
            for (host, line, write) in all {
                let sent = directory.access(host, line, write);
                let theirs = naive.access(usize::from(host), line, write);
                prop_assert_eq!(sent, theirs);
                writes += u64::from(write);
                backs += sent.write_backs;
                // A line is written back at most once for each write.
                prop_assert!(backs <= writes);
                for line in 0..12 {
                    let states: Vec<State> =
                        (0..5).filter_map(|host| naive.state(host, line)).collect();
                    let alone = states.iter().any(|state| *state != State::Shared);
                    prop_assert!(!alone || states.len() == 1, "one writer and nobody else");
                    let same = match directory.holders(line) {
                        Holders::Nobody => states.is_empty(),
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
            let mut alone = Directory::new(1, capacity);
            let mut readers = Directory::new(6, capacity);
            for (host, line, write) in all {
                let sent = alone.access(0, line, write);
                prop_assert_eq!((sent.invalidations, sent.snoops, sent.waits, sent.upgrades), (0, 0, 0, 0));
                let sent = readers.access(host, line, false);
                prop_assert_eq!((sent.invalidations, sent.write_backs, sent.upgrades), (0, 0, 0));
            }
        }
    }
}
