//! One DRAM bank: which row is open, and when it may do what next.

use crate::clock::Ps;

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
    /// An open row that nobody used for this long is closed.
    pub idle_close: Ps,
}

/// The state of a bank.
#[derive(Debug, Clone, Copy)]
pub struct Bank {
    /// Row that the last booked access leaves open.
    row: u32,
    /// The row before that, which requests already in the queue may still use.
    previous_row: u32,
    /// Requests of the channel when the row was switched, to bound how far the scheduler looks.
    switched_at_request: u64,
    /// When the current row's activation starts.
    activated: Ps,
    /// Earliest precharge.
    precharge_from: Ps,
    /// When the bank was last used.
    last_use: Ps,
    /// Start of the next refresh.
    pub refresh_at: Ps,
}

/// A row number no bank ever holds.
const CLOSED: u32 = u32::MAX;

/// How an access finds its bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// The row is open (or will be when the access is served).
    Hit,
    /// The row must be activated, at the earliest at this time, after any precharge.
    Activate(Ps),
}

impl Bank {
    /// A closed bank whose first refresh is at `refresh_at`.
    pub fn new(refresh_at: Ps) -> Self {
        Self {
            row: CLOSED,
            previous_row: CLOSED,
            switched_at_request: 0,
            activated: 0,
            precharge_from: 0,
            last_use: 0,
            refresh_at,
        }
    }

    /// The end of a refresh that covers `time`, or `time` itself. Refreshes close the row.
    #[inline]
    pub fn after_refresh(&mut self, time: Ps, t: &BankTiming) -> Ps {
        while time >= self.refresh_at + t.rfc {
            self.refresh_at += t.refi;
        }
        // Bookings are not in order of time: the refresh before the next may be the one.
        let start = if time >= self.refresh_at {
            self.refresh_at
        } else if time + t.refi < self.refresh_at + t.rfc && self.refresh_at >= t.refi {
            self.refresh_at - t.refi
        } else {
            return time;
        };
        if time < start {
            return time;
        }
        self.row = CLOSED;
        self.previous_row = CLOSED;
        start + t.rfc
    }

    /// How an access that arrives at `ready` as the channel's `request`th finds row `row`, where
    /// the scheduler looks over `window` requests.
    #[inline]
    pub fn look(&self, row: u32, ready: Ps, request: u64, window: u32, t: &BankTiming) -> RowState {
        if row == self.row {
            let stale = ready > self.last_use + t.idle_close;
            if !stale {
                return RowState::Hit;
            }
            return RowState::Activate(ready);
        }
        if row == self.previous_row
            && ready < self.activated
            && request - self.switched_at_request < u64::from(window)
        {
            // The switch away from this row has not begun, and the scheduler can see this far.
            return RowState::Hit;
        }
        let closed = self.row == CLOSED || ready > self.last_use + t.idle_close;
        let precharge = if closed { 0 } else { t.rp };
        RowState::Activate(ready.max(self.precharge_from) + precharge)
    }

    /// Opens `row` at `activate`.
    #[inline]
    pub fn activate(&mut self, row: u32, activate: Ps, request: u64, t: &BankTiming) {
        self.previous_row = self.row;
        self.row = row;
        self.switched_at_request = request;
        self.activated = activate;
        self.precharge_from = activate + t.ras;
    }

    /// Books a column access whose data starts at `data`.
    #[inline]
    pub fn column(&mut self, row: u32, data: Ps, write: bool, burst: Ps, t: &BankTiming) {
        let recovery = if write { data + burst + t.wr } else { data - t.cl.min(data) + t.rtp };
        if row == self.row {
            self.precharge_from = self.precharge_from.max(recovery);
        }
        self.last_use = self.last_use.max(data);
    }
}
