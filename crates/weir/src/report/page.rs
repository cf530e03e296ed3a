//! The page: what was measured, on what, under which conditions, and what it means.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use weir_lab::Severity;
use weir_model::document::Point;
use weir_model::machine::MachineKind;

use super::chart::Room;
use super::{Section, figures};
use crate::output::{alike, figure, seconds};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
pub fn page(sections: &[Section]) -> String {
    let machines: Vec<&str> = sections.iter().map(Section::machine).collect();
    let title = format!("Weir: {}", machines.join(", "));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Memory tiers of " (machines.join(" and ")) }
                    div class="machines" { @for section in sections { (machine(section)) } }
                }
                main {
                    (side_by_side(sections))
                    (latency(sections))
                    (bandwidth(sections))
                    (verdicts(sections))
                    (conditions(sections))
                    @for section in sections { (table(section)) }
                }
                footer { "Figures with ± carry the half-width of their 95 % confidence interval. GB/s is 10⁹ bytes a second." }
                div id="tip" role="status" hidden {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

fn machine(section: &Section) -> Markup {
    let header = &section.document.header;
    let topology = &header.topology;
    let kind = match header.machine.kind {
        MachineKind::Host => "measured",
        MachineKind::Sim => "simulated",
    };
    html! {
        section class="machine" {
            h2 { (header.machine.name) " " span class={ "kind " (kind) } { (kind) } }
            p { (topology.processor) ", " (topology.cores.len()) " cores to measure from"
                @if let Some(clock) = topology.clock { ", " (figure(clock.get())) " GHz" } }
            ul {
                @for tier in &topology.tiers {
                    li { b { (tier.name) } " " (tier.kind.describe()) ", " (tier.capacity) ", " (tier.description) }
                }
            }
            p class="small" {
                (section.origin()) " · " (section.verb) " · " (section.began) " UTC · took "
                (seconds(header.elapsed_s)) " · digest " (header.machine.digest)
            }
            @if header.partial {
                p class="warning" { "Stopped before the end: what is missing was never measured." }
            }
            @for warning in alike(header.warnings.iter().map(String::as_str)) {
                p class="warning" { (warning) }
            }
        }
    }
}

/// A chart in both rooms, with the names of its runs and a way to keep it.
fn plate(name: &str, origin: &str, draw: impl Fn(Room) -> Markup) -> Markup {
    html! {
        figure {
            div class="chart" { (draw(Room::Wide)) (draw(Room::Narrow)) }
            figcaption { span { (name) " · " (origin) } button type="button" class="save" { "save figure" } }
        }
    }
}

fn all_origins(sections: &[Section]) -> String {
    let runs: Vec<String> = sections
        .iter()
        .map(|s| format!("run {} ({})", s.run, s.machine()))
        .collect();
    runs.join(", ")
}

fn side_by_side(sections: &[Section]) -> Markup {
    let latency = figures::idle_latencies(sections);
    let bandwidth = figures::peak_bandwidths(sections);
    html! {
        @if latency.is_some() || bandwidth.is_some() {
            h2 { "Tiers side by side" }
            div class="plates" {
                @if let Some(chart) = latency {
                    (plate("Idle latency", &all_origins(sections), |room| chart.draw(room)))
                }
                @if let Some(chart) = bandwidth {
                    (plate("Peak bandwidth", &all_origins(sections), |room| chart.draw(room)))
                }
            }
        }
    }
}

fn latency(sections: &[Section]) -> Markup {
    let stairs: Vec<Markup> = (sections.iter())
        .filter_map(|s| Some((s, figures::staircase(s, sections)?)))
        .map(|(s, chart)| {
            plate("Latency by working set", &s.origin(), |room| {
                chart.draw(room)
            })
        })
        .collect();
    let singles: Vec<Markup> = (sections.iter())
        .filter_map(|s| Some((s, figures::single_accesses(s)?)))
        .map(|(s, chart)| plate("Single accesses", &s.origin(), |room| chart.draw(room)))
        .collect();
    html! {
        @if !stairs.is_empty() || !singles.is_empty() {
            h2 { "Latency" }
            p { "Dependent loads over growing working sets: each plateau is a cache, the last one is the tier. "
                "TLB-friendly hops stay within what the TLB covers; random ones add page walks." }
            div class="plates" { @for plate in stairs.iter().chain(&singles) { (plate) } }
        }
    }
}

fn bandwidth(sections: &[Section]) -> Markup {
    let mut plates = Vec::new();
    for section in sections {
        for tier in &section.document.header.topology.tiers {
            if let Some(chart) = figures::bandwidth(section, &tier.name) {
                let name = format!("Bandwidth of {} by threads", tier.name);
                plates.push(plate(&name, &section.origin(), |room| chart.draw(room)));
            }
        }
    }
    html! {
        @if !plates.is_empty() {
            h2 { "Bandwidth" }
            p { "Bytes of the program, all threads together. An ordinary store also reads its line first, "
                "so that the memory moves twice what is shown." }
            div class="plates" { @for plate in &plates { (plate) } }
        }
    }
}

fn verdicts(sections: &[Section]) -> Markup {
    html! {
        h2 { "What this means" }
        div class="columns" {
            @for section in sections {
                section {
                    h3 { (section.machine()) }
                    ul class="verdicts" {
                        @for verdict in weir_lab::verdicts(&section.document.header.topology, &section.document.points) {
                            li class=(severity(verdict.severity)) { b { (verdict.about) } ": " (verdict.text) }
                        }
                    }
                }
            }
        }
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Doubt => "doubt",
        Severity::Wrong => "wrong",
    }
}

fn conditions(sections: &[Section]) -> Markup {
    html! {
        h2 { "Conditions" }
        div class="columns" {
            @for section in sections {
                section {
                    h3 { (section.machine()) }
                    ul {
                        @for (condition, count) in counted_conditions(&section.document.points) {
                            li { (condition) " " span class="small" { "(" (count) " figures)" } }
                        }
                    }
                    @let missing = section.document.header.capabilities.iter().filter(|c| !c.present);
                    @for capability in missing {
                        details {
                            summary { "lacks " b { (capability.feature.name()) } }
                            p { (capability.detail) }
                            @if !capability.cost.is_empty() { p { "Costs: " (capability.cost) } }
                            @if !capability.remedy.is_empty() { p { "Remedy: " (capability.remedy) } }
                        }
                    }
                }
            }
        }
    }
}

/// Conditions with how many figures were taken under each, the commonest first.
fn counted_conditions(points: &[Point]) -> Vec<(&str, usize)> {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for condition in points.iter().flat_map(|p| &p.conditions) {
        match counted.iter_mut().find(|(seen, _)| seen == condition) {
            Some((_, count)) => *count += 1,
            None => counted.push((condition, 1)),
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted
}

fn table(section: &Section) -> Markup {
    let value = |value: Option<f64>| value.map_or("–".to_owned(), figure);
    html! {
        details class="table" {
            summary { "Table of the " (section.document.points.len()) " figures of " (section.origin()) }
            div class="scroll" { table {
                thead { tr {
                    th { "experiment" } th { "tier" } th { "op" } th { "pattern" } th { "threads" }
                    th { "working set" } th { "prefetch" } th { "GB/s" } th { "mean ns" } th { "p50 ns" }
                    th { "p99 ns" } th { "± 95 %" } th { "windows" } th { "limit" } th { "remark" }
                } }
                tbody { @for point in &section.document.points { tr {
                    td { (point.experiment.name()) } td { (point.tier) } td { (point.op) } td { (point.pattern) }
                    td class="n" { (point.threads) }
                    td class="n" { (point.wss_bytes.map_or("–".to_owned(), |b| b.to_string())) }
                    td { @if point.prefetch { "on" } @else { "off" } }
                    td class="n" { (value(point.gbps.map(|g| g.get()))) }
                    td class="n" { (value(point.ns.map(|n| n.mean.get()))) }
                    td class="n" { (value(point.ns.map(|n| n.p50.get()))) }
                    td class="n" { (value(point.ns.and_then(|n| n.p99).map(|q| q.get()))) }
                    td class="n" { (value(point.ci95)) } td class="n" { (point.samples) }
                    td class="n" { (value(point.theory.as_ref().map(|t| t.limit))) }
                    td { (remark(point)) }
                } } }
            } }
        }
    }
}

fn remark(point: &Point) -> String {
    let kind = if point.ns.is_some() {
        "latency"
    } else {
        "bandwidth"
    };
    match (&point.error, &point.theory) {
        (Some(error), _) => error.clone(),
        (None, Some(theory)) if theory.beaten => format!("beats the {kind} that physics allows"),
        (None, Some(theory)) => format!("{:.0} % of {}", theory.share_pct, theory.basis),
        (None, None) => String::new(),
    }
}
