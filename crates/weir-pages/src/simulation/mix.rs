//! Where accesses go, by tier, region and band.

use super::Simulation;
use crate::page::At;

/// Accesses of an interval as shares of all of them.
#[derive(Debug, Default)]
pub(super) struct Mix {
    /// By tier.
    pub(super) shares: [f64; 2],
    /// By tier, divided by accesses that are outstanding at once.
    pub(super) waits: [f64; 2],
    /// The part of each tier's accesses that writes.
    pub(super) writes: [f64; 2],
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
        let mut mix = Mix::default();
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
                mix.bands
                    .push((weight, (there + out) as f64 / extent.base as f64));
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
            for t in 0..2 {
                mix.shares[t] += of_region.shares[t];
                mix.waits[t] += of_region.shares[t] / region.mlp;
                mix.writes[t] += of_region.shares[t] * region.writes;
            }
            mix.regions.push(of_region);
        }
        mix.normalise();
        mix
    }
}

impl Mix {
    fn normalise(&mut self) {
        let all: f64 = self.shares.iter().sum();
        for t in 0..2 {
            self.writes[t] = match self.shares[t] > 0.0 {
                true => self.writes[t] / self.shares[t],
                false => 0.0,
            };
        }
        if all <= 0.0 {
            // Without pages there is nothing to wait for.
            (self.shares, self.waits) = ([1.0, 0.0], [1.0, 0.0]);
            return;
        }
        for t in 0..2 {
            self.shares[t] /= all;
            self.waits[t] /= all;
        }
        for (share, _) in &mut self.bands {
            *share /= all;
        }
        for region in &mut self.regions {
            region.shares = region.shares.map(|share| share / all);
        }
    }
}
