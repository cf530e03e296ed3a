//! What stands before the figures: which machines, and what their figures mean.

use maud::{Markup, html};
use weir_lab::{About, Outcome as _, Severity, Verdict};
use weir_model::machine::MachineKind;

use super::{Cited as _, Insight, Section};
use crate::output::{alike, figure, seconds};

/// This many verdicts of a run are in sight; more wait to be unfolded.
const IN_SIGHT: usize = 12;

/// A machine in a few lines, with its run.
pub fn machine(section: &Section) -> Markup {
    let header = &section.document.header;
    let topology = &header.topology;
    let kind = match header.machine.kind {
        MachineKind::Host => "measured",
        MachineKind::Sim => "simulated",
    };
    html! {
        section class="machine" {
            h2 { (header.machine.name) " " span class={ "kind " (kind) } { (kind) } }
            // A file of another tool says nothing of processor, cores and sizes.
            @if !topology.cores.is_empty() {
                p { (topology.processor) ", " (topology.cores.len()) " cores to measure from"
                    @if let Some(clock) = topology.clock { ", " (figure(clock.get())) " GHz" } }
            }
            ul {
                @for tier in &topology.tiers {
                    li { b { (tier.name) } " " (tier.kind.name())
                        @if tier.capacity.get() > 0 { ", " (tier.capacity) } ", " (tier.description) }
                }
            }
            p class="small" {
                (section.origin()) " · " (section.verb) " · took " (seconds(header.elapsed_s))
                " · digest " (header.machine.digest)
            }
            p class="small" { code { (section.command) } }
            @if header.partial {
                p class="warning" { "Stopped before the end: what is missing was never measured." }
            }
            @for warning in alike(header.warnings.iter().map(String::as_str)) {
                p class="warning" { (warning) }
            }
        }
    }
}

/// What the figures mean, run by run, what matters most first.
pub fn verdicts(sections: &[Section], insights: &[Insight]) -> Markup {
    html! {
        section id="verdicts" {
            h2 { "What this means" }
            div class="columns" {
                @for section in sections {
                    @let all = meaning(section);
                    section {
                        h3 { (section.machine()) }
                        @let (first, more) = all.split_at(all.len().min(IN_SIGHT));
                        (list(first))
                        @if !more.is_empty() {
                            details { summary { "and " (more.len()) " more" } (list(more)) }
                        }
                        @if all.is_empty() { p class="small" { "Nothing can be concluded from these figures." } }
                    }
                }
                @for insight in insights {
                    section {
                        h3 { (insight.machine()) ", run " (insight.run) }
                        ul class="verdicts" {
                            @for verdict in &insight.shown.answer {
                                li class=(severity(verdict.severity)) { (verdict.about) ": " (verdict.text) "." }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a run's figures mean.
fn meaning(section: &Section) -> Vec<Verdict> {
    let header = &section.document.header;
    let about = About::of(header);
    match &section.interplay {
        Some(matrix) => matrix.answer(about),
        None => weir_lab::studies::verdicts(&section.document.points, about.topology),
    }
}

fn list(verdicts: &[Verdict]) -> Markup {
    html! {
        ul class="verdicts" {
            @for verdict in verdicts {
                li class=(severity(verdict.severity)) { b { (verdict.about) } ": " (verdict.text) }
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
