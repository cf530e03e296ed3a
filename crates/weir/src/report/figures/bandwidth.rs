//! Bandwidth by threads.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;

use super::words::{several, sign, tip};
use super::{Drawn, op_look};
use crate::output::figure;
use crate::report::Section;
use crate::report::chart::{Limit, LineChart, Look, Sample, Series, Spread, Stroke};

/// A chart for each tier: a line for each instruction, physics as a horizontal.
pub fn by_threads(section: &Section) -> Vec<Drawn> {
    let of_tier = |tier| {
        Some(Drawn::new(
            format!("Bandwidth of {tier} by threads"),
            chart(section, tier)?,
        ))
    };
    super::tiers(section).filter_map(of_tier).collect()
}

fn chart(section: &Section, tier: &TierName) -> Option<LineChart> {
    let of_tier = |p: &&Point| p.experiment == Experiment::Bandwidth && p.tier == *tier;
    let points: Vec<&Point> = section.document.points.iter().filter(of_tier).collect();
    let mut series = Vec::new();
    for op in Op::ALL {
        for prefetch in [true, false] {
            let of_line = |p: &&Point| p.op == op && p.prefetch == prefetch;
            let mut line: Vec<&Point> = points.iter().copied().filter(of_line).collect();
            line.sort_by_key(|p| p.threads);
            let (name, stroke) = if prefetch {
                (op.to_string(), Stroke::Solid)
            } else {
                (format!("{op}, no prefetch"), Stroke::Dashed)
            };
            let samples: Vec<Sample> = line
                .iter()
                .filter_map(|p| sample(p, &format!("{name} on {tier}")))
                .collect();
            if !samples.is_empty() {
                series.push(Series {
                    name,
                    look: Look {
                        stroke,
                        ..op_look(op)
                    },
                    samples,
                    outline: Vec::new(),
                });
            }
        }
    }
    (!series.is_empty()).then(|| LineChart {
        label: format!("Bandwidth of {tier} by threads on {}", section.machine()),
        x_title: "threads".into(),
        x: Spread::Counts,
        x_reach: Vec::new(),
        y_title: format!("bandwidth of {tier} [GB/s]"),
        y: Spread::Linear,
        y_reach: Vec::new(),
        series,
        walls: Vec::new(),
        limits: read_limit(section, tier).into_iter().collect(),
    })
}

/// A bandwidth over its number of threads.
pub(super) fn sample(point: &Point, name: &str) -> Option<Sample> {
    let gbps = point.gbps?.get();
    let threads = several(point.threads, "thread");
    Some(Sample {
        x: f64::from(point.threads),
        y: gbps,
        ci95: point.ci95,
        sign: sign(point),
        tip: tip(&format!("{name}\n{threads}"), gbps, "GB/s", point),
    })
}

fn read_limit(section: &Section, tier: &TierName) -> Option<Limit> {
    let tier = section.document.header.topology.tier(tier)?;
    let limit = tier.limits.as_ref()?.read.get();
    Some(Limit {
        y: limit,
        name: format!("read limit {} GB/s", figure(limit)),
    })
}
