//! Workloads shaped as publications describe them: mixes of memory, hot shares, growth. No value comes from a result.
//!
//! What TPP says of its services is named at each. What it does not say is assumed, and the same for all of them, so
//! that none is fitted: [`ASSUMED`]. A scan is no service, and has assumptions of its own. Programs of Alto's evaluation are in [`graphs`].

pub mod graphs;

use weir_model::units::Bytes;

use crate::workload::{Band, Growth, PageKind, PagedWorkload, Region, zipf};

/// What is assumed of every preset but `stream`.
pub const ASSUMED: &str = "28 threads that wait for memory in 25 % of their time (10 to 40) with 2 accesses at \
                           once (1.5 to 4); 30 % of accesses write; hot pages by a Zipf law of exponent 0.9 (0.7 to \
                           0.99), equally hot in files and in anonymous memory; a fifth of pages is warm; a quarter of a hot set is \
                           replaced in an hour (0 to 1); a start-up of minutes in place of hours";

/// What is assumed of `stream`.
const OF_STREAM: &str = "28 threads that wait for memory in 90 % of their time with 12 accesses at once; 30 % of accesses \
                         write; all pages are accessed equally often, each from its first line to its last";

const THREADS: u32 = 28;
const MLP: f64 = 2.0;
/// Lines of a page of 4 KiB, all of which a visit reads that goes in order.
const LINES: f64 = 64.0;
const STALLED: f64 = 0.25;
const WRITES: f64 = 0.3;
const EXPONENT: f64 = 0.9;
const WARM: f64 = 0.2;
const DRIFT_PER_HOUR: f64 = 0.25;
/// A warm page is touched again within 10 min with 80 % (TPP §3.6, of Web).
const WARM_EVERY_S: f64 = 373.0;
/// A cold page: once in some hours.
const COLD_EVERY_S: f64 = 4.0 * 3600.0;
/// Accesses in a second, of which bands that are touched rarely are shares: threads, waiting for memory of 100 ns.
const ACCESSES_PER_S: f64 = THREADS as f64 * STALLED * MLP / 100e-9;

/// A region by its share of memory and the share of its pages that is touched within this many seconds.
struct Part {
    name: &'static str,
    kind: PageKind,
    memory: f64,
    hot: f64,
    within_s: f64,
    growth: Growth,
    lifetime_s: Option<f64>,
}

impl Part {
    /// The share of pages that is always hot: what warm pages add to those touched in the time is taken off.
    fn always_hot(&self) -> f64 {
        let warm = WARM.min(1.0 - self.hot);
        let touched = 1.0 - (-self.within_s / WARM_EVERY_S).exp();
        (self.hot - warm * touched).max(0.01)
    }

    fn region(&self, all_hot: f64, total: f64) -> Region {
        let pages = self.memory * total / 4096.0;
        let (hot, warm) = (self.always_hot(), WARM.min(1.0 - self.hot));
        let cold = 1.0 - hot - warm;
        let accesses = self.memory * hot / all_hot;
        let rarely = |share: f64, every: f64| share * pages / every / (ACCESSES_PER_S * accesses);
        let of_warm = rarely(warm, WARM_EVERY_S);
        let of_cold = rarely(cold, COLD_EVERY_S);
        let mut bands = zipf(hot, 1.0 - of_warm - of_cold, hot * pages, EXPONENT, 6);
        bands.push(Band {
            pages: warm,
            accesses: of_warm,
        });
        bands.push(Band {
            pages: cold,
            accesses: of_cold,
        });
        bands.retain(|band| band.pages > 1e-9);
        Region {
            name: self.name.into(),
            kind: self.kind,
            bytes: Bytes((self.memory * total) as u64),
            page: Bytes::kib(4),
            accesses,
            writes: WRITES,
            mlp: MLP,
            burst: 1.0,
            band_bursts: Vec::new(),
            band_places: Vec::new(),
            bands,
            growth: self.growth,
            lifetime_s: self.lifetime_s,
            drift_per_hour: DRIFT_PER_HOUR,
        }
    }
}

fn workload(name: &str, about: &str, total: f64, parts: &[Part]) -> PagedWorkload {
    let all_hot = parts.iter().map(|p| p.memory * p.always_hot()).sum();
    PagedWorkload {
        name: name.into(),
        about: about.into(),
        threads: THREADS,
        stalled: STALLED,
        regions: parts.iter().map(|p| p.region(all_hot, total)).collect(),
        phases: Vec::new(),
    }
}

fn steady(name: &'static str, kind: PageKind, memory: f64, hot: f64, within_s: f64) -> Part {
    Part {
        name,
        kind,
        memory,
        hot,
        within_s,
        growth: Growth::NONE,
        lifetime_s: None,
    }
}

/// All names of presets, and what each is.
pub fn names() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    NAMES.iter().chain(graphs::NAMES)
}

/// What is assumed of a preset.
pub fn assumed(name: &str) -> &'static str {
    match graphs::by_name(name) {
        Some(_) => graphs::ASSUMED,
        None if name == "stream" => OF_STREAM,
        None => ASSUMED,
    }
}

/// A program of Alto's evaluation with this much memory.
fn scaled(name: &str, total: f64) -> Option<PagedWorkload> {
    let mut program = graphs::by_name(name)?;
    let own: u64 = program.regions.iter().map(|r| r.bytes.get()).sum();
    for region in &mut program.regions {
        region.bytes = Bytes((region.bytes.get() as f64 * total / own as f64) as u64);
    }
    Some(program)
}

/// Names of services, and what each is.
const NAMES: &[(&str, &str)] = &[
    (
        "web1",
        "a web tier: file cache first, then anonymous memory grows (TPP, Web1)",
    ),
    (
        "cache1",
        "an object cache on tmpfs, with pages that live for seconds (TPP, Cache1)",
    ),
    (
        "cache2",
        "an object cache on tmpfs with a larger hot set (TPP, Cache2)",
    ),
    (
        "data-warehouse",
        "batch queries, mostly anonymous memory (TPP, Data Warehouse)",
    ),
    (
        "stream",
        "a uniform scan that needs more bandwidth than a tier has",
    ),
];

/// A preset by its name, with this much memory.
pub fn by_name(name: &str, size: Bytes) -> Option<PagedWorkload> {
    let total = size.get() as f64;
    use PageKind::{Anon, File};
    let Some((_, about)) = NAMES.iter().find(|(known, _)| *known == name) else {
        return scaled(name, total);
    };
    let short = Part {
        lifetime_s: Some(30.0),
        ..steady("short-lived", Anon, 0.04, 1.0, 60.0)
    };
    Some(match name {
        // Hot within 2 min: 35 to 60 % of anonymous memory, 3 to 14 % of files (§3.3). Files fill memory at the start
        // and are dropped as anonymous memory grows (§3.4); by how much is assumed.
        "web1" => workload(
            name,
            about,
            total,
            &[
                Part {
                    growth: Growth {
                        initial: 0.0,
                        from_s: 0.0,
                        full_s: 60.0,
                        shrinks_from_s: 300.0,
                        shrunk_s: 600.0,
                        kept: 0.6,
                    },
                    ..steady("file cache", File, 0.65, 0.085, 120.0)
                },
                Part {
                    growth: Growth {
                        initial: 0.1,
                        from_s: 60.0,
                        full_s: 600.0,
                        ..Growth::NONE
                    },
                    ..steady("anonymous", Anon, 0.6, 0.475, 120.0)
                },
            ],
        ),
        // Files 70 to 82 % of memory (§3.4); hot within 2 min 40 % of anonymous memory, 25 % of files (§3.3); many new
        // pages live for less than a minute (§6.2).
        "cache1" => workload(
            name,
            about,
            total,
            &[
                steady("tmpfs", File, 0.74, 0.25, 120.0),
                steady("anonymous", Anon, 0.2, 0.40, 120.0),
                short,
            ],
        ),
        // Hot within 1 min: 43 % of anonymous memory, 30 % of files (§3.3).
        "cache2" => workload(
            name,
            about,
            total,
            &[
                steady("tmpfs", File, 0.74, 0.30, 60.0),
                steady("anonymous", Anon, 0.2, 0.43, 60.0),
                short,
            ],
        ),
        // 85 % anonymous, 15 % files, which hold intermediate data and are mostly cold (§3.4); a third of anonymous
        // memory is hot (§6.1.1).
        "data-warehouse" => workload(
            name,
            about,
            total,
            &[
                steady("anonymous", Anon, 0.83, 1.0 / 3.0, 120.0),
                steady("spilled", File, 0.15, 0.05, 120.0),
            ],
        ),
        "stream" => PagedWorkload {
            stalled: 0.9,
            regions: vec![Region {
                mlp: 12.0,
                burst: LINES,
                band_bursts: Vec::new(),
                band_places: Vec::new(),
                bands: vec![Band {
                    pages: 1.0,
                    accesses: 1.0,
                }],
                accesses: 1.0,
                drift_per_hour: 0.0,
                ..steady("array", Anon, 1.0, 0.5, 120.0).region(1.0, total)
            }],
            ..workload(name, about, total, &[])
        },
        _ => return None,
    })
}
