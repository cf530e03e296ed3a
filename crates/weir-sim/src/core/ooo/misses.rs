//! The demand loads that wait for lines, by the caches that these missed, and the time that passes meanwhile.

use super::tally::Tally;
use crate::clock::Ps;

/// Lines that are waited for, and the time of it. A line that missed one cache missed those before it, so time is
/// counted once, by the deepest miss, and added up when it is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Misses {
    /// Lines of which this is the last cache missed: 1 to 3. The first number has no meaning.
    lines: [u32; 4],
    /// The deepest miss, 0 if there is none.
    deepest: usize,
    /// Until when a load that hits L2 is outstanding.
    pub l2_hit_until: Ps,
    /// Time in which nothing was executed, by the deepest miss; the first is time without any.
    pub stalled: [Ps; 4],
    /// All time, with or without execution.
    all: [Ps; 4],
}

impl Misses {
    /// A line that counted as a miss of `from` caches counts as one of `to` caches, which are more: zero before it is
    /// waited for.
    #[inline(always)]
    pub fn begin(&mut self, from: u8, to: u8) {
        let (from, to) = (usize::from(from % 4), usize::from(to % 4));
        self.lines[from] = self.lines[from].wrapping_sub(1);
        self.lines[to] += 1;
        self.deepest = self.deepest.max(to);
    }

    /// A line that counted as a miss of `from` caches has arrived.
    #[inline(always)]
    pub fn end(&mut self, from: u8) {
        let from = usize::from(from % 4);
        self.lines[from] -= 1;
        if self.lines[from] == 0 {
            let level = |n: usize| n * usize::from(self.lines[n] > 0);
            self.deepest = level(1).max(level(2)).max(level(3));
        }
    }

    /// The time from `now` to `stop` in which a demand load that missed L1 is outstanding, and where it counts.
    #[inline(always)]
    fn time(&self, now: Ps, stop: Ps) -> Option<(usize, Ps)> {
        match self.deepest {
            0 if self.l2_hit_until <= now => None,
            0 => Some((1, self.l2_hit_until.min(stop) - now)),
            level => Some((level % 4, stop - now)),
        }
    }

    /// Counts, of the time from `now` to `stop`, the share in which nothing is executed while a demand load that
    /// missed L1 is outstanding, whatever the reason is: the events of the hardware do the same. Also counts
    /// all of that time, with or without execution.
    #[inline(always)]
    pub fn count(&mut self, now: Ps, stop: Ps, share: f64) {
        if let Some((level, time)) = self.time(now, stop) {
            // Signed numbers are converted by one instruction.
            self.stalled[level] += (time as i64 as f64 * share) as i64 as Ps;
            self.all[level] += time;
        }
    }

    /// The same if nothing is executed, or, in the kernel, everything. Returns the time.
    #[inline(always)]
    pub fn count_stall(&mut self, now: Ps, stop: Ps, kernel: bool) -> Ps {
        let Some((level, time)) = self.time(now, stop) else {
            return 0;
        };
        self.stalled[level] += if kernel { 0 } else { time };
        self.all[level] += time;
        time
    }

    /// Writes the times into the counts.
    pub fn put_into(&self, tally: &mut Tally) {
        for level in 0..4 {
            tally.stalls[level] = self.stalled[level..].iter().sum();
            if level > 0 {
                tally.missing[level - 1] = self.all[level..].iter().sum();
            }
        }
    }
}
