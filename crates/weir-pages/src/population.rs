//! Workloads drawn at random, on which policies are compared that were written before.
//!
//! A workload has one to four regions of five kinds (chase, scan, heap, cache, buffers), in shares of memory and of accesses that are drawn
//! apart, so that much memory may be accessed little. Some change between two phases, some drift. Ranges are those of
//! the programs in the published comparisons: pointer chases and scans of graph programs and language models (SupMario
//! section 6.4), caches and services (TPP sections 3.3 to 3.6).

use weir_model::units::Bytes;

use crate::random::Draws;
use crate::workload::{Band, Growth, PageKind, PagedWorkload, Phase, Region, zipf};

/// A workload, and the capacities of the machine that it is to run on.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// The workload.
    pub workload: PagedWorkload,
    /// The capacity of the fast tier, as a share of the workload's memory; the slow one has room for all of it.
    pub fast: f64,
}

impl Drawn {
    /// Memory of the fast tier.
    pub fn fast_memory(&self) -> Bytes {
        Bytes((self.workload.peak().get() as f64 * self.fast) as u64)
    }
}

/// The fast tier's share: from a small part to room for everything.
const FAST: [f64; 6] = [0.2, 0.35, 0.5, 0.65, 0.8, 1.05];

/// Accesses of a thread in a second, roughly: half of its time it waits for memory of 100 ns, with two accesses at once.
const PER_S: f64 = 1e7;

/// What a region is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A pointer chase through a structure with hot parts.
    Chase,
    /// A scan of all of it.
    Scan,
    /// A heap with hot parts.
    Heap,
    /// A page cache with hot parts.
    Cache,
    /// Buffers that live for seconds.
    Buffers,
}

struct Range<'a>(&'a mut Draws);

impl Range<'_> {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// As likely in each factor of e.
    fn log(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.unit())
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        let n = (self.0.unit() * of.len() as f64) as usize;
        of[n.min(of.len() - 1)]
    }

    fn is(&mut self, probability: f64) -> bool {
        self.0.unit() <= probability
    }

    /// Shares that add up to 1.
    fn shares(&mut self, n: usize) -> Vec<f64> {
        let parts: Vec<f64> = (0..n).map(|_| 0.05 + self.0.exponential()).collect();
        let all: f64 = parts.iter().sum();
        parts.into_iter().map(|part| part / all).collect()
    }

    /// Bands of `pages` pages, which have `per_s` accesses in a second.
    fn bands(&mut self, kind: Kind, pages: f64, per_s: f64) -> Vec<Band> {
        let (Kind::Chase | Kind::Heap | Kind::Cache) = kind else {
            return vec![Band {
                pages: 1.0,
                accesses: 1.0,
            }];
        };
        let hot = self.log(0.03, 0.5);
        // A page that is not hot is touched once in half a second to an hour.
        let every_s = self.log(0.5, 3600.0);
        let rest = ((1.0 - hot) * pages / every_s / per_s).min(0.5);
        let exponent = self.between(0.5, 0.95);
        let mut bands = zipf(hot, 1.0 - rest, (hot * pages).max(64.0), exponent, 5);
        bands.push(Band {
            pages: 1.0 - hot,
            accesses: rest,
        });
        bands
    }

    fn region(&mut self, bytes: f64, accesses: f64, threads: f64) -> Region {
        use Kind::{Buffers, Cache, Chase, Heap, Scan};
        let kind = self.one(&[Chase, Scan, Heap, Cache, Buffers]);
        let (name, mlp) = match kind {
            Chase => ("chase", self.between(1.0, 2.0)),
            Scan => ("scan", self.between(6.0, 14.0)),
            Heap => ("heap", self.between(1.5, 4.0)),
            Cache => ("cache", self.between(1.5, 4.0)),
            Buffers => ("buffers", self.between(2.0, 6.0)),
        };
        let page = match self.is(0.15) {
            true => Bytes::mib(2),
            false => Bytes::kib(4),
        };
        let drifts = !matches!(kind, Scan | Buffers) && self.is(0.5);
        Region {
            name: name.into(),
            kind: match kind {
                Cache => PageKind::File,
                _ => PageKind::Anon,
            },
            bytes: Bytes((bytes as u64).max(page.get())),
            page,
            accesses,
            writes: self.between(0.0, 0.5),
            mlp,
            burst: 1.0,
            band_bursts: Vec::new(),
            band_places: Vec::new(),
            bands: self.bands(kind, bytes / page.get() as f64, accesses * threads * PER_S),
            growth: Growth::NONE,
            lifetime_s: match kind {
                Buffers => Some(self.log(5.0, 60.0)),
                _ => None,
            },
            drift_per_hour: if drifts { self.log(0.25, 30.0) } else { 0.0 },
        }
    }
}

/// The n-th workload of a population, with this much memory.
pub fn draw(seed: u64, n: u64, size: Bytes) -> Drawn {
    let mut draws = Draws::new(seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut range = Range(&mut draws);
    let count = range.one(&[1, 2, 3, 4]);
    let memory = range.shares(count);
    let accesses = range.shares(count);
    let threads = range.between(8.0, 56.0).floor();
    let regions: Vec<Region> = (memory.iter().zip(&accesses))
        .map(|(memory, accesses)| range.region(memory * size.get() as f64, *accesses, threads))
        .collect();
    let phases = match count > 1 && range.is(0.3) {
        true => (0..2)
            .map(|_| Phase {
                seconds: range.log(15.0, 120.0),
                accesses: range.shares(count),
                stalled: None,
            })
            .collect(),
        false => Vec::new(),
    };
    Drawn {
        workload: PagedWorkload {
            name: format!("drawn-{n}"),
            about: "drawn at random".into(),
            threads: threads as u32,
            stalled: range.between(0.15, 0.9),
            regions,
            phases,
        },
        fast: range.one(&FAST),
    }
}
