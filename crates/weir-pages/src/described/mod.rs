//! A described program ([`weir_model::workload`]) as a workload of pages.
//!
//! What a description says of touches comes from it: how often, in which order, how unequally. What caches serve, and
//! how long the rest takes, a machine says: [`Counted`], with all memory in its fast tier. A touch that a cache serves
//! sets the accessed bit of its page and meets its hint fault; it is no access to memory, takes no time there, and event
//! samples of misses, counters of devices and buses do not see it.

mod popularity;

use std::ops::Range;

use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::{self as described, Order, Workload};

use crate::tier::BASE;
use crate::workload::{Band, Growth, PageKind, PagedWorkload, Phase, Region};
use popularity::Popularity;

/// What a machine counted of phases that follow each other, in one pass through them.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Which phases.
    pub phases: Range<usize>,
    /// How long the pass takes.
    pub time: Nanos,
    /// The latency of the memory meanwhile, which is the fast tier's.
    pub latency: Nanos,
    /// Lines written back for a line that comes from memory, of all regions together, if they were counted; otherwise the
    /// stores of the description tell.
    pub written: Option<f64>,
    /// Regions of the phases by name.
    pub regions: Vec<(String, CountedRegion)>,
}

/// What it counted of a region.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedRegion {
    /// Lines that come from memory.
    pub misses: f64,
    /// Accesses that a thread has outstanding at once (MLP): a nanosecond of latency takes one by MLP of a thread's time.
    pub mlp: f64,
}

/// Phases whose pass takes less than this are one: no policy of pages follows them.
const LONG_S: f64 = 10.0;
/// A region whose lines are all in a cache still has this many misses in a touch, so that shares are defined.
const LEAST: f64 = 1e-9;
/// Lines of a page of 4 KiB.
const LINES: f64 = (BASE / LINE_BYTES) as f64;

/// Touches of a region of a description.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    /// Accesses of the program, also those that caches serve.
    accesses: f64,
    /// Visits of a page: accesses that follow each other there are one.
    visits: f64,
    /// Accesses that write.
    writes: f64,
}

/// Accesses in a visit of a page: one element, or, in order, all that the page has.
fn in_a_visit(region: &described::Region) -> f64 {
    let lines = region.lines_per_element() as f64;
    match region.order.is_run() {
        true => (BASE as f64 / region.stride.get().max(1) as f64).max(1.0) * lines.min(LINES),
        false => lines.min(LINES),
    }
}

/// Touches in one pass of all threads.
fn touched(workload: &Workload, phases: &Range<usize>, name: &str) -> Touched {
    let mut all = Touched::default();
    for phase in workload.phases.get(phases.clone()).unwrap_or_default() {
        let accesses =
            phase.instructions as f64 * f64::from(workload.threads) * phase.apki / 1000.0;
        for region in phase.regions.iter().filter(|region| region.name == name) {
            let own = accesses * region.share;
            all.accesses += own;
            all.visits += own / in_a_visit(region);
            all.writes += own * (region.stores + (1.0 - region.stores) * region.modifies).min(1.0);
        }
    }
    all
}

/// How unequally lines of a region are touched, and how many lie in a page.
fn lines(region: &described::Region) -> (Popularity, f64) {
    let element = region.element.get().max(1) as f64;
    let items = (region.bytes.get() as f64 / element).max(1.0);
    let popularity = match region.order {
        Order::Zipf => Popularity::zipf(items, region.skew),
        Order::Apex => Popularity::apex(items, region.skew),
        _ => Popularity::equal(),
    };
    // What lies in one line is in a cache together.
    let line = element.max(LINE_BYTES as f64);
    (popularity.grouped(line / element), BASE as f64 / line)
}

/// A program of a description, of `size` bytes if that is said: regions are then smaller or larger in proportion, and
/// each is visited as often. `idle` is the latency of the fast tier without load.
pub fn described(
    workload: &Workload,
    counted: &[Counted],
    idle: Nanos,
    size: Option<Bytes>,
) -> PagedWorkload {
    let memory = workload.memory();
    let scale = size.map_or(1.0, |size| {
        size.get() as f64 / workload.footprint().get().max(1) as f64
    });
    // Of each stretch the misses of every region, and the waits for them by ns of latency.
    let least =
        |stretch: &Counted, name: &str| touched(workload, &stretch.phases, name).visits * LEAST;
    let of = |stretch: &Counted, name: &str| -> (f64, f64) {
        let own = stretch.regions.iter().find(|(known, _)| known == name);
        let (misses, mlp) = own.map_or((0.0, 1.0), |(_, own)| (own.misses, own.mlp));
        let misses = misses.max(least(stretch, name));
        (misses, misses / mlp)
    };
    let stretches: Vec<Vec<(f64, f64)>> = (counted.iter())
        .map(|stretch| memory.iter().map(|(name, _)| of(stretch, name)).collect())
        .collect();
    let waits = |stretch: &[(f64, f64)]| stretch.iter().map(|own| own.1).sum::<f64>();
    let threads = f64::from(workload.threads);
    // The time that threads compute, and that they would wait without load.
    let times = |n: usize| {
        let waits = waits(&stretches[n]);
        let stretch = &counted[n];
        let computing = stretch.time.get() * threads - waits * stretch.latency.get();
        (
            computing.max(0.0),
            (waits * idle.get()).max(f64::MIN_POSITIVE),
        )
    };
    let stalled = |all: &mut dyn Iterator<Item = usize>| {
        let sum = all
            .map(times)
            .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        (sum.1 / (sum.0 + sum.1)).clamp(1e-15, 1.0)
    };
    let shares = |all: Vec<f64>| {
        let sum: f64 = all.iter().sum();
        let share = |one: f64| if sum > 0.0 { one / sum } else { 0.0 };
        all.into_iter().map(share).collect::<Vec<f64>>()
    };
    let sum =
        |n: usize, of: fn(&(f64, f64)) -> f64| stretches.iter().map(|s| of(&s[n])).sum::<f64>();
    let misses: Vec<f64> = (0..memory.len()).map(|n| sum(n, |own| own.0)).collect();
    let seconds: f64 = counted.iter().map(|stretch| stretch.time.as_secs()).sum();
    let whole = 0..workload.phases.len();
    let regions = memory
        .iter()
        .zip(&misses)
        .zip(shares(misses.clone()))
        .enumerate();
    let written = written(workload, counted);
    let regions = regions.map(|(n, (((name, bytes), misses), accesses))| {
        let touched = touched(workload, &whole, name);
        let waits = sum(n, |own| own.1);
        let mut region = Region {
            mlp: if waits > 0.0 {
                (misses / waits).max(1.0)
            } else {
                1.0
            },
            accesses,
            writes: (written * stores(&touched)).min(1.0),
            bytes: Bytes(((bytes.get() as f64 * scale) as u64).max(BASE)),
            ..region(workload, name, *misses, touched)
        };
        if is_fresh(workload, name) && touched.visits > 0.0 {
            let pages = region.bytes.get() as f64 / BASE as f64;
            region.lifetime_s = Some(pages / touched.visits * seconds);
        }
        region
    });
    let phase = |n: usize| Phase {
        seconds: counted[n].time.as_secs(),
        accesses: shares(stretches[n].iter().map(|own| own.0).collect()),
        stalled: Some(stalled(&mut std::iter::once(n))),
    };
    let all = 0..counted.len();
    PagedWorkload {
        name: workload.name.clone(),
        about: workload.summary.clone(),
        threads: workload.threads,
        stalled: stalled(&mut all.clone()),
        regions: regions.collect(),
        phases: match counted.len() > 1 && seconds >= LONG_S {
            true => all.map(phase).collect(),
            false => Vec::new(),
        },
    }
}

/// The share of touches that write.
fn stores(touched: &Touched) -> f64 {
    touched.writes / touched.accesses.max(f64::MIN_POSITIVE)
}

/// Lines that are written back for a miss that stores: caches merge stores to a line, and some bring none from memory.
fn written(workload: &Workload, counted: &[Counted]) -> f64 {
    let (mut counts, mut stored) = (0.0, 0.0);
    for stretch in counted {
        let Some(written) = stretch.written else {
            return 1.0;
        };
        for (name, region) in &stretch.regions {
            counts += written * region.misses;
            stored += stores(&touched(workload, &stretch.phases, name)) * region.misses;
        }
    }
    if stored > 0.0 { counts / stored } else { 1.0 }
}

fn all_of<'a>(
    workload: &'a Workload,
    name: &'a str,
) -> impl Iterator<Item = &'a described::Region> {
    let regions = workload.phases.iter().flat_map(|phase| &phase.regions);
    regions.filter(move |region| region.name == name)
}

fn is_fresh(workload: &Workload, name: &str) -> bool {
    all_of(workload, name).any(|region| region.order == Order::Fresh)
}

/// Bands and visits of a region, by the phase that goes through it most unequally.
fn region(workload: &Workload, name: &str, misses: f64, touched: Touched) -> Region {
    let unequal = all_of(workload, name).max_by_key(|region| region.order.is_skewed());
    let (popularity, in_a_page) = unequal.map_or((Popularity::equal(), 1.0), lines);
    let bytes = unequal.map_or(Bytes(BASE), |region| region.bytes);
    let pages = bytes.get() as f64 / BASE as f64;
    let missed = (misses / touched.accesses.max(f64::MIN_POSITIVE)).min(1.0);
    let by_misses = popularity.missed(missed).grouped(in_a_page);
    let bands = popularity.grouped(in_a_page).bands(&by_misses, pages);
    // A visit has no more misses than the page has lines, whatever prefetchers bring twice.
    let burst = |misses: f64, visits: f64| (misses / visits).clamp(LEAST, LINES);
    let mean = match touched.visits > 0.0 {
        true => burst(misses, touched.visits),
        false => 1.0,
    };
    let of_band = |[_, touches, missed]: &[f64; 3]| match *touches > 0.0 {
        true => burst(mean * missed, *touches),
        false => mean,
    };
    Region {
        name: name.into(),
        kind: PageKind::Anon,
        bytes,
        page: Bytes(BASE),
        accesses: 0.0,
        writes: 0.0,
        mlp: 1.0,
        burst: mean,
        band_bursts: bands.iter().map(of_band).collect(),
        band_places: Vec::new(),
        bands: (bands.iter())
            .map(|[pages, _, missed]| Band {
                pages: *pages,
                accesses: *missed,
            })
            .collect(),
        growth: Growth::NONE,
        lifetime_s: None,
        drift_per_hour: 0.0,
    }
}
