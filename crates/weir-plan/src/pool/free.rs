//! What is free of machines, and the fullest one with room.

use std::collections::{BTreeMap, BTreeSet};

/// Machines up to which a look at each is faster than an index: 64 are seen in the time of two changes of the index.
const FEW: usize = 256;

/// What is free of each machine: thousandths of cores, and memory in MiB.
#[derive(Debug, Clone)]
pub struct Free {
    machines: Vec<(u64, u64)>,
    /// What a core and a MiB count when the fullest machine is sought.
    weights: (u64, u64),
    /// Machines by free cores, and of these by free memory; none for a few machines.
    index: Option<BTreeMap<u64, BTreeSet<(u64, usize)>>>,
}

impl Free {
    /// Empty machines of one size. A core counts as a share of the machine, and so does memory: both with one
    /// denominator, so that whole numbers are compared.
    pub fn new((cores, memory): (u64, u64), machines: usize) -> Self {
        Self::indexed((cores, memory), machines, machines > FEW)
    }

    fn indexed((cores, memory): (u64, u64), machines: usize, index: bool) -> Self {
        let of = || BTreeMap::from([(cores, (0..machines).map(|at| (memory, at)).collect())]);
        Self {
            machines: vec![(cores, memory); machines],
            weights: (memory.max(1), cores.max(1)),
            index: index.then(of),
        }
    }

    /// How many machines there are.
    pub fn machines(&self) -> usize {
        self.machines.len()
    }

    /// What is free of a machine.
    pub fn of(&self, at: usize) -> (u64, u64) {
        self.machines[at]
    }

    /// Says what is free of a machine now.
    pub fn set(&mut self, at: usize, now: (u64, u64)) {
        let before = std::mem::replace(&mut self.machines[at], now);
        let Some(index) = &mut self.index else { return };
        if let Some(group) = index.get_mut(&before.0) {
            group.remove(&(before.1, at));
            if group.is_empty() {
                index.remove(&before.0);
            }
        }
        index.entry(now.0).or_default().insert((now.1, at));
    }

    /// The fullest machine that has this much: the one with the least sum of what is left of cores and of memory, each as
    /// a share of the machine. Of equals the first. `fits` may refuse a machine with this much free memory.
    pub fn fullest(&self, least: (u64, u64), fits: impl Fn(usize, u64) -> bool) -> Option<usize> {
        let Some(index) = &self.index else {
            return self.scan(least, fits);
        };
        let left = |cores, memory| cores * self.weights.0 + memory * self.weights.1;
        let mut best: Option<(u64, usize)> = None;
        for (&cores, group) in index.range(least.0..) {
            // What any machine with these cores or more has left.
            if best.is_some_and(|(most, _)| left(cores, least.1) > most) {
                break;
            }
            let mut wanted = group.range((least.1, 0)..);
            if let Some(&(memory, at)) = wanted.find(|&&(memory, at)| fits(at, memory)) {
                let found = (left(cores, memory), at);
                best = Some(best.map_or(found, |best| best.min(found)));
            }
        }
        best.map(|(_, at)| at)
    }

    fn scan(&self, least: (u64, u64), fits: impl Fn(usize, u64) -> bool) -> Option<usize> {
        let mut best: Option<(u64, usize)> = None;
        for (at, &(cores, memory)) in self.machines.iter().enumerate() {
            if cores < least.0 || memory < least.1 {
                continue;
            }
            let left = cores * self.weights.0 + memory * self.weights.1;
            if best.is_none_or(|(most, _)| left < most) && fits(at, memory) {
                best = Some((left, at));
            }
        }
        best.map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_index_finds_the_machine_that_a_look_at_each_finds(
            changes in prop::collection::vec((0..20usize, 0..9u64, 0..33u64), 1..60),
            asked in prop::collection::vec((0..9u64, 0..33u64, 0..4usize), 1..20),
        ) {
            let mut few = Free::indexed((8, 32), 20, false);
            let mut many = Free::indexed((8, 32), 20, true);
            for (at, cores, memory) in changes {
                few.set(at, (cores, memory));
                many.set(at, (cores, memory));
                for &(cores, memory, pool) in &asked {
                    // Pools of five machines, of which one is full.
                    let fits = |at: usize, _| at / 5 != pool;
                    let found = few.fullest((cores, memory), fits);
                    prop_assert_eq!(many.fullest((cores, memory), fits), found);
                    prop_assert!(found.is_none_or(|at| few.of(at).0 >= cores && few.of(at).1 >= memory));
                }
            }
        }
    }
}
