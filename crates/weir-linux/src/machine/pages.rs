//! The regions of a run's tenants: the nodes that hold their pages, and moves between nodes.
//!
//! The kernel reports the node of each page and moves pages (`move_pages`). Moves make progress while a
//! window passes. A stretch of 512 pages moves at once, so that a transparent huge page moves whole.

use std::collections::{BTreeMap, VecDeque};

use weir_model::capability::Feature;
use weir_model::machine::MachineError;
use weir_model::page_move::{Destination, MoveRequest, Target};
use weir_model::region::{RegionPages, TierPages};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, GbPerSec};

use crate::memory::{self, PageRange};

/// Pages that move at once.
const STRETCH: usize = 512;

/// The regions of all tenants.
#[derive(Debug, Default)]
pub(super) struct RegionMap {
    regions: Vec<TenantRegion>,
    jobs: VecDeque<Job>,
    /// When the first job was last continued.
    last: u64,
}

#[derive(Debug)]
struct TenantRegion {
    tenant: usize,
    name: String,
    /// The tier of the cores that touch it first.
    local: TierName,
    ranges: Vec<PageRange>,
    /// Pages on each node.
    nodes: BTreeMap<u32, u64>,
    moved_in: BTreeMap<u32, u64>,
    moved_out: BTreeMap<u32, u64>,
}

/// Moves that one action requested.
#[derive(Debug)]
struct Job {
    region: usize,
    /// The range and the page that are next.
    range: usize,
    page: usize,
    /// Bytes of the region from and to which.
    bytes: (u64, u64),
    target: Target<u32>,
    limit: Option<GbPerSec>,
    /// Bytes that it may move now. They grow with the time of windows while it is the first job.
    credit: f64,
}

impl RegionMap {
    /// Adds a range of memory to a region of a tenant, with its pages on each node.
    pub fn add(
        &mut self,
        tenant: usize,
        name: &str,
        local: &TierName,
        range: PageRange,
        nodes: &BTreeMap<u32, u64>,
    ) {
        let is_it = |r: &TenantRegion| r.tenant == tenant && r.name == name;
        let at = self.regions.iter().position(is_it).unwrap_or_else(|| {
            self.regions.push(TenantRegion {
                tenant,
                name: name.to_owned(),
                local: local.clone(),
                ranges: Vec::new(),
                nodes: BTreeMap::new(),
                moved_in: BTreeMap::new(),
                moved_out: BTreeMap::new(),
            });
            self.regions.len() - 1
        });
        let region = &mut self.regions[at];
        for (&node, pages) in nodes {
            *region.nodes.entry(node).or_default() += pages;
        }
        region.ranges.push(range);
    }

    /// Forgets the regions of a tenant, which are read again. No page may be moving.
    pub fn forget(&mut self, tenant: usize) {
        self.regions.retain(|region| region.tenant != tenant);
    }

    /// Requests moves of a tenant's pages.
    ///
    /// # Errors
    /// There is no such region or tier, the kernel knows no nodes, or the limit is not a rate.
    pub fn request(
        &mut self,
        tenant: usize,
        request: MoveRequest<'_>,
        topology: &Topology,
    ) -> Result<(), MachineError> {
        let node = |name: &TierName| -> Result<u32, MachineError> {
            let tier = topology.tier(name);
            let tier = tier.ok_or_else(|| MachineError::no_such_tier(name, topology))?;
            tier.node.ok_or_else(|| MachineError::Missing {
                feature: Feature::NumaPolicy,
                reason: format!("the kernel has no memory node for {name}"),
            })
        };
        let all = self.regions.iter().enumerate();
        let own = all.filter(|(_, region)| region.tenant == tenant);
        let named = own.map(|(i, region)| (i, region.name.as_str(), &region.local));
        let targets = request.targets(named, node)?;
        if let Destination::Place(placement) = request.destination {
            let ranges = |(i, _): &(usize, Target<u32>)| self.regions[*i].ranges.iter();
            if targets
                .iter()
                .flat_map(ranges)
                .any(|range| range.process.is_some())
            {
                return Err(MachineError::Missing {
                    feature: Feature::NumaPolicy,
                    reason: "the kernel changes the policy of no other process; move its pages"
                        .into(),
                });
            }
            for (i, target) in &targets {
                let Target::Weights(weights) = target else {
                    continue;
                };
                let nodes: Vec<u32> = weights.iter().map(|(node, _)| *node).collect();
                for range in &self.regions[*i].ranges {
                    range.set_policy(&nodes, placement.spills())?;
                }
            }
        }
        let bytes = request.range();
        self.jobs
            .extend(targets.into_iter().map(|(region, target)| Job {
                region,
                range: 0,
                page: 0,
                bytes,
                target,
                limit: request.limit,
                credit: 0.0,
            }));
        Ok(())
    }

    /// Moves what may move until `now`, for about a millisecond.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub fn step(&mut self, now: u64) -> Result<(), MachineError> {
        let passed = now.saturating_sub(self.last) as f64;
        self.last = now;
        let Some(job) = self.jobs.front_mut() else {
            return Ok(());
        };
        // A gigabyte per second is a byte per nanosecond.
        let more = job
            .limit
            .map_or(f64::INFINITY, |limit| limit.get() * passed);
        job.credit += more;
        if !job.step(&mut self.regions[job.region])? {
            self.jobs.pop_front();
        }
        Ok(())
    }

    /// Pages do not move between windows.
    pub fn begin_window(&mut self, now: u64) {
        self.last = now;
    }

    /// Whether there is something to move.
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Where a tenant's pages are, and what moved since the last call.
    pub fn observe(&mut self, tenant: usize, topology: &Topology) -> Vec<RegionPages> {
        let page = memory::base_page() as u64;
        let own = self.regions.iter_mut().filter(|r| r.tenant == tenant);
        own.map(|region| {
            let of = |all: &BTreeMap<u32, u64>, node: u32| {
                Bytes(all.get(&node).copied().unwrap_or(0) * page)
            };
            let moved_in = std::mem::take(&mut region.moved_in);
            let moved_out = std::mem::take(&mut region.moved_out);
            let on = |(tier, node): (&TierName, u32)| TierPages {
                tier: tier.clone(),
                resident: of(&region.nodes, node),
                moved_in: of(&moved_in, node),
                moved_out: of(&moved_out, node),
            };
            let tiers = topology
                .tiers
                .iter()
                .filter_map(|t| Some((&t.name, t.node?)));
            let any = |t: &TierPages| [t.resident, t.moved_in, t.moved_out] != [Bytes(0); 3];
            RegionPages {
                region: region.name.clone(),
                tiers: tiers.map(on).filter(any).collect(),
            }
        })
        .collect()
    }
}

impl Job {
    /// Moves the next stretches as far as the limit allows; whether anything is left.
    fn step(&mut self, region: &mut TenantRegion) -> Result<bool, MachineError> {
        let page_bytes = memory::base_page() as u64;
        let before_range = region.ranges.iter().take(self.range);
        let mut start: u64 = before_range.map(PageRange::bytes).sum();
        while let Some(range) = region.ranges.get(self.range).copied() {
            while self.page < range.pages {
                // Up to the next boundary of a huge page.
                let frame = range.start / memory::base_page() + self.page;
                let count = (STRETCH - frame % STRETCH).min(range.pages - self.page);
                let before = range.nodes(self.page, count);
                let wanted = self.wanted(&before, start, range.unit);
                let pages: usize = wanted.values().map(Vec::len).sum();
                let bytes = pages as u64 * page_bytes;
                if bytes as f64 > self.credit {
                    return Ok(true);
                }
                for (node, pages) in &wanted {
                    range.move_to(pages, *node)?;
                }
                if bytes > 0 {
                    let after = range.nodes(self.page, count);
                    let moved = region.account(&before, &after) * page_bytes;
                    self.credit -= moved as f64;
                }
                self.page += count;
                if bytes > 0 {
                    return Ok(true);
                }
            }
            start += range.bytes();
            (self.range, self.page) = (self.range + 1, 0);
        }
        Ok(false)
    }

    /// The pages of a stretch that are to move, by their new node.
    fn wanted(&self, nodes: &[i32], start: u64, unit: usize) -> BTreeMap<u32, Vec<usize>> {
        let mut wanted: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (i, &status) in nodes.iter().enumerate() {
            let page = self.page + i;
            let byte = start + (page * memory::base_page()) as u64;
            let Ok(now) = u32::try_from(status) else {
                continue;
            };
            if byte < self.bytes.0 || byte >= self.bytes.1 {
                continue;
            }
            if let Some(target) = self.target.of(now, (page / unit.max(1)) as u64) {
                wanted.entry(target).or_default().push(page);
            }
        }
        wanted
    }
}

impl TenantRegion {
    /// Adds what the kernel reports before and after a move; returns the pages that moved.
    fn account(&mut self, before: &[i32], after: &[i32]) -> u64 {
        let mut moved = 0;
        for (&from, &to) in before.iter().zip(after) {
            let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to)) else {
                continue;
            };
            if from != to {
                moved += 1;
                *self.moved_out.entry(from).or_default() += 1;
                *self.moved_in.entry(to).or_default() += 1;
                let pages = self.nodes.entry(from).or_default();
                *pages = pages.saturating_sub(1);
                *self.nodes.entry(to).or_default() += 1;
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn region(nodes: &[i32]) -> TenantRegion {
        TenantRegion {
            tenant: 0,
            name: "data".into(),
            local: TierName::dram(),
            ranges: Vec::new(),
            nodes: memory::count(nodes),
            moved_in: BTreeMap::new(),
            moved_out: BTreeMap::new(),
        }
    }

    proptest! {
        #[test]
        fn pages_are_conserved_whatever_the_kernel_reports(
            pages in prop::collection::vec((0i32..4, -20i32..4), 1..200),
        ) {
            let (before, after): (Vec<i32>, Vec<i32>) = pages.into_iter().unzip();
            let mut own = region(&before);
            let moved = own.account(&before, &after);
            prop_assert_eq!(own.nodes.values().sum::<u64>(), before.len() as u64);
            prop_assert_eq!(own.moved_in.values().sum::<u64>(), moved);
            prop_assert_eq!(own.moved_out.values().sum::<u64>(), moved);
            let then = memory::count(&before);
            for node in 0..4 {
                let of = |all: &BTreeMap<u32, u64>| all.get(&node).copied().unwrap_or(0);
                let (now, left) = (of(&own.nodes), of(&own.moved_out));
                prop_assert_eq!(now + left, of(&then) + of(&own.moved_in));
            }
        }

        #[test]
        fn only_pages_of_the_range_that_are_elsewhere_are_wanted(
            nodes in prop::collection::vec(-3i32..3, 1..64),
            (from, to) in (0u32..3, 0u32..3),
            (first, bytes) in (0usize..64, 0usize..64),
        ) {
            let page = memory::base_page();
            let bytes = ((first * page) as u64, ((first + bytes) * page) as u64);
            let target = Target::Between { from, to };
            let job = Job { region: 0, range: 0, page: 0, bytes, target, limit: None, credit: 0.0 };
            let wanted = job.wanted(&nodes, 0, 1);
            for (i, &node) in nodes.iter().enumerate() {
                let inside = (bytes.0..bytes.1).contains(&((i * page) as u64));
                let moves = inside && u32::try_from(node) == Ok(from) && from != to;
                prop_assert_eq!(wanted.get(&to).is_some_and(|pages| pages.contains(&i)), moves);
            }
        }
    }
}
