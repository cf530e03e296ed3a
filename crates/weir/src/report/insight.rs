//! A run that explains, calibrates, predicts or advises, as a part of the page.

use maud::{Markup, html};
use weir_insight::documents::{CalibrateDocument, ExplainDocument, PredictDocument, Tuned};
use weir_model::document::{Document, Header};
use weir_model::insight::Bound;
use weir_model::machine::MachineKind;
use weir_steer::document::SteerDocument;

use crate::output::{alike, figure, seconds, slower};
use crate::store::RunId;
use crate::studies::{Shown, shown};
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
    /// Where cycles are lost.
    Explained(ExplainDocument),
    /// The constants of a model.
    Calibrated(Box<CalibrateDocument>),
    /// How slow workloads would be.
    Predicted(PredictDocument),
    /// How to interleave.
    Tuned(Document<Tuned>),
    /// What the run's own views show.
    Shown(Box<Shown>),
    /// A scenario under a controller.
    Steered(Box<SteerDocument>),
}

impl Insight {
    /// What its document starts with.
    pub fn head(&self) -> &Header {
        match &self.told {
            Told::Explained(document) => &document.header,
            Told::Calibrated(document) => &document.header,
            Told::Predicted(document) => &document.header,
            Told::Tuned(document) => &document.header,
            Told::Steered(document) => &document.header,
            Told::Shown(shown) => &shown.header,
        }
    }

    /// The machine's name; the processor's where only its counters are known.
    pub fn machine(&self) -> &str {
        match self.head().name() {
            "" => &self.verb,
            name => name,
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
        Told::Explained(document) => {
            let runs: Vec<String> = (document.runs.iter())
                .map(|run| match &run.tier {
                    Some(tier) => format!("{} on {tier}", run.workload),
                    None => run.workload.clone(),
                })
                .collect();
            format!("where cycles are lost, {}", runs.join(" and "))
        }
        Told::Calibrated(document) => format!(
            "the model of slowdown from {} to {}",
            document.model.from, document.model.to
        ),
        Told::Predicted(document) => match document.predictions.as_slice() {
            [only] => format!(
                "{}, predicted from {} for {}",
                only.workload, document.from, document.to
            ),
            all => format!(
                "{} workloads, predicted from {} for {}",
                all.len(),
                document.from,
                document.to
            ),
        },
        Told::Tuned(document) => format!(
            "{}, interleaved over {} and {}",
            document.output.workload, document.output.from, document.output.to
        ),
        Told::Steered(document) => {
            format!("{} under {}", document.scenario, document.controller)
        }
        Told::Shown(shown) => shown
            .answer
            .first()
            .map_or(String::new(), |v| v.about.clone()),
    }
}

/// What a run means, in sentences.
pub fn verdicts(insight: &Insight) -> Vec<String> {
    match &insight.told {
        Told::Explained(document) => explained(document),
        Told::Calibrated(document) => {
            let furthest = (document.model.fitted_on.iter())
                .map(|point| point.fitted_pct - point.slowdown_pct)
                .max_by(|a, b| a.abs().total_cmp(&b.abs()));
            let mut told: Vec<String> = (furthest.iter())
                .map(|off| {
                    format!(
                        "What the constants were fitted on is at most {} points off.",
                        figure(off.abs())
                    )
                })
                .collect();
            told.extend(document.model.held_out_in_use().map(|held| {
                format!(
                    "Intervals that hold {:.0} % are {:.0} % of the prediction and {:.0} points more, from {} \
                     workloads that nothing was fitted to.",
                    held.coverage_pct,
                    held.total.relative * 100.0,
                    held.total.floor_pct,
                    held.workloads
                )
            }));
            told.extend(document.model.notes.iter().cloned());
            told
        }
        Told::Predicted(document) => predicted(document),
        Told::Tuned(document) => {
            let sentence = |v: Verdict| format!("{}: {}.", v.about, v.text);
            shown(document).answer.into_iter().map(sentence).collect()
        }
        Told::Steered(document) => steered(document),
        Told::Shown(shown) => {
            let sentence = |v: &Verdict| format!("{}: {}.", v.about, v.text);
            shown.answer.iter().map(sentence).collect()
        }
    }
}

fn explained(document: &ExplainDocument) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    if let (Some(difference), Some(run)) = (&document.difference, document.runs.last()) {
        let on = run
            .tier
            .as_ref()
            .map_or(String::new(), |tier| format!(" on {tier}"));
        told.push(format!(
            "{} is {}{on}.",
            run.workload,
            slower(difference.slowdown_pct)
        ));
    }
    told.extend(document.runs.iter().map(|run| {
        let name = run
            .tier
            .as_ref()
            .map_or(run.workload.as_str(), |tier| tier.as_str());
        match run.bound {
            Some(bound) => format!("{name}: waits for {bound}: {}.", run.evidence),
            None => format!(
                "{name}: what it waits for cannot be told: {}.",
                run.evidence
            ),
        }
    }));
    for run in &document.runs {
        told.extend(run.untold.iter().map(|untold| {
            format!(
                "{}: {} is missing ({}): not told is {}.",
                run.workload, untold.counter, untold.why, untold.cost
            )
        }));
    }
    told
}

fn predicted(document: &PredictDocument) -> Vec<String> {
    let mut told = Vec::new();
    if let [only] = document.predictions.as_slice() {
        let mut line = format!(
            "{} would be {} on {}",
            only.workload,
            slower(only.slowdown_pct),
            document.to
        );
        if let Some([low, high]) = only.interval_pct {
            line.push_str(&format!(", between {} and {} %", figure(low), figure(high)));
        }
        if let Some(measured) = &only.measured {
            line.push_str(&format!("; measured {} %", figure(measured.slowdown_pct)));
        }
        told.push(format!("{line}."));
        if only.bound == Some(Bound::Bandwidth) {
            told.push(format!(
                "It waits for bandwidth ({}): the model is one of latency, and this prediction is not to be \
                 relied on.",
                only.evidence
            ));
        }
        told.extend(only.warnings.iter().cloned());
    }
    if let Some(accuracy) = document.accuracy.as_ref().filter(|a| a.workloads > 1) {
        told.push(format!(
            "Of {} workloads, {} do not wait for bandwidth; figures of accuracy are of these.",
            accuracy.workloads, accuracy.latency_bound
        ));
        if let Some(total) = accuracy.lines.iter().find(|line| line.what == "total") {
            let r = total
                .pearson
                .map_or(String::new(), |r| format!(", Pearson {r:.3}"));
            told.push(format!(
                "{:.1} % are predicted within 5 points, {:.1} % within 10{r}.",
                total.within_5_pct, total.within_10_pct
            ));
        }
        told.extend(
            (accuracy.covered_pct.iter()).map(|c| format!("{c:.1} % lie in their interval.")),
        );
        told.push(format!("Furthest off: {}.", accuracy.worst.join(", ")));
    }
    told
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
