//! `weir bench loaded`: the latency of one thread against the bandwidth that all others draw.
//!
//! One thread chases pointers within the reach of the TLB, prefetchers off; the others stream, each
//! through lines of its own, and pause between two lines. From the longest pause to none the load
//! grows from next to nothing to all that the cores can ask for. One curve for each mix of reads
//! and writes, as Intel MLC's `--loaded_latency` and the Mess benchmark (Esmaili-Dokht et al.,
//! MICRO 2024) draw it.
//!
//! Lines arrive after a pause, as with these two instruments, or at a fixed rate (`Arrivals`); and
//! the threads that load go through their memory in order or at random.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::{Beside, Point};
use weir_model::machine::MachineKind;
use weir_model::platform::Library;
use weir_model::published::measured::Curve;
use weir_model::tenant::Arrivals;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

pub use super::mix::Mix;
use super::point_study::{About, PointStudy};
use crate::plan::{Load, check_threads, choose_tiers, or_usual};
use crate::room::{beyond_caches, working_set};
use crate::theory::traffic_limit;
use crate::verdict::are_apart;
use crate::view::{Axis, Limit, Overlay, View, col};
use crate::{LabError, PointSpec, Severity, Threads, Verdict};

/// The condition that a pause is a number of MLC's, whose unit it does not say.
pub(crate) const INJECT_DELAY: &str = "inject delay";

const NAME: &str = "loaded";

/// Two mixes are the same if their shares of reads differ by less than this: logs round them.
const SAME_SHARE: f64 = 0.005;
/// A logged curve is shown with at most this many of its points.
const MOST_LOGGED: usize = 60;

weir_model::named! {
    /// The order in which threads that load go through their memory.
    #[derive(Default)]
    pub enum Order {
        /// Line by line.
        #[default]
        Sequential = "sequential",
        /// Each line anywhere in the working set.
        Random = "random",
    }
}

impl Order {
    const fn pattern(self) -> Pattern {
        match self {
            Order::Sequential => Pattern::Sequential,
            Order::Random => Pattern::RandomLine,
        }
    }
}

/// Random lines come back before all others were touched: with working sets this many times the
/// caches together, at most a twentieth of them hit.
const TIMES_CACHES_AT_RANDOM: u64 = 20;

fn arrivals(text: &str) -> Result<Arrivals, String> {
    Arrivals::named(text).ok_or_else(|| format!("`{text}` is neither closed nor open"))
}

fn order(text: &str) -> Result<Order, String> {
    Order::named(text).ok_or_else(|| format!("`{text}` is neither sequential nor random"))
}

/// Where the limit of a tier is known, pauses go from half to sixteen times the one at which the
/// threads would ask for all of it, in steps of half an octave, ...
const OCTAVES_ABOUT_LIMIT: (f64, f64) = (-1.0, 4.0);
const STEPS_AN_OCTAVE: f64 = 2.0;
/// ... and in finer ones where curves bend.
const OCTAVES_OF_BEND: (f64, f64) = (-0.5, 1.0);
const STEPS_IN_BEND: f64 = 6.0;
/// A quick run takes a third of the steps.
const QUICK_STEPS: f64 = 1.0;
const QUICK_STEPS_IN_BEND: f64 = 2.0;
/// Where the limit is not known, from 1 ns to about 1 us.
const OCTAVES_OF_NS: (f64, f64) = (0.0, 10.0);
/// The chase goes over at least this much memory, and this many times the last-level cache.
const LEAST_CHASE: Bytes = Bytes::mib(256);
const TIMES_CACHE: u64 = 4;
/// And over no more than this part of its tier, for the loaders need room too.
const PART_OF_TIER: u64 = 4;

/// How latency grows with the bandwidth that others draw, by mix.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
A mix is what crosses the memory interface, reads:writes. In 3:1 temporal stores
write; each reads its line first, so that stores alone are 1:1, and no mix of
theirs writes more. In 2:1nt or 1:3nt non-temporal stores write. MLC's -W:
   0 reads   2 2:1   3 3:1   4 3:2   5 1:1   12 to 17 4:1 to 9:1
   6 nt_writes   7 and 10 2:1nt   8 1:1nt   9 3:1nt   11 3:1

Examples:
  weir bench loaded --quick
  weir bench loaded --on emr2s+cxl-a --tier cxl0 --mix reads,1:1,1:3nt
  weir bench loaded --mix nt_writes --threads 4 --pause 0ns,50ns,500ns")]
pub struct Loaded {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// Mixes: reads, 3:1, 1:1, 2:1nt, nt_writes, ... [default: six].
    #[arg(long = "mix", value_delimiter = ',', value_name = "MIX")]
    pub mixes: Vec<Mix>,
    /// Threads that load, with the one that is timed [default: all others].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub threads: Vec<Threads>,
    /// The host whose threads load, on a model of several [default: that of the one that is timed].
    #[arg(long, value_name = "N", default_value_t, hide_default_value = true)]
    pub host: u32,
    /// Pauses of each loading thread between two lines [default: a series].
    #[arg(long = "pause", value_delimiter = ',', value_name = "TIME")]
    pub pauses: Vec<Nanos>,
    /// What a pause is counted from: the line before (closed), or when that was due (open).
    #[arg(long, value_name = "closed|open", default_value_t, value_parser = arrivals)]
    pub arrivals: Arrivals,
    /// Lines of the threads that load: sequential or random.
    #[arg(long, value_name = "ORDER", default_value_t, value_parser = order)]
    pub pattern: Order,
    /// Two mixes and fewer pauses.
    #[arg(long)]
    pub quick: bool,
}

impl PointStudy for Loaded {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench loaded";
    const TITLE: &'static str = "Loaded latency";
    const WORDS: &'static str = "One thread chases pointers while others draw traffic and pause less and less. A mix is reads to writes at the memory interface, where an ordinary store is one of each, and a non-temporal store (nt) a write alone.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let others = topology.cores_of_host(self.host).len() as u32;
        let most = others.saturating_sub(u32::from(self.host == 0));
        if topology.cores.len() < 2 {
            return Err(LabError::Nothing(
                "a loaded latency needs two cores at least: one to chase, one to load".into(),
            ));
        }
        check_threads(&Threads::all(&self.threads), topology, 1)?;
        check_pauses(&self.pauses)?;
        if topology.cores_of_host(self.host).is_empty() {
            return Err(LabError::Nothing(format!(
                "this machine has no host {}; a model of two is `2xemr2s+cxl-a@switch`, whose second is 1",
                self.host
            )));
        }
        let quick: &[Mix] = &[Mix::Reads, Mix::temporal(1, 1)];
        let mixes = if self.quick { quick } else { &Mix::ALL };
        let mut points = Vec::new();
        for tier in choose_tiers(topology, &self.tiers)? {
            let idle = PointSpec::alone(NAME, chase(topology, tier));
            points.push(idle.clone());
            for mix in or_usual(&self.mixes, mixes) {
                for threads in or_usual(&Threads::all(&self.threads), &[most]) {
                    let set = match self.pattern {
                        Order::Sequential => working_set(topology, tier, threads),
                        Order::Random => {
                            beyond_caches(topology, tier, threads, TIMES_CACHES_AT_RANDOM)
                        }
                    };
                    let mut load = mix.load(&tier.name, threads, set).on_host(self.host);
                    (load.pattern, load.arrivals) = (self.pattern.pattern(), self.arrivals);
                    let mut pauses = pauses(tier, &load, self);
                    pauses.sort_by(|a, b| b.get().total_cmp(&a.get()));
                    pauses.dedup();
                    let beside = |pause| idle.clone().beside(load.clone().pausing(pause));
                    points.extend(pauses.into_iter().map(beside));
                }
            }
        }
        Ok(points)
    }

    fn case(point: &Point) -> Option<String> {
        let beside = point.beside.as_ref()?;
        let mix = Mix::named(beside.op, beside.read_share);
        Some(mix + how(beside))
    }

    fn answer(points: &[Point], topology: &Topology) -> Vec<Verdict> {
        topology
            .tiers
            .iter()
            .flat_map(|tier| curves(points, &tier.name))
            .collect()
    }

    fn views(points: &[Point], about: About<'_>) -> Vec<View> {
        // A file of another tool has a mean alone, and perhaps no pauses.
        let is_measured = (points.iter().filter_map(|p| p.ns)).any(|ns| ns.samples > 1);
        let pauses =
            (points.iter().filter_map(|p| p.beside.as_ref())).any(|b| b.pause_ns.get() > 0.0);
        let mut columns = Vec::new();
        if is_measured || pauses {
            let delays = points.iter().flat_map(|p| &p.conditions);
            let pause = col("beside_pause_ns").empty("idle");
            columns.push(
                match delays.into_iter().any(|one| one.starts_with(INJECT_DELAY)) {
                    true => pause.head("inject\ndelay").without_unit(),
                    false => pause.head("pause"),
                },
            );
        }
        columns.extend([col("beside_traffic_gbps").head("traffic"), col("mean_ns")]);
        if is_measured {
            columns.extend([col("p50_ns"), col("p99_ns"), col("p999_ns")]);
        }
        vec![
            View::table(
                "points",
                "Latency on {tier} with {beside_threads} of load, {case}",
                columns,
            )
            .each(&["tier", "beside_threads", "case"]),
            View::lines(
                "points",
                "Loaded latency of {tier}",
                ("beside_traffic_gbps", "traffic [GB/s]"),
                ("mean_ns", "latency of a dependent load [ns]"),
                &["case", "beside_threads"],
            )
            .each(&["tier"])
            .order("beside_pause_ns")
            .axes(Axis::Linear, Axis::Auto)
            .limits(Limit::of_reads(about.topology, true))
            .overlays(logged(points, about)),
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

/// The thread that is timed: a chase within the reach of the TLB that leaves the caches behind.
pub fn chase(topology: &Topology, tier: &Tier) -> Load {
    let caches = topology
        .last_level_cache()
        .get()
        .saturating_mul(TIMES_CACHE);
    let wanted = caches
        .checked_next_power_of_two()
        .unwrap_or(u64::MAX)
        .max(LEAST_CHASE.get());
    let room = (tier.capacity.get() / PART_OF_TIER).max(2 * LINE_BYTES);
    let pattern = Pattern::Chase {
        locality: Locality::TlbFriendly,
    };
    let set = Bytes(wanted.min(room));
    Load::new(&tier.name, Op::Ld, pattern, 1, set).prefetch(false)
}

pub(crate) fn check_pauses(pauses: &[Nanos]) -> Result<(), LabError> {
    match pauses
        .iter()
        .find(|p| !p.get().is_finite() || p.get() < 0.0)
    {
        Some(pause) => Err(LabError::Nothing(format!(
            "a pause of {pause} is none: write 0ns or more"
        ))),
        None => Ok(()),
    }
}

/// None, and a geometric series about the pause at which the threads would ask for all that the
/// tier can give.
fn pauses(tier: &Tier, load: &Load, options: &Loaded) -> Vec<Nanos> {
    if !options.pauses.is_empty() {
        return options.pauses.clone();
    }
    let limit = tier
        .limits
        .as_ref()
        .map(|limits| traffic_limit(limits, load.read_share()).get())
        .filter(|limit| *limit > 0.0);
    let (steps, in_bend) = if options.quick {
        (QUICK_STEPS, QUICK_STEPS_IN_BEND)
    } else {
        (STEPS_AN_OCTAVE, STEPS_IN_BEND)
    };
    let octaves = match limit {
        Some(_) => [
            series(OCTAVES_ABOUT_LIMIT, steps),
            series(OCTAVES_OF_BEND, in_bend),
        ]
        .concat(),
        None => series(OCTAVES_OF_NS, steps),
    };
    let unit = limit.map_or(1.0, |gbps| {
        f64::from(load.threads) * LINE_BYTES as f64 * load.traffic_factor() / gbps
    });
    // Whole hundredths of a nanosecond, which is what documents show.
    let pause = |octave: f64| Nanos((unit * octave.exp2() * 100.0).round() / 100.0);
    std::iter::once(Nanos(0.0))
        .chain(octaves.into_iter().map(pause))
        .collect()
}

/// From one end to the other in this many steps for each unit.
fn series((from, to): (f64, f64), steps: f64) -> Vec<f64> {
    let count = ((to - from) * steps).round() as u32;
    (0..=count)
        .map(|step| from + f64::from(step) / steps)
        .collect()
}

/// Latency has bent where it is this many times that of the idle tier.
const BENT: f64 = 2.0;
/// Where traffic grows by more than this factor from one point to the next, a place in between is not interpolated.
const WIDE: f64 = 1.5;

/// One line for each mix and number of loading threads: idle, where latency doubles, the end.
fn curves(points: &[Point], tier: &TierName) -> Vec<Verdict> {
    let of_tier = || {
        points
            .iter()
            .filter(|p| p.experiment == NAME && p.tier == *tier)
    };
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in of_tier().filter_map(|p| p.beside.as_ref()).map(kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let idle = of_tier().find(|p| p.beside.is_none() && p.ns.is_some());
    kinds
        .into_iter()
        .filter_map(|wanted| {
            let mut curve: Vec<(f64, f64, &Point)> = of_tier()
                .filter_map(|p| {
                    let beside = p.beside.as_ref().filter(|b| kind(b) == wanted)?;
                    Some((beside.traffic_gbps?.get(), p.ns?.mean.get(), p))
                })
                .collect();
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
            verdict(tier, wanted, idle?, &curve)
        })
        .collect()
}

/// Loads of one curve: the instruction, its share of reads, how lines follow each other, and the
/// threads.
type Kind = (Op, f64, &'static str, u32);

fn kind(beside: &Beside) -> Kind {
    (beside.op, beside.read_share, how(beside), beside.threads)
}

/// How lines follow each other, unless in order and after a pause.
fn how(beside: &Beside) -> &'static str {
    let in_order = beside.pattern == Pattern::Sequential.name();
    match (in_order, beside.arrivals) {
        (true, Arrivals::Closed) => "",
        (true, Arrivals::Open) => ", at a fixed rate",
        (false, Arrivals::Closed) => ", at random",
        (false, Arrivals::Open) => ", at random and a fixed rate",
    }
}

fn verdict(
    tier: &TierName,
    (op, read_share, how, threads): Kind,
    alone: &Point,
    curve: &[(f64, f64, &Point)],
) -> Option<Verdict> {
    let &(peak, at_peak, _) = curve.last()?;
    let idle = alone.ns?.mean.get();
    let part = |gbps: f64| gbps / peak * 100.0;
    let bends = match crossing(curve, idle * BENT) {
        Some(Crossing { at, .. }) if !are_apart(alone, at) => {
            format!("may double from {idle:.0} ns by {peak:.1} GB/s, but the intervals overlap")
        }
        // Nothing was measured near the bend.
        Some(Crossing {
            below: Some(below),
            above,
            ..
        }) if above > below * WIDE => format!(
            "doubles from {idle:.0} ns between {below:.1} and {above:.1} GB/s, {:.0} and {:.0} % of \
             the {peak:.1} GB/s that were drawn at most; nothing was measured in between",
            part(below),
            part(above)
        ),
        Some(Crossing { gbps, .. }) => format!(
            "doubles from {idle:.0} ns at {gbps:.1} GB/s, {:.0} % of the {peak:.1} GB/s that were \
             drawn at most",
            part(gbps)
        ),
        None => format!("does not double from {idle:.0} ns up to {peak:.1} GB/s"),
    };
    Some(Verdict::new(
        Severity::Note,
        format!("{tier} under load"),
        format!(
            "latency with {threads} other thread{}, {:.0} % reads{}{how}, {bends}; {at_peak:.0} ns there",
            if threads == 1 { "" } else { "s" },
            read_share * 100.0,
            match op.is_posted() && read_share > 0.0 {
                true => " with non-temporal stores",
                false => "",
            }
        ),
    ))
}

/// Where latency first reaches `level`. Between two points its inverse is taken to fall in a
/// straight line, as in a queue that is near its end.
fn crossing<'p>(curve: &[(f64, f64, &'p Point)], level: f64) -> Option<Crossing<'p>> {
    let place = curve.iter().position(|&(_, ns, _)| ns >= level)?;
    let &(above, ns, at) = curve.get(place)?;
    let before = place.checked_sub(1).and_then(|place| curve.get(place));
    let gbps = before.map_or(above, |&(below, shorter, _)| {
        let part = (1.0 / shorter - 1.0 / level) / (1.0 / shorter - 1.0 / ns);
        below + (above - below) * part
    });
    Some(Crossing {
        gbps,
        below: before.map(|before| before.0),
        above,
        at,
    })
}

/// Traffic at which latency reaches a level.
struct Crossing<'p> {
    /// As interpolated.
    gbps: f64,
    /// Of the last point below the level, if there is one.
    below: Option<f64>,
    /// Of the first point at it.
    above: f64,
    /// That point.
    at: &'p Point,
}

/// What instruments logged on the real machine that a model is of, next to curves of the same mix.
fn logged(points: &[Point], about: About<'_>) -> Vec<Overlay> {
    // A platform from a user's file has no log here.
    let model = (about.machine.kind == MachineKind::Sim)
        .then(|| Library::builtin().compose(&about.machine.name).ok())
        .flatten();
    let Some(platform) = model else {
        return Vec::new();
    };
    let devices = platform.devices.iter().map(|d| &d.device.log);
    let logs: Vec<_> = std::iter::once(&platform.host.log)
        .chain(devices)
        .flatten()
        .collect();
    let curves = platform.measured_curves();
    let own = |point: &&Point| point.experiment == NAME;
    let mut overlays: Vec<Overlay> = Vec::new();
    for point in points.iter().filter(own) {
        let (Some(beside), Some(case)) = (&point.beside, &point.case) else {
            continue;
        };
        let known = |o: &Overlay| o.tier == beside.tier && o.like == *case;
        // Instruments pause after each line.
        let comparable = beside.tier == point.tier && beside.arrivals.is_closed();
        if !comparable || overlays.iter().any(known) {
            continue;
        }
        let same = curves.iter().filter(|(tier, curve)| {
            *tier == beside.tier
                && curve.random == (beside.pattern != Pattern::Sequential.name())
                && curve.traffic.op.is_posted() == beside.op.is_posted()
                && (curve.traffic.read_share() - beside.read_share).abs() < SAME_SHARE
        });
        let apart = |curve: &Curve| curve.threads.map_or(0, |n| n.abs_diff(beside.threads));
        let Some((tier, curve)) = same.min_by_key(|(_, curve)| apart(curve)) else {
            continue;
        };
        let idle = (points.iter().filter(own))
            .find(|p| p.tier == *tier && p.beside.is_none())
            .and_then(|p| Some(p.ns?.mean));
        let of_memory: Vec<_> = curve.of_memory(idle.unwrap_or_default()).collect();
        let every = of_memory.len().div_ceil(MOST_LOGGED).max(1);
        let threads = curve
            .threads
            .map_or(String::new(), |n| format!(", {n} threads"));
        let log = logs.iter().find(|log| log.name == curve.name);
        overlays.push(Overlay {
            tier: tier.clone(),
            like: case.clone(),
            name: format!("{case}, logged{threads}"),
            source: format!("{}, machine {}", log.map_or("", |log| &log.log), curve.name),
            points: (of_memory.iter().step_by(every))
                .map(|p| (p.bandwidth.get(), p.latency.get()))
                .collect(),
        });
    }
    overlays
}
