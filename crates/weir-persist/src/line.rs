//! One cache line: its stores that may not have arrived, and which of them may be missing together.
//!
//! Aligned words of 8 bytes arrive whole. Of a line, cached stores arrive in program order; words of one store in any order.
//! Non-temporal stores arrive in any order, but two stores to one word never change places.

use crate::event::{Actor, Place};

/// Bytes of a line.
pub const LINE: usize = 64;
/// Bytes that arrive whole.
pub const WORD: usize = 8;
/// Newest parts of a line that may be missing; older ones are taken to have arrived.
pub const MOST_MISSING: usize = 128;

/// The part of a store that is in one word.
#[derive(Debug, Clone)]
pub struct Part {
    /// The number of its event.
    pub seq: u64,
    /// Where it is from.
    pub place: Place,
    /// Whether it is a non-temporal store's.
    pub streamed: bool,
    /// The thread that stored.
    pub actor: Actor,
    /// The first byte in the line.
    pub begin: usize,
    /// Its bytes, within one word.
    pub bytes: ([u8; WORD], usize),
}

impl Part {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes.0[..self.bytes.1]
    }

    fn word(&self) -> u64 {
        1 << (self.begin / WORD)
    }

    fn apply(&self, line: &mut [u8]) {
        line[self.begin..self.begin + self.bytes.1].copy_from_slice(self.bytes());
    }
}

/// Later parts that have arrived, and so what must have before them.
#[derive(Clone, Copy, Default)]
struct Arrived {
    newest: Option<u64>,
    words: u64,
}

impl Arrived {
    fn forces(self, part: &Part) -> bool {
        let ordered = !part.streamed && self.newest.is_some_and(|seq| seq > part.seq);
        ordered || self.words & part.word() != 0
    }

    fn with(mut self, part: &Part) -> Self {
        if !part.streamed {
            self.newest = self.newest.max(Some(part.seq));
        }
        self.words |= part.word();
        self
    }
}

/// A state of a line.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Which parts have arrived, in the order of [`Line::parts`].
    pub arrived: Vec<bool>,
}

/// A line with stores that may not have arrived.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// In program order.
    pub parts: Vec<Part>,
    /// The host whose cache has it.
    pub owner: u16,
}

impl Line {
    /// Takes parts to have arrived, with all that must be there before them, and writes them to the pool.
    pub fn settle(&mut self, pool: &mut [u8], sure: impl Fn(&Part) -> bool) {
        let mut after = Arrived::default();
        let mut arrived: Vec<bool> = (self.parts.iter().rev())
            .map(|part| {
                let there = sure(part) || after.forces(part);
                if there {
                    after = after.with(part);
                }
                there
            })
            .collect();
        arrived.reverse();
        for (part, _) in self.parts.iter().zip(&arrived).filter(|(_, there)| **there) {
            part.apply(pool);
        }
        let mut at = arrived.iter();
        self.parts.retain(|_| at.next() != Some(&true));
    }

    /// The states that differ, that with everything first; at most `most`. The second value is whether there are more. Where stores
    /// are `whole`, all words of one arrive together, and so states are few: none is left out.
    pub fn states(
        &self,
        pool: &[u8],
        may_miss: impl Fn(&Part) -> bool,
        whole: bool,
        most: usize,
    ) -> (Vec<Reached>, bool) {
        let oldest = match whole {
            true => 0,
            false => self.parts.len().saturating_sub(MOST_MISSING),
        };
        let mut more = self.parts[..oldest].iter().any(&may_miss);
        let mut found: Vec<Reached> = Vec::new();
        // Each entry: the parts before this are undecided, what later ones force, and what was decided.
        let mut open: Vec<(usize, Arrived, Vec<bool>)> =
            vec![(self.parts.len(), Arrived::default(), Vec::new())];
        while let Some((left, after, mut decided)) = open.pop() {
            let Some(part) = left.checked_sub(1).map(|at| &self.parts[at]) else {
                decided.reverse();
                let state = self.apply(pool, decided);
                if found.iter().any(|known| known.bytes == state.bytes) {
                    continue;
                }
                if found.len() == most {
                    more = true;
                    break;
                }
                found.push(state);
                continue;
            };
            let same = |later: &Part| whole && later.seq == part.seq;
            if let (true, Some(&there)) = (self.parts.get(left).is_some_and(same), decided.last()) {
                let after = if there { after.with(part) } else { after };
                decided.push(there);
                open.push((left - 1, after, decided));
                continue;
            }
            if left > oldest && may_miss(part) && !after.forces(part) {
                let mut without: Vec<bool> = decided.clone();
                without.push(false);
                open.push((left - 1, after, without));
            }
            decided.push(true);
            open.push((left - 1, after.with(part), decided));
        }
        (found, more)
    }

    fn apply(&self, pool: &[u8], arrived: Vec<bool>) -> Reached {
        let mut bytes = pool.to_vec();
        for (part, _) in self.parts.iter().zip(&arrived).filter(|(_, there)| **there) {
            part.apply(&mut bytes);
        }
        Reached { bytes, arrived }
    }
}
