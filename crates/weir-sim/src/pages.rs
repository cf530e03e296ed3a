//! Where the pages of tenants are, and which of them move next.

use std::collections::VecDeque;

use weir_model::machine::MachineError;
use weir_model::page_move::{MoveRequest, Target};
use weir_model::region::{RegionPages, TierPages};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::clock::Ps;
use crate::core::Walk;
use crate::line::Place;

/// The pages of all tenants.
#[derive(Debug, Default)]
pub struct PageTable {
    page_lines: u64,
    /// Those of all hosts, one host after the other.
    tiers: Vec<Frames>,
    /// Tiers of a host.
    of_host: usize,
    regions: Vec<TenantRegion>,
    jobs: VecDeque<Job>,
    /// The page that is being copied, and how many of its lines are.
    copying: Option<(PageMove, u64)>,
    /// Lines that all jobs copied.
    copied: u64,
}

/// The memory of a tier, in lines.
#[derive(Debug)]
pub struct Frames {
    /// The first line behind all that was handed out.
    pub next: u64,
    /// The line behind the last of the tier.
    pub capacity: u64,
    /// First lines of pages that moved away.
    free: Vec<u64>,
}

#[derive(Debug)]
struct TenantRegion {
    tenant: usize,
    name: String,
    /// The first tier of its host.
    base: usize,
    /// The tier that is local to the core which touches it first.
    local: TierName,
    /// Its arrays, one after the other.
    walks: Vec<Walk>,
    tiers: Vec<OnTier>,
}

/// Pages of a region on a tier.
#[derive(Debug, Clone, Copy, Default)]
struct OnTier {
    resident: u64,
    moved_in: u64,
    moved_out: u64,
}

/// Moves that one action asks for.
#[derive(Debug)]
struct Job {
    region: usize,
    /// The array and the page that are looked at next.
    walk: usize,
    page: u64,
    /// Bytes of the region from and to which.
    range: (u64, u64),
    target: Target<u8>,
    /// The least time that a line takes, if there is a limit.
    line: Option<Ps>,
}

/// A page that is to be copied.
#[derive(Debug, Clone, Copy)]
pub struct PageMove {
    region: usize,
    walk: usize,
    page: u64,
    /// Where it is.
    pub from: Place,
    /// Where it goes.
    pub to: Place,
    /// The least time that a line takes, if there is a limit.
    pub line: Option<Ps>,
}

impl PageTable {
    /// The memory of a machine on which nothing runs: the lines of its tiers, of which each host has this many.
    pub fn new(page: Bytes, tiers: &[std::ops::Range<u64>], of_host: usize) -> Self {
        let frames = |lines: &std::ops::Range<u64>| Frames {
            next: lines.start,
            capacity: lines.end,
            free: Vec::new(),
        };
        Self {
            page_lines: (page.get() / LINE_BYTES).max(1),
            tiers: tiers.iter().map(frames).collect(),
            of_host: of_host.max(1),
            ..Self::default()
        }
    }

    /// Lines of a page.
    pub fn page_lines(&self) -> u64 {
        self.page_lines
    }

    /// The memory of a tier.
    pub fn tier_mut(&mut self, tier: usize) -> &mut Frames {
        &mut self.tiers[tier]
    }

    /// The first line of a free page of a tier.
    pub fn take(&mut self, tier: usize) -> Option<u64> {
        self.tiers.get_mut(tier)?.take(self.page_lines)
    }

    /// Adds an array to a region of a tenant.
    pub fn add(&mut self, tenant: usize, name: &str, local: &TierName, walk: &Walk) {
        let on = walk
            .pages_by_tier()
            .first()
            .map_or(0, |on| usize::from(on.0));
        let is_it = |r: &TenantRegion| r.tenant == tenant && r.name == name;
        let at = self.regions.iter().position(is_it).unwrap_or_else(|| {
            self.regions.push(TenantRegion {
                tenant,
                name: name.to_owned(),
                base: on / self.of_host * self.of_host,
                local: local.clone(),
                walks: Vec::new(),
                tiers: vec![OnTier::default(); self.tiers.len()],
            });
            self.regions.len() - 1
        });
        let region = &mut self.regions[at];
        for (tier, pages) in walk.pages_by_tier() {
            region.tiers[usize::from(tier)].resident += pages;
        }
        region.walks.push(walk.clone());
    }

    /// The arrays of all tenants, with their tenant.
    pub fn walks(&self) -> impl Iterator<Item = (usize, &Walk)> {
        let of = |region: &'_ TenantRegion| region.tenant;
        (self.regions.iter()).flat_map(move |r| r.walks.iter().map(move |walk| (of(r), walk)))
    }

    /// Requests moves of a tenant's pages.
    ///
    /// # Errors
    /// There is no such region or tier, or the limit is not a rate.
    pub fn request(
        &mut self,
        tenant: usize,
        request: MoveRequest<'_>,
        topology: &Topology,
    ) -> Result<(), MachineError> {
        let memory = self.of_host;
        let base = self
            .regions
            .iter()
            .find(|r| r.tenant == tenant)
            .map_or(0, |r| r.base);
        let number = |name: &TierName| -> Result<u8, MachineError> {
            let found = topology.tiers.iter().position(|t| t.name == *name);
            match found.ok_or_else(|| MachineError::no_such_tier(name, topology))? {
                tier if tier < memory => Ok((base + tier) as u8),
                _ => Err(MachineError::Request(format!(
                    "{name} is a storage device, which has no pages"
                ))),
            }
        };
        let all = self.regions.iter().enumerate();
        let own = all.filter(|(_, region)| region.tenant == tenant);
        let named = own.map(|(i, region)| (i, region.name.as_str(), &region.local));
        let targets = request.targets(named, number)?;
        // A gigabyte a second is a byte each nanosecond.
        let line =
            (request.limit).map(|limit| (LINE_BYTES as f64 * 1e3 / limit.get()).ceil() as Ps);
        let range = request.range();
        self.jobs
            .extend(targets.into_iter().map(|(region, target)| Job {
                region,
                walk: 0,
                page: 0,
                range,
                target,
                line,
            }));
        Ok(())
    }

    /// Lines that were copied since the run began.
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// The page that is copied now, and how many of its lines are.
    pub fn copying(&mut self) -> Option<(PageMove, u64)> {
        while self.copying.is_none() {
            let job = self.jobs.front_mut()?;
            match job.next(&self.regions[job.region], self.page_lines) {
                Some(next) => {
                    // A tier without room takes nothing more.
                    match self.take(usize::from(next.to.tier)) {
                        Some(line) => {
                            let to = Place {
                                tier: next.to.tier,
                                line,
                            };
                            self.copying = Some((PageMove { to, ..next }, 0));
                        }
                        None => {
                            self.jobs.pop_front();
                        }
                    }
                }
                None => {
                    self.jobs.pop_front();
                }
            }
        }
        self.copying
    }

    /// This many more lines of the page that is copied are. Returns its move if that was the last one.
    pub fn advance(&mut self, lines: u64) -> Option<PageMove> {
        let (page, done) = self.copying.as_mut()?;
        *done += lines;
        self.copied += lines;
        if *done < self.page_lines {
            return None;
        }
        let page = *page;
        self.copying = None;
        let region = &mut self.regions[page.region];
        region.walks[page.walk].move_page(page.page, page.to);
        let (from, to) = (usize::from(page.from.tier), usize::from(page.to.tier));
        region.tiers[from].resident -= 1;
        region.tiers[from].moved_out += 1;
        region.tiers[to].resident += 1;
        region.tiers[to].moved_in += 1;
        self.tiers[from].free.push(page.from.line);
        Some(page)
    }

    /// Where a tenant's pages are, and what moved since this was asked last.
    pub fn observe(&mut self, tenant: usize, topology: &Topology) -> Vec<RegionPages> {
        let bytes = |pages: u64| Bytes(pages * self.page_lines * LINE_BYTES);
        let own = self.regions.iter_mut().filter(|r| r.tenant == tenant);
        let of_host = self.of_host;
        let observed = |region: &mut TenantRegion| {
            let mut tiers = Vec::new();
            let own = (region.tiers.iter_mut()).skip(region.base).take(of_host);
            for (on, tier) in own.zip(&topology.tiers) {
                if on.resident + on.moved_in + on.moved_out > 0 {
                    tiers.push(TierPages {
                        tier: tier.name.clone(),
                        resident: bytes(on.resident),
                        moved_in: bytes(std::mem::take(&mut on.moved_in)),
                        moved_out: bytes(std::mem::take(&mut on.moved_out)),
                    });
                }
            }
            RegionPages {
                region: region.name.clone(),
                tiers,
            }
        };
        own.map(observed).collect()
    }
}

impl Frames {
    /// The first line of a free page.
    fn take(&mut self, lines: u64) -> Option<u64> {
        if let Some(line) = self.free.pop() {
            return Some(line);
        }
        let line = self.next;
        if line + lines > self.capacity {
            return None;
        }
        self.next += lines;
        Some(line)
    }
}

impl Job {
    /// The next page that is not where it is to be.
    fn next(&mut self, region: &TenantRegion, page_lines: u64) -> Option<PageMove> {
        let page_bytes = page_lines * LINE_BYTES;
        while let Some(walk) = region.walks.get(self.walk) {
            // Arrays of a region are of one size.
            let start = self.walk as u64 * walk.lines() * LINE_BYTES;
            while self.page < walk.pages() {
                let page = self.page;
                self.page += 1;
                let byte = start + page * page_bytes;
                if byte < self.range.0 || byte >= self.range.1 {
                    continue;
                }
                let from = walk.page(page);
                if let Some(tier) = self.target.of(from.tier, page) {
                    return Some(PageMove {
                        region: self.region,
                        walk: self.walk,
                        page,
                        from,
                        to: Place { tier, line: 0 },
                        line: self.line,
                    });
                }
            }
            (self.walk, self.page) = (self.walk + 1, 0);
        }
        None
    }
}
