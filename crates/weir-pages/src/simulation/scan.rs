//! Looking at the pages of a simulation as a profiler does: by accessed bits, or by sampled accesses.

use std::sync::Arc;

use weir_model::heat::SeenPages;
use weir_model::units::Bytes;

use super::Simulation;
use crate::page::At;
use crate::random::Draws;
use crate::tier::BASE;
use crate::workload::{PageKind, Region};

/// How a [`Scan`] looks at pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampler {
    /// Reads and clears the accessed bit of each page: one touch for however many accesses since the last look.
    AccessedBits,
    /// Sees one of this many accesses (Chameleon of TPP, ASPLOS 2023, section 3: one of 200).
    Events(f64),
}

/// Looks at a part of the pages of a simulation, chosen at random and always the same.
///
/// Its draws are its own, so that a simulation goes the same way with and without it. A page that changes its band
/// between two looks counts as of its new one.
#[derive(Debug)]
pub struct Scan {
    sampler: Sampler,
    regions: Vec<Arc<str>>,
    /// Pages that are looked at, by number, and the base pages that each stands for.
    pages: Vec<(u64, f64)>,
    /// Visits to a page of each band until the last look.
    before: Vec<f64>,
    draws: Draws,
}

impl Scan {
    /// Chooses at most `most` pages, of each region in proportion to its memory.
    pub fn new(simulation: &Simulation<'_>, sampler: Sampler, most: u64, seed: u64) -> Self {
        let mut draws = Draws::new(seed ^ 0x70726f66696c65);
        let extents = &simulation.pages.extents;
        let all: u64 = extents.iter().map(|e| e.pages * e.base).sum();
        let mut pages: Vec<(u64, f64)> = Vec::new();
        for extent in extents {
            let part = (extent.pages * extent.base) as f64 / all.max(1) as f64;
            let wanted = (most as f64 * part).round().clamp(1.0, extent.pages as f64) as u64;
            // One of each stratum of neighbours, at a random place in it. Two strata may share a page.
            let stride = extent.pages as f64 / wanted as f64;
            for n in 0..wanted {
                let place = ((n as f64 + 1.0 - draws.unit()) * stride) as u64;
                let page = extent.start + place.min(extent.pages - 1);
                match pages.last_mut() {
                    Some((last, stands_for)) if *last == page => {
                        *stands_for += stride * extent.base as f64;
                    }
                    _ => pages.push((page, stride * extent.base as f64)),
                }
            }
        }
        // Regions of one name are distinguished by their addresses.
        let all = &simulation.workload.regions;
        let name = |(n, region): (usize, &Region)| -> Arc<str> {
            match all[..n].iter().filter(|r| r.name == region.name).count() {
                0 => region.name.as_str().into(),
                before => format!("{} {}", region.name, before + 1).into(),
            }
        };
        Self {
            sampler,
            regions: all.iter().enumerate().map(name).collect(),
            pages,
            before: vec![0.0; simulation.pages.counts.len()],
            draws,
        }
    }

    /// How many pages are looked at.
    pub fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// What is seen of the pages that are allocated, since the last look. Addresses are those of the regions one behind
    /// the other.
    pub fn look(&mut self, simulation: &Simulation<'_>) -> Vec<SeenPages> {
        let pages = &simulation.pages;
        let now: Vec<f64> = (0..self.before.len())
            .map(|band| pages.until_now(band))
            .collect();
        let mut seen = Vec::with_capacity(self.pages.len());
        let mut address = vec![0; pages.extents.len()];
        for at in 1..address.len() {
            let extent = &pages.extents[at - 1];
            address[at] = address[at - 1] + extent.pages * extent.base * BASE;
        }
        for &(page, stands_for) in &self.pages {
            if matches!(pages.at(page), At::Free) {
                continue;
            }
            let at = pages.extent_of(page);
            let extent = &pages.extents[at];
            let band = pages.band_of(at, page);
            let expected = now[band] - self.before[band];
            seen.push(SeenPages {
                space: 0,
                start: address[at] + (page - extent.start) * extent.base * BASE,
                bytes: Bytes((stands_for * BASE as f64).round() as u64),
                page: Bytes(extent.base * BASE),
                file: extent.kind == PageKind::File,
                region: Arc::clone(&self.regions[at]),
                touches: match self.sampler {
                    Sampler::AccessedBits => f64::from(self.draws.poisson(expected) > 0.0),
                    Sampler::Events(period) => {
                        let accesses = expected * simulation.bursts[band];
                        self.draws.poisson(accesses / period) * period
                    }
                },
                frame: 1 + extent.times_freed(page - extent.start),
            });
        }
        self.before = now;
        seen
    }
}
