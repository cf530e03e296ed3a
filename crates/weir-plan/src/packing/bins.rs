//! What is packed, and into what: two whole numbers each.

use std::collections::BTreeMap;

/// Cores and memory, of a VM or of a machine, in units of one's own choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Cores, for example in thousandths.
    pub cores: u64,
    /// Memory, for example in MiB.
    pub memory: u64,
}

/// Equal VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The size of one.
    pub shape: Shape,
    /// How many there are.
    pub count: u64,
}

impl Shape {
    /// Nothing.
    pub const ZERO: Self = Self {
        cores: 0,
        memory: 0,
    };

    /// This many times the size.
    #[must_use]
    pub fn times(self, factor: u32) -> Self {
        Self {
            cores: self.cores.saturating_mul(u64::from(factor)),
            memory: self.memory.saturating_mul(u64::from(factor)),
        }
    }

    /// Whether it fits into what is free.
    pub fn fits(self, free: Self) -> bool {
        self.cores <= free.cores && self.memory <= free.memory
    }

    /// How many fit into what is free.
    pub fn how_many(self, free: Self) -> u64 {
        let by = |size: u64, free: u64| free.checked_div(size).unwrap_or(u64::MAX);
        by(self.cores, free.cores).min(by(self.memory, free.memory))
    }

    /// What is left of it after this many of `other`.
    #[must_use]
    pub fn less(self, other: Self, count: u64) -> Self {
        Self {
            cores: self.cores - other.cores * count,
            memory: self.memory - other.memory * count,
        }
    }

    /// The larger of its two shares of a whole.
    pub fn largest_share(self, of: Self) -> f64 {
        let cores = self.cores as f64 / of.cores as f64;
        cores.max(self.memory as f64 / of.memory as f64)
    }

    /// The sum of its two shares of a whole.
    pub fn sum_of_shares(self, of: Self) -> f64 {
        self.cores as f64 / of.cores as f64 + self.memory as f64 / of.memory as f64
    }
}

impl Kind {
    /// The same VMs, this many times as large.
    #[must_use]
    pub fn grown(self, factor: u32) -> Self {
        Self {
            shape: self.shape.times(factor),
            ..self
        }
    }
}

/// Equal VMs counted; those without size are left out, since they need no machine.
pub fn kinds(shapes: impl IntoIterator<Item = Shape>) -> Vec<Kind> {
    let mut counts: BTreeMap<Shape, u64> = BTreeMap::new();
    for shape in shapes {
        *counts.entry(shape).or_default() += 1;
    }
    counts.remove(&Shape::ZERO);
    let kinds = counts.into_iter();
    kinds.map(|(shape, count)| Kind { shape, count }).collect()
}
