//! One DRAM bank: which row is open, and when the bank accepts which command.

use crate::clock::Ps;
use crate::rng;

/// Timing of a bank in picoseconds (names as in JESD79).
#[derive(Debug, Clone, Copy)]
pub struct BankTiming {
    /// Column to data.
    pub cl: Ps,
    /// Activate to column.
    pub rcd: Ps,
    /// Precharge.
    pub rp: Ps,
    /// Activate to precharge, at least.
    pub ras: Ps,
    /// Write data to precharge.
    pub wr: Ps,
    /// Read to precharge.
    pub rtp: Ps,
    /// Four activations of a rank take at least this.
    pub faw: Ps,
    /// Length of a refresh.
    pub rfc: Ps,
    /// Time from one refresh to the next.
    pub refi: Ps,
    /// An open row is closed when it was idle for this long.
    pub idle_close: Ps,
}

/// The state of a bank after the last booked access. It fits one line of the processor's cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Bank {
    /// The row that stays open.
    row: u32,
    /// The row before it, which waiting requests may still use.
    previous_row: u32,
    /// The last request of the channel for which the scheduler searches such requests.
    previous_until: u64,
    /// When the current row's activation starts.
    activated: Ps,
    /// Earliest precharge.
    precharge_from: Ps,
    /// When an idle row is closed.
    closes: Ps,
    /// When the next refresh is due, when it starts, and the end of the one before; zero if there was none.
    refresh_due: Ps,
    refresh_at: Ps,
    refreshed: Ps,
}

/// A row number that no bank ever holds.
const CLOSED: u32 = u32::MAX;

/// The state in which an access finds its bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// The row is open, or will be when the access is served: a column access may come at this time.
    Open(Ps),
    /// The row must be activated, not before this time.
    Activate(Ps),
}

impl Bank {
    /// A closed bank whose first refresh is at `refresh_at`.
    pub fn new(refresh_at: Ps) -> Self {
        Self {
            row: CLOSED,
            previous_row: CLOSED,
            previous_until: 0,
            activated: 0,
            precharge_from: 0,
            closes: 0,
            refresh_due: refresh_at,
            refresh_at,
            refreshed: 0,
        }
    }

    /// The end of a refresh that covers `time`, or `time` itself. Refreshes close the row.
    #[inline(always)]
    pub fn after_refresh(&mut self, time: Ps, t: &BankTiming) -> Ps {
        if (time >= self.refreshed) & (time < self.refresh_at) {
            return time;
        }
        self.after_late_refresh(time, t)
    }

    /// The same for times that are not between the last refresh and the next.
    #[cold]
    #[inline(never)]
    fn after_late_refresh(&mut self, time: Ps, t: &BankTiming) -> Ps {
        if time >= self.refresh_at + t.rfc {
            self.next_refresh(time, t);
        }
        // Bookings are not in order of time, so the refresh before the next one may cover it.
        let end = if time >= self.refresh_at {
            self.refresh_at + t.rfc
        } else if time < self.refreshed && time + t.rfc >= self.refreshed {
            self.refreshed
        } else {
            return time;
        };
        self.row = CLOSED;
        self.previous_row = CLOSED;
        end
    }

    /// Moves on to the first refresh that does not end before `time`. A controller may delay a refresh
    /// (JESD79-4 §4.9); here each refresh starts up to a sixteenth of the interval late, so that nothing
    /// falls into step with refreshes. Banks that are due together start together.
    fn next_refresh(&mut self, time: Ps, t: &BankTiming) {
        while time >= self.refresh_at + t.rfc {
            self.refreshed = self.refresh_at + t.rfc;
            self.refresh_due += t.refi;
            self.refresh_at = self.refresh_due + rng::below(0, self.refresh_due, t.refi / 16);
        }
    }

    /// The state in which the channel's access number `request`, which arrives at `ready`, finds row `row`.
    #[inline]
    pub fn look(&mut self, row: u32, ready: Ps, request: u64, t: &BankTiming) -> RowState {
        let ready = self.after_refresh(ready, t);
        let idle = ready > self.closes;
        let open = (row == self.row) & !idle;
        // The switch away from this row has not begun, and the scheduler's window reaches this far.
        let still =
            (row == self.previous_row) & (ready < self.activated) & (request < self.previous_until);
        // Which of the two it is cannot be predicted.
        if open | still {
            return RowState::Open(ready);
        }
        let closed = idle | (self.row == CLOSED);
        let precharge = if closed { 0 } else { t.rp };
        RowState::Activate(ready.max(self.precharge_from) + precharge)
    }

    /// Opens `row` at `activate`, for the channel's access number `request`. A scheduler searches `window`
    /// more requests for ones that use the row before.
    #[inline]
    pub fn activate(&mut self, row: u32, activate: Ps, request: u64, window: u32, t: &BankTiming) {
        self.previous_row = self.row;
        self.previous_until = request + u64::from(window);
        self.row = row;
        self.activated = activate;
        self.precharge_from = activate + t.ras;
    }

    /// Books a column access to `row` after which the bank may be precharged at `recovered`, and whose data
    /// starts at `data`.
    #[inline]
    pub fn column(&mut self, row: u32, data: Ps, recovered: Ps, t: &BankTiming) {
        if row == self.row {
            self.precharge_from = self.precharge_from.max(recovered);
        }
        self.closes = self.closes.max(data + t.idle_close);
    }
}
