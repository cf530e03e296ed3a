//! STREAM.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;

use super::words::{distinct, several, sign, tip};
use super::{Drawn, bandwidth};
use crate::output::figure;
use crate::report::Section;
use crate::report::chart::{Bar, BarChart, Group, LineChart, Look, Series, Spread};

/// From so many thread counts on, a tier has a chart over threads too.
const COUNTS_FOR_LINES: usize = 3;

/// The best of each kernel as bars, then a chart over threads for each tier.
pub fn stream(section: &Section) -> Vec<Drawn> {
    let of_stream = |p: &&Point| p.experiment == Experiment::Stream && p.gbps.is_some();
    let points: Vec<&Point> = section.document.points.iter().filter(of_stream).collect();
    let kernels = distinct(points.iter().map(|p| kernel(p)));
    let look = |p: &Point| Look::solid(kernels.iter().position(|k| *k == kernel(p)).unwrap_or(0));
    let kinds: Vec<(&TierName, Op)> = super::tiers(section)
        .flat_map(|tier| {
            let of_tier = points.iter().filter(move |p| p.tier == *tier);
            distinct(of_tier.map(|p| p.op))
                .into_iter()
                .map(move |op| (tier, op))
        })
        .collect();
    let stores = distinct(kinds.iter().map(|k| k.1)).len() > 1;
    let mut groups = Vec::new();
    let mut lines = Vec::new();
    for (tier, op) in kinds {
        let name = if stores {
            format!("{tier}, written by {op}")
        } else {
            tier.to_string()
        };
        let of_kind = |p: &&&Point| p.tier == *tier && p.op == op;
        let points: Vec<&Point> = points.iter().filter(of_kind).copied().collect();
        lines.extend(by_threads(section, &name, &points, &look));
        let bars = kernels.iter().filter_map(|kernel_name| {
            let of_kernel = points.iter().filter(|p| kernel(p) == *kernel_name);
            let best = of_kernel.max_by(|a, b| gbps(a).total_cmp(&gbps(b)))?;
            Some(bar(best, look(best)))
        });
        groups.push(Group {
            bars: bars.collect(),
            name,
        });
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let bars = BarChart {
        label: format!("STREAM on {}", section.machine()),
        title: "best bandwidth over threads, as STREAM counts [GB/s]".into(),
        legend: Vec::new(),
        groups,
    };
    std::iter::once(Drawn::new("STREAM", bars))
        .chain(lines)
        .collect()
}

fn kernel(point: &Point) -> &str {
    point.kernel.as_deref().unwrap_or("?")
}

fn gbps(point: &Point) -> f64 {
    point.gbps.map_or(0.0, |g| g.get())
}

fn bar(point: &Point, look: Look) -> Bar {
    let heading = format!(
        "{} on {}, {}",
        kernel(point),
        point.tier,
        several(point.threads, "thread")
    );
    Bar {
        name: kernel(point).into(),
        look,
        value: gbps(point),
        figure: figure(gbps(point)),
        limit: point.theory.as_ref().map(|t| t.limit),
        reach: None,
        sign: sign(point),
        tip: tip(&heading, gbps(point), "GB/s", point),
    }
}

fn by_threads(
    section: &Section,
    name: &str,
    points: &[&Point],
    look: &impl Fn(&Point) -> Look,
) -> Option<Drawn> {
    if distinct(points.iter().map(|p| p.threads)).len() < COUNTS_FOR_LINES {
        return None;
    }
    let mut sorted: Vec<&Point> = points.to_vec();
    sorted.sort_by_key(|p| p.threads);
    let series = distinct(points.iter().map(|p| kernel(p)))
        .into_iter()
        .filter_map(|of| {
            let line = || sorted.iter().copied().filter(|p| kernel(p) == of);
            Some(Series {
                name: of.into(),
                look: look(line().next()?),
                samples: line()
                    .filter_map(|p| bandwidth::sample(p, &format!("{of} on {name}")))
                    .collect(),
                outline: Vec::new(),
            })
        });
    let title = format!("STREAM by threads on {name}");
    let chart = LineChart {
        label: format!("{title}, {}", section.machine()),
        x_title: "threads".into(),
        x: Spread::Counts,
        x_reach: Vec::new(),
        y_title: format!("bandwidth of {name}, as STREAM counts [GB/s]"),
        y: Spread::Linear,
        y_reach: Vec::new(),
        series: series.collect(),
        walls: Vec::new(),
        limits: Vec::new(),
    };
    Some(Drawn::new(title, chart))
}
