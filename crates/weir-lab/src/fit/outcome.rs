//! What a fit finds: parameters with their origin, points next to the model's, and the files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, Nanos};

use super::median;
use crate::study::{About, Outcome};
use crate::view::{Medium, Only, View, col};
use crate::{Severity, Verdict};

weir_model::named! {
    /// How a parameter's value came about.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum How {
        /// It is a measured figure, or follows from one by arithmetic.
        Measured = "measured",
        /// The model is nearest to the measured points with this value.
        Solved = "solved",
        /// The machine says so: its topology, its base, or the user.
        Given = "given",
        /// Nothing says so.
        Assumed = "assumed",
    }
}

weir_model::named! {
    /// What a measured point was for.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Part {
        /// The fit used it.
        Used = "used",
        /// It was kept for the check.
        HeldOut = "held out",
    }
}

/// One parameter of the machine that was fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedParameter {
    /// The host or device that it is of.
    pub part: String,
    /// The dotted key, as in platform files.
    pub key: String,
    /// The value, as it is written there.
    pub value: String,
    /// The least value that the figures allow, or that is plausible where they say nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<String>,
    /// The greatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<String>,
    /// How the value came about.
    pub how: How,
    /// From what, or why it is assumed.
    pub why: String,
}

/// How far the model of the fitted machine is from a group of points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitCheck {
    /// The tier.
    pub tier: TierName,
    /// Reads to writes at the memory interface.
    pub mix: String,
    /// Loading threads.
    pub threads: u32,
    /// Whether the fit used the points, or they were held out.
    pub part: Part,
    /// How many there are.
    pub points: u32,
    /// Median of the distances from the model's curve, in percent.
    pub median_pct: f64,
    /// The largest distance.
    pub worst_pct: f64,
    /// Median of the differences in latency alone, without their signs, at the same load.
    pub latency_pct: f64,
}

/// A measured point and the model's under the same load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedPoint {
    /// The tier.
    pub tier: TierName,
    /// Reads to writes at the memory interface.
    pub mix: String,
    /// Loading threads.
    pub threads: u32,
    /// Whether the fit used the point, or it was held out.
    pub part: Part,
    /// Traffic of the loading threads, as measured, in GB/s.
    pub gbps: GbPerSec,
    /// Mean latency of the chase with them, as measured.
    pub mean_ns: Nanos,
    /// The model's traffic.
    pub model_gbps: GbPerSec,
    /// The model's latency.
    pub model_ns: Nanos,
    /// The model's latency against the measured one at the same load, in percent.
    pub latency_pct: f64,
    /// How far the point is from the model's curve: the least part by which traffic and latency must change, at most,
    /// to be on it, in percent. Where a curve is flat, this is the difference in latency; where it rises steeply, that
    /// in traffic.
    pub apart_pct: f64,
}

/// A platform file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlatformText {
    /// The name of what it describes, which is that of the file.
    pub name: String,
    /// The file.
    pub text: String,
}

/// A machine that was fitted: the own part of a `platforms fit` document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fitted {
    /// Every parameter that the files give.
    pub parameters: Vec<FittedParameter>,
    /// How far the model is from what was measured.
    pub checks: Vec<FitCheck>,
    /// Point by point.
    pub compared: Vec<ComparedPoint>,
    /// The files: the host's first, then one for each device.
    pub files: Vec<PlatformText>,
}

impl Fitted {
    /// What follows from the compared points.
    pub fn checked(compared: &[ComparedPoint]) -> Vec<FitCheck> {
        let mut checks: Vec<FitCheck> = Vec::new();
        for point in compared {
            let same = |c: &FitCheck| {
                (&c.tier, &c.mix, c.threads, c.part)
                    == (&point.tier, &point.mix, point.threads, point.part)
            };
            if checks.iter().any(same) {
                continue;
            }
            let group = || {
                compared.iter().filter(|p| {
                    (&p.tier, &p.mix, p.threads, p.part)
                        == (&point.tier, &point.mix, point.threads, point.part)
                })
            };
            let apart: Vec<f64> = group().map(|p| p.apart_pct).collect();
            let latency: Vec<f64> = group().map(|p| p.latency_pct.abs()).collect();
            checks.push(FitCheck {
                tier: point.tier.clone(),
                mix: point.mix.clone(),
                threads: point.threads,
                part: point.part,
                points: apart.len() as u32,
                median_pct: median(&apart),
                worst_pct: apart.iter().copied().fold(0.0, f64::max),
                latency_pct: median(&latency),
            });
        }
        checks
    }

    fn apart(&self, part: Part) -> Vec<f64> {
        let points = self.compared.iter().filter(|p| p.part == part);
        points.map(|p| p.apart_pct).collect()
    }

    fn count(&self, how: How) -> usize {
        self.parameters.iter().filter(|p| p.how == how).count()
    }
}

/// A held-out point this far from the model's curve is named.
const FAR_PCT: f64 = 20.0;

impl Outcome for Fitted {
    const SCHEMA: &'static str = "weir/platforms-fit/1";
    const TITLE: &'static str = "A fitted machine";
    const WORDS: &'static str = "Parameters that figures of one tenant identify, and how far the model is from points that the fit did not use.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let name = self.files.first().map_or("", |file| &file.name);
        let (used, held) = (self.apart(Part::Used), self.apart(Part::HeldOut));
        let worst = held.iter().copied().fold(0.0, f64::max);
        let counts = format!(
            "{} parameters are measured, {} solved for, {} assumed",
            self.count(How::Measured),
            self.count(How::Solved),
            self.count(How::Assumed),
        );
        let text = match held.is_empty() {
            true => format!("{counts}; no point is left to check it"),
            false => format!(
                "{counts}; {} points that the fit did not use are {:.1} % from the model (median; at \
                 most {worst:.1} %), {} that it used {:.1} %",
                held.len(),
                median(&held),
                used.len(),
                median(&used),
            ),
        };
        let mut all = vec![Verdict::new(Severity::Note, name, text)];
        let far = self
            .checks
            .iter()
            .filter(|c| c.part == Part::HeldOut && c.median_pct > FAR_PCT);
        all.extend(far.map(|check| {
            Verdict::new(
                Severity::Doubt,
                format!("{} under {}", check.tier, check.mix),
                format!(
                    "half of the held-out points of {} threads are {:.0} % or more from the model: do not trust it there",
                    check.threads, check.median_pct
                ),
            )
        }));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let parameters = |title: &str, how: How| {
            View::table(
                "parameters",
                title,
                vec![
                    col("part"),
                    col("key"),
                    col("value"),
                    col("low").head("from").if_any(),
                    col("high").head("to").if_any(),
                ],
            )
            .only(Only::Is("how", how.name().into()))
            .on(Medium::Text)
        };
        vec![
            parameters("Measured", How::Measured),
            parameters("Solved for", How::Solved),
            parameters("Assumed: the figures do not identify them", How::Assumed),
            View::table(
                "checks",
                "Distance from the model's curve",
                vec![
                    col("tier"),
                    col("mix"),
                    col("threads"),
                    col("part").head("points").in_words(),
                    col("points").head("of"),
                    col("median_pct").head("median"),
                    col("worst_pct").head("worst"),
                    col("latency_pct").head("latency"),
                ],
            ),
            View::lines(
                "compared",
                "Measured latency of {tier} under load",
                ("gbps", "traffic [GB/s]"),
                ("mean_ns", "latency of a dependent load [ns]"),
                &["mix", "threads"],
            )
            .each(&["tier"]),
            View::lines(
                "compared",
                "The model's latency of {tier} under load",
                ("model_gbps", "traffic [GB/s]"),
                ("model_ns", "latency of a dependent load [ns]"),
                &["mix", "threads"],
            )
            .each(&["tier"]),
        ]
    }
}
