//! Whether lines that leave L1 follow each other, page by page: so runs that take turns are distinguished, as prefetchers do.

/// Pages that are followed.
const PAGES: usize = 1024;
/// Lines of a page.
const PAGE: u64 = 64;

#[derive(Debug, Clone, Copy)]
struct Last {
    page: u64,
    line: u64,
    step: i64,
}

/// The latest line of each of the pages.
#[derive(Debug)]
pub struct Runs {
    pages: Box<[Last; PAGES]>,
}

impl Runs {
    pub fn new() -> Self {
        let none = Last {
            page: u64::MAX,
            line: 0,
            step: 0,
        };
        Self {
            pages: Box::new([none; PAGES]),
        }
    }

    /// A line leaves L1: lines from the one before of its run, 0 for one that jumps.
    pub fn step(&mut self, line: u64) -> u64 {
        let page = line / PAGE;
        let of = |page: u64| (page % PAGES as u64) as usize;
        let mut before = self.pages[of(page)];
        if before.page != page {
            // A run comes from the page before or behind, with the same steps.
            let neighbour = [page.wrapping_sub(1), page + 1]
                .into_iter()
                .map(|page| (page, self.pages[of(page)]))
                .find(|(page, last)| {
                    last.page == *page && last.line.wrapping_add_signed(last.step) == line
                });
            before = neighbour.map_or(
                Last {
                    page,
                    line: u64::MAX,
                    step: 0,
                },
                |(_, last)| last,
            );
        }
        let known = before.line != u64::MAX;
        let step = if known {
            line.wrapping_sub(before.line) as i64
        } else {
            0
        };
        self.pages[of(page)] = Last { page, line, step };
        let follows = known && step != 0 && (step == before.step || step == 1);
        if follows { step.unsigned_abs() } else { 0 }
    }
}
