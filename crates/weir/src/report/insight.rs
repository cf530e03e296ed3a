//! A run that explains, calibrates, predicts or advises, as a part of the page.

use maud::{Markup, html};
use weir_model::document::Header;
use weir_model::machine::MachineKind;
use weir_steer::document::SteerDocument;

use crate::output::{alike, seconds};
use crate::store::RunId;
use crate::studies::Shown;
use weir_lab::Verdict;

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
    /// What it gave.
    pub told: Told,
}

/// What such a run gives.
#[derive(Debug, Clone)]
pub enum Told {
    /// What a study found, ready to be rendered.
    Shown(Box<Shown>),
    /// A scenario under a controller.
    Steered(Box<SteerDocument>),
}

impl Insight {
    /// What its document starts with.
    pub fn head(&self) -> &Header {
        match &self.told {
            Told::Shown(shown) => &shown.header,
            Told::Steered(document) => &document.header,
        }
    }

    /// The machine's name; the processor's where only its counters are known.
    pub fn machine(&self) -> &str {
        match self.head().name() {
            "" => &self.verb,
            name => name,
        }
    }

    /// What a study found.
    pub fn shown(&self) -> Option<&Shown> {
        match &self.told {
            Told::Shown(shown) => Some(shown),
            Told::Steered(_) => None,
        }
    }

    /// Whether it is of a controller at work.
    pub fn is_steering(&self) -> bool {
        matches!(self.told, Told::Steered(_))
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
            p { (head.processor) ": " (subject(&insight.told)) }
            p class="small" {
                (insight.origin()) " · " (insight.verb) " · took " (seconds(head.elapsed_s))
                @if kind.is_some() { " · digest " (head.machine.digest) }
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

fn subject(told: &Told) -> String {
    match told {
        Told::Shown(shown) if shown.title.is_empty() => {
            let first = shown.answer.first();
            first.map_or(String::new(), |verdict| verdict.about.clone())
        }
        Told::Shown(shown) => shown.title.to_lowercase(),
        Told::Steered(document) => {
            format!("{} under {}", document.scenario, document.controller)
        }
    }
}

/// What a run means, in sentences.
pub fn verdicts(insight: &Insight) -> Vec<String> {
    match &insight.told {
        Told::Shown(shown) => {
            let sentence = |verdict: &Verdict| format!("{}: {}.", verdict.about, verdict.text);
            shown.answer.iter().map(sentence).collect()
        }
        Told::Steered(document) => steered(document),
    }
}

fn steered(document: &SteerDocument) -> Vec<String> {
    let summary = &document.summary;
    let mut told = Vec::new();
    if let (Some(fast), Some(slow)) = (
        summary.protected_pct_of_solo,
        summary.restrained_pct_of_solo,
    ) {
        told.push(format!(
            "Under {}, the protected have {fast:.1} % of what they have alone once settled, those who may be \
             held {slow:.1} %.",
            document.controller
        ));
    }
    told.push(match summary.settle_s {
        Some(settle) => format!("Every phase settled within {settle:.2} s."),
        None => "Not every phase settled.".into(),
    });
    if let Some(release) = summary.release_s {
        told.push(format!(
            "Without a protected tenant, all limits were removed within {release:.2} s."
        ));
    }
    told
}
