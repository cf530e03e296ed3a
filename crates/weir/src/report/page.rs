//! The page: what was measured, on what, under which conditions, and what it means.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use weir_model::document::Point;

use super::chapters::{Chapter, chapters};
use super::{Cited as _, Insight, Section, head, insight};
use crate::output::points::mix;
use crate::output::{distinct, figure};

const STYLE: &str = include_str!("page.css");
const DARK: &str = include_str!("dark.css");
const SCRIPT: &str = include_str!("page.js");

/// A page of fewer chapters than this is short enough without a list of them.
const LONG: usize = 4;

/// The whole page.
pub fn page(sections: &[Section], insights: &[Insight]) -> String {
    let named = sections.iter().map(Section::machine);
    let machines = distinct(named.chain(insights.iter().map(Insight::machine)));
    let title = format!("Weir: {}", machines.join(", "));
    let chapters = chapters(sections, insights);
    let about = match sections {
        [] if insights.iter().all(Insight::is_steering) => "Steering on",
        [] => "Slowdown on",
        _ => "Memory tiers of",
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style())) }
            }
            body {
                header {
                    button type="button" id="theme" hidden { "dark or light" }
                    h1 { (about) " " (machines.join(" and ")) }
                    div class="machines" {
                        @for section in sections { (head::machine(section)) }
                        @for insight in insights { (insight::machine(insight)) }
                    }
                    @if chapters.len() >= LONG { (contents(&chapters, sections)) }
                }
                main {
                    (head::verdicts(sections, insights))
                    @for chapter in &chapters { (chapter.draw()) }
                    @if !sections.is_empty() {
                        (conditions(sections))
                        section id="figures" {
                            h2 { "Every figure" }
                            @for section in sections { (table(section)) }
                        }
                    }
                }
                footer { "Figures with ± carry the half-width of their 95 % confidence interval. GB/s is 10⁹ bytes a second." }
                div id="tip" role="status" hidden {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    // XML, which a saved figure is, has no place for control characters, escaped or not.
    page.into_string().replace(forbidden_in_xml, "\u{fffd}")
}

/// The style sheet: dark where the system is, unless the reader chose; paper is always light.
fn style() -> String {
    format!(
        "{STYLE}@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{\n{DARK}}} }}\n\
         @media screen {{ :root[data-theme=dark] {{\n{DARK}}} }}\n"
    )
}

fn forbidden_in_xml(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn contents(chapters: &[Chapter], sections: &[Section]) -> Markup {
    html! {
        nav aria-label="contents" {
            a href="#verdicts" { "What this means" }
            @for chapter in chapters { a href={ "#" (chapter.id) } { (chapter.title) } }
            @if !sections.is_empty() {
                a href="#conditions" { "Conditions" }
                a href="#figures" { "Every figure" }
            }
        }
    }
}

fn conditions(sections: &[Section]) -> Markup {
    html! {
        section id="conditions" {
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
    html! {
        details class="table" {
            summary { "Table of the " (section.document.points.len()) " figures of " (section.origin()) }
            div class="scroll" { table {
                thead { tr {
                    th { "experiment" } th { "tier" } th { "what" } th { "threads" }
                    th { "working set" } th { "prefetch" } th { "GB/s" } th { "mean ns" } th { "p50 ns" }
                    th { "p99 ns" } th { "± 95 %" } th { "samples" } th { "limit" } th { "remark" }
                } }
                tbody { @for point in &section.document.points { (row(point)) } }
            } }
        }
    }
}

fn row(point: &Point) -> Markup {
    let value = |value: Option<f64>| value.map_or("–".to_owned(), figure);
    html! {
        tr {
            td { (point.experiment.name()) } td { (point.tier) } td { (what(point)) }
            td { (point.threads) }
            td { (point.wss_bytes.map_or("–".to_owned(), |b| b.to_string())) }
            td { @if point.prefetch { "on" } @else { "off" } }
            td { (value(point.gbps.map(|g| g.get()))) }
            td { (value(point.ns.map(|n| n.mean.get()))) }
            td { (value(point.ns.map(|n| n.p50.get()))) }
            td { (value(point.ns.and_then(|n| n.p99).map(|q| q.get()))) }
            td { (value(point.ci95)) } td { (point.samples) }
            td { (value(point.theory.as_ref().map(|t| t.limit))) }
            td { (remark(point)) }
        }
    }
}

/// Instruction and order of lines, and whatever else tells a point from its neighbours.
fn what(point: &Point) -> String {
    let mut parts = vec![format!("{} {}", point.op, point.pattern)];
    parts.extend(point.kernel.clone());
    parts.extend(point.source.as_ref().map(|tier| format!("from {tier}")));
    parts.extend(point.block_bytes.map(|size| format!("{size} blocks")));
    parts.extend(point.batch.map(|n| format!("batch {n}")));
    if !point.cores.is_empty() {
        let cores: Vec<String> = point.cores.iter().map(u32::to_string).collect();
        parts.push(format!("cores {}", cores.join(", ")));
    }
    parts.extend(point.beside.as_ref().map(|beside| {
        let drawn = beside.traffic_gbps.or(beside.gbps);
        let drawn = drawn.map_or(String::new(), |g| format!(", {} GB/s", figure(g.get())));
        format!(
            "beside {} x {} {} on {}, pause {} ns{drawn}",
            beside.threads,
            beside.op,
            mix(beside),
            beside.tier,
            figure(beside.pause_ns.get()),
        )
    }));
    parts.join(", ")
}

fn remark(point: &Point) -> String {
    let kind = if point.gbps.is_some() {
        "bandwidth"
    } else {
        "latency"
    };
    let sign = super::figures::sign(point).map(|sign| sign.meaning());
    match (&point.error, &point.theory) {
        (Some(error), _) => error.clone(),
        (None, Some(theory)) if theory.beaten => format!("beats the {kind} that physics allows"),
        (None, Some(theory)) => {
            let limit = format!("{:.0} % of {}", theory.share_pct, theory.basis);
            sign.map_or(limit.clone(), |sign| format!("{sign}; {limit}"))
        }
        (None, None) => sign.unwrap_or_default().to_owned(),
    }
}
