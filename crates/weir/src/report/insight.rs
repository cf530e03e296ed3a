//! A run whose figures are no points, as a part of the page.

use maud::{Markup, html};
use weir_model::document::Header;
use weir_model::machine::MachineKind;

use crate::output::{alike, seconds};
use crate::shown::Shown;
use crate::store::RunId;
use weir_lab::Outcome;
use weir_lab::reproduce::Reproduction;

use super::Cited;

/// One such run on the page.
#[derive(Debug, Clone)]
pub struct Insight {
    /// Its number in the store.
    pub run: RunId,
    /// When it began, in UTC.
    pub began: String,
    /// What was run.
    pub verb: String,
    /// The command that repeats it.
    pub command: String,
    /// What it found.
    pub shown: Shown,
}

impl Insight {
    /// What its document starts with.
    pub fn head(&self) -> &Header {
        &self.shown.header
    }

    /// The machine's name; the processor's where only its counters are known.
    pub fn machine(&self) -> &str {
        match self.head().name() {
            "" => &self.verb,
            name => name,
        }
    }
}

impl Cited for Insight {
    fn origin(&self) -> String {
        let head = self.head();
        let partial = if head.partial { ", partial" } else { "" };
        format!(
            "run {}{partial} · {} · {} UTC · seed {} · Weir {}",
            self.run,
            self.machine(),
            self.began,
            head.seed,
            head.weir
        )
    }

    fn command(&self) -> &str {
        &self.command
    }
}

/// The machine in a few lines, with the run.
pub fn machine(insight: &Insight) -> Markup {
    let head = insight.head();
    let kind = (!head.machine.is_unknown()).then_some(match head.machine.kind {
        MachineKind::Host => "measured",
        MachineKind::Sim => "simulated",
    });
    html! {
        section class="machine" {
            h2 { (insight.machine()) " "
                @if let Some(kind) = kind { span class={ "kind " (kind) } { (kind) } } }
            p {
                @if !head.processor.is_empty() { (head.processor) ": " }
                (subject(&insight.shown))
            }
            p class="small" {
                (insight.origin()) " · " (insight.verb) " · took " (seconds(head.elapsed_s))
                @if !head.machine.digest.is_empty() { " · digest " (head.machine.digest) }
            }
            p class="small" { code { (insight.command) } }
            @if head.partial {
                p class="warning" { "Stopped before the end: what is missing was never measured." }
            }
            @for warning in alike(head.warnings.iter().map(String::as_str)) {
                p class="warning" { (warning) }
            }
        }
    }
}

fn subject(shown: &Shown) -> String {
    // Its first sentence is of a kind of rows, its tables of a paper each.
    if shown.header.schema == Reproduction::SCHEMA {
        let papers = shown
            .views
            .iter()
            .filter_map(|view| view.title.split(':').next());
        return papers.collect::<Vec<_>>().join(", ");
    }
    match shown.title {
        "" => shown
            .answer
            .first()
            .map_or(String::new(), |verdict| verdict.about.clone()),
        title => within(title),
    }
}

/// A title within a line: what is no abbreviation begins small.
fn within(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(next)) if next.is_lowercase() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_in_a_title_stay_large() {
        assert_eq!(
            within("Packing of VMs into pools"),
            "packing of VMs into pools"
        );
        assert_eq!(within("STREAM in a mapped file"), "STREAM in a mapped file");
    }
}
