//! Upper bounds on the bins of a packing: packings found by first fit, best fit, and the dot product.
//!
//! Equal VMs and equally filled bins are counted, not listed, so that a trace with few sizes packs fast.

use super::bins::{Kind, Shape};

/// A packing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Its bins.
    pub bins: u64,
    /// See [`super::Bounds::fractional`].
    pub fractional: f64,
}

/// Bins with the same room.
#[derive(Debug, Clone, Copy)]
struct Run {
    free: Shape,
    count: u64,
}

/// Which bin takes an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// The first in the order in which they were opened.
    First,
    /// The fullest.
    Best,
}

/// The best of all packings.
pub fn best(kinds: &[Kind], bin: Shape) -> Found {
    let mut found = Found {
        bins: 0,
        fractional: 0.0,
    };
    let orders: [fn(Shape, Shape) -> f64; 4] = [
        Shape::largest_share,
        Shape::sum_of_shares,
        |shape, bin| shape.cores as f64 / bin.cores as f64,
        |shape, bin| shape.memory as f64 / bin.memory as f64,
    ];
    let mut all = vec![by_dot_product(kinds, bin)];
    for order in orders {
        let mut sorted = kinds.to_vec();
        sorted.sort_by(|a, b| order(b.shape, bin).total_cmp(&order(a.shape, bin)));
        all.push(decreasing(&sorted, bin, Fit::First));
        all.push(decreasing(&sorted, bin, Fit::Best));
    }
    let least = all.iter().map(|runs| measured(runs, bin));
    if let Some(least) = least.min_by(|a, b| {
        a.bins
            .cmp(&b.bins)
            .then(a.fractional.total_cmp(&b.fractional))
    }) {
        found = least;
    }
    found
}

/// First or best fit of kinds in this order.
fn decreasing(kinds: &[Kind], bin: Shape, fit: Fit) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for kind in kinds {
        let mut left = kind.count;
        while left > 0 {
            let room = runs
                .iter()
                .enumerate()
                .filter(|(_, run)| kind.shape.fits(run.free));
            let at = match fit {
                Fit::First => room.map(|(at, _)| at).next(),
                Fit::Best => room
                    .min_by(|a, b| {
                        a.1.free
                            .sum_of_shares(bin)
                            .total_cmp(&b.1.free.sum_of_shares(bin))
                    })
                    .map(|(at, _)| at),
            };
            let each = kind
                .shape
                .how_many(at.map_or(bin, |at| runs[at].free))
                .max(1);
            match at {
                Some(at) => left -= fill(&mut runs, at, *kind, left, each),
                None => {
                    let count = left.div_ceil(each);
                    runs.push(Run { free: bin, count });
                    let at = runs.len() - 1;
                    left -= fill(&mut runs, at, *kind, left, each);
                }
            }
        }
    }
    runs
}

/// Fills the bins of a run one after the other, `each` items into a bin; the number that was placed.
fn fill(runs: &mut Vec<Run>, at: usize, kind: Kind, left: u64, each: u64) -> u64 {
    let Run { free, count } = runs[at];
    let full = (left / each).min(count);
    let rest = if full < count { left - full * each } else { 0 };
    let mut parts = Vec::with_capacity(3);
    if full > 0 {
        parts.push(Run {
            free: free.less(kind.shape, each),
            count: full,
        });
    }
    if rest > 0 {
        parts.push(Run {
            free: free.less(kind.shape, rest),
            count: 1,
        });
    }
    let untouched = count - full - u64::from(rest > 0);
    if untouched > 0 {
        parts.push(Run {
            free,
            count: untouched,
        });
    }
    runs.splice(at..=at, parts);
    full * each + rest
}

/// Opens a bin, adds the item whose demand points most where the bin has room, and repeats the bin as long as its
/// items last.
fn by_dot_product(kinds: &[Kind], bin: Shape) -> Vec<Run> {
    let mut left: Vec<Kind> = kinds.to_vec();
    let share = |size: fn(Shape) -> u64| {
        let demand = kinds
            .iter()
            .map(|kind| size(kind.shape) as f64 * kind.count as f64);
        demand.sum::<f64>() / size(bin) as f64
    };
    // What is scarce counts more.
    let weights = (share(|s| s.cores), share(|s| s.memory));
    let score = |shape: Shape, free: Shape| {
        let part = |size: u64, free: u64, whole: u64| {
            size as f64 / whole as f64 * (free as f64 / whole as f64)
        };
        weights.0 * part(shape.cores, free.cores, bin.cores)
            + weights.1 * part(shape.memory, free.memory, bin.memory)
    };
    let mut runs = Vec::new();
    while left.iter().any(|kind| kind.count > 0) {
        let mut free = bin;
        let mut taken = vec![0u64; left.len()];
        loop {
            let fitting = (left.iter().enumerate())
                .filter(|(at, kind)| kind.count > taken[*at] && kind.shape.fits(free));
            let next =
                fitting.max_by(|a, b| score(a.1.shape, free).total_cmp(&score(b.1.shape, free)));
            let Some((at, kind)) = next else { break };
            free = free.less(kind.shape, 1);
            taken[at] += 1;
        }
        let lasts = left.iter().zip(&taken).filter(|(_, taken)| **taken > 0);
        let Some(repeat) = lasts.map(|(kind, taken)| kind.count / taken).min() else {
            break;
        };
        for (kind, taken) in left.iter_mut().zip(&taken) {
            kind.count -= taken * repeat;
        }
        runs.push(Run {
            free,
            count: repeat,
        });
    }
    runs
}

fn measured(runs: &[Run], bin: Shape) -> Found {
    let bins: u64 = runs.iter().map(|run| run.count).sum();
    let fill = |run: &Run| {
        let used = Shape {
            cores: bin.cores - run.free.cores,
            memory: bin.memory - run.free.memory,
        };
        used.largest_share(bin)
    };
    let all: f64 = runs.iter().map(|run| fill(run) * run.count as f64).sum();
    let least = runs.iter().map(fill).fold(f64::MAX, f64::min);
    let fractional = match bins {
        0 => 0.0,
        // Of a single bin nothing else says how full it could be.
        1 => least,
        bins => {
            let others = (all - least) / (bins - 1) as f64;
            (bins - 1) as f64 + (least / others).min(1.0)
        }
    };
    Found { bins, fractional }
}
