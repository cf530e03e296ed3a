//! The description against its trace, as a document: what both do to caches of several sizes, and to each part of memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Bytes;
use weir_model::workload::{Region, Workload};

use crate::describe::{Description, Origin, names};
use crate::granule::Granule;
use crate::replay::{APART, Replay};
use crate::segments::Segment;
use crate::watch::Watch;

/// Accesses of a replay, at most.
pub const MOST: u64 = 60_000_000;
/// Accesses between two looks at whether to go on.
const LOOK: u64 = 1 << 18;
/// Sizes of caches that are compared.
const SIZES: [u64; 7] = [
    256 << 10,
    1 << 20,
    2 << 20,
    8 << 20,
    16 << 20,
    32 << 20,
    128 << 20,
];

/// A description, and how far it does what its trace does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Misses in caches, of the trace and of the description.
    pub misses: Vec<CacheMisses>,
    /// What goes to each part of memory.
    #[serde(default)]
    pub regions: Vec<RegionUse>,
    /// The description.
    pub workload: Workload,
    /// What was looked at: a file or a command.
    pub of: String,
    /// The format of the trace.
    pub format: String,
    /// Accesses that were counted, each to one line.
    pub accesses: u64,
    /// Instructions that were counted; 0 where the trace has none.
    pub instructions: u64,
    /// Share of the trace that was looked at.
    #[schemars(extend("x-unit" = "%"))]
    pub looked_at_pct: f64,
    /// Share of the accesses that hit a cache of 32 KiB.
    #[schemars(extend("x-unit" = "%"))]
    pub l1_pct: f64,
    /// How many lines each line stands for whose reuse was followed.
    pub lines_each: f64,
    /// Accesses of the description that were drawn for the comparison.
    pub replayed: u64,
    /// Share of the accesses that a replay as long as the trace has.
    #[schemars(extend("x-unit" = "%"))]
    pub replayed_pct: f64,
}

/// Misses in a cache that keeps the lines used last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheMisses {
    /// Its size.
    pub cache: Bytes,
    /// Misses of the trace in a thousand instructions.
    pub trace_mpki: f64,
    /// Misses of the description in a thousand instructions.
    pub described_mpki: f64,
    /// How far the description is off.
    #[schemars(extend("x-unit" = "%"))]
    pub off_pct: Option<f64>,
}

/// A part of memory, in the trace and as described.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionUse {
    /// The name of its regions, or `all`.
    pub region: String,
    /// Where it is in the trace, in hexadecimal digits.
    pub address: String,
    /// The orders of its regions.
    pub order: String,
    /// Memory that the trace touched.
    pub trace_touched: Bytes,
    /// Memory that the description touched.
    pub described_touched: Bytes,
    /// Share of the trace's accesses beyond L1.
    #[schemars(extend("x-unit" = "%"))]
    pub trace_share_pct: f64,
    /// The same of the description.
    #[schemars(extend("x-unit" = "%"))]
    pub described_share_pct: f64,
    /// Share of the lines brought into L1 by the trace that are written there.
    #[schemars(extend("x-unit" = "%"))]
    pub trace_written_pct: f64,
    /// The same of the description.
    #[schemars(extend("x-unit" = "%"))]
    pub described_written_pct: f64,
}

/// How far one number is from another, in percent; `None` where there is nothing to compare.
pub fn off(wanted: f64, found: f64) -> Option<f64> {
    (wanted > 0.0).then(|| 100.0 * (found / wanted - 1.0))
}

/// Replays a description and compares it with its trace. `go_on` is given the share that is done, and answers whether to go on;
/// `None` where it did not.
pub fn check(
    watch: &Watch,
    description: &Description,
    origin: &Origin,
    looked_at: f64,
    seed: u64,
    mut go_on: impl FnMut(f64) -> bool,
) -> Option<Imported> {
    let wanted: f64 = description.accesses.iter().sum();
    let most = wanted.clamp(1.0, MOST as f64);
    let mut replay = Replay::new(&description.workload, seed);
    let mut again = Watch::whole();
    // Caches are as warm as those of the trace.
    let cold = 1.0 - watch.profiled().0 as f64 / watch.accesses().max(1) as f64;
    let cold = (most * cold) as u64;
    if cold > 0 {
        again.begin_window(true);
    }
    let (mut done, mut upto) = (0, 0.0);
    let mut next = LOOK;
    for (phase, accesses) in description.accesses.iter().enumerate() {
        replay.begin(phase);
        upto += accesses * most / wanted.max(1.0);
        while (done as f64) < upto {
            if done >= cold {
                again.warmed();
            }
            done += replay.step(&mut again);
            if done >= next {
                next += LOOK;
                if !go_on(done as f64 / most) {
                    return None;
                }
            }
        }
    }
    again.end();
    let (_, whole) = watch.segments();
    let windows = whole.windows as f64;
    let all = (
        description.instructions * windows,
        again.instructions() as f64,
    );
    let warm = |watch: &Watch| watch.profiled().0 as f64 / watch.accesses().max(1) as f64;
    let instructions = (
        match origin.has_instructions {
            true => watch.profiled().1 as f64,
            false => all.0 * warm(watch),
        },
        all.1 * warm(&again),
    );
    let miss = |&size: &u64| {
        let lines = Bytes(size).lines();
        let trace = watch.profile().misses(lines) / instructions.0.max(1.0) * 1000.0;
        let described = again.profile().misses(lines) / instructions.1.max(1.0) * 1000.0;
        CacheMisses {
            cache: Bytes(size),
            trace_mpki: trace,
            described_mpki: described,
            off_pct: off(trace, described),
        }
    };
    let beyond = watch.profile().misses(crate::l1::LINES);
    Some(Imported {
        misses: SIZES.iter().map(miss).collect(),
        regions: uses(&again.segments().1, description, windows),
        workload: description.workload.clone(),
        of: origin.of.clone(),
        format: origin.format.name().into(),
        accesses: watch.accesses(),
        instructions: if origin.has_instructions {
            watch.instructions()
        } else {
            0
        },
        looked_at_pct: looked_at * 100.0,
        l1_pct: 100.0 * (1.0 - beyond / watch.profile().accesses.max(1) as f64),
        lines_each: watch.weight(),
        replayed: done,
        replayed_pct: 100.0 * (done as f64 / wanted.max(1.0)).min(1.0),
    })
}

fn uses(again: &Segment, description: &Description, windows: f64) -> Vec<RegionUse> {
    let (granules, _) = again.granules.sorted();
    let memory = description.workload.memory();
    let mut described: Vec<Granule> = vec![Granule::default(); description.parts.len()];
    for (from, granule) in granules {
        let region = (from / APART) as usize;
        let name = region.checked_sub(1).and_then(|at| memory.get(at));
        let of = name.and_then(|(name, _)| description.of.iter().find(|(one, _)| one == name));
        if let Some((_, part)) = of {
            described[*part].merge(granule);
        }
    }
    let total =
        |all: &mut dyn Iterator<Item = &Granule>| all.map(Granule::beyond_l1).sum::<f64>().max(1.0);
    let (of_trace, of_described) = (
        total(&mut description.parts.iter().map(|part| &part.all)),
        total(&mut described.iter()),
    );
    let touched =
        |granule: &Granule, windows: f64| Bytes((granule.first / windows * 64.0).round() as u64);
    let written = |granule: &Granule| {
        100.0 * (granule.written as f64 / granule.visits.max(1) as f64).min(1.0)
    };
    let regions = description.workload.phases.iter();
    let regions: Vec<&Region> = regions.flat_map(|phase| &phase.regions).collect();
    let names = names(&description.parts);
    let row = |n: usize| {
        let (part, found) = (&description.parts[n], &described[n]);
        let is_own = |region: &&&Region| description.of.contains(&(region.name.clone(), n));
        let own = || regions.iter().filter(is_own);
        let mut orders: Vec<&str> = own().map(|region| region.order.name()).collect();
        orders.sort_unstable();
        orders.dedup();
        let name = own().next().map_or(&names[n], |region| &region.name);
        RegionUse {
            region: name.clone(),
            address: format!("{:x}", part.from),
            order: orders.join("+"),
            trace_touched: touched(&part.all, windows),
            described_touched: touched(found, 1.0),
            trace_share_pct: 100.0 * part.all.beyond_l1() / of_trace,
            described_share_pct: 100.0 * found.beyond_l1() / of_described,
            trace_written_pct: written(&part.all),
            described_written_pct: written(found),
        }
    };
    let mut rows: Vec<RegionUse> = (0..description.parts.len()).map(row).collect();
    let mut all = (Granule::default(), Granule::default());
    for (part, found) in description.parts.iter().zip(&described) {
        all.0.merge(&part.all);
        all.1.merge(found);
    }
    rows.push(RegionUse {
        region: "all".into(),
        address: String::new(),
        order: String::new(),
        trace_touched: touched(&all.0, windows),
        described_touched: touched(&all.1, 1.0),
        trace_share_pct: 100.0,
        described_share_pct: 100.0,
        trace_written_pct: written(&all.0),
        described_written_pct: written(&all.1),
    });
    rows
}
