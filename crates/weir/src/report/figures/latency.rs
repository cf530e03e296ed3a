//! Idle latency: staircases and single accesses.

use weir_model::document::{Experiment, Point};

use super::words::{interval, remarks, sign, tip};
use super::{Drawn, op_look, tier_look};
use crate::output::figure;
use crate::output::points::{access, is_chase, locality};
use crate::report::Section;
use crate::report::chart::{
    Bar, BarChart, Group, LineChart, Look, Sample, Series, Spread, Stroke, Wall,
};

/// Every mean latency of every run, so that the staircases of several machines compare.
fn latencies(sections: &[Section]) -> Vec<f64> {
    let points = sections.iter().flat_map(|s| &s.document.points);
    points
        .filter(|p| is_chase(p))
        .filter_map(|p| Some(p.ns?.mean.get()))
        .collect()
}

/// Latency by working set: a line for each tier and kind of hop, a wall at each cache's size.
pub fn staircase(section: &Section, all: &[Section]) -> Option<Drawn> {
    let topology = &section.document.header.topology;
    let mut series: Vec<Series> = Vec::new();
    let mut steps: Vec<&Point> = (section.document.points.iter())
        .filter(|p| is_chase(p))
        .collect();
    let place = |p: &Point| topology.tiers.iter().position(|t| t.name == p.tier);
    steps.sort_by_key(|p| (place(p), p.pattern == "chase_random", p.wss_bytes));
    for point in steps {
        let (Some(ns), Some(size)) = (point.ns, point.wss_bytes) else {
            continue;
        };
        let name = format!("{}, {}", point.tier, locality(&point.pattern));
        let sample = Sample {
            x: size.get() as f64,
            y: ns.mean.get(),
            ci95: point.ci95,
            sign: sign(point),
            tip: tip(&format!("{name}\n{size}"), ns.mean.get(), "ns", point),
        };
        match series.last_mut().filter(|s| s.name == name) {
            Some(line) => line.samples.push(sample),
            None => series.push(Series {
                name,
                look: Look {
                    stroke: match point.pattern.as_str() {
                        "chase_random" => Stroke::Dashed,
                        _ => Stroke::Solid,
                    },
                    ..tier_look(topology, &point.tier)
                },
                samples: vec![sample],
                outline: Vec::new(),
            }),
        }
    }
    (!series.is_empty()).then(|| {
        Drawn::new(
            "Latency by working set",
            LineChart {
                label: format!("Latency by working set on {}", section.machine()),
                x_title: "working set [bytes]".into(),
                x: Spread::Sizes,
                x_reach: Vec::new(),
                y_title: "latency of a dependent load [ns]".into(),
                y: Spread::Log,
                y_reach: latencies(all),
                series,
                walls: (topology.caches.iter())
                    .map(|cache| Wall {
                        x: cache.size.get() as f64,
                        name: cache.name.clone(),
                    })
                    .collect(),
                limits: Vec::new(),
            },
        )
    })
}

/// Latency of single accesses: bars of the mean, whiskers to the 99th percentile.
pub fn single_accesses(section: &Section) -> Option<Drawn> {
    let mut groups = Vec::new();
    for tier in super::tiers(section) {
        let single =
            |p: &&Point| p.experiment == Experiment::Latency && !is_chase(p) && p.tier == *tier;
        let bars: Vec<Bar> = (section.document.points.iter())
            .filter(single)
            .filter_map(single_access)
            .collect();
        if !bars.is_empty() {
            let name = tier.to_string();
            groups.push(Group { name, bars });
        }
    }
    (!groups.is_empty()).then(|| {
        Drawn::new(
            "Single accesses",
            BarChart {
                label: format!("Latency of single accesses on {}", section.machine()),
                title:
                    "an access to a flushed line [ns]; x: so many at once, its share; whisker: p99"
                        .into(),
                legend: Vec::new(),
                groups,
            },
        )
    })
}

fn single_access(point: &Point) -> Option<Bar> {
    let ns = point.ns?;
    let p99 = ns
        .p99
        .map_or(String::new(), |q| format!(", p99 {}", figure(q.get())));
    Some(Bar {
        name: access(point),
        look: op_look(point.op),
        value: ns.mean.get(),
        figure: figure(ns.mean.get()),
        limit: None,
        reach: ns.p99.map(|q| q.get()),
        sign: sign(point),
        tip: format!(
            "{} {}\nmean {}{} ns, p50 {}{p99}, max {}{}",
            point.tier,
            access(point),
            figure(ns.mean.get()),
            interval(point.ci95),
            figure(ns.p50.get()),
            figure(ns.max.get()),
            remarks(point, "ns")
        ),
    })
}
