//! What a policy needs: local memory by machine, slices by pool, and their peaks.

use super::provision::Memory;
use super::replay::Setting;
use crate::trace::GIB;

/// What a policy needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Peaks of local memory, summed over machines, in MiB.
    pub local: u64,
    /// For each size of pools: peaks summed over pools, and the highest, in slices.
    pub pools: Vec<(u64, u64)>,
    /// The same where slices can be given away as soon as a VM has left.
    pub at_once: Vec<u64>,
    /// Mean VMs that are slower than the margin, as expected from the predictions.
    pub slow: f64,
    /// VM-seconds times memory in the pool, and in all, in MiB.
    pub pooled: (f64, f64),
    /// For each size of pools, the least memory with which VMs find room; empty before it was searched.
    pub least: Vec<Option<Memory>>,
}

/// Memory now and at its peak.
#[derive(Debug, Clone, Copy, Default)]
pub struct Level {
    /// Now.
    pub now: u64,
    /// The most so far.
    pub peak: u64,
}

impl Level {
    fn add(&mut self, amount: u64) {
        self.now += amount;
        self.peak = self.peak.max(self.now);
    }
}

/// One policy's books.
#[derive(Debug, Clone)]
pub struct Books {
    /// Local memory of each machine, in MiB.
    pub local: Vec<Level>,
    /// For each size, its pools with slices that are owned or being released.
    pools: Vec<Vec<Level>>,
    /// The same with slices that are owned.
    pub owned: Vec<Vec<Level>>,
    /// Local memory of all machines, in MiB.
    pub total_local: u64,
    /// Slices of VMs that are there.
    pub total_slices: u64,
    /// VMs that are slower than the margin, as expected.
    pub slow: f64,
    /// Pool memory times seconds, in MiB.
    pub pooled: f64,
}

impl Books {
    /// Nothing yet.
    pub fn new(setting: &Setting) -> Self {
        let pools = |size: &usize| vec![Level::default(); setting.machines.div_ceil(*size)];
        let pools: Vec<Vec<Level>> = setting.pools.iter().map(pools).collect();
        Self {
            local: vec![Level::default(); setting.machines],
            owned: pools.clone(),
            pools,
            total_local: 0,
            total_slices: 0,
            slow: 0.0,
            pooled: 0.0,
        }
    }

    /// A VM with so many slices begins on a machine; `sizes` are the machines of a pool.
    pub fn add(&mut self, machine: usize, memory_mib: u32, slices: u32, sizes: &[usize]) {
        let local = u64::from(memory_mib - slices * GIB);
        self.local[machine].add(local);
        self.total_local += local;
        self.total_slices += u64::from(slices);
        for ((size, pools), owned) in sizes.iter().zip(&mut self.pools).zip(&mut self.owned) {
            pools[machine / size].add(u64::from(slices));
            owned[machine / size].add(u64::from(slices));
        }
    }

    /// It ends; its slices stay with the machine until [`Books::release`].
    pub fn leave(&mut self, machine: usize, memory_mib: u32, slices: u32, sizes: &[usize]) {
        let local = u64::from(memory_mib - slices * GIB);
        self.local[machine].now -= local;
        self.total_local -= local;
        self.total_slices -= u64::from(slices);
        for (size, owned) in sizes.iter().zip(&mut self.owned) {
            owned[machine / size].now -= u64::from(slices);
        }
    }

    /// Slices of a machine are free again.
    pub fn release(&mut self, machine: usize, slices: u32, sizes: &[usize]) {
        for (size, pools) in sizes.iter().zip(&mut self.pools) {
            pools[machine / size].now -= u64::from(slices);
        }
    }

    /// What was needed, for so many VMs and this memory of all times seconds.
    pub fn needs(&self, placed: u64, memory_seconds: f64) -> Needs {
        let peaks = |levels: &[Level]| -> (u64, u64) {
            let all = levels.iter().map(|level| level.peak);
            (all.clone().sum(), all.max().unwrap_or(0))
        };
        Needs {
            local: peaks(&self.local).0,
            pools: self.pools.iter().map(|pools| peaks(pools)).collect(),
            at_once: self.owned.iter().map(|pools| peaks(pools).0).collect(),
            slow: self.slow / placed.max(1) as f64,
            pooled: (self.pooled, memory_seconds),
            least: Vec::new(),
        }
    }
}
