//! What a program does to its pages over minutes: regions, how hot their pages are, how they grow and drift.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::PagesError;
use crate::tier::Memory;

/// What a page holds, by which Linux keeps lists and counters apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageKind {
    /// Heap, stack, private mappings.
    Anon,
    /// Page cache and tmpfs.
    File,
}

impl PageKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Anon, Self::File];
}

/// Pages of a region that are touched equally often.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Band {
    /// Share of the region's pages.
    pub pages: f64,
    /// Share of the region's accesses.
    pub accesses: f64,
}

/// How much of a region is allocated over time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// Share of the region that is allocated when growth begins.
    pub initial: f64,
    /// When growth begins, in seconds.
    pub from_s: f64,
    /// When all of it is allocated, in seconds.
    pub full_s: f64,
    /// When pages begin to be freed, the oldest first; not before `full_s`.
    pub shrinks_from_s: f64,
    /// When only `kept` is left.
    pub shrunk_s: f64,
    /// The share that is left.
    pub kept: f64,
}

impl Growth {
    /// All of it is allocated at the start, and nothing is freed.
    pub const NONE: Self = Self {
        initial: 1.0,
        from_s: 0.0,
        full_s: 0.0,
        shrinks_from_s: f64::INFINITY,
        shrunk_s: f64::INFINITY,
        kept: 1.0,
    };

    /// The share of the region that is allocated at a time in seconds.
    pub fn share_at(&self, t: f64) -> f64 {
        let along = |from: f64, to: f64| match t {
            t if t >= to => 1.0,
            t if t <= from => 0.0,
            t => (t - from) / (to - from),
        };
        let grown = self.initial + (1.0 - self.initial) * along(self.from_s, self.full_s);
        match t > self.shrinks_from_s {
            true => 1.0 - (1.0 - self.kept) * along(self.shrinks_from_s, self.shrunk_s),
            false => grown,
        }
    }
}

/// A part of an address space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// What its pages hold.
    pub kind: PageKind,
    /// Its size, once all of it is allocated.
    pub bytes: Bytes,
    /// The size of its pages: 4 KiB or 2 MiB.
    pub page: Bytes,
    /// Its share of the workload's accesses, once all of it is allocated; with less, in proportion.
    pub accesses: f64,
    /// The share of its accesses that write.
    pub writes: f64,
    /// Accesses to it that a thread has outstanding at once (MLP): a pointer chase has 1, a scan as many as the core has
    /// fill buffers.
    pub mlp: f64,
    /// Accesses to memory in a visit of a page, which follow each other at once: as many as a page has lines where it is
    /// read in order, 1 where accesses are random, less where caches serve some. The kernel sees a visit as one touch.
    pub burst: f64,
    /// The same of each band, where caches serve some bands more than others; empty where all have [`Region::burst`]. Below
    /// 1 where caches serve most visits: those set accessed bits and meet hint faults, and no sample of misses, no
    /// counter of a device and no bus sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub band_bursts: Vec<f64>,
    /// How unequally its pages are touched.
    pub bands: Vec<Band>,
    /// Of each band the share of its pages in each of equally long parts of the region's addresses, in which order pages are
    /// allocated; empty where bands are spread evenly. An earlier band has its places first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub band_places: Vec<Vec<f64>>,
    /// How it grows.
    pub growth: Growth,
    /// How long a page lives until it is freed and another is allocated, in seconds; none where pages stay.
    pub lifetime_s: Option<f64>,
    /// How fast the hot set changes: the share of it that is replaced in an hour. Hot pages are those of bands that are
    /// touched more often than the region's mean.
    pub drift_per_hour: f64,
}

impl Region {
    /// Accesses to memory in a visit of a page of each band.
    pub(crate) fn bursts(&self) -> impl Iterator<Item = f64> {
        let of_band = |n| self.band_bursts.get(n).copied().unwrap_or(self.burst);
        (0..self.bands.len()).map(of_band)
    }

    /// The share of its pages that are touched more often than the mean.
    pub(crate) fn hot_share(&self) -> f64 {
        let hot = self.bands.iter().filter(|band| band.accesses > band.pages);
        hot.map(|band| band.pages).sum()
    }
}

/// A program, or a service of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PagedWorkload {
    /// Its name.
    pub name: String,
    /// What it is, and where that is known from.
    pub about: String,
    /// Threads that access memory.
    pub threads: u32,
    /// The share of its time that a thread waits for memory if all pages are in the fast tier, without load.
    pub stalled: f64,
    /// Its regions.
    pub regions: Vec<Region>,
    /// Phases that follow each other and begin again; none for a workload that does not change.
    pub phases: Vec<Phase>,
}

/// A time in which regions are accessed as often as said here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its length.
    pub seconds: f64,
    /// Each region's share of accesses, in place of [`Region::accesses`].
    pub accesses: Vec<f64>,
    /// The share of time that a thread waits for memory, where it is not [`PagedWorkload::stalled`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<f64>,
}

/// Bands of `items` pages whose popularity follows a Zipf law: the share of accesses of the n-th is proportional to n
/// to the power of -`exponent`, which must not be 1. Each band has half the pages of the one after it. Together they
/// are a share `pages` of a region, with a share `accesses` of its accesses.
pub fn zipf(pages: f64, accesses: f64, items: f64, exponent: f64, bands: u32) -> Vec<Band> {
    // The sum over the first n by its integral.
    let sum = |n: f64| (n + 1.0).powf(1.0 - exponent) - 1.0;
    let of_first = |x: f64| sum(x * items) / sum(items);
    let mut from = 0.0;
    let ends = (0..bands).rev().map(|n| 0.5f64.powi(n as i32));
    ends.map(|to| {
        let band = Band {
            pages: pages * (to - from),
            accesses: accesses * (of_first(to) - of_first(from)),
        };
        from = to;
        band
    })
    .collect()
}

impl PagedWorkload {
    /// Computing before each access, at a time in seconds: so much that threads stall as described while all pages are in this memory.
    pub(crate) fn compute_ns(&self, fast: &Memory, t: f64) -> f64 {
        let phase = self
            .phase_at(t)
            .and_then(|phase| Some((phase, phase.stalled?)));
        let idle = fast.curve.idle().get();
        let computes = |shares: &mut dyn Iterator<Item = f64>, stalled: f64| {
            let waits = shares
                .zip(&self.regions)
                .map(|(share, region)| share / region.mlp);
            idle * waits.sum::<f64>() * (1.0 - stalled) / stalled
        };
        match phase {
            Some((phase, stalled)) => computes(&mut phase.accesses.iter().copied(), stalled),
            None => computes(&mut self.regions.iter().map(|r| r.accesses), self.stalled),
        }
    }

    /// The phase at a time in seconds.
    fn phase_at(&self, t: f64) -> Option<&Phase> {
        let round: f64 = self.phases.iter().map(|phase| phase.seconds).sum();
        let mut left = if round > 0.0 { t % round } else { 0.0 };
        self.phases.iter().find(|phase| {
            let is_now = left < phase.seconds;
            left -= phase.seconds;
            is_now
        })
    }

    /// The last time in seconds at which memory is allocated or freed; pages that are renewed aside.
    pub fn grows_until(&self) -> f64 {
        let times = self.regions.iter().flat_map(|region| {
            let growth = region.growth;
            let shrinks = growth.shrinks_from_s.is_finite() && growth.kept < 1.0;
            [
                if growth.initial < 1.0 {
                    growth.full_s
                } else {
                    0.0
                },
                if shrinks { growth.shrunk_s } else { 0.0 },
            ]
        });
        times.fold(0.0, f64::max)
    }

    /// The most bytes that are allocated at once.
    pub fn peak(&self) -> Bytes {
        let times = self.regions.iter().flat_map(|r| {
            let g = r.growth;
            [0.0, g.full_s, g.shrinks_from_s, g.shrunk_s]
        });
        let at = |t: f64| -> f64 {
            let of = |r: &Region| r.growth.share_at(t) * r.bytes.get() as f64;
            self.regions.iter().map(of).sum()
        };
        let times = times.filter(|t| t.is_finite());
        Bytes(times.map(at).fold(0.0, f64::max).ceil() as u64)
    }

    /// Memory of pages that are touched more often than the mean page, over all phases.
    pub fn hot_set(&self) -> Bytes {
        let all: f64 = self.regions.iter().map(|r| r.bytes.get() as f64).sum();
        let round: f64 = self.phases.iter().map(|phase| phase.seconds).sum();
        let of = |(n, region): (usize, &Region)| {
            let phases = self.phases.iter();
            let by_time: f64 = phases.map(|p| p.accesses[n] * p.seconds / round).sum();
            let accesses = match self.phases.is_empty() {
                true => region.accesses,
                false => by_time,
            };
            let share = region.bytes.get() as f64 / all;
            let bands = region.bands.iter();
            let hot = bands.filter(|band| band.accesses * accesses > band.pages * share);
            hot.map(|band| band.pages).sum::<f64>() * region.bytes.get() as f64
        };
        Bytes(self.regions.iter().enumerate().map(of).sum::<f64>() as u64)
    }

    /// A region's share of accesses at a time in seconds, once all of it is allocated.
    pub fn share_at(&self, region: usize, t: f64) -> f64 {
        let phase = self.phase_at(t).map(|phase| phase.accesses[region]);
        phase.unwrap_or(self.regions[region].accesses)
    }

    /// Checks values and sums.
    ///
    /// # Errors
    /// A value is out of its range, or shares do not add up.
    pub fn check(&self) -> Result<(), PagesError> {
        let wrong = |what: String, why: &str| {
            Err(PagesError::Workload {
                workload: self.name.clone(),
                what,
                why: why.into(),
            })
        };
        let share = |x: f64| (0.0..=1.0).contains(&x);
        let one = |x: f64| (x - 1.0).abs() < 1e-6;
        if self.threads == 0 {
            return wrong("threads".into(), "must be 1 or more");
        }
        if !(self.stalled > 0.0 && self.stalled <= 1.0) {
            return wrong("stalled".into(), "must be above 0 and at most 1");
        }
        if self.regions.is_empty() || !one(self.regions.iter().map(|r| r.accesses).sum()) {
            return wrong(
                "accesses".into(),
                "the shares of all regions must add up to 1",
            );
        }
        for (n, phase) in self.phases.iter().enumerate() {
            let shares = &phase.accesses;
            let lasts = phase.seconds > 0.0 && phase.seconds.is_finite();
            let waits = phase.stalled.is_none_or(|x| x > 0.0 && x <= 1.0);
            let sum: f64 = shares.iter().sum();
            let all = shares.len() == self.regions.len() && shares.iter().all(|s| share(*s));
            if !(lasts && waits && all && one(sum)) {
                return wrong(
                    format!("phase {}", n + 1),
                    "needs a length above 0 s and a share of accesses for each region; they must add up to 1",
                );
            }
        }
        for region in &self.regions {
            let of = |key: &str| format!("region {}, {key}", region.name);
            let bands = region.bands.iter();
            if !bands.clone().all(|b| b.pages > 0.0 && share(b.accesses))
                || !one(bands.clone().map(|b| b.pages).sum())
                || !one(bands.map(|b| b.accesses).sum())
            {
                return wrong(of("bands"), "pages and accesses must each add up to 1");
            }
            if !share(region.accesses) || !share(region.writes) {
                return wrong(of("accesses, writes"), "must be between 0 and 1");
            }
            if !(region.mlp >= 1.0 && region.mlp.is_finite()) {
                return wrong(of("mlp"), "must be 1 or more");
            }
            let lines = region.page.get() as f64 / LINE_BYTES as f64;
            let mut bursts = region.band_bursts.iter().chain([&region.burst]);
            let each =
                region.band_bursts.is_empty() || region.band_bursts.len() == region.bands.len();
            if !each || !bursts.all(|burst| *burst > 0.0 && *burst <= lines) {
                return wrong(
                    of("burst"),
                    "must be above 0, and the lines of a page at most, for each band or for all",
                );
            }
            let places = &region.band_places;
            let parts = places.first().map_or(0, Vec::len);
            if !(places.is_empty() || places.len() == region.bands.len())
                || !places.iter().all(|of| {
                    of.len() == parts && of.iter().all(|s| share(*s)) && one(of.iter().sum())
                })
            {
                return wrong(
                    of("band_places"),
                    "must be shares of each band in equally many parts, which add up to 1",
                );
            }
            if region.page != Bytes::kib(4) && region.page != Bytes::mib(2) {
                return wrong(of("page"), "must be 4 KiB or 2 MiB");
            }
            if region.bytes < region.page {
                return wrong(of("bytes"), "must be a page at least");
            }
            let g = region.growth;
            if !share(g.initial)
                || !share(g.kept)
                || g.from_s.is_nan()
                || g.from_s > g.full_s
                || g.shrinks_from_s < g.full_s
                || g.shrunk_s < g.shrinks_from_s
            {
                return wrong(
                    of("growth"),
                    "times must follow each other, shares be between 0 and 1",
                );
            }
            if region
                .lifetime_s
                .is_some_and(|s| !(s > 0.0 && s.is_finite()))
            {
                return wrong(of("lifetime_s"), "must be above 0");
            }
            if !(region.drift_per_hour >= 0.0 && region.drift_per_hour.is_finite()) {
                return wrong(of("drift_per_hour"), "must be 0 or more");
            }
        }
        Ok(())
    }
}
