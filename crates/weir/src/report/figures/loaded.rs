//! Latency against the traffic that others draw.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;
use weir_model::units::Nanos;

use super::Drawn;
use super::words::{distinct, interval, remarks, several, sign};
use crate::output::figure;
use crate::output::points::mix;
use crate::report::chart::{LineChart, Look, Sample, Series, Spread, Stroke, Wall};
use crate::report::{Logged, Section};

/// A vertical axis that spans more than this factor is logarithmic.
const LINEAR_UP_TO: f64 = 6.0;

/// Two mixes are the same if their shares of reads differ by less than this: logs round them.
const SAME_SHARE: f64 = 0.005;
/// A logged curve is drawn with at most so many of its points.
const MOST_LOGGED: usize = 60;

/// What draws the traffic of a curve.
#[derive(Debug, Clone, PartialEq)]
struct Kind {
    mix: String,
    op: Op,
    read_share: f64,
    threads: u32,
    place: TierName,
}

impl Kind {
    fn of(point: &Point) -> Option<Self> {
        let beside = point.beside.as_ref()?;
        Some(Self {
            mix: mix(beside),
            op: beside.op,
            read_share: beside.read_share,
            threads: beside.threads,
            place: beside.tier.clone(),
        })
    }

    /// The logged curve of the same mix whose threads are nearest in number.
    fn logged<'l>(&self, logged: &'l [Logged]) -> Option<&'l Logged> {
        let same = |l: &&Logged| {
            let traffic = &l.curve.traffic;
            l.tier == self.place
                && !l.curve.random
                && traffic.op.is_posted() == self.op.is_posted()
                && (traffic.read_share() - self.read_share).abs() < SAME_SHARE
        };
        let apart = |l: &&Logged| l.curve.threads.map_or(0, |n| n.abs_diff(self.threads));
        logged.iter().filter(same).min_by_key(apart)
    }
}

/// A chart for each tier, a curve for each mix and number of threads that draw it; beside them what
/// instruments logged, dotted.
pub fn loaded(section: &Section) -> Vec<Drawn> {
    let points = || {
        let of = |p: &&Point| p.experiment == Experiment::Loaded;
        section.document.points.iter().filter(of)
    };
    // A mix has its colour in every chart of the run.
    let mixes = distinct(points().filter_map(Kind::of).map(|kind| kind.mix));
    let mut drawn = Vec::new();
    for tier in super::tiers(section) {
        let of_tier: Vec<&Point> = points().filter(|p| p.tier == *tier).collect();
        let kinds = distinct(of_tier.iter().filter_map(|p| Kind::of(p)));
        let many = distinct(kinds.iter().map(|k| k.threads)).len() > 1;
        let idle = of_tier.iter().find(|p| p.beside.is_none());
        let idle = idle.and_then(|p| Some(p.ns?.mean)).unwrap_or_default();
        let mut series = Vec::new();
        let mut overlay: Vec<(&Logged, Series)> = Vec::new();
        for kind in kinds {
            let colour = mixes.iter().position(|m| *m == kind.mix).unwrap_or(0);
            let mut name = kind.mix.clone();
            if kind.place != *tier {
                name = format!("{name} on {}", kind.place);
            }
            if many {
                name = format!("{name}, {}", several(kind.threads, "thread"));
            }
            let of_kind = |p: &&Point| p.beside.is_none() || Kind::of(p).as_ref() == Some(&kind);
            let look = Look::solid(colour);
            series.extend(curve(name, look, of_tier.iter().copied().filter(of_kind)));
            if let Some(log) = kind.logged(&section.logged)
                && kind.place == *tier
                && !overlay.iter().any(|(seen, _)| std::ptr::eq(*seen, log))
            {
                overlay.extend(logged_curve(log, &kind.mix, colour, idle).map(|s| (log, s)));
            }
        }
        if !series.is_empty() {
            let name = format!("Loaded latency of {tier}");
            let label = format!("{name} on {}", section.machine());
            let title = format!("traffic on {tier} [GB/s]");
            let walls = read_limit(section, tier, &series).into_iter().collect();
            let sources = sources(overlay.iter().map(|(log, _)| *log));
            series.extend(overlay.into_iter().map(|(_, series)| series));
            drawn.push(Drawn {
                sources,
                ..Drawn::new(name, chart(label, title, series, walls))
            });
        }
    }
    drawn
}

/// A logged curve, without what its chase found in a cache.
fn logged_curve(logged: &Logged, mix: &str, colour: usize, idle: Nanos) -> Option<Series> {
    let curve = &logged.curve;
    let threads = curve
        .threads
        .map_or(String::new(), |n| format!(", {}", several(n, "thread")));
    let name = format!("{mix}, logged{threads}");
    let points: Vec<_> = curve.of_memory(idle).collect();
    let every = points.len().div_ceil(MOST_LOGGED).max(1);
    let samples = points.iter().step_by(every).map(|p| Sample {
        x: p.bandwidth.get(),
        y: p.latency.get(),
        ci95: None,
        sign: None,
        tip: format!(
            "{name}\n{} GB/s: {} ns\nfrom {}, {}",
            figure(p.bandwidth.get()),
            figure(p.latency.get()),
            logged.log,
            curve.name
        ),
    });
    let samples: Vec<Sample> = samples.collect();
    (!samples.is_empty()).then(|| Series {
        name: name.clone(),
        look: Look {
            colour,
            stroke: Stroke::Dotted,
        },
        samples,
        outline: Vec::new(),
    })
}

/// Which logs are in a chart.
fn sources<'l>(logged: impl Iterator<Item = &'l Logged>) -> String {
    let logs = distinct(logged.map(|l| {
        let at = if l.curve.at.is_empty() {
            ""
        } else {
            ", loaded from "
        };
        format!("{}, machine {}{at}{}", l.log, l.curve.name, l.curve.at)
    }));
    match logs.as_slice() {
        [] => String::new(),
        logs => format!("dotted: measured on the real machine; {}", logs.join("; ")),
    }
}

/// A chart of loaded latency; linear upwards where the range allows it, as instruments draw it.
pub(super) fn chart(
    label: String,
    x_title: String,
    series: Vec<Series>,
    walls: Vec<Wall>,
) -> LineChart {
    let heights = || series.iter().flat_map(|s| &s.samples).map(|s| s.y);
    let least = heights().fold(f64::INFINITY, f64::min);
    let most = heights().fold(0.0, f64::max);
    let y = if most > least * LINEAR_UP_TO {
        Spread::Log
    } else {
        Spread::Linear
    };
    LineChart {
        label,
        x_title,
        x: Spread::Linear,
        x_reach: walls.iter().map(|w| w.x).collect(),
        y_title: "latency of a dependent load [ns]".into(),
        y,
        y_reach: Vec::new(),
        series,
        walls,
        limits: Vec::new(),
    }
}

/// One curve, from the idle machine to no pause at all. A curve may turn back: past the knee, more
/// load can be less traffic.
pub(super) fn curve<'p>(
    name: String,
    look: Look,
    points: impl Iterator<Item = &'p Point>,
) -> Option<Series> {
    let mut points: Vec<&Point> = points.collect();
    let pause = |p: &Point| {
        p.beside
            .as_ref()
            .map_or(f64::INFINITY, |b| b.pause_ns.get())
    };
    points.sort_by(|a, b| pause(b).total_cmp(&pause(a)));
    let beside_any = points.iter().any(|p| p.beside.is_some() && p.ns.is_some());
    let samples = points.iter().filter_map(|p| sample(p, &name)).collect();
    beside_any.then(|| Series {
        name,
        look,
        samples,
        outline: Vec::new(),
    })
}

fn sample(point: &Point, name: &str) -> Option<Sample> {
    let ns = point.ns?;
    let (traffic, how) = match &point.beside {
        None => (0.0, "idle".to_owned()),
        Some(beside) => {
            let traffic = beside.traffic_gbps.or(beside.gbps)?.get();
            let threads = several(beside.threads, "thread");
            let pause = figure(beside.pause_ns.get());
            let how = format!(
                "{} GB/s by {threads}, pausing {pause} ns a line",
                figure(traffic)
            );
            (traffic, how)
        }
    };
    let p99 = ns
        .p99
        .map_or(String::new(), |q| format!(", p99 {}", figure(q.get())));
    Some(Sample {
        x: traffic,
        y: ns.mean.get(),
        ci95: point.ci95,
        sign: sign(point),
        tip: format!(
            "{name}\n{how}\nmean {}{} ns, p50 {}{p99}{}",
            figure(ns.mean.get()),
            interval(point.ci95),
            figure(ns.p50.get()),
            remarks(point, "ns")
        ),
    })
}

/// The read limit of a tier, unless it is so far beyond the curves that they would shrink.
fn read_limit(section: &Section, tier: &TierName, series: &[Series]) -> Option<Wall> {
    let tier = section.document.header.topology.tier(tier)?;
    let limit = tier.limits.as_ref()?.read.get();
    let samples = series.iter().flat_map(|s| &s.samples);
    let most = samples.map(|s| s.x).fold(0.0, f64::max);
    (limit < most * 2.0).then(|| Wall {
        x: limit,
        name: format!("read limit {}", figure(limit)),
    })
}
