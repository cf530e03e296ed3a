//! `weir bench latency`: how long one access takes on an idle machine.
//!
//! Three views of each tier (MEMO §4.2). A *flushed line*: one access at a time on a line that is in
//! no cache, for a load, a store written back at once, and a fenced non-temporal store. A *burst*:
//! several of those at once, of which each gets its share of the time (MICRO 2023, §3.2). A *pointer
//! chase*: dependent loads over growing working sets, a staircase whose steps are the caches and
//! whose last plateau is the latency that applications see.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::Point;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::Bytes;

use super::bandwidth;
use super::point_study::{About, PointStudy};
use crate::fit::{A_STEP, Chase, Chases, Left};
use crate::plan::{Load, caches_in_reach, check_working_set, choose_tiers, or_usual};
use crate::verdict::{ALIKE, are_apart, best};
use crate::view::{Axis, Limit, Medium, Only, View, col};
use crate::{LabError, PointSpec, Severity, Verdict};

const NAME: &str = "latency";

/// The instructions that are timed on a flushed line unless others are asked for.
pub const FLUSHED_OPS: [Op; 3] = [Op::Ld, Op::StClwb, Op::NtSt];
/// Accesses of a burst in the whole experiment (MICRO 2023, §3.2).
pub const BURST: u32 = 16;
/// Memory from which flushed lines are drawn. It decides nothing but the DRAM rows that are met:
/// the flush has already brought the translation in.
const FLUSHED_SET: Bytes = Bytes::mib(64);
/// The first step of the staircase, within any first-level cache.
const FIRST_STEP: Bytes = Bytes::kib(4);
/// The staircase goes at least to here (MEMO Fig 2).
const LAST_STEP: Bytes = Bytes::gib(1);
/// And in a quick run to here.
pub const LAST_QUICK_STEP: Bytes = Bytes::mib(256);
/// Or to this many times the last-level cache, so that few hops still hit it.
const TIMES_CACHE: u64 = 4;

/// How long one access takes on an idle machine, by working set.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench latency
  weir bench latency --tier cxl0 --on emr2s+cxl-a --size 1M,64M,1G
  weir bench latency --op ld --locality random --format csv")]
pub struct Latency {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// Instructions: ld, st_clwb, nt_st, ... [default: ld,st_clwb,nt_st].
    #[arg(long = "op", value_delimiter = ',', value_name = "OP")]
    pub ops: Vec<Op>,
    /// Accesses at once on flushed lines, besides one; 0 for none
    /// [default: 16, or none with --quick].
    #[arg(long = "burst", value_delimiter = ',', value_name = "N")]
    pub bursts: Vec<u32>,
    /// Working sets of the pointer chase: 48K, 2M, 1G [default: 4 KiB and up].
    #[arg(long = "size", value_delimiter = ',', value_name = "SIZE")]
    pub sizes: Vec<Bytes>,
    /// How far one hop may reach [default: both].
    #[arg(long = "locality", value_delimiter = ',', value_name = "REACH", value_parser = locality)]
    pub localities: Vec<Locality>,
    /// Fewer and smaller working sets.
    #[arg(long)]
    pub quick: bool,
}

fn locality(text: &str) -> Result<Locality, String> {
    match text {
        "tlb-friendly" => Ok(Locality::TlbFriendly),
        "random" => Ok(Locality::Random),
        _ => Err("write tlb-friendly or random".into()),
    }
}

impl PointStudy for Latency {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench latency";
    const TITLE: &'static str = "Latency";
    const WORDS: &'static str = "Dependent loads over growing working sets: each plateau is a cache, the last one is the tier. TLB-friendly hops stay within what the TLB covers; random hops add page walks.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let ops = if self.ops.is_empty() {
            &FLUSHED_OPS[..]
        } else {
            &self.ops
        };
        let localities = if self.localities.is_empty() {
            &[Locality::TlbFriendly, Locality::Random][..]
        } else {
            &self.localities
        };
        for &size in &self.sizes {
            check_working_set(size)?;
        }

        let usual: &[u32] = if self.quick { &[] } else { &[BURST] };
        let bursts = or_usual(&self.bursts, usual);
        if let Some(&lines) = bursts.iter().find(|&&n| n > Pattern::MOST_IN_BURST) {
            return Err(LabError::Burst { lines });
        }

        let mut points = Vec::new();
        for tier in choose_tiers(topology, &self.tiers)? {
            let point = |op, pattern, working_set| {
                let load = Load::new(&tier.name, op, pattern, 1, working_set);
                PointSpec::alone(NAME, load.prefetch(false))
            };
            let flushed = FLUSHED_SET.min(tier.capacity);
            let at_once = (bursts.iter().filter(|&&lines| lines > 0))
                .map(|&lines| Pattern::FlushedBurst { lines });
            for pattern in std::iter::once(Pattern::FlushedLine).chain(at_once) {
                // A core has no two uncached loads at once.
                let fits = |op: &Op| *op != Op::UcLd || pattern == Pattern::FlushedLine;
                let fitting = ops.iter().copied().filter(fits);
                points.extend(fitting.map(|op| point(op, pattern, flushed)));
            }
            for op in [Op::Ld, Op::UcLd] {
                if !ops.contains(&op) {
                    continue;
                }
                let sizes = if self.sizes.is_empty() {
                    staircase(topology, tier, self.quick)
                } else {
                    self.sizes.clone()
                };
                for &locality in localities {
                    let pattern = Pattern::Chase { locality };
                    points.extend(sizes.iter().map(|&size| point(op, pattern, size)));
                }
            }
        }
        Ok(points)
    }

    fn asked(&self) -> Vec<Op> {
        self.ops.clone()
    }

    fn case(point: &Point) -> Option<String> {
        Some(match (point.pattern.as_str(), point.batch) {
            ("chase_tlb_friendly", _) if point.op == Op::Ld => "tlb-friendly".into(),
            ("chase_tlb_friendly", _) => format!("{} tlb-friendly", point.op),
            ("chase_random", _) if point.op == Op::Ld => "random".into(),
            ("chase_random", _) => format!("{} random", point.op),
            (_, Some(lines)) => format!("{} x {lines}", point.op),
            _ => point.op.to_string(),
        })
    }

    fn answer(points: &[Point], topology: &Topology) -> Vec<Verdict> {
        let mut all = Vec::new();
        for tier in topology.tiers.iter().map(|t| &t.name) {
            all.extend(staircase_steps(topology, points, tier));
            all.extend(page_walks(points, tier));
            all.extend(flushed_stores(points, tier));
        }
        all
    }

    fn views(points: &[Point], about: About<'_>) -> Vec<View> {
        let mut walls: Vec<Limit> = (about.topology.caches.iter())
            .map(|cache| Limit {
                tier: None,
                on_x: true,
                at: cache.size.get() as f64,
                name: cache.name.clone(),
            })
            .collect();
        let tiers = &mut about.topology.tiers.iter();
        let left = tiers.find_map(|tier| left_of_cache(about.topology, points, &tier.name));
        if let (Some((left, _)), Some(last)) = (left, walls.last_mut()) {
            last.at = left.bytes;
            last.name += ", what is left of it";
        }
        let chase = Only::Begins("pattern", "chase");
        let single = |title, only: Only| {
            View::table(
                "points",
                title,
                vec![
                    col("tier"),
                    col("case").head("access"),
                    col("mean_ns"),
                    col("p50_ns"),
                    col("p99_ns"),
                    col("p999_ns"),
                    col("max_ns"),
                ],
            )
            .only(Only::Begins("pattern", "flushed"))
            .only(only)
        };
        vec![
            View::grid("points", "Latency of dependent loads by working set", "wss_bytes", &["tier", "case"], "mean_ns")
                .only(chase.clone())
            .rows_are("working set")
                .on(Medium::Text),
            single("Latency of single accesses to a flushed line", Only::Lacks("batch")),
            single("Accesses to flushed lines at once: time of a burst, divided by its accesses", Only::Has("batch")),
            View::lines("points", "Latency by working set", ("wss_bytes", "working set"), ("mean_ns", "latency of a dependent load [ns]"), &["tier", "case"])
                .only(chase)
                .axes(Axis::Sizes, Axis::Log)
                .limits(walls)
                .words("Dependent loads over growing working sets: each plateau is a cache, the last one is the tier."),
            View::bars("points", "Single accesses to flushed lines", &["tier"], "case", ("mean_ns", "mean latency [ns]"))
                .only(Only::Begins("pattern", "flushed")),
        ]
    }

    fn in_all(tiers: &[TierName], quick: bool) -> Option<Self> {
        Some(Self {
            tiers: tiers.to_vec(),
            quick,
            ..Self::default()
        })
    }
}

/// 4 KiB times powers of two (of four when quick), as far as the tier holds them.
fn staircase(topology: &Topology, tier: &Tier, quick: bool) -> Vec<Bytes> {
    let least = if quick { LAST_QUICK_STEP } else { LAST_STEP };
    let beyond_cache = topology
        .last_level_cache()
        .get()
        .saturating_mul(TIMES_CACHE);
    let last = least
        .get()
        .max(beyond_cache.checked_next_power_of_two().unwrap_or(u64::MAX));
    let ratio = if quick { 4 } else { 2 };
    let mut sizes: Vec<Bytes> =
        std::iter::successors(Some(FIRST_STEP.get()), |size| size.checked_mul(ratio))
            .take_while(|&size| size <= last)
            .map(Bytes)
            .collect();
    // Steps of four may stride over the end.
    if sizes.last().is_some_and(|size| size.get() < last) {
        sizes.push(Bytes(last));
    }
    sizes.retain(|&size| size <= tier.capacity);
    sizes
}

/// A cache shows as a step if latency grows by at least this factor across its size.
const STEP: f64 = 1.2;

/// Mean latency by working set, smallest first, of loads that caches keep.
fn chase<'p>(
    points: &'p [Point],
    tier: &TierName,
    locality: Locality,
) -> Vec<(Bytes, f64, &'p Point)> {
    let pattern = Pattern::Chase { locality }.name();
    let mut steps: Vec<(Bytes, f64, &Point)> = points
        .iter()
        .filter(|p| p.experiment == NAME)
        .filter(|p| p.tier == *tier && p.pattern == pattern && p.op != Op::UcLd)
        .filter_map(|p| Some((p.wss_bytes?, p.ns?.mean.get(), p)))
        .collect();
    steps.sort_by_key(|step| step.0);
    steps
}

/// Plateaus at the caches, and whether each cache ends in a step.
fn staircase_steps(topology: &Topology, points: &[Point], tier: &TierName) -> Vec<Verdict> {
    let mut steps = chase(points, tier, Locality::TlbFriendly);
    if steps.is_empty() {
        steps = chase(points, tier, Locality::Random);
    }
    let about = format!("{tier} latency");
    let mut plateaus = Vec::new();
    let mut found = Vec::new();
    let mut smaller = Bytes(0);
    let left = left_of_cache(topology, points, tier);
    for (n, level) in topology.caches.iter().enumerate() {
        if let Some((left, hit)) = left.filter(|_| n + 1 == topology.caches.len()) {
            let mib = left.bytes / Bytes::mib(1).get() as f64;
            let part = format!("{mib:.1} MiB of {}", level.size);
            if let Some(hit) = hit {
                plateaus.push(format!("{} {hit:.1} ns ({part})", level.name));
            }
            let most = if hit.is_none() { "at most " } else { "" };
            let text = format!(
                "{most}{part} are left of {}: half of the hops over {:.1} MiB go to memory; a sub-NUMA cluster or a \
                 virtual machine may have a part, and other programs fill it as well",
                level.name,
                left.half_misses.get() as f64 / Bytes::mib(1).get() as f64,
            );
            found.push(Verdict::new(Severity::Doubt, &about, text));
            continue;
        }
        // Half a cache fits it for certain; twice a cache does not.
        let inside = steps
            .iter()
            .rfind(|s| s.0.get() <= level.size.get() / 2 && s.0 > smaller);
        let beyond = steps
            .iter()
            .find(|s| s.0.get() >= level.size.get().saturating_mul(2));
        if let Some((_, ns, _)) = inside {
            plateaus.push(format!("{} {ns:.1} ns", level.name));
        }
        if let (Some((_, inside, within)), Some((size, beyond, outside))) = (inside, beyond)
            && *beyond < inside * STEP
            // Noise hides a step.
            && beyond + outside.ci95.unwrap_or(0.0) < (inside - within.ci95.unwrap_or(0.0)) * STEP
        {
            found.push(Verdict::new(
                Severity::Doubt,
                &about,
                format!(
                    "no step where {} ends: {inside:.1} ns within its {}, {beyond:.1} ns at {size}",
                    level.name, level.size
                ),
            ));
        }
        smaller = level.size;
    }
    let in_memory = caches_in_reach(topology, 1).get().saturating_mul(2);
    if let Some((size, ns, _)) = steps.last().filter(|s| s.0.get() >= in_memory) {
        plateaus.push(format!("memory {ns:.1} ns (at {size})"));
    }
    if !plateaus.is_empty() {
        found.insert(0, Verdict::new(Severity::Note, about, plateaus.join(", ")));
    }
    found
}

/// What is left of the last-level cache where that is less than half, and the latency of a hop that it serves where a working set
/// fits. Every larger one leaves it.
fn left_of_cache(
    topology: &Topology,
    points: &[Point],
    tier: &TierName,
) -> Option<(Left, Option<f64>)> {
    let [.., smaller, last] = &topology.caches[..] else {
        return None;
    };
    let locality = Locality::TlbFriendly;
    let steps = chase(points, tier, locality).into_iter();
    let steps = steps.map(|(size, ns, point)| Chase {
        locality,
        size,
        page: None,
        ns,
        half: point.ci95.unwrap_or(0.0),
    });
    let chases = Chases {
        all: steps.collect(),
        is_guest: false,
    };
    let memory = chases.memory(last.size)?;
    let within = chases.within(smaller.size, last.size);
    let Some(within) = within.filter(|within| within.ns < A_STEP * memory) else {
        let most = chases.most_left(memory, smaller.size, last.size)?;
        return Some((most, None));
    };
    let left = chases.left((within.ns, memory), smaller.size, last.size)?;
    Some(match chases.left_below(within, memory, smaller.size) {
        None if within.size.get() as f64 <= left.bytes => (left, Some(within.ns)),
        None => (left, None),
        Some(less) => (less, None),
    })
}

/// What leaving the reach of the TLB adds.
fn page_walks(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let friendly = chase(points, tier, Locality::TlbFriendly);
    let &(size, far, random) = chase(points, tier, Locality::Random).last()?;
    let &(_, near, close) = friendly.iter().find(|step| step.0 == size)?;
    // Hops at random also miss the DRAM of a device that caches a medium.
    if random.medium.is_some_and(|used| used.hit_share < 1.0) {
        return None;
    }
    (far > near * (1.0 + ALIKE) && are_apart(random, close)).then(|| {
        Verdict::new(
            Severity::Note,
            format!("{tier} latency"),
            format!(
                "page walks add {:.0} ns to a random access: {far:.1} ns instead of {near:.1} ns \
                 at {size}",
                far - near
            ),
        )
    })
}

/// The same two where one line is written and waited for.
fn flushed_stores(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let of = |op| {
        let is =
            |p: &&Point| p.tier == *tier && p.op == op && p.pattern == Pattern::FlushedLine.name();
        let point = points.iter().find(is)?;
        Some((point.ns?.mean.get(), point))
    };
    let ((written_back, flushed), (posted, fenced)) = (of(Op::StClwb)?, of(Op::NtSt)?);
    are_apart(flushed, fenced).then(|| {
        Verdict::new(
            Severity::Note,
            format!("{tier} latency"),
            format!(
                "a store with clwb takes {:.1}x a fenced non-temporal store ({written_back:.0} / \
             {posted:.0} ns)",
                written_back / posted
            ),
        )
    })
}

/// Latency and load bandwidth as multiples of local DRAM's.
pub(crate) fn against_dram(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let dram = TierName::dram();
    if *tier == dram {
        return None;
    }
    let mut parts = Vec::new();
    for (locality, words) in [
        (Locality::TlbFriendly, "the latency"),
        (Locality::Random, "the latency at random"),
    ] {
        let near = chase(points, &dram, locality);
        let far = chase(points, tier, locality);
        let common = far.iter().rev().find_map(|&(size, ns, point)| {
            let step = near.iter().find(|step| step.0 == size)?;
            Some((step.1, ns, are_apart(point, step.2)))
        });
        if let Some((near, far, true)) = common {
            parts.push(format!(
                "{:.2}x {words} ({far:.0} / {near:.0} ns)",
                far / near
            ));
        }
    }
    let peak = |tier: &TierName| {
        [true, false]
            .into_iter()
            .find_map(|prefetch| best(bandwidth::of_curve(points, tier, Op::Ld, prefetch)))
    };
    if let (Some((near, local)), Some((far, other))) = (peak(&dram), peak(tier))
        && are_apart(local, other)
    {
        parts.push(format!(
            "{:.2}x the load bandwidth ({far:.1} / {near:.1} GB/s)",
            far / near
        ));
    }
    let about = format!("{tier} against dram");
    (!parts.is_empty()).then(|| Verdict::new(Severity::Note, about, parts.join(", ")))
}
