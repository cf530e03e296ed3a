//! Where accesses go, by tier, region and band.

use super::Simulation;
use crate::page::At;
use crate::traffic::{Part, Split};

/// Accesses of an interval as shares of all of them.
#[derive(Debug)]
pub(super) struct Mix {
    /// All of them.
    pub(super) split: Split,
    /// Each region.
    pub(super) regions: Vec<OfRegion>,
    /// Each band: its share, and its pages.
    pub(super) bands: Vec<(f64, f64)>,
}

/// A region's part.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfRegion {
    pub(super) shares: [f64; 2],
    pub(super) pages: [u64; 2],
}

impl Simulation<'_> {
    pub(super) fn mix(&self) -> Mix {
        let (mut regions, mut bands) = (Vec::<OfRegion>::new(), Vec::new());
        let t = self.pages.now as f64 * self.options.interval_s;
        for (number, region) in self.workload.regions.iter().enumerate() {
            let extent = &self.pages.extents[number];
            let grown = extent.allocated as f64 / extent.pages as f64;
            let accesses = self.workload.share_at(number, t) * grown;
            let mut of_region = OfRegion::default();
            for (n, band) in region.bands.iter().enumerate() {
                let count = self.pages.counts[extent.first_band + n];
                let [fast, slow, out] = [At::Fast, At::Slow, At::Out].map(|at| count[at as usize]);
                let there = fast + slow;
                let weight = match there + out {
                    0 => 0.0,
                    _ => accesses * band.accesses,
                };
                bands.push((weight, (there + out) as f64 / extent.base as f64));
                // A page that is out is read back first, and then it is where new pages are.
                let local = match there {
                    0 => 1.0,
                    _ => fast as f64 / there as f64,
                };
                of_region.pages[0] += fast;
                of_region.pages[1] += slow;
                for (t, part) in [local, 1.0 - local].into_iter().enumerate() {
                    of_region.shares[t] += weight * part;
                }
            }
            regions.push(of_region);
        }
        let parts = regions.iter().zip(&self.workload.regions);
        let split = Split::of(parts.map(|(of, region)| Part {
            accesses: of.shares,
            mlp: region.mlp,
            writes: region.writes,
        }));
        let all: f64 = regions.iter().flat_map(|of| of.shares).sum();
        if all > 0.0 {
            bands.iter_mut().for_each(|(share, _)| *share /= all);
            let regions = regions.iter_mut();
            regions.for_each(|of| of.shares = of.shares.map(|share| share / all));
        }
        Mix {
            split,
            regions,
            bands,
        }
    }
}
