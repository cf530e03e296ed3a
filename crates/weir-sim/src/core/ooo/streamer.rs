//! The L2 streamer: it watches the requests that reach L2, separately for each page, and runs ahead of
//! ascending ones, up to the end of their page ("prefetched cache lines must be in the same 4K page", Intel
//! Optimization Reference Manual 248966). It is trained again on every page.

/// Pages that it watches at once (Intel Optimization Reference Manual 248966: "one forward or backward stream
/// can be maintained per page", 32 streams).
const PAGES: usize = 32;
/// log2 of the lines of a page.
const PAGE_BITS: u32 = 6;
/// A request at most this many lines after the last one continues the same run.
const REACH: u64 = 2;

/// A run of requests.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// The line that was requested last.
    last: u64,
    /// Requests of the run.
    seen: u32,
    /// The line that is prefetched next.
    ahead: u64,
    /// When it was used last, counted in requests.
    used: u64,
    /// Lines of the page that it brought into the last-level cache alone, one bit each.
    llc: u64,
}

/// The streamer of a core.
#[derive(Debug)]
pub struct Streamer {
    runs: [Run; PAGES],
    /// A byte of each run's page, so that a look-up reads few runs.
    prints: [u64; PAGES / 8],
    now: u64,
    training: u32,
    distance: u64,
    degree: u32,
    /// Whether it ever brought a line into the last-level cache alone.
    any_llc: bool,
}

/// The lines that the streamer requests: from one up to before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Its run.
    slot: usize,
    /// The first line.
    pub from: u64,
    /// The line after the last.
    pub to: u64,
}

impl Streamer {
    /// A streamer that follows a run after `training` requests, up to `distance` lines ahead of them and
    /// `degree` lines at a time.
    pub fn new(training: u32, distance: u64, degree: u32) -> Self {
        Self {
            runs: [Run::default(); PAGES],
            prints: [0; PAGES / 8],
            now: 0,
            training,
            distance,
            degree,
            any_llc: false,
        }
    }

    /// Switches it on with a distance, or off with zero.
    pub fn set_distance(&mut self, distance: u64) {
        self.distance = distance;
    }

    /// The run in a page.
    #[inline]
    fn run_of(&self, page: u64) -> Option<usize> {
        const BYTES: u64 = 0x0101_0101_0101_0101;
        for (group, prints) in self.prints.iter().enumerate() {
            let differs = prints ^ (BYTES * (page & 0xff));
            // Of each byte, the highest bit; the lowest of them is right, and the others may be wrong.
            let mut alike = differs.wrapping_sub(BYTES) & !differs & (BYTES << 7);
            while alike != 0 {
                let slot = group * 8 + alike.trailing_zeros() as usize / 8;
                let run = &self.runs[slot];
                if run.seen > 0 && run.last >> PAGE_BITS == page {
                    return Some(slot);
                }
                alike &= alike - 1;
            }
        }
        None
    }

    /// Sees a request for a line, and returns the lines that it may request now. What it did request, it must
    /// be told by [`Streamer::requested`]; the others it offers again.
    pub fn see(&mut self, line: u64) -> Option<Wanted> {
        self.now += 1;
        let page = line >> PAGE_BITS;
        let Some(slot) = self.run_of(page) else {
            let oldest = (0..PAGES).min_by_key(|&i| self.runs[i].used).unwrap_or(0);
            let shift = oldest % 8 * 8;
            let prints = &mut self.prints[oldest / 8];
            *prints = (*prints & !(0xff << shift)) | (page & 0xff) << shift;
            self.runs[oldest] = Run {
                last: line,
                seen: 1,
                ahead: line + 1,
                used: self.now,
                llc: 0,
            };
            return None;
        };
        let run = &mut self.runs[slot];
        run.used = self.now;
        if line > run.last {
            run.seen = if line <= run.last + REACH || line < run.ahead {
                run.seen + 1
            } else {
                1
            };
            run.last = line;
            if run.seen == 1 {
                run.ahead = line + 1;
            }
        } else if line + REACH < run.last {
            // The run starts again, further back.
            *run = Run {
                last: line,
                seen: 1,
                ahead: line + 1,
                used: self.now,
                llc: run.llc,
            };
        }
        if run.seen < self.training || self.distance == 0 {
            return None;
        }
        let from = run.ahead.max(run.last + 1);
        let to = (run.last + 1 + self.distance)
            .min(from + u64::from(self.degree))
            .min((page + 1) << PAGE_BITS);
        if from >= to {
            return None;
        }
        run.ahead = from;
        Some(Wanted { slot, from, to })
    }

    /// It requested the wanted lines before `ahead`.
    pub fn requested(&mut self, wanted: Wanted, ahead: u64) {
        self.runs[wanted.slot].ahead = ahead;
    }

    /// A line that it requested is in the last-level cache now.
    pub fn fill_llc(&mut self, line: u64) {
        if let Some(slot) = self.run_of(line >> PAGE_BITS) {
            self.runs[slot].llc |= 1 << (line % (1 << PAGE_BITS));
            self.any_llc = true;
        }
    }

    /// Whether it brought a line into the last-level cache alone. The line goes to L2 then.
    pub fn take_from_llc(&mut self, line: u64) -> bool {
        if !self.any_llc {
            return false;
        }
        let Some(slot) = self.run_of(line >> PAGE_BITS) else {
            return false;
        };
        let bit = 1 << (line % (1 << PAGE_BITS));
        let has = self.runs[slot].llc & bit != 0;
        self.runs[slot].llc &= !bit;
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_a_run_to_the_end_of_its_page_and_keeps_its_distance() {
        let mut streamer = Streamer::new(3, 20, 2);
        let mut wanted = Vec::new();
        for line in 1024..1024 + 3 * 64u64 {
            let Some(lines) = streamer.see(line) else {
                continue;
            };
            let Wanted { from, to, .. } = lines;
            streamer.requested(lines, to);
            assert!(from > line && to - from <= 2 && to <= line + 21);
            assert_eq!(from >> PAGE_BITS, line >> PAGE_BITS);
            wanted.extend(from..to);
        }
        // All but the head of every page, in order and once.
        let all: Vec<u64> = (1024..1024 + 3 * 64)
            .filter(|line| line % 64 >= 3)
            .collect();
        assert_eq!(wanted, all);
    }

    #[test]
    fn it_follows_no_scattered_requests() {
        let mut streamer = Streamer::new(3, 20, 2);
        for n in 0..1000u64 {
            assert_eq!(streamer.see(n.wrapping_mul(7919) % 65_536 * 64), None);
        }
    }
}
