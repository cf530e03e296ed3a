//! What opens the rows of a channel: the scheduler's window of requests, and the pace of activations. It is apart from the
//! banks, so that a read looks for its bank once.

use super::bank::{Bank, BankTiming, RowState};
use super::calendar::Calendar;
use crate::clock::Ps;

/// The rows of all banks of a channel.
pub struct Rows {
    /// Requests that the scheduler searches for an open row.
    window: u32,
    /// Column accesses so far.
    requests: u64,
    /// Rows opened so far.
    opened: u64,
    /// Activations of each rank, at most one in a quarter of tFAW; empty if this limit is never longer than
    /// the bus takes for a line.
    activations: Vec<Calendar>,
}

impl Rows {
    /// Activations of this many ranks have a limit.
    pub fn new(paced: u32, t: &BankTiming, window: u32) -> Self {
        Self {
            window,
            requests: 0,
            opened: 0,
            activations: (0..paced).map(|_| Calendar::new(t.faw / 4)).collect(),
        }
    }

    /// How many were opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Opens a row of a bank for a column access; returns when its data may start.
    #[inline(always)]
    pub fn open(&mut self, b: &mut Bank, rank: usize, row: u32, ready: Ps, t: &BankTiming) -> Ps {
        self.requests += 1;
        let column = match b.look(row, ready, self.requests, t) {
            RowState::Open(at) => at,
            RowState::Activate(from) => {
                let activate = if self.activations.is_empty() {
                    from
                } else {
                    self.activations[rank].book(from)
                };
                b.activate(row, activate, self.requests, self.window, t);
                self.opened += 1;
                activate + t.rcd
            }
        };
        column + t.cl
    }
}
