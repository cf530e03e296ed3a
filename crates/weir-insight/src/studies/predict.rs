//! `weir predict`: how slow a workload would be on a tier, from one run on local memory.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use weir_lab::study::lists;
use weir_lab::view::{Only, Part, View, col};
use weir_lab::{About, Lab, LabError, Outcome, Placed, Study, Verdict, check_threads};
use weir_model::frame::Frame;
use weir_model::insight::{Bound, Components, Rejected, SlowdownModel};
use weir_model::number::{figure, percent, slower};
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::workload::{Population, Workload};

use super::{CACHES, DRAM, HOST, ONE_RUN, OTHER, REST, STORE, doubt, note, rest};
use crate::documents::{Accuracy, PopulationAccuracy, Predicted, Predictions};
use crate::forecast::{accuracy, compare, forecast};
use crate::two_tiers::{OnBoth, Tiers, on_both, options};

/// What ran on both tiers, and the population that it was drawn from.
pub type Drawn = (Option<Population>, OnBoth);

/// How slow a workload would be on a tier, from one run on local memory.
#[derive(Debug, Clone, clap::Args)]
pub struct Predict {
    /// A workload, to be run on the model of a machine.
    #[arg(conflicts_with_all = ["counters", "evaluate", "population", "command"])]
    pub workload: Option<String>,
    /// Predict and measure this many workloads that span the space, and as many
    /// that are heavy on memory.
    #[arg(long, value_name = "N")]
    pub population: Option<NonZeroUsize>,
    /// Measure on the tier too.
    #[arg(long, requires = "workload", conflicts_with_all = ["command", "counters", "evaluate"])]
    pub verify: bool,
    /// Threads of the workload in place of those that it says.
    #[arg(long, value_name = "N", requires = "workload", conflicts_with_all = ["command", "counters", "evaluate", "population"],
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// The tier that is asked about.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// The tier that was counted on.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub from: TierName,
    /// The description of the workload.
    #[arg(skip)]
    pub described: Option<Workload>,
    /// The model of slowdown of the two tiers.
    #[arg(skip)]
    pub calibrated: Option<Box<SlowdownModel>>,
    /// What ran on both tiers.
    #[arg(skip)]
    pub ran: Arc<Mutex<Vec<Drawn>>>,
}

impl Study for Predict {
    const VERB: &'static str = "predict";
    type Output = Predictions;

    fn run(&self, lab: &Lab<'_>) -> Result<Predictions, LabError> {
        let lacks = |what: &str| LabError::Nothing(format!("predict needs {what}"));
        let model = self.calibrated.as_deref();
        let model = model.ok_or_else(|| lacks("a calibrated model"))?;
        if let Some(workload) = &self.described {
            check_threads(workload, lab.topology())?;
        }
        let options = options(lab.seed());
        let drawn = |of: Population, n: NonZeroUsize| {
            let drawn = of.draw(lab.seed(), n.get()).into_iter();
            drawn.map(move |workload| (Some(of), workload))
        };
        let (populations, workloads): (Vec<_>, Vec<_>) = match (&self.described, self.population) {
            (Some(workload), _) => vec![(None, workload.clone())],
            (None, Some(n)) => Population::ALL
                .into_iter()
                .flat_map(|of| drawn(of, n))
                .collect(),
            (None, None) => return Err(lacks("a workload")),
        }
        .into_iter()
        .unzip();
        let mut predictions = Vec::new();
        if self.verify || self.population.is_some() {
            let tiers = Tiers {
                from: model.from.clone(),
                to: model.to.clone(),
            };
            let ran = on_both(lab, &workloads, &tiers, &options)?;
            for (OnBoth { local, target }, population) in ran.iter().zip(&populations) {
                let (here, there) = (&local.counters, &target.counters);
                predictions.push(Predicted {
                    population: *population,
                    ..compare(model, &local.workload, here, there)?
                });
            }
            *self.ran.lock().unwrap_or_else(PoisonError::into_inner) =
                populations.into_iter().zip(ran).collect();
        } else {
            let on = |workload| Placed {
                placement: Placement::Bind(model.from.clone()),
                ..Placed::local(workload, &options)
            };
            for run in lab.ask_all(&workloads.iter().map(on).collect::<Vec<_>>())? {
                predictions.push(forecast(model, &run.workload, &run.counters)?);
            }
        }
        if predictions.is_empty() {
            return Err(LabError::Stopped);
        }
        Predictions::doubt(model)
            .into_iter()
            .for_each(|doubt| lab.warn(doubt));
        Ok(Predictions::of(model, predictions))
    }

    fn programs(&self) -> Option<Vec<&str>> {
        Some(self.workload.as_deref().into_iter().collect())
    }
}

/// The causes that predictions tell.
const CAUSES: [Part; 5] = [STORE, CACHES, DRAM, OTHER, REST];

/// The predictor whose interval and causes are known.
const MODEL: &str = "the model";

/// With more workloads than this, only some are drawn by cause: those that are furthest off, else the slowest.
const MOST_BY_CAUSE: usize = 12;

/// What a predictor says of a workload, or what was measured.
#[derive(Clone, Serialize, JsonSchema)]
struct SlowdownRow {
    /// The workload, or the file of its counters.
    workload: String,
    /// The predictor, or `measured`.
    by: String,
    /// What the workload waits for on local memory.
    waits_for: String,
    #[serde(flatten)]
    causes: Components,
    /// What no cause is known for.
    rest: Option<f64>,
    /// The whole.
    slowdown_pct: f64,
    /// The lower end of its interval; absent where there is none.
    low_pct: Option<f64>,
    /// The upper end.
    high_pct: Option<f64>,
    /// What was measured; absent where nothing was.
    measured_pct: Option<f64>,
}

/// How good predictions of some of the workloads are.
#[derive(Serialize, JsonSchema)]
struct OfRow {
    /// `whole`, `memory-heavy, slowed > 5 %`.
    of: String,
    #[serde(flatten)]
    accuracy: PopulationAccuracy,
}

impl OfRow {
    fn of(accuracy: &PopulationAccuracy) -> Self {
        let mut of = accuracy
            .population
            .map_or("all".to_owned(), |of| of.to_string());
        if let Some(by) = accuracy.slowed_by_pct {
            of.push_str(&format!(", slowed > {by:.0} %"));
        }
        Self {
            of,
            accuracy: accuracy.clone(),
        }
    }
}

/// How many workloads a predictor gets right within this many points.
#[derive(Serialize, JsonSchema)]
struct WithinRow {
    /// The predictor, or the component that it predicts.
    predictor: String,
    /// `5 points`, `10 points`.
    within: &'static str,
    /// How many, in percent.
    share_pct: f64,
}

impl Predictions {
    /// Predictions with a model, and how good they are where they were measured too.
    pub fn of(model: &SlowdownModel, predictions: Vec<Predicted>) -> Self {
        Self {
            from: model.from.clone(),
            to: model.to.clone(),
            accuracy: accuracy(&predictions),
            predictions,
        }
    }

    /// What makes all predictions with a model less than trustworthy.
    pub fn doubt(model: &SlowdownModel) -> Option<String> {
        let none = model.held_out_in_use().is_none();
        none.then(|| "the model has no interval: nothing was held out".to_owned())
    }

    /// How good several predictions are.
    fn judged(&self) -> Option<&Accuracy> {
        self.accuracy.as_ref().filter(|a| a.workloads > 1)
    }

    /// Those that are drawn by cause.
    fn chosen(&self) -> Vec<&Predicted> {
        let mut all: Vec<&Predicted> = self.predictions.iter().collect();
        match &self.accuracy {
            _ if all.len() <= MOST_BY_CAUSE => {}
            Some(accuracy) if !accuracy.worst.is_empty() => {
                let place = |p: &&Predicted| accuracy.worst.iter().position(|w| *w == p.workload);
                all.retain(|p| place(p).is_some());
                all.sort_by_key(place);
                all.dedup_by_key(|p| place(p));
            }
            _ => {
                all.sort_by(|a, b| b.slowdown_pct.total_cmp(&a.slowdown_pct));
                all.truncate(MOST_BY_CAUSE);
            }
        }
        all
    }

    fn within(&self) -> Vec<WithinRow> {
        let lines = self.judged().into_iter().flat_map(|a| &a.lines);
        lines
            .flat_map(|line| {
                [
                    ("5 points", line.within_5_pct),
                    ("10 points", line.within_10_pct),
                ]
                .map(|(within, share_pct)| WithinRow {
                    predictor: line.what.clone(),
                    within,
                    share_pct,
                })
            })
            .collect()
    }
}

impl Predicted {
    /// What every predictor says, and what was measured.
    fn rows(&self) -> Vec<SlowdownRow> {
        let measured = self.measured.as_ref();
        let row = |by: &str, causes: &Components, whole: f64| SlowdownRow {
            workload: self.workload.clone(),
            by: by.to_owned(),
            waits_for: self.bound.map_or("not known".into(), |b| b.to_string()),
            causes: *causes,
            rest: rest(
                whole,
                &[causes.store, causes.cache, causes.dram, causes.other],
            ),
            slowdown_pct: whole,
            low_pct: None,
            high_pct: None,
            measured_pct: measured.map(|m| m.slowdown_pct),
        };
        let alone = |by: &str, causes: Components, whole: f64| SlowdownRow {
            rest: None,
            ..row(by, &causes, whole)
        };
        let mut rows = vec![SlowdownRow {
            low_pct: self.interval_pct.map(|[low, _]| low),
            high_pct: self.interval_pct.map(|[_, high]| high),
            ..row(MODEL, &self.components, self.slowdown_pct)
        }];
        rows.extend(measured.map(|m| SlowdownRow {
            measured_pct: None,
            ..row("measured", &m.components, m.slowdown_pct)
        }));
        rows.extend(self.published.map(|published| {
            let causes = Components {
                cache: Some(published.cache_pct),
                dram: Some(published.dram_pct),
                ..Components::default()
            };
            alone("as published", causes, published.slowdown_pct)
        }));
        rows.extend(self.rejected.iter().filter_map(|rejected| {
            let by = rejected.of.to_string();
            Some(alone(&by, Components::default(), rejected.slowdown_pct?))
        }));
        rows
    }

    fn answer(&self, to: &TierName) -> Vec<Verdict> {
        let mut text = format!("would be {} on {to}", slower(self.slowdown_pct));
        if let Some([low, high]) = self.interval_pct {
            text.push_str(&format!(
                ", between {} and {} %",
                percent(low),
                percent(high)
            ));
        }
        if let Some(measured) = &self.measured {
            text.push_str(&format!("; measured {} %", percent(measured.slowdown_pct)));
        }
        let about = self.workload.as_str();
        let mut all = vec![note(about, text)];
        let evidence = &self.evidence;
        all.push(match self.bound {
            Some(Bound::Bandwidth) => doubt(
                about,
                format!(
                    "waits for bandwidth ({evidence}): the model is one of latency, and this prediction is not to be \
                     relied on"
                ),
            ),
            Some(bound) => note(about, format!("waits for {bound}: {evidence}")),
            None => note(about, format!("what it waits for is not known: {evidence}")),
        });
        all.extend(self.warnings.iter().map(|warning| doubt(about, warning)));
        all
    }
}

/// Whether workloads were drawn, so that those of the whole population are judged.
fn is_of_whole(accuracy: &Accuracy) -> bool {
    let mut of = accuracy.populations.iter();
    of.any(|of| of.population.is_some())
}

/// Of many workloads, how good predictions are.
fn of_accuracy(accuracy: &Accuracy) -> Vec<Verdict> {
    let mut all = Vec::new();
    let of_them = match is_of_whole(accuracy) {
        true => " of the whole population",
        false => "",
    };
    if let Some(total) = accuracy.lines.iter().find(|line| line.what == "total") {
        let r = total.pearson.map(|r| format!(", Pearson {r:.3}"));
        all.push(format!(
            "{:.1} %{of_them} are predicted within 5 points, {:.1} % within 10{}, mean error {} points",
            total.within_5_pct,
            total.within_10_pct,
            r.unwrap_or_default(),
            figure(total.mean_error_pct)
        ));
    }
    all.extend(accuracy.populations.iter().map(|accuracy| {
        let OfRow { of, accuracy } = OfRow::of(accuracy);
        let covered = accuracy
            .covered_pct
            .map(|c| format!(", {c:.1} % in their interval"));
        format!(
            "{of}: median error {} points, mean {}{}",
            figure(accuracy.median_error_pct),
            figure(accuracy.mean_error_pct),
            covered.unwrap_or_default()
        )
    }));
    all.push(format!(
        "{} workloads{of_them}, of which {} do not wait for bandwidth; figures of accuracy are of these",
        accuracy.workloads, accuracy.latency_bound
    ));
    all.extend(
        accuracy
            .covered_pct
            .map(|c| format!("{c:.1} % are in their interval")),
    );
    all.extend(
        accuracy.explained_pct.map(|e| {
            format!("of {e:.1} % the measured causes sum to the slowdown within 5 points")
        }),
    );
    all.push(format!("furthest off: {}", accuracy.worst.join(", ")));
    all.into_iter()
        .map(|text| note("predictions", text))
        .collect()
}

impl Outcome for Predictions {
    const SCHEMA: &'static str = "weir/predict/1";
    const TITLE: &'static str = "Predictions";
    const WORDS: &'static str = "From one run on local memory. The interval is what workloads that nothing was fitted to \
                                 were off. The model is one of latency: work that waits for bandwidth is another \
                                 colour, and is not counted among the accurate. Predictors of one quantity are shown \
                                 to compare; they are not to be used.";

    fn answer(&self, about: About<'_>) -> Vec<Verdict> {
        let mut all = match (self.predictions.as_slice(), self.judged()) {
            ([only], _) => only.answer(&self.to),
            (_, Some(accuracy)) => of_accuracy(accuracy),
            (all, None) => {
                let slowdowns = || all.iter().map(|p| p.slowdown_pct);
                let text = format!(
                    "{} workloads, {} to {} % slower on {}",
                    all.len(),
                    percent(slowdowns().fold(f64::INFINITY, f64::min)),
                    percent(slowdowns().fold(f64::NEG_INFINITY, f64::max)),
                    self.to
                );
                vec![note("predictions", text)]
            }
        };
        let rejected = self.predictions.iter().flat_map(|p| &p.rejected);
        if rejected.clone().any(|r| r.slowdown_pct.is_some()) {
            let names = Rejected::ALL.map(|of| of.to_string()).join(", ");
            all.push(note(
                "not to be used",
                format!("{names}: each is shown to compare"),
            ));
        }
        if about.machine.name == HOST && self.predictions.iter().any(|p| p.measured.is_some()) {
            all.push(note("one run each", ONE_RUN));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let by_model = || Only::Is("by", MODEL.into());
        let pair = format!("{} to {}", self.from, self.to);
        let whole = |head| col("slowdown_pct").head(head).signed();
        let ends = || {
            [
                col("low_pct").head("from").signed(),
                col("high_pct").head("to").signed(),
            ]
        };
        let cause = |part: &Part| col(part.column).head(part.name).signed();
        let mut all = Vec::new();
        if let [only] = self.predictions.as_slice() {
            let mut columns = vec![col("by").head("by")];
            columns.extend([STORE, CACHES, DRAM, OTHER].iter().map(cause));
            columns.push(whole("slowdown"));
            columns.extend(ends());
            let title = format!("Slowdown of {} from {pair} [%]", only.workload);
            all.push(View::table("slowdowns", title, columns));
        } else {
            let mut columns = vec![col("workload"), whole("predicted")];
            columns.extend(ends());
            columns.push(col("measured_pct").head("measured").signed());
            columns.extend([DRAM, CACHES, STORE].iter().map(cause));
            columns.push(col("waits_for").head("bound"));
            let title = format!("Slowdown from {pair}");
            all.push(View::table("slowdowns", title, columns).only(by_model()));
        }
        let judged = self.judged();
        if let Some(accuracy) = judged {
            let columns = vec![
                col("what").head("predictor"),
                col("within_2_pct").head("within\n2 points"),
                col("within_5_pct").head("within\n5 points"),
                col("within_10_pct").head("within\n10 points"),
                col("pearson").head("Pearson").places(3),
                col("mean_error_pct").head("mean error"),
            ];
            let of = format!("{} workloads", accuracy.latency_bound);
            let title = match is_of_whole(accuracy) {
                true => format!("The whole population: {of} that do not wait for bandwidth"),
                false => format!("How many are predicted, of {of} that do not wait for bandwidth"),
            };
            all.push(View::table("accuracy", title, columns));
            let columns = vec![
                col("of").head("workloads"),
                col("workloads").head("number"),
                col("median_error_pct").head("median\nerror"),
                col("mean_error_pct").head("mean\nerror"),
                col("within_10_pct").head("within\n10 points"),
                col("covered_pct").head("in their\ninterval"),
                col("half_width_pct").head("half\nwidth"),
            ];
            let title = "How good predictions of the whole slowdown are [points, % of workloads]";
            all.push(View::table("of_populations", title, columns));
            all.push(
                View::scatter(
                    "slowdowns",
                    "Predicted against measured: {by}",
                    (
                        "measured_pct",
                        format!("measured slowdown on {} [%]", self.to),
                    ),
                    ("slowdown_pct", "predicted slowdown [%]"),
                    ("workload", "waits_for"),
                    &[5.0, 10.0],
                )
                .between("low_pct", "high_pct")
                .only(Only::Has("measured_pct"))
                .each(&["by"]),
            );
            all.push(View::bars(
                "within",
                "Workloads that each predictor gets right",
                &["predictor"],
                "within",
                ("share_pct", &format!("within this many points [% of {of}]")),
            ));
        }
        let few = self.predictions.len() <= MOST_BY_CAUSE;
        let title = match (few, self.accuracy.is_some()) {
            (true, _) => "Predicted slowdown by cause",
            (false, true) => "By cause, of those that are furthest off",
            (false, false) => "By cause, of the slowest",
        };
        let value = format!("slowdown on {} [% of the cycles on {}]", self.to, self.from);
        all.push(
            View::stacks("by_cause", title, &["workload"], "by", (&CAUSES, value))
                .between("low_pct", "high_pct"),
        );
        if judged.is_none() && self.predictions.len() == 1 {
            let title = "Compared with the rejected predictors";
            let value = ("slowdown_pct", "slowdown [%]");
            all.push(View::bars("slowdowns", title, &["workload"], "by", value));
        }
        all
    }

    fn frames(&self) -> Vec<Frame> {
        let rows: Vec<SlowdownRow> = self.predictions.iter().flat_map(Predicted::rows).collect();
        let chosen = self.chosen().into_iter().flat_map(Predicted::rows);
        let by_cause: Vec<SlowdownRow> = chosen
            .filter(|row| [MODEL, "measured"].contains(&row.by.as_str()))
            .collect();
        let lines = self.accuracy.as_ref().map(|a| a.lines.clone());
        let populations = self.accuracy.iter().flat_map(|a| &a.populations);
        let populations: Vec<OfRow> = populations.map(OfRow::of).collect();
        let mut all = lists(self);
        all.extend([
            Frame::of("slowdowns", &rows),
            Frame::of("accuracy", &lines.unwrap_or_default()),
            Frame::of("of_populations", &populations),
            Frame::of("within", &self.within()),
            Frame::of("by_cause", &by_cause),
        ]);
        all
    }
}
