//! The tiers of every run side by side.

use weir_model::access::Op;
use weir_model::document::Point;
use weir_model::topology::{TierKind, TierName};

use super::words::{distinct, several, sign};
use super::{loaded, op_look, run_name, tail, tier_look};
use crate::output::{figure, interval};
use crate::report::Section;
use crate::report::chart::{Bar, BarChart, Drawn, Group, Look, Series, Stroke};
use crate::summary::{Peak, TierSummary, is_chase, leaves_caches, summarise};

/// Idle latency of every tier of every run.
pub fn idle_latencies(sections: &[Section]) -> Option<Drawn> {
    let mut groups = Vec::new();
    for section in sections {
        let summaries = summarise(&section.document);
        let bars: Vec<Bar> = summaries
            .iter()
            .filter_map(|s| idle(section, s, sections))
            .collect();
        if !bars.is_empty() {
            let name = run_name(section, sections);
            groups.push(Group { name, bars });
        }
    }
    (!groups.is_empty()).then(|| {
        let chart = BarChart {
            label: "Idle latency of each tier".into(),
            title: marked(
                "idle latency [ns]",
                "the least that physics allows",
                &groups,
            ),
            legend: Vec::new(),
            groups,
        };
        Drawn::new("Idle latency", chart)
    })
}

fn idle(section: &Section, summary: &TierSummary, all: &[Section]) -> Option<Bar> {
    let idle = summary.idle.as_ref()?;
    let tier = &summary.tier;
    let limit = idle.theory.as_ref().map_or(String::new(), |t| {
        format!("\nlimit {} ns: {}", figure(t.limit), t.basis)
    });
    let points = section.document.points.iter();
    let last = points.filter(|p| p.tier == tier.name && is_chase(p));
    let same = |p: &&Point| p.ns.is_some_and(|ns| ns.mean.get() == idle.ns);
    Some(Bar {
        name: tier.name.to_string(),
        look: tier_look(all, &tier.name),
        value: idle.ns,
        figure: figure(idle.ns) + &interval(idle.ci95),
        limit: idle.theory.as_ref().map(|t| t.limit),
        reach: None,
        sign: last.filter(same).find_map(sign),
        tip: format!(
            "{} ({})\n{}{} ns, {}{limit}",
            tier.name,
            tier.kind.name(),
            figure(idle.ns),
            interval(idle.ci95),
            idle.from,
        ),
    })
}

/// Peak bandwidth of every tier of every run, a bar for each instruction.
pub fn peak_bandwidths(sections: &[Section]) -> Option<Drawn> {
    let mut groups = Vec::new();
    for section in sections {
        for summary in summarise(&section.document) {
            let (tier, kind) = (&summary.tier.name, summary.tier.kind);
            let bars: Vec<Bar> = (summary.peaks.iter())
                .map(|(op, best)| peak(section, tier, *op, best))
                .collect();
            if !bars.is_empty() {
                let name = format!(
                    "{} · {}",
                    run_name(section, sections),
                    tier_words(tier, kind)
                );
                groups.push(Group { name, bars });
            }
        }
    }
    (!groups.is_empty()).then(|| {
        let chart = BarChart {
            label: "Peak bandwidth of each tier by instruction".into(),
            title: marked("peak bandwidth [GB/s]", "what physics allows", &groups),
            legend: Vec::new(),
            groups,
        };
        Drawn::new("Peak bandwidth", chart)
    })
}

fn peak(section: &Section, tier: &TierName, op: Op, peak: &Peak) -> Bar {
    let limit = peak.theory.as_ref().map_or(String::new(), |t| {
        format!("\nlimit {} GB/s: {}", figure(t.limit), t.basis)
    });
    let same = |p: &&Point| {
        p.experiment == "bandwidth"
            && (&p.tier, p.op, p.threads) == (tier, op, peak.threads)
            && p.gbps.is_some_and(|g| g.get() == peak.gbps)
    };
    Bar {
        name: op.to_string(),
        look: op_look(op),
        value: peak.gbps,
        figure: figure(peak.gbps) + &interval(peak.ci95),
        limit: peak.theory.as_ref().map(|t| t.limit),
        reach: None,
        sign: section.document.points.iter().filter(same).find_map(sign),
        tip: format!(
            "{tier} {op}\n{}{} GB/s with {}{limit}",
            figure(peak.gbps),
            interval(peak.ci95),
            several(peak.threads, "thread"),
        ),
    }
}

/// A title that explains the marks of limits, where there are any.
fn marked(title: &str, mark: &str, groups: &[Group]) -> String {
    let mut bars = groups.iter().flat_map(|g| &g.bars);
    if bars.any(|b| b.limit.is_some()) {
        format!("{title}, mark: {mark}")
    } else {
        title.into()
    }
}

fn tier_words(tier: &TierName, kind: TierKind) -> String {
    format!("{tier} ({})", kind.name())
}

/// The name of a tier of a run in a chart of them all, and its look: a colour a tier, a stroke a
/// run.
fn of_run(section: &Section, tier: &TierName, at: usize, all: &[Section]) -> (String, Look) {
    let strokes = [Stroke::Solid, Stroke::Dashed, Stroke::Dotted];
    let name = match all {
        [_] => tier.to_string(),
        _ => format!("{} {tier}", run_name(section, all)),
    };
    let look = Look {
        stroke: strokes[at % strokes.len()],
        ..tier_look(all, tier)
    };
    (name, look)
}

/// The latency of single requests to each tier, with nothing else. Where no run has such points,
/// the hops of its largest chase.
pub fn tails_side_by_side(sections: &[Section]) -> Option<Drawn> {
    let alone = |p: &Point| {
        p.experiment == "tail" && p.beside.is_none() && p.threads == 1 && p.ns.is_some()
    };
    let single = sections.iter().any(|s| s.document.points.iter().any(alone));
    let mut series: Vec<Series> = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        for tier in super::tiers(section) {
            let points = section.numbered().filter(|(_, p)| p.tier == *tier);
            let chosen = if single {
                let mut points = points;
                points.find(|(_, p)| alone(p))
            } else {
                let chases = points.filter(|(_, p)| is_chase(p) && p.ns.is_some());
                let last =
                    chases.max_by_key(|(_, p)| (p.pattern == "chase_tlb_friendly", p.wss_bytes));
                last.filter(|(_, p)| leaves_caches(&section.document, p))
            };
            if let Some((number, point)) = chosen {
                let (name, look) = of_run(section, tier, at, sections);
                series.extend(tail::curve(name, look, point, section.latency(number)));
            }
        }
    }
    let (name, of) = if single {
        ("Distribution of single requests", "latency of a request")
    } else {
        (
            "Distribution of dependent loads",
            "latency of a hop, the largest chase",
        )
    };
    (!series.is_empty()).then(|| Drawn::new(name, tail::chart(name.into(), of, series)))
}

/// Loaded latency of every tier of every run under reads alone: the curves that instruments are
/// compared by. None where a run's own chart says as much.
pub fn loaded_side_by_side(sections: &[Section]) -> Option<Drawn> {
    let mut series = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        for tier in super::tiers(section) {
            let of_tier = |p: &&Point| p.experiment == "loaded" && p.tier == *tier;
            let points = || section.document.points.iter().filter(of_tier);
            let reads = |p: &&Point| {
                p.beside
                    .as_ref()
                    .is_some_and(|b| b.read_share >= 1.0 && b.tier == *tier)
            };
            let counts = distinct(
                points()
                    .filter(reads)
                    .filter_map(|p| p.beside.as_ref())
                    .map(|b| b.threads),
            );
            let Some(threads) = counts.into_iter().max() else {
                continue;
            };
            let most = |p: &&Point| match &p.beside {
                None => true,
                Some(beside) => reads(p) && beside.threads == threads,
            };
            let (name, look) = of_run(section, tier, at, sections);
            series.extend(loaded::curve(name, look, points().filter(most)));
        }
    }
    let name = "Loaded latency, reads only";
    (series.len() > 1).then(|| {
        let chart = loaded::chart(
            name.into(),
            "traffic on the tier [GB/s]".into(),
            series,
            Vec::new(),
        );
        Drawn::new(name, chart)
    })
}
