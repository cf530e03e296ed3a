//! A workload that would have a given profile.

use std::fmt;
use std::str::FromStr;

use weir_model::units::Bytes;
use weir_pages::workload::{Band, Growth, Phase};
use weir_pages::{PagedWorkload, Region, TierCurve};

use crate::tier::profile::{Profile, ProfileRegion, RegionBand, RegionPart, SATURATED, TouchRate};

/// A line of memory.
const LINE: f64 = 64.0;
/// Shares of accesses that differ by less between parts of the time are no phases.
const PHASE: f64 = 0.05;
/// By how much more than the least that is known such pages may be touched.
const MORE: f64 = 1000.0;

/// A value, or a range in which it is: `2`, `1.2..8`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Span {
    /// The least.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
        match (number(low), number(high)) {
            (Some(low), Some(high)) if low <= high && low >= 0.0 => Ok(Self { low, high }),
            _ => Err(format!(
                "`{text}` is no value such as 2, and no range such as 1.2..8"
            )),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low < self.high {
            true => write!(f, "{}..{}", self.low, self.high),
            false => write!(f, "{}", self.low),
        }
    }
}

impl Span {
    fn at(self, part: f64) -> f64 {
        self.low + (self.high - self.low) * part
    }

    /// As likely in each factor of e.
    fn log(self, part: f64) -> f64 {
        self.low * (self.high / self.low).powf(part)
    }
}

/// A range, of one region or of all that have none of their own: `2`, `heap=1.5..4`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct OfRegion {
    /// The region.
    pub region: Option<String>,
    /// The range.
    pub span: Span,
}

impl FromStr for OfRegion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (region, span) = match text.rsplit_once('=') {
            Some((region, span)) => (Some(region.to_owned()), span),
            None => (None, text),
        };
        Ok(Self {
            region,
            span: span.parse()?,
        })
    }
}

/// What a profile does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct Unknown {
    /// Accesses outstanding at once.
    pub mlp: Vec<OfRegion>,
    /// The share of time that threads wait for memory.
    pub stalled: Span,
    /// The share of accesses that write.
    pub writes: Vec<OfRegion>,
    /// Threads, where the accesses in a second are not known.
    pub threads: Span,
}

fn of(list: &[OfRegion], region: &str, usual: Span) -> Span {
    let named = list.iter().find(|of| of.region.as_deref() == Some(region));
    let all = || list.iter().find(|of| of.region.is_none());
    named.or_else(all).map_or(usual, |of| of.span)
}

/// Accesses outstanding at once, from a pointer chase to a scan that has a core's fill buffers, of which there are 10 to 16.
pub const MLP: Span = Span {
    low: 1.0,
    high: 16.0,
};
/// The share of accesses that write.
pub const WRITES: Span = Span {
    low: 0.0,
    high: 0.5,
};

/// The place of a variation in the range of a value: the middle for the first, then an additive recurrence, whose
/// points are spread evenly however many there are. The share of stalled time, on which a gain depends most, is near
/// its ends in the next two.
fn place(variation: u32, value: usize) -> f64 {
    const PRIMES: [f64; 16] = [
        2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0, 41.0, 43.0, 47.0, 53.0,
    ];
    match (variation, value) {
        (1, 0) => return 0.95,
        (2, 0) => return 0.05,
        _ => {}
    }
    (0.5 + f64::from(variation) * PRIMES[value % PRIMES.len()].sqrt()).fract()
}

/// A region of a profile.
struct Seen<'a> {
    region: &'a ProfileRegion,
    rows: Vec<&'a RegionBand>,
    parts: Vec<&'a RegionPart>,
}

impl Seen<'_> {
    /// Memory and touches of a page in a second, the hottest first: a hot set drifts from there on. Of pages that nearly
    /// every look found touched no rate is known: it is `more` times the least. With each the shares of it in parts of
    /// the region's addresses.
    fn bands(&self, profile: &Profile, more: f64) -> Vec<(f64, f64, &[f64])> {
        let known =
            (profile.most_per_s).map_or(f64::INFINITY, |most| -(1.0 - SATURATED).ln() * most);
        let band = self.rows.iter().map(|row| {
            let rate = row.per_s
                * if row.per_s >= 0.999 * known {
                    more
                } else {
                    1.0
                };
            (row.memory.get() as f64, rate, row.places.as_slice())
        });
        let mut bands: Vec<(f64, f64, &[f64])> = band.collect();
        bands.retain(|(memory, ..)| *memory > 0.0);
        bands.sort_by(|a, b| b.1.total_cmp(&a.1));
        bands
    }

    fn growth(&self) -> Growth {
        let at = |part: &&&RegionPart| part.allocated.get() as f64;
        let most = self.parts.iter().map(|part| at(&part)).fold(0.0, f64::max);
        match self.parts.first() {
            Some(first) if at(&first) < 0.95 * most => Growth {
                initial: at(&first) / most,
                full_s: (self.parts.iter().find(|part| at(part) >= 0.98 * most))
                    .map_or(0.0, |part| part.t_s),
                ..Growth::NONE
            },
            _ => Growth::NONE,
        }
    }

    /// How long its memory lives, from what appeared and is no growth.
    fn lifetime_s(&self) -> Option<f64> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        let appeared: f64 = self
            .parts
            .iter()
            .map(|part| part.appeared.get() as f64)
            .sum();
        let grown = last.allocated.get() as f64 - first.allocated.get() as f64;
        let renewed = (appeared - grown.max(0.0)) / last.allocated.get().max(1) as f64;
        (renewed > 0.1).then(|| last.t_s / renewed)
    }
}

/// The share of a profile's touches that are of pages found touched in nearly every look.
pub(super) fn unknown_share(profile: &Profile) -> f64 {
    let most = profile.most_per_s.unwrap_or(f64::INFINITY);
    let touches = |row: &TouchRate| row.mean_per_s * row.memory.get() as f64;
    let of = |known: &dyn Fn(&&TouchRate) -> bool| -> f64 {
        profile.rates.iter().filter(known).map(touches).sum()
    };
    let all = of(&|_| true);
    (of(&|row| row.mean_per_s >= SATURATED * most) / all.max(1e-12)).max(0.0) + 0.0
}

/// A workload that would have the profile: one of many, in the ranges of what it does not say.
pub fn rebuild(
    profile: &Profile,
    unknown: &Unknown,
    curve: &TierCurve,
    variation: u32,
) -> PagedWorkload {
    let seen: Vec<Seen<'_>> = (profile.regions.iter())
        .map(|region| Seen {
            rows: (profile.bands.iter())
                .filter(|row| row.region == region.region && row.kind == region.kind)
                .collect(),
            parts: (profile.parts.iter())
                .filter(|part| part.region == region.region && part.kind == region.kind)
                .collect(),
            region,
        })
        .filter(|seen| seen.region.memory >= seen.region.page && seen.region.memory.get() > 0)
        .collect();
    let more = Span {
        low: 1.0,
        high: MORE,
    }
    .log(place(variation, 2));
    let bands: Vec<Vec<(f64, f64, &[f64])>> =
        seen.iter().map(|seen| seen.bands(profile, more)).collect();
    let touches: Vec<f64> = (seen.iter().zip(&bands))
        .map(|(seen, bands)| {
            let pages = |(memory, rate, _): &(f64, f64, &[f64])| {
                memory / seen.region.page.get() as f64 * rate
            };
            bands.iter().map(pages).sum::<f64>()
        })
        .collect();
    let all: f64 = touches.iter().sum();
    let regions: Vec<Region> = (seen.iter().enumerate())
        .map(|(n, seen)| {
            let memory: f64 = bands[n].iter().map(|(memory, ..)| memory).sum();
            let own: f64 = bands[n].iter().map(|(memory, rate, _)| memory * rate).sum();
            let band = |(of, rate, _): &(f64, f64, &[f64])| Band {
                pages: of / memory,
                accesses: if own > 0.0 {
                    of * rate / own
                } else {
                    of / memory
                },
            };
            let page = match seen.region.page >= Bytes::mib(2) {
                true => Bytes::mib(2),
                false => Bytes::kib(4),
            };
            let name = &seen.region.region;
            let mut region = Region {
                name: name.clone(),
                kind: seen.region.kind,
                bytes: seen.region.memory.max(page),
                page,
                accesses: if all > 0.0 {
                    touches[n] / all
                } else {
                    1.0 / bands.len() as f64
                },
                writes: of(&unknown.writes, name, WRITES)
                    .at(place(variation, 1))
                    .min(1.0),
                mlp: of(&unknown.mlp, name, MLP)
                    .log(place(variation, 4 + n))
                    .max(1.0),
                // A profile does not tell bursts.
                burst: 1.0,
                band_bursts: Vec::new(),
                bands: bands[n].iter().map(band).collect(),
                band_places: places(&bands[n]),
                growth: seen.growth(),
                lifetime_s: seen.lifetime_s(),
                drift_per_hour: 0.0,
            };
            let hot = region
                .bands
                .iter()
                .filter(|band| band.accesses > band.pages);
            let hot: f64 = hot.map(|band| band.pages).sum();
            if let Some(arrived) = seen.region.arrived_pct.filter(|_| hot > 0.0) {
                region.drift_per_hour = arrived / 100.0 / hot * 3600.0 / profile.seconds;
            }
            if region.drift_per_hour > 0.0 {
                // A hot set that drifts leaves the places where it was seen first.
                region.band_places.clear();
            }
            region
        })
        .collect();
    let stalled = unknown.stalled.at(place(variation, 0)).clamp(0.01, 1.0);
    let (threads, stalled) = match profile.most_per_s {
        None => threads(all, &regions, stalled, curve),
        Some(_) => (unknown.threads.log(place(variation, 3)), stalled),
    };
    PagedWorkload {
        name: profile.of.clone(),
        about: "from its profile".into(),
        threads: threads.round().clamp(1.0, 4096.0) as u32,
        stalled,
        phases: phases(&seen, &regions),
        regions,
    }
}

/// Where bands are, if that is known of each of several.
fn places(bands: &[(f64, f64, &[f64])]) -> Vec<Vec<f64>> {
    let parts = bands.first().map_or(0, |(.., places)| places.len());
    let share = |(.., places): &(f64, f64, &[f64])| {
        let all: f64 = places.iter().sum();
        let is_known = places.len() == parts && places.iter().all(|of| *of >= 0.0) && all > 0.0;
        is_known.then(|| places.iter().map(|of| of / all).collect())
    };
    let several = bands.iter().filter(|_| bands.len() > 1);
    several
        .map(share)
        .collect::<Option<_>>()
        .unwrap_or_default()
}

/// The threads that access memory this often in a second, from the time that each access takes, and the share of time that
/// they wait with which whole threads do.
fn threads(per_s: f64, regions: &[Region], stalled: f64, curve: &TierCurve) -> (f64, f64) {
    let outstanding: f64 = regions
        .iter()
        .map(|region| region.accesses / region.mlp)
        .sum();
    let writes: f64 = regions
        .iter()
        .map(|region| region.accesses * region.writes)
        .sum();
    // A line that is written is read before, and written back.
    let traffic = weir_model::units::GbPerSec(per_s * LINE * (1.0 + writes) / 1e9);
    let idle = curve.idle().get() * outstanding;
    let loaded = curve.latency(traffic, 1.0 / (1.0 + writes)).get() * outstanding;
    let each = idle * (1.0 - stalled) / stalled + loaded;
    let threads = (per_s * each * 1e-9).round().max(1.0);
    let compute = threads * 1e9 / per_s.max(1e-9) - loaded;
    (
        threads,
        (idle / (idle + compute.max(0.0)).max(1e-9)).clamp(0.01, 1.0),
    )
}

/// Parts of the time in which regions have other shares of the accesses; none where they are about the same.
fn phases(seen: &[Seen<'_>], regions: &[Region]) -> Vec<Phase> {
    let parts = seen.iter().map(|seen| seen.parts.len()).min().unwrap_or(0);
    let mut phases: Vec<Phase> = Vec::new();
    let mut before = 0.0;
    for part in 0..parts {
        let touches: Vec<f64> = seen
            .iter()
            .map(|seen| seen.parts[part].touches_per_s)
            .collect();
        let all: f64 = touches.iter().sum();
        if all <= 0.0 {
            return Vec::new();
        }
        let ends = seen[0].parts[part].t_s;
        phases.push(Phase {
            seconds: ends - before,
            accesses: touches.iter().map(|touches| touches / all).collect(),
            stalled: None,
        });
        before = ends;
    }
    let differs = |phase: &Phase| {
        let shares = phase.accesses.iter().zip(regions);
        shares
            .into_iter()
            .any(|(share, region)| (share - region.accesses).abs() > PHASE)
    };
    let steady = regions.iter().all(|region| region.growth == Growth::NONE);
    match steady && phases.iter().any(differs) && phases.iter().all(|phase| phase.seconds > 0.0) {
        true => phases,
        false => Vec::new(),
    }
}
