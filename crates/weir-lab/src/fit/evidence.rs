//! What was measured on a machine, and which part of it a fit may use.
//!
//! The rule: of each tier, loads alone, temporal stores alone and posted stores alone are used, by the most threads
//! that there are and by one. Of their points, in the order of bandwidth from the top, every other one is used, and the
//! one with the least load. All other mixes, thread counts and points are held out for the check.

use weir_model::access::{Op, Pattern};
use weir_model::document::{Beside, Point};
use weir_model::machine::MachineKind;
use weir_model::published::measured::{Curve, Traffic};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::chase::{Chase, Chases};
use super::median;

/// Everything that is known of a machine's memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Where it is from, in words: `run 5 of host`.
    pub from: String,
    /// Figures of one load alone.
    pub singles: Vec<Single>,
    /// Latency under load.
    pub curves: Vec<LoadedCurve>,
    /// Latency by working set of local DRAM.
    pub chases: Chases,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// A figure of one load alone on the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Single {
    /// The tier.
    pub tier: TierName,
    /// What it is.
    pub what: What,
    /// The figure, in ns or GB/s.
    pub value: f64,
    /// Half of its 95 % interval, in the same unit; 0 where it is not known.
    pub half: f64,
}

/// What a figure of one load alone is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Latency of a chase.
    Idle,
    /// Bandwidth of this many threads that load.
    Loads(u32),
    /// Bandwidth of the program of this many threads of temporal stores.
    Stores(u32),
    /// Bandwidth of this many threads of non-temporal stores.
    Posted(u32),
    /// Bandwidth of one thread of movdir64B.
    Movdir64b,
}

impl Single {
    /// The figure of a point, where it is one that a parameter is.
    pub fn of(point: &Point) -> Option<Self> {
        let alone = point.beside.is_none() && point.source.is_none() && point.cache_ways.is_none();
        if !alone || point.socket != 0 || point.error.is_some() {
            return None;
        }
        // As of a log that does not say how many there were, there was more than one.
        let threads = match point.threads {
            0 => u32::MAX,
            threads => threads,
        };
        let (what, value) = match (point.experiment.as_str(), point.op) {
            ("loaded", Op::Ld) => (What::Idle, point.ns?.mean.get()),
            ("bandwidth", op)
                if point.prefetch
                    && point.read_share.is_none()
                    && point.pattern == Pattern::Sequential.name() =>
            {
                let what = match op {
                    Op::Ld => What::Loads(threads),
                    Op::St => What::Stores(threads),
                    Op::NtSt => What::Posted(threads),
                    Op::Movdir64b if threads == 1 => What::Movdir64b,
                    _ => return None,
                };
                (what, point.gbps?.get())
            }
            _ => return None,
        };
        (value > 0.0).then(|| Self {
            tier: point.tier.clone(),
            what,
            value,
            half: point.ci95.unwrap_or(0.0),
        })
    }

    /// The same figures, from the used points of curves under load.
    pub fn of_curves(curves: &[LoadedCurve]) -> Vec<Self> {
        let mut singles: Vec<Self> = Vec::new();
        let mut tiers: Vec<&TierName> = curves.iter().map(|c| &c.tier).collect();
        tiers.dedup();
        for tier in tiers {
            let of_tier = || curves.iter().filter(|c| c.tier == *tier);
            let least: Vec<f64> = of_tier()
                .filter_map(|c| c.points.first().filter(|p| p.used))
                .map(|p| p.latency.get())
                .collect();
            if !least.is_empty() {
                let spread = |all: &[f64]| {
                    let most = all.iter().copied().fold(f64::MIN, f64::max);
                    (most - all.iter().copied().fold(f64::MAX, f64::min)) / 2.0
                };
                singles.push(Self {
                    tier: tier.clone(),
                    what: What::Idle,
                    value: median(&least),
                    half: spread(&least),
                });
            }
            for curve in of_tier().filter(|c| c.traffic.mix.is_none()) {
                let Some(top) = curve.points.last().filter(|p| p.used) else {
                    continue;
                };
                // A log that does not say how many threads there were had more than one.
                let threads = curve.threads.unwrap_or(u32::MAX);
                let traffic = top.bandwidth.get();
                let (what, value) = match curve.traffic.op {
                    Op::Ld => (What::Loads(threads), traffic),
                    Op::St => (What::Stores(threads), traffic / 2.0),
                    _ => (What::Posted(threads), traffic),
                };
                let tier = tier.clone();
                singles.push(Self {
                    tier,
                    what,
                    value,
                    half: 0.0,
                });
            }
        }
        singles
    }
}

/// Latency of a chase on a tier with this many threads of one traffic there.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedCurve {
    /// The tier.
    pub tier: TierName,
    /// Loading threads; `None` where the log does not say it, for all others.
    pub threads: Option<u32>,
    /// What they do.
    pub traffic: Traffic,
    /// From the least bandwidth to the most.
    pub points: Vec<LoadedPoint>,
}

/// One point of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadedPoint {
    /// The pause of each thread between two lines, where it is known.
    pub pause: Option<Nanos>,
    /// What crossed the memory interface for the loading threads.
    pub bandwidth: GbPerSec,
    /// Mean latency of the chase.
    pub latency: Nanos,
    /// Half of its 95 % interval, where it is known.
    pub half: Option<Nanos>,
    /// Whether the fit uses it.
    pub used: bool,
}

impl Evidence {
    /// Whether nothing can be fitted.
    pub fn is_empty(&self) -> bool {
        self.singles.is_empty() && self.curves.is_empty() && self.chases.all.is_empty()
    }

    /// Adds the points of a run on a machine, a model with pages of this size. Those with another tenant on another tier are
    /// left out.
    pub fn add_points(&mut self, points: &[Point], machine: MachineKind, page: Option<Bytes>) {
        self.singles.extend(points.iter().filter_map(Single::of));
        let chase = |point: &Point| Chase::of(point, machine, page);
        self.chases.all.extend(points.iter().filter_map(chase));
        for point in points.iter().filter(|p| p.experiment == "loaded") {
            let (Some(beside), Some(ns)) = (&point.beside, &point.ns) else {
                continue;
            };
            let Some(bandwidth) = beside.traffic_gbps else {
                continue;
            };
            let Some(traffic) = traffic_of(beside).filter(|_| beside.tier == point.tier) else {
                continue;
            };
            let loaded = LoadedPoint {
                // A host's threads may lose their processor: their load is what they drew.
                pause: Some(beside.pause_ns).filter(|_| machine == MachineKind::Sim),
                bandwidth,
                latency: ns.mean,
                half: point.ci95.map(Nanos),
                used: false,
            };
            let threads = Some(beside.threads).filter(|&threads| threads > 0);
            self.add(&point.tier, threads, traffic, [loaded]);
        }
    }

    /// Adds a logged curve as one of this tier.
    pub fn add_log(&mut self, tier: &TierName, curve: &Curve) {
        if curve.random {
            let name = &curve.name;
            self.left_out.push(format!(
                "curves of random lines ({name}): the model's threads load in order"
            ));
            return;
        }
        let points = curve.points.iter().map(|point| LoadedPoint {
            pause: None,
            bandwidth: point.bandwidth,
            latency: point.latency,
            half: None,
            used: false,
        });
        self.add(tier, curve.threads, curve.traffic, points);
    }

    fn add(
        &mut self,
        tier: &TierName,
        threads: Option<u32>,
        traffic: Traffic,
        points: impl IntoIterator<Item = LoadedPoint>,
    ) {
        let same =
            |c: &&mut LoadedCurve| c.tier == *tier && c.threads == threads && c.traffic == traffic;
        match self.curves.iter_mut().find(same) {
            Some(curve) => curve.points.extend(points),
            None => self.curves.push(LoadedCurve {
                tier: tier.clone(),
                threads,
                traffic,
                points: points.into_iter().collect(),
            }),
        }
    }

    /// Drops what no memory answered, applies the rule, and takes from the used points what figures of one load alone
    /// do not say.
    pub fn settle(&mut self) {
        for curve in &mut self.curves {
            let order =
                |a: &LoadedPoint, b: &LoadedPoint| a.bandwidth.get().total_cmp(&b.bandwidth.get());
            curve.points.sort_by(order);
        }
        self.drop_cached();
        self.curves.retain(|curve| !curve.points.is_empty());
        let most: Vec<Option<u32>> = (self.curves.iter())
            .map(|curve| {
                let same = self.curves.iter().filter(|c| c.tier == curve.tier);
                same.map(|c| c.threads).max().flatten()
            })
            .collect();
        for (curve, most) in self.curves.iter_mut().zip(most) {
            let known = curve.threads == most || curve.threads == Some(1);
            if curve.traffic.mix.is_some() || !known {
                continue;
            }
            for (n, point) in curve.points.iter_mut().rev().enumerate() {
                point.used = n % 2 == 0;
            }
            if let Some(least) = curve.points.first_mut() {
                least.used = true;
            }
        }
        let more: Vec<Single> = Single::of_curves(&self.curves);
        for single in more {
            let known = |s: &Single| s.tier == single.tier && s.what == single.what;
            if !self.singles.iter().any(known) {
                self.singles.push(single);
            }
        }
    }

    /// Points whose chase shared a cache with its load: less than four fifths of the tier's latency without load, of
    /// which the median over all curves is taken.
    fn drop_cached(&mut self) {
        let mut tiers: Vec<TierName> = self.curves.iter().map(|c| c.tier.clone()).collect();
        tiers.dedup();
        for tier in tiers {
            let of_tier = self.curves.iter().filter(|c| c.tier == tier);
            let least: Vec<f64> = of_tier
                .filter_map(|c| Some(c.points.first()?.latency.get()))
                .collect();
            let limit = 0.8 * median(&least);
            let mut dropped = 0;
            for curve in self.curves.iter_mut().filter(|c| c.tier == tier) {
                let before = curve.points.len();
                curve.points.retain(|p| p.latency.get() >= limit);
                // If most points of a curve met a cache, the others are dropped too.
                if curve.points.len() * 2 < before {
                    curve.points.clear();
                }
                dropped += before - curve.points.len();
            }
            if dropped > 0 {
                self.left_out.push(format!(
                    "{dropped} points of {tier} below {limit:.0} ns, where the chase met a cache"
                ));
            }
        }
    }
}

/// What the threads with a chase did, where it is one of the mixes of `bench loaded`.
fn traffic_of(beside: &Beside) -> Option<Traffic> {
    let plain = beside.pattern == Pattern::Sequential.name()
        && beside
            .source
            .as_ref()
            .is_none_or(|from| *from == beside.tier)
        && beside.cache_ways.is_none()
        && beside.socket == 0
        && beside.arrivals.is_closed();
    let op = beside.op;
    let mix = match op {
        Op::Ld => None,
        Op::St | Op::NtSt => mix_of(op, beside.read_share)?,
        _ => return None,
    };
    plain.then_some(Traffic { op, mix })
}

/// Lines loaded along with stores that make this share of the traffic reads; `None` within for stores alone.
#[allow(clippy::option_option)] // A mix that cannot be is not the same as none.
fn mix_of(op: Op, read_share: f64) -> Option<Option<(u32, u32)>> {
    let owned = if op.reads_for_ownership() { 1.0 } else { 0.0 };
    let ratio = read_share / (1.0 - read_share) - owned;
    if ratio.abs() < 1e-6 {
        return Some(None);
    }
    let whole = (1..=16_u32).map(|per| (ratio * f64::from(per), per));
    let found = whole
        .filter(|(lines, _)| *lines > 0.5)
        .find(|(lines, _)| (lines - lines.round()).abs() < 1e-3);
    found.map(|(lines, per)| Some((lines.round() as u32, per)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_known_from_their_share_of_reads() {
        assert_eq!(mix_of(Op::St, 0.5), Some(None));
        assert_eq!(mix_of(Op::St, 0.75), Some(Some((2, 1))));
        assert_eq!(mix_of(Op::St, 2.0 / 3.0), Some(Some((1, 1))));
        assert_eq!(mix_of(Op::St, 0.6), Some(Some((1, 2))));
        assert_eq!(mix_of(Op::St, 0.4), None);
        assert_eq!(mix_of(Op::St, 1.0), None);
        assert_eq!(mix_of(Op::NtSt, 0.0), Some(None));
        assert_eq!(mix_of(Op::NtSt, 2.0 / 3.0), Some(Some((2, 1))));
        assert_eq!(mix_of(Op::NtSt, 0.25), Some(Some((1, 3))));
    }

    #[test]
    fn every_other_point_of_pure_traffic_is_used_and_no_mix() {
        let point = |gbps: f64| LoadedPoint {
            pause: None,
            bandwidth: GbPerSec(gbps),
            latency: Nanos(100.0 + gbps),
            half: None,
            used: false,
        };
        let curve = |mix, threads| LoadedCurve {
            tier: TierName::dram(),
            threads: Some(threads),
            traffic: Traffic { op: Op::St, mix },
            points: [10.0, 30.0, 20.0, 40.0].map(point).to_vec(),
        };
        let mut evidence = Evidence {
            curves: vec![
                curve(None, 8),
                curve(Some((1, 1)), 8),
                curve(None, 4),
                curve(None, 1),
            ],
            ..Evidence::default()
        };
        evidence.settle();
        let used = |n: usize| -> Vec<f64> {
            let points = evidence.curves[n].points.iter().filter(|p| p.used);
            points.map(|p| p.bandwidth.get()).collect()
        };
        assert_eq!(used(0), [10.0, 20.0, 40.0]);
        assert!(used(1).is_empty());
        assert!(used(2).is_empty());
        assert_eq!(used(3), [10.0, 20.0, 40.0]);
    }
}
