//! The L2 streamer: it watches the requests that reach L2, separately for each page, and runs ahead of
//! ascending ones, up to the end of their page ("prefetched cache lines must be in the same 4K page", Intel
//! Optimization Reference Manual 248966). It is trained again on every page.

/// Pages that it watches at once (Intel Optimization Reference Manual 248966: "one forward or backward stream
/// can be maintained per page", 32 streams).
const PAGES: usize = 32;
/// Lists into which they are sorted, so that a look-up sees few of them; a power of two.
const LISTS: usize = 64;
/// No run.
const NONE: u8 = u8::MAX;
/// log2 of the lines of a page.
const PAGE_BITS: u32 = 6;
/// A request at most this many lines after the last one continues the same run.
const REACH: u64 = 2;

/// A run of requests.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The line that was requested last.
    last: u64,
    /// Requests of the run.
    seen: u32,
    /// The line that is prefetched next.
    ahead: u64,
    /// Lines of the page that it brought into the last-level cache alone, one bit each.
    llc: u64,
}

impl Run {
    /// None yet, in no page.
    const NONE: Self = Self {
        last: u64::MAX,
        seen: 0,
        ahead: 0,
        llc: 0,
    };
}

/// The streamer of a core.
#[derive(Debug)]
pub struct Streamer {
    runs: [Run; PAGES],
    /// The first run of each list, and the run after each in its list.
    first: [u8; LISTS],
    after: [u8; PAGES],
    /// The run that was used last.
    latest: u8,
    /// In a ring from it on, the run that was used next before each, and the one that was used next after.
    older: [u8; PAGES],
    newer: [u8; PAGES],
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
    pub slot: usize,
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
            runs: [Run::NONE; PAGES],
            first: [NONE; LISTS],
            after: [NONE; PAGES],
            latest: PAGES as u8 - 1,
            older: std::array::from_fn(|i| ((i + PAGES - 1) % PAGES) as u8),
            newer: std::array::from_fn(|i| ((i + 1) % PAGES) as u8),
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
    #[inline(always)]
    fn run_in(&self, page: u64) -> Option<usize> {
        let mut slot = self.first[page as usize % LISTS];
        while slot != NONE {
            let at = usize::from(slot) % PAGES;
            if self.runs[at].last >> PAGE_BITS == page {
                return Some(at);
            }
            slot = self.after[at];
        }
        None
    }

    /// Begins a run at a line in place of another one.
    #[inline(always)]
    fn begin(&mut self, slot: usize, line: u64) {
        let old = self.runs[slot];
        self.runs[slot] = Run {
            last: line,
            seen: 1,
            ahead: line + 1,
            llc: 0,
        };
        let list = |line: u64| (line >> PAGE_BITS) as usize % LISTS;
        if old.seen > 0 {
            let first = self.first[list(old.last)];
            match usize::from(first) == slot {
                true => self.first[list(old.last)] = self.after[slot],
                false => {
                    let mut before = usize::from(first) % PAGES;
                    while usize::from(self.after[before]) != slot {
                        before = usize::from(self.after[before]) % PAGES;
                    }
                    self.after[before] = self.after[slot];
                }
            }
        }
        self.after[slot] = std::mem::replace(&mut self.first[list(line)], slot as u8);
    }

    /// Makes the run in a page the one that was used last, and returns it.
    #[inline]
    fn run_of(&mut self, page: u64) -> Option<usize> {
        let latest = usize::from(self.latest) % PAGES;
        if self.runs[latest].last >> PAGE_BITS == page {
            return Some(latest);
        }
        let slot = self.run_in(page)?;
        self.use_next(slot, latest);
        Some(slot)
    }

    /// Moves a run to before the latest one in the ring.
    #[inline(always)]
    fn use_next(&mut self, slot: usize, latest: usize) {
        let oldest = usize::from(self.newer[latest]) % PAGES;
        self.latest = slot as u8;
        if slot == oldest {
            return;
        }
        let (older, newer) = (self.older[slot], self.newer[slot]);
        self.newer[usize::from(older) % PAGES] = newer;
        self.older[usize::from(newer) % PAGES] = older;
        (self.older[slot], self.newer[slot]) = (latest as u8, oldest as u8);
        self.newer[latest] = slot as u8;
        self.older[oldest] = slot as u8;
    }

    /// Sees a request for a line, and returns the lines that it may request now. The caller reports which of them
    /// it requested by [`Streamer::requested`]; the next call returns the others again.
    #[inline(always)]
    pub fn see(&mut self, line: u64) -> Option<Wanted> {
        let page = line >> PAGE_BITS;
        let Some(slot) = self.run_of(page) else {
            // In the ring, the oldest run is the one after the latest.
            let oldest = usize::from(self.newer[usize::from(self.latest) % PAGES]) % PAGES;
            self.latest = oldest as u8;
            self.begin(oldest, line);
            return None;
        };
        let run = &mut self.runs[slot];
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

    /// It requested the wanted lines of a run before `ahead`.
    pub fn requested(&mut self, run: usize, ahead: u64) {
        self.runs[run % PAGES].ahead = ahead;
    }

    /// The lines of a line's page that it brought into the last-level cache alone, if it follows a run there.
    fn in_llc(&mut self, line: u64) -> Option<&mut u64> {
        let slot = self.run_in(line >> PAGE_BITS)?;
        Some(&mut self.runs[slot].llc)
    }

    /// A line that it requested is in the last-level cache now.
    pub fn fill_llc(&mut self, line: u64) {
        if let Some(lines) = self.in_llc(line) {
            *lines |= 1 << (line % (1 << PAGE_BITS));
            self.any_llc = true;
        }
    }

    /// Whether it brought a line into the last-level cache alone. The line goes to L2 then.
    pub fn take_from_llc(&mut self, line: u64) -> bool {
        if !self.any_llc {
            return false;
        }
        let bit = 1 << (line % (1 << PAGE_BITS));
        self.in_llc(line).is_some_and(|lines| {
            let has = *lines & bit != 0;
            *lines &= !bit;
            has
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_run_is_found_as_long_as_it_is_one_of_the_last(lines in prop::collection::vec(0u64..20_000, 1..800)) {
            let mut streamer = Streamer::new(3, 20, 2);
            // Pages in the order of their last uses.
            let mut pages: Vec<u64> = Vec::new();
            for line in lines {
                let page = line >> PAGE_BITS;
                streamer.see(line);
                pages.retain(|&other| other != page);
                pages.push(page);
                if pages.len() > PAGES {
                    prop_assert_eq!(streamer.run_in(pages.remove(0)), None);
                }
                for &page in &pages {
                    let slot = streamer.run_in(page).unwrap();
                    prop_assert_eq!(streamer.runs[slot].last >> PAGE_BITS, page);
                }
            }
        }
    }

    #[test]
    fn it_follows_a_run_to_the_end_of_its_page_and_keeps_its_distance() {
        let mut streamer = Streamer::new(3, 20, 2);
        let mut wanted = Vec::new();
        for line in 1024..1024 + 3 * 64u64 {
            let Some(lines) = streamer.see(line) else {
                continue;
            };
            let Wanted { from, to, .. } = lines;
            streamer.requested(lines.slot, to);
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
