//! Which accesses leave the first-level cache: tags of 32 KiB in 8 ways, as in most x86-64 cores before 2019.
//!
//! A described program counts accesses to its regions without those that never leave L1. Larger L1 caches of later
//! cores change little: what 48 KiB hold and 32 KiB do not is in L2 of all of them. What is noted of accesses is kept with
//! their line until it leaves, so that a hit touches nothing else.

/// Lines of the cache.
pub const LINES: u64 = 512;
const WAYS: usize = 8;
const SETS: usize = LINES as usize / WAYS;
/// No line: addresses have 58 bits above those within a line.
const NONE: u64 = u64::MAX;

/// What was noted of a line since it came, or since the last account.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noted {
    /// When it was used last.
    pub time: u64,
    /// Accesses, and those that store.
    pub accesses: u32,
    pub stores: u32,
    /// Bytes of accesses.
    pub bytes: u32,
    /// Accesses to another line than the access before.
    pub uses: u32,
}

/// What is known of the whole stay of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stay {
    /// Whether it was stored to.
    pub written: bool,
    /// Whether its first access was a load.
    pub loaded: bool,
}

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Set {
    tags: [u64; WAYS],
    noted: [Noted; WAYS],
    stays: [Stay; WAYS],
    latest: u8,
}

/// The tags, and what is noted with them.
#[derive(Debug)]
pub struct L1 {
    sets: Box<[Set; SETS]>,
    last: u64,
    /// Lines that are there.
    pub held: u64,
}

/// A line that left, with what was noted of it.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    pub line: u64,
    pub noted: Noted,
    pub stay: Stay,
}

/// Lines whose distance is a power of two are in different sets, unlike in hardware: a description has no addresses.
#[inline]
fn set_of(line: u64) -> usize {
    ((line ^ line >> 6 ^ line >> 12 ^ line >> 18) % SETS as u64) as usize
}

impl L1 {
    pub fn new() -> Self {
        let empty = Set {
            tags: [NONE; WAYS],
            noted: [Noted::default(); WAYS],
            stays: [Stay::default(); WAYS],
            latest: 0,
        };
        Self {
            sets: Box::new([empty; SETS]),
            last: NONE,
            held: 0,
        }
    }

    /// Accesses a line if it is there; whether it was.
    #[inline(always)]
    pub fn hit(&mut self, line: u64, now: u64, bytes: u32, store: bool) -> bool {
        let set = &mut self.sets[set_of(line)];
        let mut way = set.latest as usize % WAYS;
        if set.tags[way] != line {
            // All are compared, since a loop that ends early has a branch that is predicted wrong.
            let mut found = WAYS;
            for (at, tag) in set.tags.iter().enumerate() {
                if *tag == line {
                    found = at;
                }
            }
            if found == WAYS {
                return false;
            }
            way = found;
            set.latest = way as u8;
        }
        let noted = &mut set.noted[way];
        noted.time = now;
        noted.accesses += 1;
        noted.stores += u32::from(store);
        noted.bytes += bytes;
        noted.uses += u32::from(line != self.last);
        self.last = line;
        true
    }

    /// A line comes that was not there; what had to leave for it.
    #[inline]
    pub fn fill(&mut self, line: u64, now: u64, bytes: u32, store: bool) -> Option<Left> {
        let set = &mut self.sets[set_of(line)];
        let mut way = 0;
        for at in 1..WAYS {
            // A way without a line has the time 0.
            if set.noted[at].time < set.noted[way].time {
                way = at;
            }
        }
        let left = Left {
            line: set.tags[way],
            noted: set.noted[way],
            stay: stay(set.stays[way], set.noted[way]),
        };
        set.tags[way] = line;
        set.latest = way as u8;
        set.stays[way] = Stay {
            written: false,
            loaded: !store,
        };
        set.noted[way] = Noted {
            time: now,
            accesses: 1,
            stores: u32::from(store),
            bytes,
            uses: u32::from(line != self.last),
        };
        self.last = line;
        let is_line = left.line != NONE;
        self.held += u64::from(!is_line);
        is_line.then_some(left)
    }

    /// Gives an account of all lines, which stay.
    pub fn account(&mut self, mut of: impl FnMut(u64, &Noted)) {
        for set in self.sets.iter_mut() {
            for (way, &line) in set.tags.iter().enumerate() {
                if line != NONE {
                    of(line, &set.noted[way]);
                    set.stays[way] = stay(set.stays[way], set.noted[way]);
                    let time = set.noted[way].time;
                    set.noted[way] = Noted {
                        time,
                        ..Noted::default()
                    };
                }
            }
        }
    }

    /// The lines that are there, with what is known of their stay; none is there then.
    pub fn empty(&mut self) -> Vec<Left> {
        let mut all = Vec::new();
        for set in self.sets.iter() {
            for way in (0..WAYS).filter(|&way| set.tags[way] != NONE) {
                all.push(Left {
                    line: set.tags[way],
                    noted: set.noted[way],
                    stay: stay(set.stays[way], set.noted[way]),
                });
            }
        }
        all.sort_unstable_by_key(|left| left.noted.time);
        *self = Self::new();
        all
    }
}

/// A stay with what was noted since the last account.
fn stay(before: Stay, noted: Noted) -> Stay {
    Stay {
        written: before.written || noted.stores > 0,
        ..before
    }
}
