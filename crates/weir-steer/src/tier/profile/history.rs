//! The worker of a profile: what was seen of pages becomes histories, and histories a document.
//!
//! As Chameleon's worker (TPP, ASPLOS 2023, section 3.2) it keeps a bit for each page and interval; with another for
//! whether the page was allocated, hot, warm and cold memory, re-access and the heat map all follow from the bits.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_model::heat::SeenPages;
use weir_model::units::Bytes;
use weir_pages::PageKind;

use super::document::{
    HeatCell, Profile, ProfileInterval, ProfileSource, Reaccess, TouchRate, TouchedWithin,
};

/// The most intervals of a profile: a page takes two bits for each.
pub const MOST_INTERVALS: u32 = 4096;
/// The most parts of a heat map: of the address space, and of the time.
const HEAT: (u64, usize) = (32, 60);
/// The most parts of the time by which touches are distinguished; two become one where there would be more.
const PARTS: usize = 16;

/// A bit for each interval.
#[derive(Debug, Clone, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, n: usize) {
        if self.0.len() <= n / 64 {
            self.0.resize(n / 64 + 1, 0);
        }
        self.0[n / 64] |= 1 << (n % 64);
    }

    pub(super) fn has(&self, n: usize) -> bool {
        self.0
            .get(n / 64)
            .is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(super) fn count_in(&self, from: usize, to: usize) -> usize {
        (from..to).filter(|n| self.has(*n)).count()
    }
}

/// A page, or pages that are distinguished from others only together.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) bytes: u64,
    pub(super) kind: PageKind,
    pub(super) region: Arc<str>,
    pub(super) there: Bits,
    /// When it was freed and allocated again since the interval before.
    pub(super) renewed: Bits,
    pub(super) touched: Bits,
    pub(super) touches: f64,
    pub(super) page: u64,
    frame: u64,
    /// Touches by part of the time.
    pub(super) parts: Vec<f32>,
}

/// What a profile is of.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileOf {
    /// Where it comes from.
    pub source: ProfileSource,
    /// What was looked at.
    pub of: String,
    /// How.
    pub how: String,
    /// Seconds after which pages are no longer hot.
    pub hot_s: f64,
    /// Seconds after which pages are no longer warm.
    pub warm_s: f64,
    /// The least part of an address space that is distinguished.
    pub granule: Bytes,
    /// The most touches in a second that can be distinguished.
    pub most_per_s: Option<f64>,
}

/// The history of every page.
#[derive(Debug, Clone)]
pub struct History {
    pub(super) interval_s: f64,
    pub(super) pages: BTreeMap<(u32, u64), Page>,
    pub(super) ended: usize,
    /// Intervals in a part.
    pub(super) width: usize,
    /// The least that was noted of a page that was touched.
    pub(super) least: f64,
}

impl History {
    /// Without pages, in its first interval.
    pub fn new(interval_s: f64) -> Self {
        Self {
            interval_s,
            pages: BTreeMap::new(),
            ended: 0,
            width: 1,
            least: f64::INFINITY,
        }
    }

    /// Notes what was seen in this interval. What is seen twice adds up.
    pub fn add(&mut self, seen: &SeenPages) {
        let page = (self.pages.entry((seen.space, seen.start))).or_insert_with(|| Page {
            bytes: 0,
            kind: PageKind::Anon,
            region: Arc::clone(&seen.region),
            there: Bits::default(),
            renewed: Bits::default(),
            touched: Bits::default(),
            touches: 0.0,
            page: seen.page.get(),
            frame: seen.frame,
            parts: Vec::new(),
        });
        if page.frame != seen.frame && page.frame * seen.frame != 0 {
            page.renewed.set(self.ended);
        }
        page.frame = seen.frame;
        page.page = seen.page.get();
        page.bytes = page.bytes.max(seen.bytes.get());
        page.kind = match seen.file {
            true => PageKind::File,
            false => PageKind::Anon,
        };
        page.there.set(self.ended);
        if seen.touches > 0.0 {
            page.touched.set(self.ended);
            page.touches += seen.touches;
            self.least = self.least.min(seen.touches);
            let part = self.ended / self.width;
            if page.parts.len() <= part {
                page.parts.resize(part + 1, 0.0);
            }
            page.parts[part] += seen.touches as f32;
        }
    }

    /// Begins the next interval. Pages stay allocated only if they are seen again.
    pub fn next_interval(&mut self) {
        self.ended += 1;
        if self.ended == PARTS * self.width {
            self.width *= 2;
            for page in self.pages.values_mut() {
                page.parts = page.parts.chunks(2).map(|two| two.iter().sum()).collect();
            }
        }
    }

    /// Begins the next interval; pages that were ever seen stay allocated.
    pub fn next_interval_of_all(&mut self) {
        let now = self.ended;
        self.pages.values_mut().for_each(|page| page.there.set(now));
        self.next_interval();
    }

    /// Intervals that are over.
    pub fn intervals(&self) -> usize {
        self.ended
    }

    /// The document of the intervals that are over.
    pub fn profile(&self, of: ProfileOf) -> Profile {
        let window = |seconds: f64| (seconds / self.interval_s).round().max(1.0) as usize;
        let (hot, warm) = (window(of.hot_s), window(of.warm_s));
        let times = [1, 2, 5, 10].map(|n| ((n * hot) as f64 * self.interval_s, n * hot));
        let mut sums = Sums {
            intervals: vec![[Temperature::default(); 2]; self.ended],
            within: times.map(|(last_s, intervals)| (last_s, intervals, [0; 2])),
            gaps: [BTreeMap::new(), BTreeMap::new()],
        };
        for page in self.pages.values() {
            sums.add(page, self.ended, (hot, warm));
        }
        Profile {
            intervals: sums.intervals(self.interval_s),
            within: sums.within(),
            reaccess: sums.reaccess(self.interval_s),
            rates: self.rates(),
            bands: self.bands(of.most_per_s),
            regions: self.regions(),
            parts: self.parts(),
            heat: self.heat(),
            source: of.source,
            of: of.of,
            how: of.how,
            seconds: self.ended as f64 * self.interval_s,
            interval_s: self.interval_s,
            hot_s: hot as f64 * self.interval_s,
            warm_s: warm as f64 * self.interval_s,
            granule: of.granule,
            granules: self.pages.len() as u64,
            most_per_s: of.most_per_s,
            each: if self.least.is_finite() {
                self.least
            } else {
                1.0
            },
        }
    }

    fn rates(&self) -> Vec<TouchRate> {
        let small = self.small();
        // Memory, and memory times touches in a second, by region, type and power of two.
        let mut bands: BTreeMap<(&str, u8, i32), (u64, f64)> = BTreeMap::new();
        for page in self.pages.values() {
            let seconds = f64::from(page.there.count()) * self.interval_s;
            let rate = page.touches / seconds.max(self.interval_s);
            let power = match rate > 0.0 {
                true => rate.log2().floor() as i32,
                false => i32::MIN,
            };
            let region = if small(page) { "other" } else { &page.region };
            let band = bands.entry((region, page.kind as u8, power)).or_default();
            band.0 += page.bytes;
            band.1 += page.bytes as f64 * rate;
        }
        let mut totals: BTreeMap<(&str, u8), (u64, f64)> = BTreeMap::new();
        for (&(region, kind, _), (bytes, touches)) in &bands {
            let total = totals.entry((region, kind)).or_default();
            total.0 += bytes;
            total.1 += touches;
        }
        let row = |(&(region, kind, power), &(bytes, touches)): (&(&str, u8, i32), &(u64, f64))| {
            let (all, all_touches) = totals.get(&(region, kind)).copied().unwrap_or_default();
            let bound = |power: i32| 2f64.powi(power);
            TouchRate {
                region: region.to_owned(),
                kind: PageKind::ALL[usize::from(kind)],
                from_per_s: if power == i32::MIN { 0.0 } else { bound(power) },
                to_per_s: if power == i32::MIN {
                    0.0
                } else {
                    bound(power + 1)
                },
                mean_per_s: touches / bytes.max(1) as f64,
                memory: Bytes(bytes),
                memory_pct: percent(bytes as f64, all as f64),
                touches_pct: percent(touches, all_touches),
            }
        };
        bands.iter().map(row).collect()
    }

    fn heat(&self) -> Vec<HeatCell> {
        let all: u64 = self.pages.values().map(|page| page.bytes).sum();
        let times = HEAT.1.min(self.ended);
        if all == 0 || times == 0 {
            return Vec::new();
        }
        let time_of = |interval: usize| interval * times / self.ended;
        // The end of a time, in intervals: the last one in it.
        let end_of = |time: usize| ((time + 1) * self.ended).div_ceil(times);
        let mut parts: BTreeMap<u64, (u64, Vec<[u64; 2]>)> = BTreeMap::new();
        let mut before = 0;
        for (&(_, start), page) in &self.pages {
            let part = u128::from(before) * u128::from(HEAT.0) / u128::from(all);
            before += page.bytes;
            let (_, cells) =
                (parts.entry(part as u64)).or_insert_with(|| (start, vec![[0; 2]; times]));
            for interval in (0..self.ended).filter(|n| page.there.has(*n)) {
                let cell = &mut cells[time_of(interval)];
                cell[0] += page.bytes;
                cell[1] += page.bytes * u64::from(page.touched.has(interval));
            }
        }
        let mut heat = Vec::new();
        for (start, cells) in parts.values() {
            let there = cells
                .iter()
                .enumerate()
                .filter(|(_, [there, _])| *there > 0);
            heat.extend(there.map(|(time, [there, touched])| HeatCell {
                address: format!("{start:x}"),
                t_s: end_of(time) as f64 * self.interval_s,
                touched_pct: percent(*touched as f64, *there as f64),
            }));
        }
        heat
    }
}

fn percent(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of * 100.0 } else { 0.0 }
}

/// Bytes of a type in an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Temperature {
    allocated: u64,
    touched: u64,
    hot: u64,
    warm: u64,
}

/// What is added up over pages.
struct Sums {
    intervals: Vec<[Temperature; 2]>,
    /// Seconds, intervals, and bytes by type, added up over intervals.
    within: [(f64, usize, [u64; 2]); 4],
    /// Bytes by intervals since the touch before, by the exponent of the power of two that they do not exceed; none
    /// for a first touch.
    gaps: [BTreeMap<Option<u32>, u64>; 2],
}

impl Sums {
    fn add(&mut self, page: &Page, ended: usize, (hot, warm): (usize, usize)) {
        let (kind, bytes) = (page.kind as usize, page.bytes);
        let mut last: Option<usize> = None;
        for n in 0..ended {
            let touched = page.touched.has(n);
            if touched {
                let gap = last.map(|last| ((n - last) as u64).next_power_of_two().trailing_zeros());
                *self.gaps[kind].entry(gap).or_default() += bytes;
                last = Some(n);
            }
            if !page.there.has(n) {
                continue;
            }
            let since = last.map_or(usize::MAX, |last| n - last);
            let of = &mut self.intervals[n][kind];
            of.allocated += bytes;
            of.touched += bytes * u64::from(touched);
            of.hot += bytes * u64::from(since < hot);
            of.warm += bytes * u64::from((hot..warm).contains(&since));
            for (_, intervals, of) in &mut self.within {
                if n + 1 >= *intervals && since < *intervals {
                    of[kind] += bytes;
                }
            }
        }
    }

    fn intervals(&self, interval_s: f64) -> Vec<ProfileInterval> {
        let row = |n: usize, kind: PageKind, of: &Temperature| {
            let cold = of.allocated - of.hot - of.warm;
            let share = |part: u64| percent(part as f64, of.allocated as f64);
            ProfileInterval {
                t_s: (n + 1) as f64 * interval_s,
                kind,
                allocated: Bytes(of.allocated),
                touched: Bytes(of.touched),
                hot: Bytes(of.hot),
                hot_pct: share(of.hot),
                warm: Bytes(of.warm),
                cold: Bytes(cold),
                cold_pct: share(cold),
            }
        };
        let rows = self.intervals.iter().enumerate();
        rows.flat_map(|(n, kinds)| PageKind::ALL.map(|kind| row(n, kind, &kinds[kind as usize])))
            .collect()
    }

    fn within(&self) -> Vec<TouchedWithin> {
        let known = self.within.iter();
        let known = known.filter(|(_, intervals, _)| *intervals <= self.intervals.len());
        known
            .flat_map(|(last_s, intervals, of)| {
                let counted = &self.intervals[intervals - 1..];
                PageKind::ALL.map(|kind| {
                    let all = counted.iter().map(|kinds| kinds[kind as usize].allocated);
                    TouchedWithin {
                        kind,
                        last_s: *last_s,
                        touched: Bytes(of[kind as usize] / counted.len().max(1) as u64),
                        touched_pct: percent(of[kind as usize] as f64, all.sum::<u64>() as f64),
                    }
                })
            })
            .collect()
    }

    fn reaccess(&self, interval_s: f64) -> Vec<Reaccess> {
        let rows = PageKind::ALL.into_iter().flat_map(|kind| {
            let gaps = &self.gaps[kind as usize];
            let all: u64 = gaps.values().sum();
            gaps.iter().map(move |(gap, bytes)| Reaccess {
                kind,
                after_s: gap.map(|power| match power {
                    0 => 0.0,
                    power => (1u64 << (power - 1)) as f64 * interval_s,
                }),
                until_s: gap.map(|power| (1u64 << power) as f64 * interval_s),
                touched: Bytes(*bytes),
                share_pct: percent(*bytes as f64, all as f64),
            })
        });
        rows.collect()
    }
}
