//! Two tiers of memory: capacity, watermarks, and latency under load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::PagesError;

/// Bytes of a base page.
pub const BASE: u64 = 4096;

/// A node of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The node of the processor: the top tier.
    Fast,
    /// The node without a processor.
    Slow,
}

impl Tier {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Fast, Self::Slow];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Fast => Self::Slow,
            Self::Slow => Self::Fast,
        }
    }
}

/// A measured point of a tier under load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loaded {
    /// Traffic.
    pub gbps: GbPerSec,
    /// Latency of a read meanwhile.
    pub latency: Nanos,
}

/// Latency of a tier over its traffic, at one share of reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadCurve {
    /// Share of traffic that reads.
    pub read_share: f64,
    /// Points by rising traffic; the first is without load.
    pub points: Vec<Loaded>,
}

/// Latency of a tier over its traffic, at one or more shares of reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierCurve {
    /// Curves by rising share of reads.
    pub curves: Vec<LoadCurve>,
}

/// Beyond the last point latency grows as in a closed queue: in proportion to the traffic that is asked for, and this
/// times steeper, so that a fixed point stays close to the largest traffic that was measured.
const BEYOND: f64 = 20.0;

impl LoadCurve {
    fn latency(&self, gbps: f64) -> f64 {
        let at = |p: &Loaded| (p.gbps.get(), p.latency.get());
        let (mut last, mut seen) = ((0.0, 0.0), false);
        for (x, y) in self.points.iter().map(at) {
            if gbps <= x {
                return match seen && x > last.0 {
                    true => last.1 + (y - last.1) * (gbps - last.0) / (x - last.0),
                    false => y,
                };
            }
            (last, seen) = ((x, y), true);
        }
        last.1 * (1.0 + BEYOND * (gbps / last.0.max(1e-9) - 1.0))
    }
}

impl TierCurve {
    /// Points by rising traffic, whatever the share of reads.
    pub fn of_points(points: Vec<Loaded>) -> Self {
        let curve = LoadCurve {
            read_share: 1.0,
            points,
        };
        Self {
            curves: vec![curve],
        }
    }

    /// A queue with one server: latency without load, and the bandwidth at which it has no bound.
    pub fn of_queue(idle: Nanos, peak: GbPerSec) -> Self {
        let at = |load: f64| Loaded {
            gbps: peak * load,
            latency: idle * (1.0 + 0.15 * load / (1.0 - load)),
        };
        Self::of_points([0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95].map(at).to_vec())
    }

    /// The latency of a read while the tier has this much traffic, of which a share reads.
    pub fn latency(&self, traffic: GbPerSec, read_share: f64) -> Nanos {
        let gbps = traffic.get().max(0.0);
        let (mut last, mut below): (f64, Option<f64>) = (0.0, None);
        for curve in &self.curves {
            let here = curve.latency(gbps);
            if read_share <= curve.read_share {
                let span = curve.read_share - last;
                return Nanos(match below {
                    Some(below) if span > 0.0 => {
                        below + (here - below) * (read_share - last) / span
                    }
                    _ => here,
                });
            }
            (last, below) = (curve.read_share, Some(here));
        }
        Nanos(below.unwrap_or(0.0))
    }

    /// By how many ns latency rises for another GB/s.
    pub fn slope(&self, traffic: GbPerSec, read_share: f64) -> f64 {
        let gbps = traffic.get();
        let more = (gbps * 0.02).max(0.5);
        let at = |gbps: f64| self.latency(GbPerSec(gbps), read_share).get();
        (at(gbps + more) - at((gbps - more).max(0.0))) / (gbps.min(more) + more)
    }

    /// The latency without load.
    pub fn idle(&self) -> Nanos {
        self.latency(GbPerSec(0.0), 1.0)
    }

    fn check(&self) -> Result<(), PagesError> {
        let positive = |p: &Loaded| p.latency.get() > 0.0 && p.latency.get().is_finite();
        let rising = |c: &LoadCurve| c.points.windows(2).all(|w| w[0].gbps < w[1].gbps);
        let good =
            |c: &LoadCurve| !c.points.is_empty() && c.points.iter().all(positive) && rising(c);
        match !self.curves.is_empty() && self.curves.iter().all(good) {
            true => Ok(()),
            false => Err(PagesError::Machine {
                what: "latency under load",
                why: "needs points of rising traffic with a latency above zero".into(),
            }),
        }
    }
}

/// A tier of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Its size.
    pub capacity: Bytes,
    /// Latency under load.
    pub curve: TierCurve,
}

impl Memory {
    /// The least that a tier may have.
    pub const LEAST: Bytes = Bytes::mib(16);

    /// Checks capacity and curve.
    ///
    /// # Errors
    /// The tier holds less than 16 MiB, or its curve has no points.
    pub fn check(&self) -> Result<(), PagesError> {
        if self.capacity < Self::LEAST {
            return Err(PagesError::Machine {
                what: "capacity of a tier",
                why: format!(
                    "{} is too small; give {} or more",
                    self.capacity,
                    Self::LEAST
                ),
            });
        }
        self.curve.check()
    }
}

/// Watermarks of a node, in base pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Watermarks {
    /// All pages of the node.
    pub managed: u64,
    /// Below it threads reclaim before they allocate.
    pub min: u64,
    /// Below it background reclaim begins, and allocation prefers another node.
    pub low: u64,
    /// Up to it background reclaim goes on.
    pub high: u64,
}

/// Linux' `watermark_scale_factor` by default, in 1/10000 of the node (`Documentation/admin-guide/sysctl/vm.rst`).
const WATERMARK_SCALE: u64 = 10;
/// TPP's `demote_scale_factor` by default, in 1/10000 of the node: 2 % (TPP §5.2).
pub const DEMOTE_SCALE: u64 = 200;

impl Watermarks {
    /// As Linux has them: `min_free_kbytes` is the root of 16 times the KiB of all nodes, between 128 KiB and 256 MiB,
    /// divided by size; the distance to the next mark is a quarter of it or `watermark_scale_factor`, whichever
    /// is larger (`mm/page_alloc.c`).
    pub fn of(capacity: Bytes, all: Bytes) -> Self {
        let managed = capacity.get() / BASE;
        let kib = ((all.get() / 1024 * 16) as f64)
            .sqrt()
            .clamp(128.0, 262_144.0);
        let part = capacity.get() as f64 / all.get().max(1) as f64;
        let min = (kib / 4.0 * part) as u64;
        let gap = (min / 4).max(managed * WATERMARK_SCALE / 10_000);
        Self {
            managed,
            min,
            low: min + gap,
            high: min + 2 * gap,
        }
    }

    /// TPP's demotion watermark: `factor` ten-thousandths of the node, at least twice the high watermark, at most all.
    pub fn demote(&self, factor: u64) -> u64 {
        let wanted = self.managed.saturating_mul(factor) / 10_000;
        wanted.max(2 * self.high).min(self.managed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_demote_watermark_is_the_clamp_of_its_share(gib in 1u64..2048, factor in 1u64..=10_000) {
            let marks = Watermarks::of(Bytes::gib(gib), Bytes::gib(gib * 2));
            let share = marks.managed * factor / 10_000;
            prop_assert_eq!(marks.demote(factor), share.clamp(2 * marks.high, marks.managed));
            prop_assert!(marks.min < marks.low && marks.low < marks.high);
        }

        #[test]
        fn latency_never_falls_with_traffic(a in 0.0f64..100.0, b in 0.0f64..100.0) {
            let curve = TierCurve::of_queue(Nanos(100.0), GbPerSec(50.0));
            let at = |gbps| curve.latency(GbPerSec(gbps), 0.7).get();
            prop_assert!(at(a.min(b)) <= at(a.max(b)));
        }
    }
}
