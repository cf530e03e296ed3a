//! One DRAM channel with its own scheduler: banks, data bus, write queue, refresh.

use std::collections::VecDeque;

use super::bank::{Bank, BankTiming};
use super::calendar::Calendar;
use super::rows::Rows;
use crate::clock::Ps;
use crate::divide::Divisor;

/// Constants of a channel.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// Bank timing.
    pub bank: BankTiming,
    /// Banks of a rank.
    pub banks: u32,
    /// Bank groups of a rank.
    pub groups: u32,
    /// Ranks.
    pub ranks: u32,
    /// Lines of a row.
    pub row_lines: u32,
    /// Time of one line read on the data bus, including all losses that the standard's timing does not show.
    pub read_slot: Ps,
    /// Time of one line written.
    pub write_slot: Ps,
    /// Bus turnaround, read to write and write to read.
    pub read_to_write: Ps,
    /// See `read_to_write`.
    pub write_to_read: Ps,
    /// Write-queue entries; a written line has one until its column is written.
    pub write_queue: u32,
    /// Waiting writes at which a turn of writes begins, and those that it leaves; the first is more.
    pub drain_at: u32,
    pub drain_to: u32,
    /// Writes by which turns begin and end earlier while no read comes.
    pub drain_alone: u32,
    /// Requests that the scheduler searches for an open row; 1 keeps the order of arrival.
    pub window: u32,
    /// Whether a refresh stops the rank, or one bank.
    pub refresh_stops_rank: bool,
}

/// The most banks of a rank: DDR5 has 32.
const MOST_BANKS: usize = 32;

/// Counts of a channel.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChannelCounts {
    /// Lines read.
    pub reads: u64,
    /// Lines written.
    pub writes: u64,
    /// Rows activated.
    pub activations: u64,
    /// Picoseconds that reads waited for their column, summed.
    pub read_queue_time: u64,
    /// Picoseconds that writes spent in the write queue, summed.
    pub write_queue_time: u64,
}

/// Which bits of a line's number select what. Counts that are no power of two are rounded down: DRAM has
/// none.
#[derive(Clone, Copy)]
struct AddressMap {
    group_bits: u32,
    group_mask: u64,
    /// Bits below those of the bank: the group and the column.
    below_bits: u32,
    /// Banks of a group, over all ranks.
    bank_bits: u32,
    bank_mask: u64,
    /// Bits of a bank's number within its rank.
    rank_bits: u32,
}

impl AddressMap {
    fn new(c: &ChannelConfig) -> Self {
        let group_bits = c.groups.max(1).ilog2();
        let bank_bits = (c.banks * c.ranks / c.groups.max(1)).max(1).ilog2();
        Self {
            group_bits,
            group_mask: (1 << group_bits) - 1,
            below_bits: group_bits + c.row_lines.max(1).ilog2(),
            bank_bits,
            bank_mask: (1 << bank_bits) - 1,
            rank_bits: c.banks.max(1).ilog2(),
        }
    }

    /// Bank and row of a line. Consecutive lines rotate over the bank groups, so that bursts follow each
    /// other at tCCD_S. Bank bits are permuted with row bits (Zhang, Zhu and Zhang, MICRO 2000), so that
    /// equal strides do not fall on one bank.
    #[inline(always)]
    fn locate(&self, line: u64) -> (u32, u32) {
        let rest = line >> self.below_bits;
        let row = rest >> self.bank_bits;
        let bank = (rest ^ row ^ (row >> 5)) & self.bank_mask;
        let bank = (line & self.group_mask) | (bank << self.group_bits);
        (bank as u32, row as u32)
    }

    /// The rank of a bank.
    #[inline(always)]
    fn rank(&self, bank: u32) -> usize {
        (bank >> self.rank_bits) as usize
    }
}

#[derive(Clone, Copy)]
struct PendingWrite {
    bank: u32,
    row: u32,
    accepted: Ps,
}

/// A channel.
pub struct Channel {
    config: ChannelConfig,
    map: AddressMap,
    banks: Vec<Bank>,
    rows: Rows,
    bus: Calendar,
    /// Start of the latest data, for controllers that keep the order of requests.
    last_data: Ps,
    pending: Vec<PendingWrite>,
    /// When the entries of the writes that are booked are free again, in order.
    leaving: VecDeque<Ps>,
    drain_at: usize,
    drain_to: usize,
    reads_at_drain: u64,
    owed: Ps,
    /// Writes of the current write turn: when each of them was ready, and its position in the queue.
    turn: Vec<(Ps, usize)>,
    /// Writes that come after the turn, each alone.
    stragglers: Vec<usize>,
    /// The latest write turn of each rank: from its first data until data of a read may start.
    write_turns: Vec<(Ps, Ps)>,
    counts: ChannelCounts,
    /// Sums over all reads: of arrival times, and of the times when their data started.
    ready_times: u64,
    data_times: u64,
}

impl Channel {
    /// An idle channel; `phase` (0..1) shifts its refreshes against those of other channels.
    pub fn new(config: ChannelConfig, phase: f64) -> Self {
        let n = config.banks * config.ranks;
        let t = &config.bank;
        let banks = (0..n)
            .map(|b| {
                // All banks of a rank refresh together, or the members of each bank group in turn.
                let turn = if config.refresh_stops_rank {
                    f64::from(b / config.banks) / f64::from(config.ranks)
                } else {
                    f64::from(b / config.groups) / f64::from(n / config.groups)
                };
                Bank::new((t.refi as f64 * ((phase + turn) % 1.0)) as Ps)
            })
            .collect();
        let paced = if t.faw / 4 > config.read_slot {
            config.ranks
        } else {
            0
        };
        let drain_at = config.drain_at as usize;
        Self {
            banks,
            rows: Rows::new(paced, &config.bank, config.window),
            bus: Calendar::new(config.read_slot),
            last_data: 0,
            pending: Vec::with_capacity(drain_at),
            leaving: VecDeque::with_capacity(config.write_queue as usize),
            drain_at,
            drain_to: config.drain_to.min(config.drain_at - 1) as usize,
            reads_at_drain: 0,
            owed: 0,
            turn: Vec::with_capacity(drain_at),
            stragglers: Vec::new(),
            write_turns: vec![(0, 0); config.ranks as usize],
            counts: ChannelCounts::default(),
            ready_times: 0,
            data_times: 0,
            map: AddressMap::new(&config),
            config,
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> ChannelCounts {
        let mut counts = self.counts;
        // Sums may wrap; their difference is right as long as it fits.
        let time = self.data_times.wrapping_sub(self.ready_times);
        counts.activations = self.rows.opened();
        counts.read_queue_time = time - counts.reads * self.config.bank.cl;
        counts
    }

    /// Reads a line that is requested at `ready`; returns when its data has crossed the bus.
    #[inline(always)]
    pub fn read(&mut self, line: u64, ready: Ps) -> Ps {
        let (bank, row) = self.map.locate(line);
        self.counts.reads += 1;
        self.ready_times = self.ready_times.wrapping_add(ready);
        let data = self.access(bank, row, ready);
        self.data_times = self.data_times.wrapping_add(data);
        data + self.config.read_slot
    }

    /// Whether a written line that comes at `at` finds an entry of the write queue.
    #[inline]
    pub fn has_room(&mut self, at: Ps) -> bool {
        let entries = self.config.write_queue as usize;
        while self.pending.len() + self.leaving.len() >= entries {
            match self.leaving.front() {
                Some(&left) if left <= at => self.leaving.pop_front(),
                _ => return false,
            };
        }
        true
    }

    /// When the next entry of a full write queue is free.
    pub fn next_room(&self) -> Ps {
        self.leaving.front().copied().unwrap_or(0)
    }

    /// Puts a line that comes at `ready` into the write queue as soon as an entry is free; returns when that
    /// is.
    #[inline]
    pub fn write(&mut self, line: u64, ready: Ps) -> Ps {
        let mut at = ready;
        if !self.has_room(ready) {
            at = self.leaving.pop_front().unwrap_or(ready);
        }
        self.enter(line, at);
        at
    }

    /// Puts a line into the write queue at `at`, where it has an entry. Returns whether it took the bus from reads
    /// for a turn of writes.
    #[inline]
    pub fn enter(&mut self, line: u64, at: Ps) -> bool {
        let (bank, row) = self.map.locate(line);
        self.counts.writes += 1;
        self.pending.push(PendingWrite {
            bank,
            row,
            accepted: at,
        });
        // No read waits: the next turn begins while the last one is written.
        let alone = self.counts.reads == self.reads_at_drain;
        let fewer = match alone {
            true => (self.config.drain_alone as usize).min(self.drain_to),
            false => 0,
        };
        let drains = self.pending.len() >= self.drain_at - fewer;
        if drains {
            self.drain(at, self.drain_to - fewer);
        }
        drains && !alone
    }

    /// Books the column access of a read: the first data slot after its row is open.
    #[inline(always)]
    fn access(&mut self, bank: u32, row: u32, ready: Ps) -> Ps {
        let (b, rank) = (&mut self.banks[bank as usize], self.map.rank(bank));
        let mut from = self.rows.open(b, rank, row, ready, &self.config.bank);
        let (turn, turned) = self.write_turns[rank];
        if from >= turn {
            from = from.max(turned);
        }
        let in_order = self.config.window <= 1;
        if in_order {
            // Data of an in-order controller does not overtake other data.
            from = from.max(self.last_data);
        }
        let t = &self.config.bank;
        let data = book_outside_refresh(&mut self.bus, b, &self.config, from);
        let recovered = data.saturating_sub(t.cl) + t.rtp;
        b.column(row, data, recovered, t);
        if in_order {
            self.last_data = self.last_data.max(data);
        }
        data
    }

    /// Writes the older part of the queue in one turn of the bus. All writes of a turn are of one rank: the
    /// rank with the most waiting writes which is not being refreshed. Rows are opened while reads continue.
    /// The turn starts when its writes can follow each other without a gap; until its last write, no read
    /// comes between.
    fn drain(&mut self, now: Ps, rest: usize) {
        let forced = self.pending.len() >= self.config.write_queue as usize;
        let wanted = (self.pending.len() - rest).max(1);
        let map = self.map;
        let rank_of = |write: &PendingWrite| map.rank(write.bank);
        let (mut rank, mut most) = (0, 0);
        for candidate in 0..self.config.ranks as usize {
            let bank = &mut self.banks[candidate << map.rank_bits];
            if bank.after_refresh(now, &self.config.bank) == now || forced {
                let n = self
                    .pending
                    .iter()
                    .filter(|w| rank_of(w) == candidate)
                    .count();
                if n > most {
                    (rank, most) = (candidate, n);
                }
            }
        }
        if most == 0 {
            return;
        }
        let mut turn = std::mem::take(&mut self.turn);
        // The turn takes one row per bank; a second row must wait until the first has recovered. A scheduler
        // that searches its whole queue leaves such writes for a later turn.
        let leaves = self.config.window >= self.config.write_queue && !forced;
        let mut rows = [None; MOST_BANKS];
        let mut stragglers = std::mem::take(&mut self.stragglers);
        for (i, write) in self.pending.iter().enumerate() {
            if rank_of(write) != rank {
                continue;
            }
            let row = &mut rows[write.bank as usize % MOST_BANKS];
            if *row.get_or_insert(write.row) == write.row {
                turn.push((0, i));
            } else if !leaves {
                stragglers.push(i);
            }
            if turn.len() + stragglers.len() == wanted {
                break;
            }
        }
        self.write_turn(rank, now, &mut turn);
        for &i in &stragglers {
            let write = self.pending[i];
            let (b, rank) = (
                &mut self.banks[write.bank as usize],
                self.map.rank(write.bank),
            );
            let from = write.accepted.max(now);
            let ready = self.rows.open(b, rank, write.row, from, &self.config.bank);
            self.write_at(i, ready);
        }
        self.pending.retain(|write| write.accepted != Ps::MAX);
        stragglers.clear();
        self.stragglers = stragglers;
        turn.clear();
        self.turn = turn;
    }

    /// Writes these entries of the queue: positions in the queue, in its order.
    fn write_turn(&mut self, rank: usize, now: Ps, turn: &mut [(Ps, usize)]) {
        let (read_slot, write_slot) = (self.config.read_slot, self.config.write_slot);
        for (ready, i) in turn.iter_mut() {
            let write = self.pending[*i];
            let b = &mut self.banks[write.bank as usize];
            let from = write.accepted.max(now);
            *ready = (self.rows).open(b, rank, write.row, from, &self.config.bank);
            close_row_after(b, &self.config, write.row, *ready);
        }
        turn.sort_unstable();
        let from_reads = self.counts.reads > self.reads_at_drain;
        self.reads_at_drain = self.counts.reads;
        // Each write may follow the one before at once.
        let mut start = now;
        for (k, (ready, _)) in turn.iter().enumerate() {
            start = start.max(ready.saturating_sub(k as Ps * read_slot));
        }
        if from_reads {
            start += self.config.read_to_write;
        }
        let mut last = start;
        for &(ready, i) in turn.iter() {
            last = last.max(self.write_at(i, start.max(ready)));
        }
        // The time of a write beyond a read's slot is added up until it fills slots.
        self.owed += turn.len() as Ps * write_slot.saturating_sub(read_slot);
        while self.owed >= read_slot {
            self.owed -= read_slot;
            last = last.max(self.bus.book(start));
        }
        if from_reads {
            // Reads of other ranks follow when the bus has changed its driver. Reads of this rank keep the
            // distances from the last write data to the read command and to the read data.
            let done = last + read_slot;
            self.bus.close(start, done + self.config.read_to_write / 2);
            let turned = done + self.config.write_to_read + self.config.bank.cl;
            self.write_turns[rank] = (start, turned);
        }
    }

    /// Writes the line at this position of the queue, from `ready` on; returns when its data starts.
    fn write_at(&mut self, place: usize, ready: Ps) -> Ps {
        let write = self.pending[place];
        let b = &mut self.banks[write.bank as usize];
        let data = book_outside_refresh(&mut self.bus, b, &self.config, ready);
        close_row_after(b, &self.config, write.row, data);
        let done = data + self.config.write_slot;
        // The entry is free when the column is written to.
        let left = data.saturating_sub(self.config.bank.cl).max(write.accepted);
        let after = (self.leaving.iter().rev())
            .take_while(|&&l| l > left)
            .count();
        match after {
            0 => self.leaving.push_back(left),
            _ => self.leaving.insert(self.leaving.len() - after, left),
        }
        self.counts.write_queue_time += done - write.accepted;
        // It is removed from the queue at the end of the turn.
        self.pending[place].accepted = Ps::MAX;
        data
    }
}

/// Books the first data slot from `from` on that no refresh of the bank covers.
#[inline(always)]
fn book_outside_refresh(bus: &mut Calendar, b: &mut Bank, c: &ChannelConfig, from: Ps) -> Ps {
    let data = bus.book(from);
    if c.refresh_stops_rank {
        let after = b.after_refresh(data, &c.bank);
        if after > data {
            return book_after_refresh(bus, after, &c.bank);
        }
    }
    data
}

/// The same if the slot falls into a refresh that ends at `after`; that slot stays unused.
#[cold]
#[inline(never)]
fn book_after_refresh(bus: &mut Calendar, after: Ps, t: &BankTiming) -> Ps {
    bus.book(after + t.rcd + t.cl)
}

/// A bank that was written may be closed when the row has recovered from the write.
fn close_row_after(b: &mut Bank, c: &ChannelConfig, row: u32, data: Ps) {
    let t = &c.bank;
    let recovered = data + c.write_slot + t.wr;
    b.column(row, data, recovered, t);
}

/// How the lines of a tier are spread over its channels.
#[derive(Debug, Clone, Copy)]
pub struct Interleave {
    channels: Divisor,
    /// Bits that select the channel, if all their values are channels.
    bits: Option<u32>,
}

impl Interleave {
    /// Over `channels` channels.
    pub fn over(channels: u32) -> Self {
        let bits = channels.is_power_of_two().then(|| channels.ilog2());
        Self {
            channels: Divisor::new(u64::from(channels)),
            bits,
        }
    }

    /// The channel of a line, and the line's number within it. Higher bits are folded in, so that strides are
    /// spread too.
    #[inline(always)]
    pub fn locate(&self, line: u64) -> (u32, u64) {
        match self.bits {
            Some(bits) => {
                let within = line >> bits;
                let fold = within.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
                (((line ^ fold) & (self.channels.get() - 1)) as u32, within)
            }
            None => {
                let within = self.channels.div_rem(line).0;
                let channel = self.channels.div_rem(line + within / 8 + within / 64).1;
                (channel as u32, within)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// One channel of DDR4-2666, one rank (JESD79-4 speed bin).
    fn ddr4() -> ChannelConfig {
        ChannelConfig {
            bank: BankTiming {
                cl: 14_250,
                rcd: 14_250,
                rp: 14_250,
                ras: 32_000,
                wr: 15_000,
                rtp: 7_500,
                faw: 21_000,
                rfc: 350_000,
                refi: 7_800_000,
                idle_close: 1_500_000,
            },
            banks: 16,
            groups: 4,
            ranks: 1,
            row_lines: 128,
            read_slot: 3_000,
            write_slot: 3_000,
            read_to_write: 8_000,
            write_to_read: 5_000,
            write_queue: 48,
            drain_at: 38,
            drain_to: 18,
            drain_alone: 9,
            window: 48,
            refresh_stops_rank: true,
        }
    }

    /// Lines per microsecond of a closed loop of `depth` requests.
    fn throughput(depth: usize, n: u64, mut access: impl FnMut(u64, Ps) -> Ps) -> f64 {
        let mut slots = vec![0; depth];
        let mut last = 0;
        for i in 0..n {
            let free = (0..depth).min_by_key(|&s| slots[s]).unwrap();
            slots[free] = access(i, slots[free]);
            last = last.max(slots[free]);
        }
        n as f64 / (last as f64 / 1e6)
    }

    #[test]
    fn sequential_lines_fill_the_bus_but_for_refresh() {
        let peak = 1e6 / 3000.0 * (1.0 - 350.0 / 7800.0);
        let mut channel = Channel::new(ddr4(), 0.0);
        let reads = throughput(64, 100_000, |i, t| channel.read(i, t));
        let mut channel = Channel::new(ddr4(), 0.0);
        let writes = throughput(64, 100_000, |i, t| channel.write(i, t));
        for (what, lines) in [("reads", reads), ("writes", writes)] {
            assert!(
                lines > 0.96 * peak && lines < 1.005 * peak,
                "{what}: {lines} of {peak}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_line_has_a_place_of_its_own(channels in 1u32..17, start in 0u64..1 << 30) {
            let interleave = Interleave::over(channels);
            let mut places = HashSet::new();
            let mut load = vec![0u32; channels as usize];
            for line in start..start + 960 {
                let (channel, within) = interleave.locate(line);
                prop_assert!(places.insert((channel, within)));
                load[channel as usize] += 1;
            }
            let (low, high) = (load.iter().min().unwrap(), load.iter().max().unwrap());
            prop_assert!(*high - *low <= 960 / channels / 2 + 2, "{load:?}");
        }
    }
}
