//! The page: what was measured, on what, under which conditions, and what it means.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use weir_lab::interplay::Interplay;
use weir_lab::reproduce::Reproduction;
use weir_lab::studies::POINT_STUDIES;
use weir_lab::verdict::name;
use weir_lab::{Outcome as _, Study as _};
use weir_model::document::Point;
use weir_model::frame::Frame;

use super::chapters::{Chapter, chapters};
use super::figures::words::several;
use super::{Cited as _, Insight, Section, head, insight};
use crate::output::{Spread, distinct};
use crate::render::text;

const STYLE: &str = include_str!("page.css");
const DARK: &str = include_str!("dark.css");
const SCRIPT: &str = include_str!("page.js");

/// A page of fewer chapters than this is short enough without a list of them.
const LONG: usize = 4;

/// Titles of studies about page placement.
const PAGES: [&str; 5] = [
    "Tiering",
    "Tiering of drawn workloads",
    "The kernel's tiering",
    "Touched pages",
    "Advice on tiering",
];

/// Titles of studies about programs on slower tiers.
const SLOWDOWN: [&str; 4] = [
    "Slowdown by cause",
    "Predictions",
    "The model of slowdown",
    "Interleaving",
];

/// The whole page.
pub fn page(sections: &[Section], insights: &[Insight]) -> String {
    let named = sections.iter().map(Section::machine);
    let machines = distinct(named.chain(insights.iter().map(Insight::machine)));
    let title = format!("Weir: {}", machines.join(", "));
    let chapters = chapters(sections, insights);
    let heading = heading(sections, insights, &machines);
    let figures = lists(sections, insights);
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
                    h1 { (heading.trim_end_matches([' ', ':'])) }
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
                    @if !figures.0.is_empty() {
                        section id="figures" {
                            h2 { "Every figure" }
                            (figures)
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

/// What a page is about, and on which machines.
fn heading(sections: &[Section], insights: &[Insight], machines: &[&str]) -> String {
    let reproduced = |insight: &Insight| insight.head().schema == Reproduction::SCHEMA;
    if sections.is_empty() && !insights.is_empty() && insights.iter().all(reproduced) {
        return "Published figures and ours".to_owned();
    }
    let machines = match machines {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        machines => machines.concat(),
    };
    format!("{} {machines}", about(sections, insights))
}

/// What a page is about: words that the names of its machines follow.
fn about(sections: &[Section], insights: &[Insight]) -> String {
    if let (Some(study), []) = (study_of(sections), insights) {
        return format!("{study} of");
    }
    if !sections.is_empty() {
        return "Memory tiers of".to_owned();
    }
    let titles = distinct(insights.iter().map(|insight| insight.shown.title));
    match titles.as_slice() {
        ["A fitted machine"] => "Fit of".to_owned(),
        ["Designs"] => "Results of".to_owned(),
        ["Programs together"] => "Programs on".to_owned(),
        titles if titles.iter().all(|title| SLOWDOWN.contains(title)) => "Slowdown on".to_owned(),
        [title @ ("Steering" | "Touched pages")] => format!("{title} on"),
        titles if titles.iter().all(|title| PAGES.contains(title)) => "Tiering on".to_owned(),
        [title] if !title.is_empty() => format!("{title}:"),
        _ => "Runs on".to_owned(),
    }
}

/// What runs mean, their charts and their figures, for a page that another program makes, such as a notebook. Its style
/// sheet reaches nothing outside.
pub fn fragment(sections: &[Section], insights: &[Insight]) -> String {
    let body = html! {
        (head::verdicts(sections, insights))
        @for chapter in &chapters(sections, insights) { (chapter.draw()) }
        section {
            (lists(sections, insights))
            details {
                summary { "Machine and run" }
                div class="machines" {
                    @for section in sections { (head::machine(section)) }
                    @for insight in insights { (insight::machine(insight)) }
                }
            }
        }
    };
    framed(&body)
}

/// The rows of a list, for such a page.
pub fn table(frame: &Frame) -> String {
    framed(&html! { div class="scroll" { (cells(frame)) } })
}

fn framed(body: &Markup) -> String {
    // Nested rules are of what is inside only. Notebooks say in these places whether they are dark.
    let own = STYLE.replace(":root {", "& {").replace("html {", "& {");
    let dark = [
        "body[data-jp-theme-light=false]",
        "body.vscode-dark",
        "html[theme=dark]",
    ]
    .join(" &, ");
    let style = format!(
        ".weir {{\n{}\n{dark} & {{\n{DARK}}}\n}}\n",
        own.replace("body {", "& {")
    );
    let part = html! { div class="weir" { style { (PreEscaped(style)) } (body) } };
    part.into_string().replace(forbidden_in_xml, "\u{fffd}")
}

/// The title of the one study that all runs are of.
fn study_of(sections: &[Section]) -> Option<&'static str> {
    let verbs = distinct(sections.iter().map(|section| section.verb.as_str()));
    let [verb] = verbs.as_slice() else {
        return None;
    };
    if *verb == Interplay::VERB {
        return Some("Interference between tenants");
    }
    let name = verb.strip_prefix("bench ")?;
    let mut studies = POINT_STUDIES.iter();
    Some(studies.find(|study| study.name == name)?.title).filter(|title| !title.is_empty())
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
                            @for kind in counted_conditions(&section.document.points) {
                                li { (kind.sentence()) " " span class="small" { "(" (counted(&kind.of)) ")" } }
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

/// Conditions with the figures that were taken under each, the commonest first.
fn counted_conditions(points: &[Point]) -> Vec<Spread<&Point>> {
    let said = points.iter().flat_map(|point| {
        let conditions = point.conditions.iter();
        conditions.map(move |condition| (condition.as_str(), point))
    });
    let mut counted = Spread::gather(said);
    for kind in &mut counted {
        kind.of.dedup_by(|a, b| std::ptr::eq(*a, *b));
    }
    counted.sort_by_key(|kind| std::cmp::Reverse(kind.of.len()));
    counted
}

/// How many figures there are, with the names of the first.
fn counted(points: &[&Point]) -> String {
    const NAMED: usize = 2;
    let mut names: Vec<String> = points.iter().take(NAMED).map(|point| name(point)).collect();
    if points.len() > NAMED {
        names.push(format!("{} more", points.len() - NAMED));
    }
    let count = several(points.len() as u32, "figure");
    format!("{count}: {}", names.join("; "))
}

/// Every list of the runs.
fn lists(sections: &[Section], insights: &[Insight]) -> Markup {
    html! {
        @for section in sections {
            (rows(&Frame::of("figures", &section.document.points), &section.origin()))
        }
        @for insight in insights {
            @for frame in &insight.shown.frames { (rows(frame, &insight.origin())) }
        }
    }
}

/// A list of rows, folded; nothing of one without rows.
fn rows(frame: &Frame, origin: &str) -> Markup {
    if frame.rows.is_empty() {
        return html! {};
    }
    html! {
        details class="table" {
            summary { "Table " (frame.name.replace('_', " ")) ", " (several(frame.rows.len() as u32, "row")) ", of " (origin) }
            div class="scroll" { (cells(frame)) }
        }
    }
}

/// Every row of a list with every column that holds something.
fn cells(frame: &Frame) -> Markup {
    let rows = || frame.rows.iter();
    let used = |at: &usize| rows().any(|row| row.get(*at).is_some_and(|value| !value.is_null()));
    let columns: Vec<usize> = (0..frame.columns.len()).filter(used).collect();
    let heads = || columns.iter().filter_map(|&at| frame.columns.get(at));
    html! {
        table {
            thead { tr { @for column in heads() { th title=(column.doc) { (text::heading(column)) } } } }
            tbody {
                @for row in rows() {
                    tr { @for column in heads() { td { (text::value(frame, row, column)) } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_rows_is_left_out() {
        #[derive(serde::Serialize, schemars::JsonSchema)]
        struct Row {
            ns: f64,
        }
        let list = |all: &[Row]| rows(&Frame::of("latencies", all), "run 1").into_string();
        assert_eq!(list(&[]), "");
        assert!(list(&[Row { ns: 90.0 }]).contains("1 row"));
    }
}
