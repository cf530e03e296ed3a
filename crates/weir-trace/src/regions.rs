//! Parts of the address space that are used alike.
//!
//! Mapped files part it first, where they are known, then gaps: untouched addresses of 16 pages and more. Where behaviour
//! differs within what is left, it is parted again, in blocks: by whether lines follow each other, by the share of stores, and by how often a line is used.

use crate::granule::Granule;
use crate::mappings::Mappings;

/// The smallest gap between two parts, in bytes.
const GAP: u64 = 16 << 12;
/// Blocks that a part without gaps is looked at in.
const BLOCKS: usize = 64;
/// Parts that are described each by itself; all others are one.
pub const MOST: usize = 6;
/// A part with a smaller share of both accesses and lines is among the others.
const LEAST: f64 = 0.005;

/// A part of the address space.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its first address.
    pub from: u64,
    /// The first address behind it.
    pub to: u64,
    /// The bytes in which something was touched.
    pub span: u64,
    /// The stretches of addresses that it has, from the first to behind the last.
    pub ranges: Vec<(u64, u64)>,
    /// What was noted of it.
    pub all: Granule,
    /// How many parts it is made of.
    pub parts: usize,
    /// The file that is mapped there.
    pub file: Option<String>,
}

impl Part {
    /// Whether an address is in it.
    pub fn has(&self, address: u64) -> bool {
        self.ranges
            .iter()
            .any(|&(from, to)| (from..to).contains(&address))
    }

    fn of(granules: &[(u64, &Granule)], size: u64, file: Option<&str>) -> Self {
        let mut all = Granule::default();
        for (_, granule) in granules {
            all.merge(granule);
        }
        let from = granules.first().map_or(0, |(from, _)| *from);
        let to = granules
            .last()
            .map_or(0, |(from, _)| from.saturating_add(size));
        Self {
            from,
            to,
            span: to - from,
            ranges: vec![(from, to)],
            all,
            parts: 1,
            file: file.map(str::to_owned),
        }
    }

    fn merge(&mut self, other: &Part) {
        self.from = self.from.min(other.from);
        self.to = self.to.max(other.to);
        self.span += other.span;
        self.ranges.extend(&other.ranges);
        self.all.merge(&other.all);
        self.parts += other.parts;
    }

    /// The same addresses with what was noted of them elsewhere.
    pub fn within(&self, granules: &[(u64, &Granule)], size: u64) -> Self {
        let mut all = Granule::default();
        for &(from, to) in &self.ranges {
            // Granules may be of another size there.
            let first = granules.partition_point(|(at, _)| at + size / 2 < from);
            let here = granules[first..]
                .iter()
                .take_while(|(at, _)| at + size / 2 < to);
            here.for_each(|(_, granule)| all.merge(granule));
        }
        Self {
            all,
            ..self.clone()
        }
    }

    /// Share of its visits whose line follows the one before.
    pub fn follows(&self) -> f64 {
        self.all.follows as f64 / self.all.visits.max(1) as f64
    }

    fn stores(&self) -> f64 {
        self.all.stores as f64 / self.all.accesses.max(1) as f64
    }

    /// Visits of a byte, on a logarithmic scale.
    fn density(&self) -> f64 {
        (self.all.visits.max(1) as f64 / self.span.max(1) as f64).log2()
    }

    /// Whether both are of one file, and used alike.
    fn is_same_file(&self, other: &Part) -> bool {
        self.file.is_some() && self.file == other.file && self.is_like(other)
    }

    /// Whether two are used alike.
    fn is_like(&self, other: &Part) -> bool {
        (self.follows() - other.follows()).abs() < 0.4
            && (self.stores() - other.stores()).abs() < 0.4
            && (self.density() - other.density()).abs() < 3.0
    }
}

/// The parts of an address space by address: the most used ones, and the others as the last.
pub fn parts(granules: &[(u64, &Granule)], size: u64, mappings: &Mappings) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    let file = |at: usize| mappings.at(granules[at].0 + size / 2);
    let mut from = 0;
    for at in 1..=granules.len() {
        let ends = at == granules.len()
            || granules[at].0 - granules[at - 1].0 >= GAP.max(4 * size) + size
            || file(at) != file(at - 1);
        if ends {
            for part in alike(&granules[from..at], size, file(from)) {
                // A file is one thing, whatever of it was not touched.
                match all.iter_mut().find(|one| one.is_same_file(&part)) {
                    Some(one) => one.merge(&part),
                    None => all.push(part),
                }
            }
            from = at;
        }
    }
    fewer(all)
}

/// The parts of granules without a gap.
fn alike(granules: &[(u64, &Granule)], size: u64, file: Option<&str>) -> Vec<Part> {
    let block = granules.len().div_ceil(BLOCKS).max(4);
    let mut parts: Vec<Part> = Vec::new();
    let blocks = granules.chunks(block);
    for part in blocks.map(|block| Part::of(block, size, file)) {
        match parts.last_mut() {
            Some(before) if before.is_like(&part) => before.merge(&part),
            _ => parts.push(part),
        }
    }
    // The same behaviour on both sides of a few blocks that differ is the same part.
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match joined.iter_mut().find(|one| one.is_like(&part)) {
            Some(one) => one.merge(&part),
            None => joined.push(part),
        }
    }
    joined
}

/// The most used parts by address, and all others behind them as one.
fn fewer(mut all: Vec<Part>) -> Vec<Part> {
    let visits: f64 = all.iter().map(|part| part.all.beyond_l1()).sum();
    let lines: f64 = all.iter().map(|part| part.all.first).sum();
    let weight =
        |part: &Part| (part.all.beyond_l1() / visits.max(1.0)).max(part.all.first / lines.max(1.0));
    all.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let own = all
        .iter()
        .take(MOST)
        .take_while(|part| weight(part) >= LEAST)
        .count();
    let rest = all.split_off(own);
    all.sort_by_key(|part| part.from);
    let mut rest = rest.into_iter();
    if let Some(mut first) = rest.next() {
        first.file = None;
        rest.for_each(|part| first.merge(&part));
        if first.all.beyond_l1() > 0.0 {
            all.push(first);
        }
    }
    all
}
