//! From figures to charts: which line is drawn from which points.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point, Theory};
use weir_model::topology::{TierKind, TierName, Topology};

use super::Section;
use super::chart::{Bar, BarChart, Group, Limit, LineChart, Look, Sample, Series, Spread, Wall};
use crate::output::figure;
use crate::output::points::{is_chase, locality};
use crate::summary::{TierSummary, summarise};

/// The colour of a tier, the same in every chart of a page: local DRAM is always the first.
fn tier_look(topology: &Topology, tier: &TierName) -> Look {
    let at = topology
        .tiers
        .iter()
        .position(|t| t.name == *tier)
        .unwrap_or(0);
    Look {
        colour: at,
        dashed: false,
    }
}

/// The colour of an instruction, the same in every chart.
fn op_look(op: Op) -> Look {
    Look {
        colour: Op::ALL.iter().position(|o| *o == op).unwrap_or(0),
        dashed: false,
    }
}

/// What is said on touching a point of which physics knows a limit.
fn limit_words(theory: Option<&Theory>, unit: &str) -> String {
    theory.map_or(String::new(), |t| {
        let beaten = if t.beaten {
            " (beaten: cannot be right)"
        } else {
            ""
        };
        format!("\nlimit {} {unit}: {}{beaten}", figure(t.limit), t.basis)
    })
}

fn interval(ci95: Option<f64>) -> String {
    ci95.map_or(String::new(), |half| format!(" ± {}", figure(half)))
}

/// Every mean latency of every run, so that the staircases of several machines compare.
fn latencies(sections: &[Section]) -> Vec<f64> {
    let points = sections.iter().flat_map(|s| &s.document.points);
    points
        .filter(|p| is_chase(p))
        .filter_map(|p| Some(p.ns?.mean.get()))
        .collect()
}

/// Latency by working set: a line for each tier and kind of hop, a wall at each cache's size.
pub fn staircase(section: &Section, all: &[Section]) -> Option<LineChart> {
    let topology = &section.document.header.topology;
    let mut series: Vec<Series> = Vec::new();
    let mut steps: Vec<&Point> = section
        .document
        .points
        .iter()
        .filter(|p| is_chase(p))
        .collect();
    let place = |p: &Point| topology.tiers.iter().position(|t| t.name == p.tier);
    steps.sort_by_key(|p| (place(p), p.pattern == "chase_random", p.wss_bytes));
    for point in steps {
        let (Some(ns), Some(size)) = (point.ns, point.wss_bytes) else {
            continue;
        };
        let dashed = point.pattern == "chase_random";
        let hops = locality(&point.pattern);
        let name = format!("{}, {hops}", point.tier);
        let sample = Sample {
            x: size.get() as f64,
            y: ns.mean.get(),
            ci95: point.ci95,
            tip: format!(
                "{name}\n{size}: {}{} ns{}",
                figure(ns.mean.get()),
                interval(point.ci95),
                limit_words(point.theory.as_ref(), "ns")
            ),
        };
        match series.last_mut().filter(|s| s.name == name) {
            Some(line) => line.samples.push(sample),
            None => series.push(Series {
                name,
                look: Look {
                    dashed,
                    ..tier_look(topology, &point.tier)
                },
                samples: vec![sample],
            }),
        }
    }
    (!series.is_empty()).then(|| LineChart {
        label: format!("Latency by working set on {}", section.machine()),
        x_title: "working set [bytes]".into(),
        x: Spread::Sizes,
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
    })
}

/// Latency of single accesses: bars of the mean, whiskers to the 99th percentile.
pub fn single_accesses(section: &Section) -> Option<BarChart> {
    let topology = &section.document.header.topology;
    let mut groups = Vec::new();
    for tier in &topology.tiers {
        let single =
            |p: &&Point| p.experiment == Experiment::Latency && !is_chase(p) && p.tier == tier.name;
        let bar = |p: &Point| {
            let ns = p.ns?;
            let p99 = ns
                .p99
                .map_or(String::new(), |q| format!(", p99 {}", figure(q.get())));
            Some(Bar {
                name: p.op.to_string(),
                look: op_look(p.op),
                value: ns.mean.get(),
                figure: figure(ns.mean.get()),
                limit: None,
                reach: ns.p99.map(|q| q.get()),
                tip: format!(
                    "{} {}\nmean {}{} ns, p50 {}{p99}, max {}",
                    p.tier,
                    p.op,
                    figure(ns.mean.get()),
                    interval(p.ci95),
                    figure(ns.p50.get()),
                    figure(ns.max.get())
                ),
            })
        };
        let bars: Vec<Bar> = section
            .document
            .points
            .iter()
            .filter(single)
            .filter_map(bar)
            .collect();
        if !bars.is_empty() {
            groups.push(Group {
                name: tier.name.to_string(),
                bars,
            });
        }
    }
    (!groups.is_empty()).then(|| BarChart {
        label: format!("Latency of single accesses on {}", section.machine()),
        title: "one access to a flushed line [ns], whisker: p99".into(),
        legend: Vec::new(),
        groups,
    })
}

/// Bandwidth by threads on one tier: a line for each instruction, physics as a horizontal.
pub fn bandwidth(section: &Section, tier: &TierName) -> Option<LineChart> {
    let of_tier = |p: &&Point| p.experiment == Experiment::Bandwidth && p.tier == *tier;
    let points: Vec<&Point> = section.document.points.iter().filter(of_tier).collect();
    let mut series = Vec::new();
    for op in Op::ALL {
        for prefetch in [true, false] {
            let mut line: Vec<&Point> = points
                .iter()
                .copied()
                .filter(|p| p.op == op && p.prefetch == prefetch)
                .collect();
            line.sort_by_key(|p| p.threads);
            let name = if prefetch {
                op.to_string()
            } else {
                format!("{op}, no prefetch")
            };
            let samples: Vec<Sample> = line
                .iter()
                .filter_map(|p| bandwidth_sample(p, &name))
                .collect();
            if !samples.is_empty() {
                let look = Look {
                    dashed: !prefetch,
                    ..op_look(op)
                };
                series.push(Series {
                    name,
                    look,
                    samples,
                });
            }
        }
    }
    let limits = read_limit(section, tier).into_iter().collect();
    (!series.is_empty()).then(|| LineChart {
        label: format!("Bandwidth of {tier} by threads on {}", section.machine()),
        x_title: "threads".into(),
        x: Spread::Counts,
        y_title: format!("bandwidth of {tier} [GB/s]"),
        y: Spread::Linear,
        y_reach: Vec::new(),
        series,
        walls: Vec::new(),
        limits,
    })
}

fn bandwidth_sample(point: &Point, name: &str) -> Option<Sample> {
    let gbps = point.gbps?.get();
    Some(Sample {
        x: f64::from(point.threads),
        y: gbps,
        ci95: point.ci95,
        tip: format!(
            "{name} on {}\n{} threads: {}{} GB/s{}",
            point.tier,
            point.threads,
            figure(gbps),
            interval(point.ci95),
            limit_words(point.theory.as_ref(), "GB/s")
        ),
    })
}

fn read_limit(section: &Section, tier: &TierName) -> Option<Limit> {
    let tier = section.document.header.topology.tier(tier)?;
    let limit = tier.limits.as_ref()?.read.get();
    // What the link between sockets allows is not known.
    let of = match tier.kind {
        TierKind::Remote | TierKind::RemoteCxl => "memory's read limit",
        _ => "read limit",
    };
    Some(Limit {
        y: limit,
        name: format!("{of} {} GB/s", figure(limit)),
    })
}

/// The name of a tier in charts of several machines.
fn group_name(section: &Section, all: &[Section]) -> String {
    let same = all
        .iter()
        .filter(|s| s.machine() == section.machine())
        .count()
        > 1;
    if same {
        format!("{} (run {})", section.machine(), section.run)
    } else {
        section.machine().to_owned()
    }
}

/// Idle latency of every tier of every run.
pub fn idle_latencies(sections: &[Section]) -> Option<BarChart> {
    let mut groups = Vec::new();
    for section in sections {
        let topology = &section.document.header.topology;
        let bar = |summary: TierSummary| {
            let idle = summary.idle?;
            Some(Bar {
                name: summary.tier.name.to_string(),
                look: tier_look(topology, &summary.tier.name),
                value: idle.ns,
                figure: figure(idle.ns),
                limit: idle.theory.as_ref().map(|t| t.limit),
                reach: None,
                tip: format!(
                    "{} ({})\n{}{} ns, {}{}",
                    summary.tier.name,
                    summary.tier.kind.describe(),
                    figure(idle.ns),
                    interval(idle.ci95),
                    idle.from,
                    limit_words(idle.theory.as_ref(), "ns")
                ),
            })
        };
        let bars: Vec<Bar> = summarise(&section.document)
            .into_iter()
            .filter_map(bar)
            .collect();
        if !bars.is_empty() {
            groups.push(Group {
                name: group_name(section, sections),
                bars,
            });
        }
    }
    (!groups.is_empty()).then(|| BarChart {
        label: "Idle latency of each tier".into(),
        title: marked(
            "idle latency [ns]",
            "the least that physics allows",
            &groups,
        ),
        legend: Vec::new(),
        groups,
    })
}

/// Peak bandwidth of every tier of every run, a bar for each instruction.
pub fn peak_bandwidths(sections: &[Section]) -> Option<BarChart> {
    let mut groups = Vec::new();
    for section in sections {
        for summary in summarise(&section.document) {
            let (tier, kind) = (&summary.tier.name, summary.tier.kind);
            let bar = |(op, peak): (&Op, &crate::summary::Peak)| Bar {
                name: op.to_string(),
                look: op_look(*op),
                value: peak.gbps,
                figure: figure(peak.gbps),
                limit: peak.theory.as_ref().map(|t| t.limit),
                reach: None,
                tip: format!(
                    "{tier} {op}\n{} GB/s with {} threads{}",
                    figure(peak.gbps),
                    peak.threads,
                    limit_words(peak.theory.as_ref(), "GB/s")
                ),
            };
            let bars: Vec<Bar> = summary.peaks.iter().map(bar).collect();
            if !bars.is_empty() {
                groups.push(Group {
                    name: format!(
                        "{} · {}",
                        group_name(section, sections),
                        tier_words(tier, kind)
                    ),
                    bars,
                });
            }
        }
    }
    (!groups.is_empty()).then(|| BarChart {
        label: "Peak bandwidth of each tier by instruction".into(),
        title: marked("peak bandwidth [GB/s]", "what physics allows", &groups),
        legend: Vec::new(),
        groups,
    })
}

/// A title that explains the marks of limits, where there are any.
fn marked(title: &str, mark: &str, groups: &[Group]) -> String {
    let any = groups
        .iter()
        .flat_map(|g| &g.bars)
        .any(|b| b.limit.is_some());
    if any {
        format!("{title}, mark: {mark}")
    } else {
        title.into()
    }
}

fn tier_words(tier: &TierName, kind: TierKind) -> String {
    format!("{tier} ({})", kind.describe())
}
