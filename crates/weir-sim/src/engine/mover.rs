//! Pages on their way from one tier to another.
//!
//! The kernel copies a page line by line: a read of one tier and a write of the other for each, which take
//! their turns on links, device queues and DRAM with everything else. Tenants use the old page until the
//! copy is complete. What the processors do for it (page faults, invalidated translations) takes no time,
//! and the copy holds no entry of the Table of Requests.

use super::Engine;
use crate::clock::Ps;
use crate::core::Thread;
use crate::memory::{Footprint, Reuse};
use crate::pages::PageTable;
use crate::rng;

/// Lines that are copied at once.
const BATCH: u64 = 16;

impl Engine {
    /// Has the pages of the tenants to move, of whom some are deterministic.
    pub fn set_pages(&mut self, pages: PageTable, deterministic: &[bool]) {
        for memory in 0..self.uncore.number_of_memories() {
            if self.uncore.has_medium(memory) {
                let footprints = self.footprints(&pages, memory, deterministic);
                self.uncore.warm(memory, &footprints);
            }
        }
        self.pages = pages;
    }

    /// What tenants use of a memory.
    fn footprints(
        &self,
        pages: &PageTable,
        memory: usize,
        deterministic: &[bool],
    ) -> Vec<Footprint> {
        let mut all = Vec::new();
        for (n, (tenant, walk)) in pages.walks().enumerate() {
            let threads = || (self.threads.iter()).filter(|t| usize::from(t.tenant) == tenant);
            for (tier, first, lines) in walk
                .extents()
                .filter(|extent| self.uncore.memory_of(extent.0) == memory)
            {
                let is_own = |t: &&Thread| t.walk.extents().any(|own| own.1 == first);
                let own = threads().find(is_own);
                let apex = threads()
                    .find_map(|t| t.ooo.as_ref()?.script().apex_at(usize::from(tier), first));
                let order = match threads().any(|t| t.ooo.is_some()) || walk.run_lines() != u64::MAX
                {
                    true => apex.map_or(Reuse::AtRandom, |alpha| Reuse::Apex { alpha }),
                    false => {
                        let next = own.map_or(0, |thread| thread.window.next());
                        let last = walk.offset(next.wrapping_sub(1)) * lines / walk.lines();
                        Reuse::InTurn { last }
                    }
                };
                all.push(Footprint {
                    first,
                    pages: lines,
                    order,
                    rate: 1.0,
                    written: own.is_some_and(|t| !t.op.is_load() && t.ooo.is_none()),
                    deterministic: deterministic.get(tenant).is_some_and(|is| *is),
                    seed: rng::mix(self.seed ^ n as u64),
                });
            }
        }
        all
    }

    /// Where pages are.
    pub fn pages_mut(&mut self) -> &mut PageTable {
        &mut self.pages
    }

    /// Goes on with the moves that were asked for, if that does not happen already.
    pub fn start_moving(&mut self) {
        if !self.is_moving && self.pages.copying().is_some() {
            self.is_moving = true;
            self.uncore.wake_at(self.mover(), self.now);
        }
    }

    /// By which number the mover is woken: it comes after threads, accelerator and storage.
    fn mover(&self) -> u16 {
        (self.threads.len() + 1 + self.drives.len()) as u16
    }

    /// Copies some lines of the next page.
    #[cold]
    pub(super) fn mover_woken(&mut self, time: Ps) {
        let Some((page, done)) = self.pages.copying() else {
            self.is_moving = false;
            return;
        };
        let lines = BATCH.min(self.pages.page_lines() - done);
        let missing = |line| self.uncore.fetch(page.from, page.to, line, time);
        if let Some(later) = (done..done + lines).filter_map(missing).max() {
            return self.uncore.wake_at(self.mover(), later);
        }
        let mut end = time;
        for line in done..done + lines {
            end = end.max(self.uncore.copy_line(page.from, page.to, line, time));
        }
        self.advance(lines);
        let next = page.line.map_or(end, |each| end.max(time + each * lines));
        self.uncore.wake_at(self.mover(), next.max(time + 1));
    }

    /// Moves on by this many lines, or by fewer where their limits do not allow as many within this time: in the part of
    /// a window that is not simulated.
    pub fn skip_moves(&mut self, mut lines: u64, mut time: Ps) {
        while lines > 0 {
            let Some((page, done)) = self.pages.copying() else {
                return;
            };
            let each = page.line.unwrap_or(0);
            let allowed = time.checked_div(each).unwrap_or(u64::MAX);
            let now = lines.min(self.pages.page_lines() - done).min(allowed);
            if now == 0 {
                return;
            }
            self.advance(now);
            lines -= now;
            time -= now * each;
        }
    }

    fn advance(&mut self, lines: u64) {
        let page_lines = self.pages.page_lines();
        if let Some(moved) = self.pages.advance(lines) {
            for thread in &mut self.threads {
                thread.follow_page(moved.from, moved.to, page_lines);
            }
        }
    }
}
