//! The page: what was measured, on what, under which conditions, and what it means.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use weir_model::document::Point;
use weir_model::frame::Frame;

use super::chapters::{Chapter, chapters};
use super::{Cited as _, Insight, Section, head, insight};
use crate::output::distinct;
use crate::render::text;

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
        [] => match distinct(insights.iter().map(|insight| insight.shown.title)).as_slice() {
            ["Steering"] => "Steering on",
            titles if titles.contains(&"") => "Runs on",
            _ => "Slowdown on",
        },
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
                    @if !sections.is_empty() { (conditions(sections)) }
                    section id="figures" {
                        h2 { "Every figure" }
                        @for section in sections {
                            (table(&Frame::of("figures", &section.document.points), &section.origin()))
                        }
                        @for insight in insights {
                            @for frame in &insight.shown.frames {
                                (table(frame, &insight.origin()))
                            }
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
            @if !sections.is_empty() { a href="#conditions" { "Conditions" } }
            a href="#figures" { "Every figure" }
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

/// Every row of a list with every column that holds something.
fn table(frame: &Frame, origin: &str) -> Markup {
    let rows = || frame.rows.iter();
    let used = |at: &usize| rows().any(|row| row.get(*at).is_some_and(|value| !value.is_null()));
    let columns: Vec<usize> = (0..frame.columns.len()).filter(used).collect();
    let heads = || columns.iter().filter_map(|&at| frame.columns.get(at));
    html! {
        details class="table" {
            summary { "Table of the " (frame.rows.len()) " " (frame.name.replace('_', " ")) " of " (origin) }
            div class="scroll" { table {
                thead { tr { @for column in heads() { th title=(column.doc) { (text::heading(column)) } } } }
                tbody {
                    @for row in rows() {
                        tr { @for column in heads() { td { (text::value(frame, row, column)) } } }
                    }
                }
            } }
        }
    }
}
