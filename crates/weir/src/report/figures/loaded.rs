//! Latency against the traffic that others draw, of several runs in one picture.

use weir_model::document::Point;

use super::words::{remarks, several, sign};
use crate::output::{figure, interval};
use crate::report::chart::{LineChart, Look, Sample, Series, Spread, Wall};

/// A vertical axis that spans more than this factor is logarithmic.
const LINEAR_UP_TO: f64 = 6.0;

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
