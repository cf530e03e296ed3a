//! Whether the machine stayed the same while a plan was gone through.
//!
//! Two short points that no plan contains are measured before the first round and after each: a
//! chase within the first-level cache, which follows the core's clock, and loads of flushed lines, which
//! take as long as memory without gigabytes that leave a large last-level cache behind. If they change by
//! more than they scatter, so did the machine, and with it whatever was measured in between.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::machine::Testbed;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use crate::measure::{Watcher, measure};
use crate::{Load, PointSpec};

/// A change below this share of the first look is none, however little the references scatter.
const LEAST: f64 = 0.03;
/// The memory whose lines are flushed and loaded: many banks and rows.
const FLUSHED: Bytes = Bytes::mib(64);
/// Where there is no first-level cache to ask for its size.
const SMALLEST_CACHE: Bytes = Bytes::kib(16);

/// What is looked at, and what was seen.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    references: Vec<Reference>,
}

#[derive(Debug)]
struct Reference {
    what: &'static str,
    spec: PointSpec,
    /// Mean and half-width of the interval, in ns, one for each look.
    looks: Vec<(f64, f64)>,
}

impl Drift {
    /// The references of a machine.
    pub(crate) fn on(topology: &Topology) -> Self {
        let dram = TierName::dram();
        let Some(tier) = topology.tier(&dram).or(topology.tiers.first()) else {
            return Self::default();
        };
        let inside = topology.caches.first().map_or(SMALLEST_CACHE, |c| c.size);
        let pattern = Pattern::Chase {
            locality: Locality::TlbFriendly,
        };
        let half = Bytes(inside.get() / 2);
        let reference = |what, pattern, set| {
            let load = Load::new(&tier.name, Op::Ld, pattern, 1, set).prefetch(false);
            Reference {
                what,
                spec: PointSpec::alone("latency", load),
                looks: Vec::new(),
            }
        };
        let flushed = Bytes(FLUSHED.get().min(tier.capacity.get()));
        Self {
            references: vec![
                reference("a chase within the first-level cache", pattern, half),
                reference("a load of a flushed line", Pattern::FlushedLine, flushed),
            ],
        }
    }

    /// Measures the references once more.
    pub(crate) fn look(&mut self, testbed: &dyn Testbed, seed: u64, watcher: &dyn Watcher) {
        for reference in &mut self.references {
            let Some(done) = measure(testbed, 0, &reference.spec, seed, watcher) else {
                return;
            };
            if let Some(ns) = done.point.ns {
                let scatter = done.point.ci95.unwrap_or(0.0);
                reference.looks.push((ns.mean.get(), scatter));
            }
        }
    }

    /// A warning for each reference that did not stay the same.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.references
            .iter()
            .filter_map(Reference::warning)
            .collect()
    }
}

impl Reference {
    fn warning(&self) -> Option<String> {
        let (&(first, scatter), later) = self.looks.split_first()?;
        let (round, &(ns, _)) = later
            .iter()
            .enumerate()
            .filter(|(_, (ns, own))| {
                let change = (ns - first).abs();
                change > scatter + own && change > LEAST * first
            })
            .max_by(|(_, a), (_, b)| (a.0 - first).abs().total_cmp(&(b.0 - first).abs()))?;
        Some(format!(
            "the machine changed while it was measured: {} took {first:.2} ns at first and {ns:.2} \
             ns after round {} ({:+.0} %)",
            self.what,
            round + 1,
            (ns / first - 1.0) * 100.0
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(looks: &[(f64, f64)]) -> Option<String> {
        let pattern = Pattern::FlushedLine;
        let load = Load::new(&TierName::dram(), Op::Ld, pattern, 1, Bytes::kib(4));
        Reference {
            what: "a chase",
            spec: PointSpec::alone("latency", load),
            looks: looks.to_vec(),
        }
        .warning()
    }

    /// A look must not take longer than what it is a look at.
    #[test]
    fn a_look_needs_little_memory_however_large_the_caches_are() {
        use weir_model::topology::{CacheLevel, Tier, TierKind};
        let cache = |name: &str, size| CacheLevel {
            name: name.into(),
            size,
            ways: None,
            shared_by: 1,
        };
        let topology = Topology {
            caches: vec![cache("L1d", Bytes::kib(48)), cache("L3", Bytes::mib(320))],
            tiers: vec![Tier {
                name: TierName::dram(),
                kind: TierKind::Dram,
                node: None,
                capacity: Bytes::gib(256),
                description: String::new(),
                limits: None,
                programs_left: None,
            }],
            ..Topology::default()
        };
        let drift = Drift::on(&topology);
        let sets = drift
            .references
            .iter()
            .map(|r| r.spec.load.working_set.get());
        assert!(sets.sum::<u64>() <= 2 * FLUSHED.get());
    }

    proptest! {
        #[test]
        fn only_a_change_beyond_the_scatter_of_both_is_one(
            first in 1.0..500.0_f64, change in -0.5..0.5_f64, scatter in 0.0..0.2_f64,
        ) {
            let looks = [(first, scatter * first), (first * (1.0 + change), scatter * first)];
            let beyond = change.abs() > 2.0 * scatter && change.abs() > LEAST;
            prop_assume!((change.abs() - 2.0 * scatter).abs() > 1e-9);
            prop_assert_eq!(seen(&looks).is_some(), beyond);
        }
    }

    #[test]
    fn the_largest_change_is_reported_with_its_round() {
        let found = seen(&[(100.0, 1.0), (101.0, 1.0), (120.0, 1.0), (110.0, 1.0)]).unwrap();
        assert!(found.contains("120.00 ns after round 2 (+20 %)"), "{found}");
        assert_eq!(seen(&[(100.0, 1.0)]), None);
        assert_eq!(seen(&[]), None);
    }
}
