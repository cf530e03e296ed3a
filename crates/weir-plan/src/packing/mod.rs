//! `weir plan packing`: how much better VMs fit into pools of machines than into single ones (A Case Against CXL
//! Memory Pooling, section 5).
//!
//! A pool of N machines is one machine of N times the size, cores included. This credits pooling with more than it can
//! give, so that the gain is an upper bound. It shows fragments that single machines leave, and not memory that need not
//! be bought: see [`crate::pool`] for that.

pub mod bins;
pub mod lower;
mod outcome;
pub mod upper;

use bins::{Kind, Shape};
pub use outcome::{PackingBound, PackingRow};

use crate::PlanError;
use crate::error::within;

/// How VMs pack into machines and into pools of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// Factors by which VMs grow.
    pub inflate: Vec<u32>,
    /// Machines of a pool. Single machines are packed besides.
    pub pools: Vec<u32>,
}

/// Bounds on the machines or pools that VMs need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// No packing has fewer.
    pub lower: u64,
    /// A packing that was found.
    pub upper: u64,
    /// The same packing, the emptiest of its bins counted by its fill relative to the mean of the others.
    pub fractional: f64,
}

/// Packs VMs into bins of one shape. Each kind must fit.
pub fn pack(kinds: &[Kind], bin: Shape) -> Bounds {
    let found = upper::best(kinds, bin);
    Bounds {
        lower: lower::bound(kinds, bin),
        upper: found.bins,
        fractional: found.fractional,
    }
}

impl Packing {
    /// Bounds for each growth and pool, for machines of one shape.
    ///
    /// VMs that outgrow one machine are counted and left out of every pool of that growth, so that all pools hold the
    /// same VMs.
    ///
    /// # Errors
    /// A growth or a pool is not 1 to 1024, or the shape has no cores or memory.
    pub fn of(
        &self,
        machine: &str,
        kinds: &[Kind],
        shape: Shape,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<PackingRow>, PlanError> {
        let pools = self.pools.iter().map(|pool| ("--machines-per-pool", *pool));
        let grown = self.inflate.iter().map(|factor| ("--inflate", *factor));
        for (what, factor) in grown.chain(pools) {
            within(what, f64::from(factor), (1.0, 1024.0), "1 to 1024")?;
        }
        let least = shape.cores.min(shape.memory) as f64;
        within(
            "a machine's size",
            least,
            (1.0, 1e15),
            "some cores and memory",
        )?;
        let mut rows = Vec::new();
        for &grown in &self.inflate {
            let all = kinds.iter().map(|kind| kind.grown(grown));
            let (fit, too_large): (Vec<Kind>, Vec<Kind>) =
                all.partition(|kind| kind.shape.fits(shape));
            let count = |kinds: &[Kind]| kinds.iter().map(|kind| kind.count).sum::<u64>();
            let single = pack(&fit, shape);
            let mut sizes = self.pools.clone();
            sizes.push(1);
            sizes.sort_unstable();
            sizes.dedup();
            let mut done: Vec<(u32, Bounds)> = Vec::new();
            for size in sizes {
                if !go_on() {
                    return Err(PlanError::Stopped);
                }
                let mut bounds = match size {
                    1 => single,
                    size => pack(&fit, shape.times(size)),
                };
                // Smaller pools side by side are a packing of a larger one.
                for (smaller, of) in done
                    .iter()
                    .filter(|(smaller, _)| size.is_multiple_of(*smaller))
                {
                    let together = size / smaller;
                    bounds.upper = bounds.upper.min(of.upper.div_ceil(u64::from(together)));
                    bounds.fractional = bounds.fractional.min(of.fractional / f64::from(together));
                }
                done.push((size, bounds));
                rows.push(outcome::row(
                    machine,
                    (grown, size),
                    (count(&fit), count(&too_large)),
                    single,
                    bounds,
                ));
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MACHINE: Shape = Shape {
        cores: 100,
        memory: 400,
    };

    fn kind(cores: u64, memory: u64, count: u64) -> Kind {
        Kind {
            shape: Shape { cores, memory },
            count,
        }
    }

    fn rows(kinds: &[Kind], inflate: &[u32], pools: &[u32]) -> Vec<PackingRow> {
        let packing = Packing {
            inflate: inflate.to_vec(),
            pools: pools.to_vec(),
        };
        packing.of("m", kinds, MACHINE, &|| true).unwrap()
    }

    #[test]
    fn a_bound_that_is_given_up_is_no_bound() {
        let packing = Packing {
            inflate: vec![1],
            pools: vec![2],
        };
        let given_up = packing.of("m", &[kind(1, 4, 16)], MACHINE, &|| false);
        assert_eq!(given_up, Err(PlanError::Stopped));
    }

    #[test]
    fn tiny_vms_gain_nothing() {
        for row in rows(&[kind(1, 4, 1600)], &[1], &[2, 4, 8, 16]) {
            assert_eq!((row.gain, row.gain_fractional), (1.0, 1.0), "{row:?}");
            assert_eq!(row.lower, row.upper, "{row:?}");
            assert_eq!(row.upper, u64::from(16 / row.pool));
        }
    }

    #[test]
    fn vms_of_half_a_machine_and_a_little_gain_half() {
        let rows = rows(&[kind(51, 204, 600)], &[1], &[2]);
        let pair = rows.iter().find(|row| row.pool == 2).unwrap();
        assert_eq!((pair.lower, pair.upper), (200, 200));
        assert_eq!(
            (pair.gain, pair.gain_least, pair.gain_most),
            (1.5, 1.5, 1.5)
        );
        assert!((pair.gain_fractional - 1.5).abs() < 1e-9);
    }

    #[test]
    fn an_almost_empty_last_pool_hides_the_gain_only_from_whole_bins() {
        // 17 VMs of a machine each: 17 machines, and two pools of 16, the second almost empty.
        let rows = rows(&[kind(100, 400, 17)], &[1], &[16]);
        let pool = rows.iter().find(|row| row.pool == 16).unwrap();
        assert!(pool.gain < 0.6, "{pool:?}");
        assert!((pool.gain_fractional - 1.0).abs() < 1e-9, "{pool:?}");
    }

    #[test]
    fn vms_that_outgrow_a_machine_are_counted_and_left_out_of_every_pool() {
        let rows = rows(&[kind(30, 10, 5), kind(5, 5, 7)], &[1, 4], &[8]);
        for row in &rows {
            let expected = if row.inflate == 4 { (7, 5) } else { (12, 0) };
            assert_eq!((row.vms, row.too_large), expected, "{row:?}");
        }
    }

    #[test]
    fn nothing_needs_no_machine_and_gains_nothing() {
        for row in rows(&[], &[1], &[2]) {
            assert_eq!((row.lower, row.upper, row.gain), (0, 0, 1.0));
        }
    }

    #[test]
    fn a_single_machine_counts_as_far_as_it_is_full() {
        assert_eq!(pack(&[kind(50, 100, 1)], MACHINE).fractional, 0.5);
    }

    fn any_kinds() -> impl Strategy<Value = Vec<Kind>> {
        let one = (1..=100u64, 1..=400u64, 1..40u64);
        prop::collection::vec(
            one.prop_map(|(cores, memory, count)| kind(cores, memory, count)),
            1..8,
        )
    }

    proptest! {
        #[test]
        fn lower_is_at_most_upper_and_neither_is_below_the_volume(kinds in any_kinds(), size in 1..9u32) {
            let bin = MACHINE.times(size);
            let bounds = pack(&kinds, bin);
            let volume = |of: fn(Shape) -> u64| -> u64 {
                kinds.iter().map(|kind| of(kind.shape) * kind.count).sum::<u64>().div_ceil(of(bin))
            };
            let volume = volume(|s| s.cores).max(volume(|s| s.memory));
            prop_assert!(volume <= bounds.lower && bounds.lower <= bounds.upper, "{bounds:?}, volume {volume}");
            prop_assert!(bounds.fractional <= bounds.upper as f64 + 1e-9);
            prop_assert!(bounds.fractional > bounds.upper as f64 - 1.0);
        }

        #[test]
        fn fewer_vms_never_need_more_and_a_larger_bin_never_either(kinds in any_kinds(), take in 0..8usize) {
            let mut fewer = kinds.clone();
            let at = take % fewer.len();
            fewer[at].count -= 1;
            prop_assert!(lower::bound(&fewer, MACHINE) <= lower::bound(&kinds, MACHINE));
            let rows = rows(&kinds, &[1], &[2, 4, 8]);
            for pair in rows.windows(2) {
                prop_assert!(pair[0].upper >= pair[1].upper);
                // Single machines side by side are pools.
                prop_assert!(pair[1].upper <= rows[0].upper.div_ceil(u64::from(pair[1].pool)));
                prop_assert!(pair[1].gain_least <= pair[1].gain && pair[1].gain <= pair[1].gain_most);
            }
        }

        #[test]
        fn few_vms_are_packed_within_the_bounds_of_the_best_packing(
            sizes in prop::collection::vec((1..=100u64, 1..=400u64), 1..7),
        ) {
            let kinds: Vec<Kind> = sizes.iter().map(|&(cores, memory)| kind(cores, memory, 1)).collect();
            let bounds = pack(&kinds, MACHINE);
            let best = exhaustive(&sizes, &mut Vec::new());
            prop_assert!(bounds.lower <= best && best <= bounds.upper, "{bounds:?}, best {best}");
        }
    }

    /// The least number of machines, by every assignment.
    fn exhaustive(left: &[(u64, u64)], bins: &mut Vec<(u64, u64)>) -> u64 {
        let Some((&(cores, memory), rest)) = left.split_first() else {
            return bins.len() as u64;
        };
        let mut least = u64::MAX;
        for at in 0..bins.len() {
            let (used, held) = bins[at];
            if used + cores <= MACHINE.cores && held + memory <= MACHINE.memory {
                bins[at] = (used + cores, held + memory);
                least = least.min(exhaustive(rest, bins));
                bins[at] = (used, held);
            }
        }
        bins.push((cores, memory));
        least = least.min(exhaustive(rest, bins));
        bins.pop();
        least
    }
}
