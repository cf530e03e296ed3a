//! The limit that reads and writes of a device from the other socket share: the snoop filter of the device's socket
//! for lines that the other one may hold (docs/physics.md). It is full of lines that were read. So a read waits until
//! an entry is evicted, which takes a way to the other socket and back. Each part of the filter evicts for one line
//! after the other.

use crate::clock::Ps;

/// What a line that crosses between sockets does to the filter of the device's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    /// It is read, and has an entry until that is evicted.
    Read,
    /// It leaves the caches because its entry is evicted.
    WriteBack,
    /// It is written past the caches: its entry is free again.
    Posted,
}

/// Times of the limit; zero if there is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct FarGaps {
    /// Between two lines that are read, at the peak.
    pub read: Ps,
    /// Between two lines that are written, at the peak.
    pub write: Ps,
    /// What a read waits for the eviction of an entry.
    pub evict: Ps,
    /// Entries of a part that are free at once at most.
    pub free: u32,
}

impl FarGaps {
    /// Parts that work at once: by Little's law, as many as evictions are under way at the peak of reads.
    fn parts(&self) -> usize {
        match self.read {
            0 => 0,
            gap => ((self.evict + gap / 2) / gap).max(1) as usize,
        }
    }
}

/// The limit in use.
#[derive(Debug, Default)]
pub struct FarLimit {
    gaps: FarGaps,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// When it has worked on all lines that came.
    next: Ps,
    /// Entries that no line has.
    free: u32,
}

impl FarLimit {
    /// An idle one, whose filter is full.
    pub fn new(gaps: FarGaps) -> Self {
        Self {
            parts: vec![Part::default(); gaps.parts()],
            gaps,
        }
    }

    /// Whether there is no such limit.
    pub fn is_none(&self) -> bool {
        self.parts.is_empty()
    }

    /// When a line that is ready at `at` has passed.
    #[inline]
    pub fn pass(&mut self, crossing: Crossing, line: u64, at: Ps) -> Ps {
        let parts = self.parts.len() as u64;
        if parts == 0 {
            return at;
        }
        // Lines that follow each other are spread evenly, as over slices.
        let spread = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let part = &mut self.parts[((spread * parts) >> 32) as usize];
        let begins = at.max(part.next);
        let gap = match crossing {
            Crossing::Read => self.gaps.read,
            Crossing::WriteBack | Crossing::Posted => self.gaps.write,
        };
        part.next = begins + gap * parts;
        match crossing {
            Crossing::Read if part.free == 0 => return begins + self.gaps.evict,
            Crossing::Read => part.free -= 1,
            Crossing::WriteBack => {}
            Crossing::Posted => part.free = self.gaps.free.min(part.free + 1),
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn crossings() -> impl Strategy<Value = Vec<(Crossing, u64, Ps)>> {
        let kind =
            prop::sample::select(vec![Crossing::Read, Crossing::WriteBack, Crossing::Posted]);
        prop::collection::vec((kind, 0u64..1000, 0 as Ps..3000), 1..300)
    }

    proptest! {
        #[test]
        fn lines_never_pass_faster_than_at_the_measured_peaks(
            lines in crossings(),
            read in 100 as Ps..5000,
            write in 100 as Ps..5000,
            evict in 1 as Ps..200_000,
        ) {
            let mut limit = FarLimit::new(FarGaps { read, write, evict, free: 4 });
            let parts = limit.parts.len() as u64;
            let (mut now, mut last, mut work) = (0, 0, 0);
            for (crossing, line, later) in lines {
                now += later;
                let passed = limit.pass(crossing, line, now);
                prop_assert!(passed >= now);
                last = last.max(passed);
                work += if crossing == Crossing::Read { read } else { write };
            }
            // Every part works on one line at a time; the work on the last line of each follows its passing.
            prop_assert!(work <= last + parts * read.max(write));
        }

        #[test]
        fn a_read_that_finds_a_free_entry_has_that_of_a_posted_store(lines in crossings()) {
            let gaps = FarGaps { read: 100, write: 100, evict: 2000, free: 4 };
            let (mut limit, mut free) = (FarLimit::new(gaps), 0);
            for (crossing, line, _) in lines {
                // So late that no part has work left.
                let now = limit.parts.iter().map(|part| part.next).max().unwrap_or(0);
                let waits = limit.pass(crossing, line, now) - now;
                match crossing {
                    Crossing::Posted => free += 1,
                    Crossing::Read if waits == 0 => free -= 1,
                    Crossing::Read => prop_assert_eq!(waits, gaps.evict),
                    Crossing::WriteBack => prop_assert_eq!(waits, 0),
                }
                prop_assert!(free >= 0);
            }
        }
    }

    #[test]
    fn one_part_passes_lines_one_by_one() {
        // As many parts as evictions under way at the peak: one, if an eviction takes no more than a line.
        let mut limit = FarLimit::new(FarGaps {
            read: 30,
            write: 20,
            evict: 1,
            free: 4,
        });
        let passed: Vec<Ps> = (0..3).map(|n| limit.pass(Crossing::Read, n, 0)).collect();
        assert_eq!(passed, [1, 31, 61]);
        assert_eq!(limit.pass(Crossing::WriteBack, 3, 0), 90);
        assert!(FarLimit::new(FarGaps::default()).is_none());
    }
}
