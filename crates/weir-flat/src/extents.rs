//! Which pages are free, in runs.

use std::collections::BTreeMap;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Pages that one entry of a page middle directory maps: 2 MiB.
pub const HUGE: u32 = 512;

/// Pages that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first page.
    pub start: u32,
    /// How many.
    pub len: u32,
}

/// Adds a page to runs, to the last of them where it follows.
pub fn push(runs: &mut Vec<Run>, page: u32) {
    match runs.last_mut() {
        Some(last) if last.start + last.len == page => last.len += 1,
        _ => runs.push(Run {
            start: page,
            len: 1,
        }),
    }
}

/// The free pages of a range.
#[derive(Debug)]
pub struct Extents {
    free: BTreeMap<u32, u32>,
    pages: u32,
}

impl Extents {
    /// All of `pages` are free.
    pub fn new(pages: u32) -> Self {
        let free = (pages > 0).then_some((0, pages)).into_iter().collect();
        Self { free, pages }
    }

    /// How many are free.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Takes this many pages, in as few runs as is easily found; `None` where fewer are free.
    pub fn take(&mut self, count: u32) -> Option<Vec<Run>> {
        if count > self.pages {
            return None;
        }
        let mut runs = Vec::new();
        let mut left = count;
        // What can be mapped by entries of 2 MiB is aligned to it, if there is room.
        if left >= HUGE
            && let Some(start) = self.free.iter().find_map(|(&start, &len)| {
                let aligned = start.next_multiple_of(HUGE);
                (u64::from(aligned) + u64::from(left) <= u64::from(start) + u64::from(len))
                    .then_some(aligned)
            })
        {
            self.remove(Run { start, len: left });
            return Some(vec![Run { start, len: left }]);
        }
        // The smallest extent that is large enough leaves large ones whole.
        let fits = self.free.iter().filter(|(_, len)| **len >= left);
        if let Some((&start, _)) = fits.min_by_key(|(_, len)| **len)
            && left > 0
        {
            self.remove(Run { start, len: left });
            return Some(vec![Run { start, len: left }]);
        }
        while left > 0 {
            let (&start, &len) = self.free.first_key_value()?;
            let run = Run {
                start,
                len: len.min(left),
            };
            self.remove(run);
            left -= run.len;
            runs.push(run);
        }
        Some(runs)
    }

    /// Takes this run, which must be free; false where it is not.
    pub fn remove(&mut self, run: Run) -> bool {
        let Some((&start, &len)) = self.free.range(..=run.start).next_back() else {
            return false;
        };
        let (end, run_end) = (start + len, run.start + run.len);
        if run_end > end {
            return false;
        }
        self.free.remove(&start);
        if start < run.start {
            self.free.insert(start, run.start - start);
        }
        if run_end < end {
            self.free.insert(run_end, end - run_end);
        }
        self.pages -= run.len;
        true
    }

    /// Gives a run back.
    pub fn give(&mut self, run: Run) {
        let Run { mut start, mut len } = run;
        self.pages += len;
        if let Some((&before, &before_len)) = self.free.range(..start).next_back()
            && before + before_len == start
        {
            self.free.remove(&before);
            (start, len) = (before, before_len + len);
        }
        if let Some(after) = self.free.remove(&(start + len)) {
            len += after;
        }
        self.free.insert(start, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_page_is_taken_once_and_comes_back_whole(counts in prop::collection::vec(1_u32..1500, 1..20), keep in any::<u32>()) {
            let mut extents = Extents::new(8192);
            let mut owned = vec![false; 8192];
            let mut taken = Vec::new();
            for (nth, count) in counts.into_iter().enumerate() {
                let Some(runs) = extents.take(count) else {
                    prop_assert!(count > extents.pages());
                    continue;
                };
                prop_assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), count);
                for page in runs.iter().flat_map(|run| run.start..run.start + run.len) {
                    prop_assert!(!std::mem::replace(&mut owned[page as usize], true));
                }
                if keep >> (nth % 32) & 1 == 0 {
                    for run in runs {
                        owned[run.start as usize..][..run.len as usize].fill(false);
                        extents.give(run);
                    }
                } else {
                    taken.extend(runs);
                }
            }
            taken.into_iter().for_each(|run| extents.give(run));
            prop_assert_eq!(extents.take(8192), Some(vec![Run { start: 0, len: 8192 }]));
        }
    }
}
