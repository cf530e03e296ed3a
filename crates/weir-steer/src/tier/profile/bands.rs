//! Rates of touches without the chance of samples.
//!
//! A page of which 3 samples were taken need not be touched three times as often as one with a single sample. Which
//! mixture of rates makes the counts likeliest is found by expectation and maximisation over a grid of rates (the
//! nonparametric estimate of Laird, JASA 1978). Where the hot set drifts, counts are of parts of the time that are short
//! against the drift, so that a page which is hot for a while is not taken for one that is warm all the time.

use std::collections::BTreeMap;

use weir_model::units::Bytes;
use weir_pages::PageKind;

use super::document::RegionBand;
use super::history::{History, Page};

/// Rates of the grid in a factor of two.
const FINE: f64 = 6.0;
/// Bands in a factor of two.
const BANDS: f64 = 2.0;
/// Steps of the estimate: each takes little, and more change the bands by less than a percent.
const STEPS: usize = 300;
/// The part of a hot set that may be replaced while touches are counted together.
const DRIFT: f64 = 0.05;
/// A band with less than this share of a region's memory and of its touches is none.
const SMALL: f64 = 0.01;
/// Pages with fewer expected touches than this in the whole profile are one band: no more is known of them.
const RARE: f64 = 0.3;
/// Touches of a region in a part of the time from which its activity in the part is known to a tenth.
const ENOUGH: f64 = 100.0;
/// Counts above this are taken together with those that differ by less than a quarter of their standard deviation.
const EXACT: f64 = 32.0;
/// The share of looks that find a page touched from which no rate is known.
pub(crate) const SATURATED: f64 = 0.95;

/// Parts of a region's addresses by which it is said where bands are, at most; no part is less than a page.
const PLACES: u64 = 256;
/// Shares of a band in a part are rounded to one of this many.
const SHARES: f64 = 1e5;
/// A group of pages that has less than this chance of a rate says nothing of where pages of the rate are.
const CHANCE: f64 = 1e-6;

/// Counts that are alike: touches, the looks in which they may be seen, and memory; and its bytes in each part of the region's
/// addresses, of pages that were not seen before.
struct Alike {
    count: f64,
    looks: f64,
    memory: f64,
    places: Vec<f64>,
}

/// Memory, with the touches and the looks that it had, and its bytes in each part of the region's addresses.
#[derive(Clone)]
struct Mixed {
    sums: [f64; 3],
    places: Vec<f64>,
}

impl Mixed {
    const NONE: Self = Self {
        sums: [0.0; 3],
        places: Vec::new(),
    };

    fn add(&mut self, other: &Self) {
        (0..3).for_each(|n| self.sums[n] += other.sums[n]);
        add(&mut self.places, &other.places, 1.0);
    }
}

fn add(to: &mut Vec<f64>, from: &[f64], share: f64) {
    to.resize(to.len().max(from.len()), 0.0);
    to.iter_mut().zip(from).for_each(|(a, b)| *a += b * share);
}

/// The logarithm of how likely a count is, without what is the same for all rates. A touch is one of `looks` times `rate`
/// that are expected, or a look that found one.
fn likely(of: &Alike, rate: f64, limited: bool) -> f64 {
    match limited {
        false => of.count * rate.max(1e-300).ln() - rate * of.looks,
        true => {
            let missed = (-rate).exp();
            let found = of.count.min(of.looks);
            found * (1.0 - missed).max(1e-300).ln() + (of.looks - found) * missed.max(1e-300).ln()
        }
    }
}

/// Memory by rate of the grid.
fn mixture(alike: &[Alike], grid: &[f64], limited: bool) -> Vec<Mixed> {
    let likelihoods: Vec<Vec<f64>> = (alike.iter())
        .map(|of| {
            let logs: Vec<f64> = grid.iter().map(|rate| likely(of, *rate, limited)).collect();
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            logs.into_iter().map(|log| (log - most).exp()).collect()
        })
        .collect();
    let all: f64 = alike.iter().map(|of| of.memory).sum();
    let mut weights = vec![[all / grid.len() as f64, 0.0, 0.0]; grid.len()];
    for _ in 0..STEPS {
        let mut next = vec![[0.0; 3]; grid.len()];
        for (of, likelihood) in alike.iter().zip(&likelihoods) {
            let sum: f64 = likelihood.iter().zip(&weights).map(|(l, w)| l * w[0]).sum();
            let scale = of.memory / sum.max(1e-300);
            for ((next, l), w) in next.iter_mut().zip(likelihood).zip(&weights) {
                let part = l * w[0] * scale;
                next[0] += part;
                next[1] += part * of.count;
                next[2] += part * of.looks;
            }
        }
        weights = next;
    }
    let mut places = vec![Vec::new(); grid.len()];
    for (of, likelihood) in alike.iter().zip(&likelihoods) {
        let sum: f64 = likelihood.iter().zip(&weights).map(|(l, w)| l * w[0]).sum();
        for ((places, l), w) in places.iter_mut().zip(likelihood).zip(&weights) {
            let chance = l * w[0] / sum.max(1e-300);
            if chance > CHANCE {
                add(places, &of.places, chance);
            }
        }
    }
    let both = weights.into_iter().zip(places);
    both.map(|(sums, places)| Mixed { sums, places }).collect()
}

/// Bands, the hottest first, where those with little memory and few touches are taken together with the one before.
fn merged(bands: impl Iterator<Item = Mixed>) -> Vec<Mixed> {
    let bands: Vec<Mixed> = bands.collect();
    let all = |n: usize| bands.iter().map(|of| of.sums[n]).sum::<f64>() * SMALL;
    let small = |of: &Mixed| of.sums[0] < all(0) && of.sums[1] < all(1);
    let mut kept: Vec<Mixed> = Vec::new();
    for of in &bands {
        match kept.last_mut() {
            Some(last) if small(of) || small(last) => last.add(of),
            _ => kept.push(of.clone()),
        }
    }
    kept
}

impl History {
    pub(super) fn bands(&self, most_per_s: Option<f64>) -> Vec<RegionBand> {
        let mut rows = Vec::new();
        for ((region, kind), pages) in self.by_region() {
            let bands = self.bands_of(&pages, most_per_s);
            rows.extend(bands.into_iter().map(|(per_s, memory, places)| RegionBand {
                region: region.to_owned(),
                kind: PageKind::ALL[usize::from(kind)],
                per_s,
                memory: Bytes(memory.round() as u64),
                places,
            }));
        }
        rows
    }

    /// Parts of the time in which touches are counted together.
    fn together(&self, pages: &[&Page]) -> usize {
        let parts = self.parts_of_time();
        let Some((arrived, hot)) = self.arrived(pages) else {
            return parts;
        };
        let replaced_in_part = arrived / hot.max(1e-9) / parts as f64;
        ((DRIFT / replaced_in_part.max(1e-9)) as usize).clamp(1, parts)
    }

    /// Rates in touches of a page in a second, memory, and its shares in parts of the region's addresses, the hottest first.
    fn bands_of(&self, pages: &[&Page], most_per_s: Option<f64>) -> Vec<(f64, f64, Vec<f64>)> {
        let parts = self.parts_of_time();
        if parts == 0 || pages.is_empty() {
            return Vec::new();
        }
        // Looks in a second: each finds a touch or not, or is the time in which one touch is noted once a second.
        let looks_per_s = most_per_s.unwrap_or(1.0 / self.least.clamp(1e-9, 1e12));
        let unit = if most_per_s.is_some() {
            1.0
        } else {
            self.least.clamp(1e-9, 1e12)
        };
        let seconds = |from: usize, to: usize| (to - from) as f64 * self.interval_s;
        // How much a region is touched in a part, against its mean.
        let there = |page: &Page, part: usize| {
            let (from, to) = self.span(part);
            page.bytes as f64 * page.there.count_in(from, to) as f64 * self.interval_s
        };
        let touches =
            |page: &Page, part: usize| page.parts.get(part).copied().map_or(0.0, f64::from);
        let sums: Vec<(f64, f64, f64)> = (0..parts)
            .map(|part| {
                let of = pages.iter().map(|page| {
                    let touches = touches(page, part);
                    (
                        there(page, part),
                        touches * page.bytes as f64,
                        touches / unit,
                    )
                });
                of.fold((0.0, 0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
            })
            .collect();
        let all = sums.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        let mean = all.1 / f64::max(all.0, 1e-9);
        let active = |part: usize| match sums[part] {
            (there, touched, n) if n >= ENOUGH && there > 0.0 && most_per_s.is_none() => {
                touched / there / mean.max(1e-300)
            }
            _ => 1.0,
        };
        let together = self.together(pages);
        let mut groups: BTreeMap<(usize, u64, u64), (f64, Vec<f64>)> = BTreeMap::new();
        let memory: u64 = pages.iter().map(|page| page.bytes).sum();
        let page = pages.iter().map(|page| page.page).max().unwrap_or(1).max(1);
        let places_of_region = (memory / page).clamp(1, PLACES);
        let mut before = 0;
        for page in pages {
            let part =
                u128::from(before) * u128::from(places_of_region) / u128::from(memory.max(1));
            before += page.bytes;
            let mut is_new = true;
            for (n, from) in (0..parts).step_by(together).enumerate() {
                let window = from..(from + together).min(parts);
                let (first, last) = (self.span(window.start).0, self.span(window.end - 1).1);
                let there = page.there.count_in(first, last) as u64;
                if there == 0 {
                    continue;
                }
                let count = window.map(|part| touches(page, part)).sum::<f64>() / unit;
                let count = match count > EXACT {
                    true => {
                        // Steps of a quarter of the square root.
                        let step = (count.sqrt() * 8.0).round() / 8.0;
                        (step * step * 64.0).round()
                    }
                    false => (count * 64.0).round(),
                };
                let (memory, places) = groups.entry((n, there, count as u64)).or_default();
                *memory += page.bytes as f64;
                // Hot sets drift from where they were at first.
                if is_new {
                    places.resize(places_of_region as usize, 0.0);
                    places[part as usize] += page.bytes as f64;
                }
                is_new = false;
            }
        }
        let alike: Vec<Alike> = (groups.into_iter())
            .map(|((n, there, count), (memory, places))| {
                let window = n * together..((n + 1) * together).min(parts);
                let (first, last) = (self.span(window.start).0, self.span(window.end - 1).1);
                let activity: f64 = window
                    .clone()
                    .map(|part| {
                        let (from, to) = self.span(part);
                        active(part) * seconds(from, to)
                    })
                    .sum();
                let share = there as f64 / (last - first) as f64;
                Alike {
                    count: count as f64 / 64.0,
                    looks: activity * share * looks_per_s,
                    // Of each time its part.
                    memory: memory * seconds(first, last),
                    places,
                }
            })
            .filter(|of| of.looks > 0.0)
            .collect();
        let memory = memory as f64;
        let most = alike
            .iter()
            .map(|of| of.count / of.looks)
            .fold(0.0, f64::max);
        if most <= 0.0 {
            return vec![(0.0, memory, Vec::new())];
        }
        let limited = most_per_s.is_some();
        let most = match limited {
            true => -(1.0 - most.min(SATURATED)).ln(),
            false => most,
        } * 1.1;
        let longest = seconds(0, self.ended) * looks_per_s;
        let least = (0.01 / longest).min(most / 2.0);
        let size = ((most / least).log2() * FINE).ceil() as i32;
        let grid: Vec<f64> = (0..=size)
            .map(|n| most * 2f64.powf(-f64::from(n) / FINE))
            .collect();
        let weights = mixture(&alike, &grid, limited);
        let scale = memory / weights.iter().map(|of| of.sums[0]).sum::<f64>().max(1e-300);
        let mut bands: BTreeMap<i32, Mixed> = BTreeMap::new();
        for (rate, mut of) in grid.iter().zip(weights) {
            let band = match rate * longest < RARE {
                true => i32::MAX,
                false => ((most / rate).log2() * BANDS + 1e-9).floor() as i32,
            };
            of.sums = of.sums.map(|sum| sum * scale);
            bands.entry(band).or_insert(Mixed::NONE).add(&of);
        }
        let bands = merged(bands.into_values());
        // Of the pages of a band, in place of the nearest of the grid.
        let rate = |[_, count, looks]: [f64; 3]| match count / looks.max(1e-300) {
            found if limited => -(1.0 - found.min(SATURATED)).ln(),
            rate => rate,
        };
        // Less than a page is none.
        let bands = bands.into_iter().filter(|of| of.sums[0] >= page as f64);
        let per_s = most_per_s.unwrap_or(1.0);
        let shares = |places: Vec<f64>| -> Vec<f64> {
            let all: f64 = places.iter().sum();
            let share = |of: f64| (of / all * SHARES).round() / SHARES;
            let shares = places.into_iter().filter(|_| all > 0.0);
            shares.map(share).collect()
        };
        let band = |of: Mixed| (rate(of.sums) * per_s, of.sums[0], shares(of.places));
        bands.map(band).collect()
    }
}
