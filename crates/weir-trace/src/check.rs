//! The description against its trace, as a document: what both do to caches of several sizes, and to each part of memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Bytes;
use weir_model::workload::Workload;

use crate::describe::{Description, Origin};
use crate::granule::Granule;
use crate::replay::{APART, Replay};
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

/// Replays a description and compares it with its trace. `go_on` is told the share that is done, and answers whether to go on;
/// `None` where it did not.
pub fn check(
    watch: &Watch,
    description: &Description,
    origin: &Origin,
    looked_at: f64,
    seed: u64,
    mut go_on: impl FnMut(f64) -> bool,
) -> Option<Imported> {
    let wanted = description.accesses as u64;
    let most = wanted.clamp(1, MOST);
    let phase = &description.workload.phases[0];
    let mut replay = Replay::new(phase, seed);
    let mut again = Watch::new();
    // Caches are as warm as those of the trace.
    let cold = 1.0 - watch.profiled().0 as f64 / watch.accesses().max(1) as f64;
    let cold = (most as f64 * cold) as u64;
    if cold > 0 {
        again.begin_window(true);
    }
    let mut done = 0;
    let mut next = LOOK;
    while done < most {
        if done >= cold {
            again.warmed();
        }
        done += replay.step(&mut again);
        if done >= next {
            next += LOOK;
            if !go_on(done as f64 / most as f64) {
                return None;
            }
        }
    }
    again.end();
    let windows = watch.accesses() as f64 / watch.length();
    let all = (
        description.instructions * windows,
        done as f64 / phase.apki * 1000.0,
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
        regions: uses(&again, description, windows),
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
        l1_pct: 100.0 * (1.0 - beyond / watch.profile().total().max(1.0)),
        lines_each: watch.weight(),
        replayed: done,
        replayed_pct: 100.0 * (done as f64 / wanted.max(1) as f64).min(1.0),
    })
}

fn uses(again: &Watch, description: &Description, windows: f64) -> Vec<RegionUse> {
    let (granules, _) = again.granules();
    let mut described: Vec<Granule> = vec![Granule::default(); description.parts.len()];
    for (from, granule) in granules {
        let region = (from / APART) as usize;
        let part = region
            .checked_sub(1)
            .and_then(|region| description.of.get(region));
        if let Some(&part) = part {
            described[part].merge(granule);
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
    let regions = &description.workload.phases[0].regions;
    let row = |n: usize| {
        let (part, found) = (&description.parts[n], &described[n]);
        let own = || {
            (regions.iter().zip(&description.of))
                .filter(move |(_, of)| **of == n)
                .map(|(r, _)| r)
        };
        let mut orders: Vec<&str> = own().map(|region| region.order.name()).collect();
        orders.dedup();
        let name = own().next().map_or("", |region| region.name.as_str());
        RegionUse {
            region: name.strip_suffix("-hot").unwrap_or(name).to_owned(),
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
