//! Workloads that span the space, for validation: seeded, the same on every machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Order, Phase, Region, Within, Workload};
use crate::units::Bytes;

crate::named! {
    /// What a population is drawn from.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Population {
        /// The whole space, of which a third hardly waits for memory.
        Whole = "whole",
        /// Programs with 20 to 100 accesses to a line in 1000 instructions, most of whose data no cache holds.
        MemoryHeavy = "memory-heavy",
    }
}

impl Population {
    /// `n` workloads that a seed picks. The same seed gives the same ones, and the first `m` of them
    /// whatever `n` is; those of two populations have nothing in common.
    pub fn draw(self, seed: u64, n: usize) -> Vec<Workload> {
        let apart = match self {
            Population::Whole => 0,
            Population::MemoryHeavy => 0x6865_6176_7900_0000,
        };
        (0..n).map(|i| point(self, seed ^ apart, i)).collect()
    }

    /// The least and the greatest number of accesses in 1000 instructions.
    fn apki(self) -> (f64, f64) {
        match self {
            // From programs that live in their caches to those that wait for memory all the time: so wide that
            // about as many are slowed by more than half on CXL as among 265 real ones (SUP-135, SUP-136).
            Population::Whole => (0.1, 100.0),
            Population::MemoryHeavy => (20.0, 100.0),
        }
    }

    /// The share of regions that a cache may hold.
    fn small(self) -> f64 {
        match self {
            Population::Whole => 0.3,
            Population::MemoryHeavy => 0.1,
        }
    }
}

/// `n` workloads of the whole space.
pub fn population(seed: u64, n: usize) -> Vec<Workload> {
    Population::Whole.draw(seed, n)
}

/// Chance that depends on the seed, the point and the question alone (the finaliser of SplitMix64,
/// Steele, Lea and Flood, OOPSLA 2014).
struct Dice {
    state: u64,
}

impl Dice {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Uniform in 0..1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform on a logarithmic scale.
    fn scaled(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.next() % all.len() as u64) as usize]
    }
}

fn point(of: Population, seed: u64, i: usize) -> Workload {
    let mut dice = Dice {
        state: seed ^ (i as u64).wrapping_mul(0xd6e8_feb8_6659_fd93),
    };
    let mut waits = Dice {
        state: dice.state ^ 0x736c_6963_6500_0000,
    };
    let mut kinds = Dice {
        state: dice.state ^ 0x7665_6374_6f72_0000,
    };
    let phases = 1 + usize::from(dice.unit() < 0.25);
    Workload {
        name: match of {
            Population::Whole => format!("p{i:03}"),
            Population::MemoryHeavy => format!("m{i:03}"),
        },
        summary: format!("point {i} of the {of} population that seed {seed} draws"),
        source: "drawn at random".into(),
        assumed: None,
        threads: 1,
        application: None,
        variant: None,
        core_ipc: None,
        requests: None,
        phases: (0..phases)
            .map(|n| phase(of, n, [&mut dice, &mut waits, &mut kinds]))
            .collect(),
    }
}

fn phase(of: Population, n: usize, [dice, waits, kinds]: [&mut Dice; 3]) -> Phase {
    let regions = 1 + (dice.next() % 3) as usize;
    Phase {
        name: format!("phase {}", n + 1),
        instructions: dice.scaled(2e8, 2e9) as u64,
        cpi: dice.scaled(0.25, 1.2),
        apki: dice.scaled(of.apki().0, of.apki().1),
        // About the usual, from loops whose loads feed little else to code that works on what it loads.
        slice: waits.scaled(0.1, 0.8),
        // Two in three compute on integers alone. SPEC CPU 2017 is half floating point; databases, graphs,
        // compilers and services, of which the paper has more, hardly.
        vector: if kinds.unit() < 2.0 / 3.0 {
            0.0
        } else {
            kinds.between(0.1, 0.6)
        },
        // From floating-point loops to searches: as the programs of SPEC CPU 2017 spread (Panda et al., HPCA
        // 2018; Limaye and Adegbija, ISPASS 2018).
        mispredicts: waits.scaled(0.1, 12.0),
        regions: (0..regions).map(|r| region(of, n, r, dice)).collect(),
    }
}

fn region(of: Population, phase: usize, r: usize, dice: &mut Dice) -> Region {
    let order = dice.of(&[
        Order::Sequential,
        Order::Sequential,
        Order::Random,
        Order::Random,
        Order::Zipf,
        Order::Chase,
        Order::Fresh,
    ]);
    // From what L2 holds to what no cache does; most programs have parts of either kind.
    let bytes = match order {
        Order::Fresh => dice.scaled(1e9, 4e9),
        _ if dice.unit() < of.small() => dice.scaled(5e5, 4e7),
        _ => dice.scaled(1e8, 8e9),
    };
    let element = match order {
        Order::Sequential => dice.of(&[4, 8, 16, 32, 64]),
        Order::Fresh => dice.of(&[8, 16, 32, 64]),
        Order::Chase | Order::Cycle => 8,
        Order::Random | Order::Zipf | Order::Apex => dice.of(&[8, 8, 64, 128, 256, 1024]),
    };
    let stride = match order {
        Order::Sequential if dice.unit() < 0.15 => dice.of(&[128, 256, 512, 1024]),
        _ => element,
    };
    let stores = match order {
        Order::Fresh => dice.between(0.8, 1.0),
        _ if dice.unit() < 0.5 => 0.0,
        _ => dice.between(0.05, 0.6),
    };
    let points = matches!(order, Order::Random | Order::Zipf);
    Region {
        name: format!("r{phase}{r}"),
        bytes: Bytes((bytes as u64).next_multiple_of(4096)),
        order,
        share: dice.between(0.1, 1.0),
        element: Bytes(element),
        stride: Bytes(stride),
        stores,
        modifies: 0.0,
        non_temporal: 0.0,
        within: Within::Sequential,
        streams: match order {
            Order::Sequential => dice.of(&[1, 1, 2, 4, 8]),
            Order::Chase => dice.of(&[1, 1, 1, 2, 4]),
            _ => 1,
        },
        batch: 1,
        skew: dice.between(0.5, 1.1),
        dependent: match order {
            Order::Chase => 1.0,
            _ if points && dice.unit() < 0.5 => dice.between(0.1, 0.9),
            _ => 0.0,
        },
        indexed_by: None,
        object: None,
        mispredicted: match order {
            _ if points && dice.unit() < 0.4 => dice.between(0.02, 0.4),
            _ => 0.0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_population_is_its_seeds_and_spans_every_order() {
        let all = population(7, 300);
        assert_eq!(all[..40], population(7, 40));
        assert_ne!(all[..40], population(8, 40));
        // Cycles are only found in traces, and one benchmark is an apex order.
        let drawn = |order: &&Order| !matches!(order, Order::Cycle | Order::Apex);
        for order in Order::ALL.iter().filter(drawn) {
            let has = |w: &&Workload| {
                (w.phases.iter()).any(|p| p.regions.iter().any(|r| r.order == *order))
            };
            assert!(all.iter().filter(has).count() >= 20, "{}", order.name());
        }
        // Half of what is uniform on a logarithmic scale is below the geometric mean of its ends.
        let apki = || all.iter().flat_map(|w| &w.phases).map(|p| p.apki);
        let below = apki()
            .filter(|apki| *apki < (0.1_f64 * 100.0).sqrt())
            .count();
        let below = below as f64 / apki().count() as f64;
        assert!((0.4..0.6).contains(&below), "{below}");
        let heavy = Population::MemoryHeavy.draw(7, 300);
        let phases = || heavy.iter().flat_map(|w| &w.phases);
        assert!(phases().all(|p| p.apki >= 20.0));
        assert!(
            heavy
                .iter()
                .all(|w| all.iter().all(|other| other.phases != w.phases))
        );
    }
}
