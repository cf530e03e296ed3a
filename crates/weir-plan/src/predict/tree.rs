//! Regression trees over columns that are sorted into bins once.
//!
//! A split is the one that lowers the sum of squared errors most. For labels 0 and 1 this is the split by Gini impurity,
//! so that the forest and the boosting grow the same trees and differ in what they grow them for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use weir_model::random::Random;

/// What stands for a value that is not there. All features are shares, rates, sizes or counts, never below 0, so that a
/// split can tell it from the others.
pub const MISSING: f64 = -1.0;
/// Bins of a column, as many as a byte can tell apart.
const BINS: usize = 256;
/// Below this many rows sorting them is cheaper than going through all bins.
const FEW: usize = 96;

/// Columns whose values are numbers of bins.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Upper bounds of all bins but the last, by column.
    edges: Vec<Vec<f64>>,
    bins: Vec<Vec<u8>>,
    rows: usize,
}

impl Columns {
    /// Sorts values into bins: each value its own where there are few, else as many rows in each bin as can be.
    pub fn of(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        let mut of = Self {
            edges: Vec::new(),
            bins: Vec::new(),
            rows,
        };
        for column in 0..columns {
            let values: Vec<f64> = (0..rows).map(|row| value(row, column)).collect();
            let edges = edges(values.clone());
            let bin = |value: &f64| edges.partition_point(|edge| edge < value) as u8;
            of.bins.push(values.iter().map(bin).collect());
            of.edges.push(edges);
        }
        of
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.bins.len()
    }
}

fn edges(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    let mut distinct = values.clone();
    distinct.dedup();
    // Halfway between two values; where rounding leaves nothing between them, the lower one.
    let between = |low: f64, high: f64| {
        let middle = low + (high - low) / 2.0;
        if middle < high { middle } else { low }
    };
    if distinct.len() <= BINS {
        return distinct
            .windows(2)
            .map(|pair| between(pair[0], pair[1]))
            .collect();
    }
    let mut edges: Vec<f64> = (1..BINS)
        .filter_map(|n| {
            let at = values[n * values.len() / BINS];
            let above = distinct.partition_point(|value| *value <= at);
            Some(between(at, *distinct.get(above)?))
        })
        .collect();
    edges.dedup();
    edges
}

/// A part of a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// A question.
    Split {
        /// The column.
        feature: u16,
        /// A value up to this goes low, any other high.
        at: f64,
        /// By how much the split lowers the sum of squared errors.
        gain: f64,
        /// The node of low values.
        low: u32,
        /// The node of high ones.
        high: u32,
    },
    /// An answer.
    Leaf {
        /// What the tree says.
        value: f64,
    },
}

/// A tree whose first node is the root.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    /// Its nodes.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// What it says of a row whose columns are given; 0 where the tree is none.
    pub fn value(&self, of: impl Fn(usize) -> f64) -> f64 {
        let mut at = 0;
        // Each step leads to a later node, so that a damaged file cannot hold it up.
        loop {
            match self.nodes.get(at) {
                Some(Node::Split {
                    feature,
                    at: edge,
                    low,
                    high,
                    ..
                }) => {
                    let low_side = of(usize::from(*feature)) <= *edge;
                    let next = if low_side { *low } else { *high } as usize;
                    if next <= at {
                        return 0.0;
                    }
                    at = next;
                }
                Some(Node::Leaf { value }) => return *value,
                None => return 0.0,
            }
        }
    }

    /// Adds what each column's splits lowered the errors by.
    pub fn add_gains(&self, gains: &mut [f64]) {
        for node in &self.nodes {
            if let Node::Split { feature, gain, .. } = node
                && let Some(sum) = gains.get_mut(usize::from(*feature))
            {
                *sum += gain;
            }
        }
    }
}

/// How far a tree grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Questions from the root to a leaf.
    pub depth: u32,
    /// Rows of a leaf.
    pub least: usize,
    /// Columns that are tried for a split, drawn anew for each; all where there are no more.
    pub tried: usize,
}

/// Grows a tree for values that are wanted by row. A row that is there twice counts twice. `leaf` is given the rows of each
/// leaf, and answers its value.
pub fn grow(
    columns: &Columns,
    rows: &mut [u32],
    wanted: &[f64],
    growth: Growth,
    random: &mut Random,
    leaf: &mut dyn FnMut(&[u32]) -> f64,
) -> Tree {
    let mut grower = Grower {
        columns,
        wanted,
        growth,
        random,
        order: (0..columns.columns()).collect(),
        counts: [0; BINS],
        sums: [0.0; BINS],
        filled: Vec::new(),
        nodes: Vec::new(),
    };
    grower.node(rows, 0, leaf);
    Tree {
        nodes: grower.nodes,
    }
}

struct Grower<'g> {
    columns: &'g Columns,
    wanted: &'g [f64],
    growth: Growth,
    random: &'g mut Random,
    order: Vec<usize>,
    counts: [u32; BINS],
    sums: [f64; BINS],
    /// Bins of a column that rows of a node are in: number, rows, sum.
    filled: Vec<(u8, u32, f64)>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Cut {
    column: usize,
    bin: u8,
    gain: f64,
}

impl Grower<'_> {
    fn node(&mut self, rows: &mut [u32], depth: u32, leaf: &mut dyn FnMut(&[u32]) -> f64) -> u32 {
        let here = self.nodes.len();
        let splits = depth < self.growth.depth && rows.len() >= 2 * self.growth.least.max(1);
        let Some(cut) = splits.then(|| self.best(rows)).flatten() else {
            let value = leaf(rows);
            self.nodes.push(Node::Leaf { value });
            return here as u32;
        };
        self.nodes.push(Node::Leaf { value: 0.0 });
        let bins = &self.columns.bins[cut.column];
        let middle = partition(rows, |row| bins[row as usize] <= cut.bin);
        let (low, high) = rows.split_at_mut(middle);
        let low = self.node(low, depth + 1, leaf);
        let high = self.node(high, depth + 1, leaf);
        self.nodes[here] = Node::Split {
            feature: cut.column as u16,
            at: self.columns.edges[cut.column][usize::from(cut.bin)],
            gain: cut.gain,
            low,
            high,
        };
        here as u32
    }

    fn best(&mut self, rows: &[u32]) -> Option<Cut> {
        let all = self.order.len();
        let mut best: Option<Cut> = None;
        let mut tried = 0;
        for at in 0..all {
            if tried >= self.growth.tried {
                break;
            }
            if self.growth.tried < all {
                let other = at + (self.random.share() * (all - at) as f64) as usize;
                self.order.swap(at, other.min(all - 1));
            }
            let column = self.order[at];
            self.fill(column, rows);
            // A column with one value in all rows is no trial.
            if self.filled.len() < 2 {
                continue;
            }
            tried += 1;
            let found = self.cut(column, rows.len());
            if let Some(found) = found
                && best.is_none_or(|best| found.gain > best.gain)
            {
                best = Some(found);
            }
        }
        best
    }

    /// Rows and sums of each bin of a column.
    fn fill(&mut self, column: usize, rows: &[u32]) {
        let bins = &self.columns.bins[column];
        self.filled.clear();
        if rows.len() < FEW {
            let one = |row: &u32| (bins[*row as usize], 1, self.wanted[*row as usize]);
            self.filled.extend(rows.iter().map(one));
            self.filled.sort_by_key(|(bin, ..)| *bin);
            self.filled.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 += next.1;
                    kept.2 += next.2;
                }
                same
            });
            return;
        }
        let used = self.columns.edges[column].len() + 1;
        self.counts[..used].fill(0);
        self.sums[..used].fill(0.0);
        for &row in rows {
            let bin = usize::from(bins[row as usize]);
            self.counts[bin] += 1;
            self.sums[bin] += self.wanted[row as usize];
        }
        let bins = (0..used).filter(|&bin| self.counts[bin] > 0);
        self.filled
            .extend(bins.map(|bin| (bin as u8, self.counts[bin], self.sums[bin])));
    }

    /// The best place to cut a column whose bins are filled.
    fn cut(&self, column: usize, rows: usize) -> Option<Cut> {
        let total: f64 = self.filled.iter().map(|(.., sum)| sum).sum();
        let whole = total * total / rows as f64;
        let least = self.growth.least.max(1);
        let (mut count, mut sum) = (0usize, 0.0);
        let mut best: Option<Cut> = None;
        for &(bin, of_bin, sum_of_bin) in &self.filled[..self.filled.len() - 1] {
            count += of_bin as usize;
            sum += sum_of_bin;
            let rest = rows - count;
            if count < least || rest < least {
                continue;
            }
            let above = total - sum;
            let gain = sum * sum / count as f64 + above * above / rest as f64 - whole;
            // What rounding alone can give is no gain.
            if gain > 1e-9 * (1.0 + whole.abs()) && best.is_none_or(|best| gain > best.gain) {
                best = Some(Cut { column, bin, gain });
            }
        }
        best
    }
}

/// Puts rows that pass before those that do not, each side in its order. Returns how many pass.
fn partition(rows: &mut [u32], passes: impl Fn(u32) -> bool) -> usize {
    let (low, high): (Vec<u32>, Vec<u32>) = rows.iter().copied().partition(|&row| passes(row));
    rows[..low.len()].copy_from_slice(&low);
    rows[low.len()..].copy_from_slice(&high);
    low.len()
}

#[cfg(test)]
mod tests;
