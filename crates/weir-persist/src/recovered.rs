//! A state of the pool after a crash, as recovery reads it. A line that may be in several states is decided when it is first read,
//! so that lines that recovery does not read multiply nothing.

use std::collections::BTreeMap;

use crate::event::{Holds, Requirement};
use crate::line::{Line, Part, Reached};
use crate::platform::Platform;

/// What recovery says of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is one that the program allows.
    Legal,
    /// It is not, with the reason.
    Illegal(String),
    /// Nothing: it was not checked.
    Unchecked,
}

/// The pool and what may be missing in it.
#[derive(Debug)]
pub(crate) struct Pool {
    /// What has arrived for sure, in whole lines.
    pub settled: Vec<u8>,
    /// Its bytes.
    pub bytes: usize,
    /// Lines with stores that may be missing.
    pub lines: BTreeMap<usize, Line>,
    /// The platform.
    pub platform: Platform,
}

impl Pool {
    /// Whether a part may be missing when this host crashes.
    pub fn may_miss(&self, line: &Line, part: &Part, crashed: u16) -> bool {
        let host = match part.streamed {
            true => part.actor.host,
            false => line.owner,
        };
        !self.platform.is_shared() || host == crashed
    }
}

/// A line that was read, and its states.
#[derive(Debug)]
pub(crate) struct Choice {
    pub line: usize,
    pub states: Vec<Reached>,
    pub taken: usize,
}

/// The choices of a run of recovery.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    pub made: Vec<Choice>,
    /// Whether some states of a line were left out.
    pub cut_short: bool,
}

impl Choices {
    /// Goes to the next state; `false` after the last.
    pub fn advance(&mut self) -> bool {
        while let Some(last) = self.made.last_mut() {
            last.taken += 1;
            if last.taken < last.states.len() {
                return true;
            }
            self.made.pop();
        }
        false
    }
}

/// A state of the pool.
#[derive(Debug)]
pub struct Recovered<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) choices: &'a mut Choices,
    pub(crate) crashed: u16,
    pub(crate) most: usize,
    pub(crate) mark: &'a str,
}

impl Recovered<'_> {
    /// Bytes at an offset; fewer where the pool ends.
    pub fn read(&mut self, at: u64, length: usize) -> Vec<u8> {
        let begin = usize::try_from(at).map_or(self.pool.bytes, |at| at.min(self.pool.bytes));
        let end = begin.saturating_add(length).min(self.pool.bytes);
        let mut bytes = self.pool.settled[begin..end].to_vec();
        let unit = self.pool.platform.unit();
        let lines = begin / unit..end.div_ceil(unit);
        let pool = self.pool;
        for (&number, line) in pool.lines.range(lines) {
            let state = self.line(number, line);
            let first = number * unit;
            let (from, to) = (begin.max(first), end.min(first + unit));
            bytes[from - begin..to - begin].copy_from_slice(&state[from - first..to - first]);
        }
        bytes
    }

    /// The number of 8 bytes at an offset, the lowest byte first; 0 outside the pool.
    pub fn number(&mut self, at: u64) -> u64 {
        let bytes = self.read(at, 8);
        bytes.try_into().map_or(0, u64::from_le_bytes)
    }

    /// The whole pool.
    pub fn image(&mut self) -> Vec<u8> {
        self.read(0, self.pool.bytes)
    }

    /// Whether it meets a requirement.
    pub fn meets(&mut self, requirement: &Requirement) -> bool {
        let asked = (requirement.if_holds.as_ref()).is_none_or(|it| self.holds(it));
        !asked || self.holds(&requirement.then)
    }

    fn holds(&mut self, it: &Holds) -> bool {
        let length = it.values.first().map_or(0, Vec::len);
        it.values.contains(&self.read(it.at, length))
    }

    /// The last mark before the crash; empty before the first.
    pub fn mark(&self) -> &str {
        self.mark
    }

    /// Whether the platform reports that data may be missing.
    pub fn shut_down_dirty(&self) -> bool {
        self.pool.platform.shuts_down_dirty()
    }

    fn line(&mut self, number: usize, line: &Line) -> Vec<u8> {
        let known = self.choices.made.iter().find(|made| made.line == number);
        if let Some(made) = known {
            return made.states[made.taken].bytes.clone();
        }
        let unit = self.pool.platform.unit();
        let settled = &self.pool.settled[number * unit..(number + 1) * unit];
        let may_miss = |part: &Part| self.pool.may_miss(line, part, self.crashed);
        let (states, more) = line.states(
            settled,
            may_miss,
            self.pool.platform.is_page_cache(),
            self.most,
        );
        self.choices.cut_short |= more;
        let bytes = states[0].bytes.clone();
        self.choices.made.push(Choice {
            line: number,
            states,
            taken: 0,
        });
        bytes
    }
}
