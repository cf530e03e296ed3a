//! Sampling by hint faults, touches of sampled pages, and promotion.

use std::cmp::Reverse;

use super::Simulation;
use crate::page::{ACCESSED, ACTIVE, At, DEMOTED, HINTED, PENDING, REFERENCED};
use crate::policy::{Decision, Fault};
use crate::tier::{BASE, Tier};
use crate::workload::PageKind;

/// By how much a band's visits may rise until the end of the run, so that a touch which is drawn for later is left
/// out: it takes memory, and has no effect.
const RISE: f64 = 16.0;

impl Simulation<'_> {
    /// Draws the next touch of a page that faults at it, unless it is drawn.
    pub(super) fn draw_touch(&mut self, extent: usize, page: u64) {
        let band = self.pages.band_of(extent, page);
        let wait = self.draws.exponential();
        let left = (self.length() - self.pages.now.min(self.length())) as f64;
        // Of a band that was empty no rate is known.
        let known = self.visits[band] > 0.0;
        if known && wait > self.visits[band] * left * RISE {
            self.pages.change(extent, page, 0, PENDING);
            return;
        }
        self.pages.change(extent, page, PENDING, 0);
        let due = self.pages.until_now(band) + wait;
        // The bits of positive floats are in their order.
        self.touches[band].push(Reverse((due.to_bits(), page as u32)));
    }

    /// Takes the next window of the address space out of the page table. As in `task_numa_work`, a stretch that has no page
    /// to take out does not count: what is all in the fast node, not touched since the last pass, or not allocated.
    pub(super) fn sample(&mut self) {
        let Some(scan) = self.policy.scan() else {
            return;
        };
        self.sampling += scan.bytes_per_s * self.options.interval_s / BASE as f64;
        let mut virtual_pages = self.sampling * scan.passes;
        let mut passed = 0;
        let mut extent = self.pages.extent_of(self.sampled.min(self.pages.len() - 1));
        while self.sampling >= 1.0 && virtual_pages >= 1.0 && passed < self.pages.len() {
            let base = self.pages.extents[extent].base;
            let end = self.pages.extents[extent].start + self.pages.extents[extent].pages;
            let stretch = (self.sampling.min(virtual_pages) / base as f64).ceil() as u64;
            let until = end.min(self.sampled + stretch);
            let updates = self.counters.numa_pte_updates;
            let before = self.sampled;
            while self.sampled < until {
                self.sample_page(extent, self.sampled, scan.toptier);
                self.sampled += 1;
            }
            passed += until - before;
            let stretch = ((until - before) * base) as f64;
            virtual_pages -= stretch;
            if self.counters.numa_pte_updates > updates {
                self.sampling -= stretch;
            }
            if self.sampled == end {
                extent = (extent + 1) % self.pages.extents.len();
                self.sampled = self.pages.extents[extent].start;
            }
        }
        // What a pass over everything leaves is not saved up.
        self.sampling = self.sampling.min(0.0).max(self.sampling.min(1.0));
    }

    fn sample_page(&mut self, extent: usize, page: u64, toptier: bool) {
        let tier = match self.pages.at(page) {
            At::Fast if toptier => Tier::Fast,
            At::Slow => Tier::Slow,
            _ => return,
        };
        self.policy.sampled(extent, tier);
        if !self.pages.has(page, HINTED) {
            self.unmap(extent, page);
        }
    }

    fn unmap(&mut self, extent: usize, page: u64) {
        self.pages.settle(extent, page, &mut self.draws);
        self.pages.change(extent, page, HINTED, 0);
        self.pages.stamp(page);
        if !self.pages.has(page, PENDING) {
            self.draw_touch(extent, page);
        }
        self.counters.numa_pte_updates += 1;
        self.work.stall_ns += self.host.costs.unmap.get();
    }

    /// Touches of the last interval: hint faults, and pages that are read back.
    pub(super) fn take_touches(&mut self) {
        for band in 0..self.touches.len() {
            let until = self.pages.until_now(band);
            let from = until - self.visits[band];
            while let Some(Reverse((due, page))) = self.touches[band].peek().copied() {
                let due = f64::from_bits(due);
                if due > until {
                    break;
                }
                self.touches[band].pop();
                let page = u64::from(page);
                let extent = self.pages.extent_of(page);
                // A page that has drifted to another band has a touch there.
                if !self.pages.has(page, PENDING) || self.pages.band_of(extent, page) != band {
                    continue;
                }
                self.pages.change(extent, page, 0, PENDING);
                let along = (due - from) / (until - from).max(f64::MIN_POSITIVE);
                match self.pages.at(page) {
                    At::Free => {}
                    At::Out => self.read_back(extent, page),
                    At::Fast => self.touched(extent, page, Tier::Fast, along),
                    At::Slow => self.touched(extent, page, Tier::Slow, along),
                }
            }
        }
    }

    fn read_back(&mut self, extent: usize, page: u64) {
        let base = self.pages.extents[extent].base;
        let wait = self.host.costs.swap_in.get() * base as f64;
        self.work.stall_ns += wait;
        self.work.read_back_ns += wait;
        match self.allocate(extent, page) {
            true => {
                self.pages.change(extent, page, ACCESSED, 0);
                self.counters.pswpin += base;
            }
            false => self.draw_touch(extent, page),
        }
    }

    fn touched(&mut self, extent: usize, page: u64, tier: Tier, along: f64) {
        let latency_s =
            (self.pages.age(page) as f64 - 1.0 + along).max(0.0) * self.options.interval_s;
        let hinted = self.pages.has(page, HINTED);
        self.pages.change(extent, page, ACCESSED, HINTED);
        self.pages.stamp(page);
        if !hinted {
            return;
        }
        self.counters.numa_hint_faults += 1;
        self.counters.numa_hint_faults_toptier += u64::from(tier == Tier::Fast);
        self.work.stall_ns += self.host.costs.hint_fault.get();
        let fault = Fault {
            region: extent,
            tier,
            kind: self.pages.extents[extent].kind,
            base_pages: self.pages.extents[extent].base,
            active: self.pages.has(page, ACTIVE),
            demoted: self.pages.has(page, DEMOTED),
            latency_s,
        };
        match self.policy.fault(&fault) {
            Decision::Keep => {}
            Decision::Activate => self.pages.change(extent, page, ACTIVE, REFERENCED),
            Decision::Limited => {
                self.candidate(extent, page);
                self.counters.promote_rate_limited += fault.base_pages;
            }
            Decision::Promote => {
                self.candidate(extent, page);
                self.promote(extent, page);
            }
            Decision::Demote => {
                let base = fault.base_pages;
                if tier == Tier::Fast && self.free(Tier::Slow) >= self.marks[1].high + base {
                    self.demote(extent, page, false);
                    self.work.stall_ns += self.host.costs.moving(base).get();
                }
            }
        }
    }

    /// Counts a candidate for promotion.
    pub(super) fn candidate(&mut self, extent: usize, page: u64) {
        let base = self.pages.extents[extent].base;
        let counters = &mut self.counters;
        counters.pgpromote_candidate += base;
        match self.pages.extents[extent].kind {
            PageKind::Anon => counters.pgpromote_candidate_anon += base,
            PageKind::File => counters.pgpromote_candidate_file += base,
        }
        if self.pages.has(page, DEMOTED) {
            counters.pgpromote_candidate_demoted += base;
        }
    }

    /// Moves a candidate of the slow node, if the fast one has room.
    pub(super) fn promote(&mut self, extent: usize, page: u64) {
        let (base, kind) = (
            self.pages.extents[extent].base,
            self.pages.extents[extent].kind,
        );
        if self.free(Tier::Fast) < self.acts.promote + base {
            self.counters.pgmigrate_fail_dst_node_full += base;
            self.kswapd[0].awake |= self.acts.wake_when_full;
            return;
        }
        self.counters.pgpromote_tried += base;
        let transactional = self.policy.transactional();
        if transactional && self.is_written_meanwhile(extent, page) {
            self.counters.promote_aborted += base;
            self.copied(Tier::Slow, Tier::Fast, base);
            return;
        }
        let active = if self.pages.has(page, ACTIVE) {
            ACTIVE
        } else {
            0
        };
        self.pages.put(extent, page, At::Fast, ACCESSED | active);
        match kind {
            PageKind::Anon => self.counters.pgpromote_anon += base,
            PageKind::File => self.counters.pgpromote_file += base,
        }
        if !transactional {
            self.work.stall_ns += self.host.costs.moving(base).get();
        }
        self.copied(Tier::Slow, Tier::Fast, base);
        let free = self.free(Tier::Fast);
        self.kswapd[0].awake |= self.acts.wake.is_some_and(|wake| free < wake);
    }

    /// Whether the page is written while it is copied: then the copy is of no use (Nomad, OSDI 2024).
    fn is_written_meanwhile(&mut self, extent: usize, page: u64) -> bool {
        let base = self.pages.extents[extent].base;
        let band = self.pages.band_of(extent, page);
        let copy_s = self.host.costs.copy_4k.get() * base as f64 / 1e9;
        let per_s = self.rates[band] / self.options.interval_s;
        let written = per_s * self.workload.regions[extent].writes * copy_s;
        self.draws.exponential() < written
    }
}
