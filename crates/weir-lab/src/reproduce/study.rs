//! `weir reproduce` as studies: published figures and ours, and what the assumed numbers do to ours.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use weir_model::document::{ParameterEffect, ReproduceRow, RowEffect, RowKind};
use weir_model::frame::Frame;
use weir_model::machine::Testbed;
use weir_model::platform::Platform;
use weir_model::published::{self, Paper, Published};

use super::rule::{On, Rule};
use super::sensitivity::{Assumption, End, Sensitivity, assumptions, sensitivity};
use super::{Engine, Reproduction, TAKES_MINUTES, of_papers};
use crate::study::{About, Outcome, Study};
use crate::view::{Only, View, col};
use crate::{Lab, LabError, Severity, Verdict};

/// Published figures and ours, row by row.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = "\
Examples:
  weir reproduce
  weir reproduce memo
  weir reproduce supmario caption
  weir reproduce supmario --only SUP-01 --format csv
  weir reproduce memo --sensitivity")]
pub struct Reproduce {
    /// Papers, by their names in published/ [default: all, without the rows that take minutes].
    #[arg(value_name = "PAPER")]
    pub papers: Vec<String>,
    /// Only rows whose id begins with this; may be repeated.
    #[arg(long, value_name = "ROW")]
    pub only: Vec<String>,
    /// Take each assumed parameter to both ends of its range instead, and rank them by what they
    /// change.
    #[arg(long)]
    pub sensitivity: bool,
    /// The rules, and the models that they ask.
    #[arg(skip)]
    pub models: Option<Models>,
}

/// `weir reproduce --sensitivity`: both ends of the range of each assumed parameter.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Vary {
    /// The rows.
    #[command(flatten)]
    pub of: Reproduce,
}

/// Opens a platform, perhaps with a parameter at one end of its range.
pub type OpenModel = fn(On, Option<(&Assumption, End)>) -> Result<Box<dyn Testbed>, String>;

/// The rules of every crate, and how the models that they ask are made.
#[derive(Debug, Clone, Copy)]
pub struct Models {
    /// The rules; the first for a row counts.
    pub rules: fn() -> Vec<Rule>,
    /// Opens a platform, perhaps with a parameter at one end of its range.
    pub open: OpenModel,
    /// The platform of an expression.
    pub compose: fn(&str) -> Result<Platform, String>,
}

impl Reproduce {
    /// The published rows that were asked for.
    fn choose(&self) -> Result<Vec<Published>, LabError> {
        let mut rows = of_papers(&self.papers, published::builtin_rows())?;
        if self.only.iter().any(|id| id.trim().is_empty()) {
            return Err(LabError::Nothing(
                "--only takes the beginning of a row's name, such as SUP-01, and not an empty text"
                    .into(),
            ));
        }
        let begins = |row: &Published, id: &str| {
            let start = row.id.get(..id.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(id))
        };
        let unknown = |id: &&String| !rows.iter().any(|row| begins(row, id));
        if let Some(id) = self.only.iter().find(unknown) {
            let among = match self.papers.as_slice() {
                [] => String::new(),
                papers => format!(" among those of {}", papers.join(", ")),
            };
            return Err(LabError::Nothing(format!(
                "no published row begins with `{id}`{among}; `weir reproduce` lists them all"
            )));
        }
        if !self.only.is_empty() {
            rows.retain(|row| self.only.iter().any(|id| begins(row, id)));
        }
        Ok(rows)
    }

    /// Hands an engine for the chosen rows to `work`; a dry lab has none.
    fn with_engine<T>(
        &self,
        lab: &Lab<'_>,
        work: impl FnOnce(Engine<'_>, Models, &[Published]) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let chosen = self.choose()?;
        if lab.is_dry() {
            return Err(LabError::Dry);
        }
        let models = self
            .models
            .ok_or_else(|| LabError::Nothing("rows are answered on models".into()))?;
        let rules = (models.rules)();
        let engine = Engine {
            rules: &rules,
            open: &|on| (models.open)(on, None),
            lab,
            with_slow: !self.papers.is_empty() || !self.only.is_empty(),
        };
        work(engine, models, &chosen)
    }
}

fn note(lab: &Lab<'_>, warnings: &[String], partial: bool) {
    for warning in warnings {
        lab.warn(warning.clone());
    }
    if partial {
        lab.end_early();
    }
}

impl Study for Reproduce {
    const VERB: &'static str = "reproduce";
    type Output = Reproduction;

    fn run(&self, lab: &Lab<'_>) -> Result<Reproduction, LabError> {
        let answered = self.with_engine(lab, |engine, _, chosen| Ok(engine.rows(chosen)))?;
        if answered.of_others {
            return Err(LabError::Part);
        }
        if answered.rows.is_empty() && !answered.partial {
            return Err(LabError::Nothing(format!(
                "none of these {} rows has a figure: they state a configuration or context",
                answered.left_out
            )));
        }
        note(lab, &answered.warnings, answered.partial);
        Ok(answered)
    }
}

impl Study for Vary {
    const VERB: &'static str = "reproduce --sensitivity";
    type Output = Sensitivity;

    fn run(&self, lab: &Lab<'_>) -> Result<Sensitivity, LabError> {
        if lab.is_shared() {
            let why = "--sensitivity looks at one row after the other, and workers cannot share it";
            return Err(LabError::Nothing(why.into()));
        }
        let answered = self.of.with_engine(lab, |engine, models, chosen| {
            let engine = Engine {
                with_slow: false,
                ..engine
            };
            let asked = engine.asks(chosen).flat_map(|(_, asked)| asked);
            let platforms: BTreeSet<&str> = asked.map(|asked| asked.on.platform).collect();
            let platforms = platforms.into_iter().map(models.compose);
            let platforms: Result<Vec<Platform>, String> = platforms.collect();
            let assumed = assumptions(&platforms.map_err(LabError::Nothing)?);
            Ok(sensitivity(engine, chosen, &assumed, &models.open))
        })?;
        note(lab, &answered.warnings, answered.partial);
        Ok(answered)
    }
}

impl Outcome for Reproduction {
    const SCHEMA: &'static str = "weir/reproduce/2";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let predicted_first = [
            RowKind::Predicted,
            RowKind::Replayed,
            RowKind::Identity,
            RowKind::Calibrated,
            RowKind::NotModelled,
        ];
        // A row that was not asked for is not one that no model answers.
        let not_run = |row: &&ReproduceRow| row.note.starts_with(TAKES_MINUTES);
        let (later, answered): (Vec<&ReproduceRow>, Vec<_>) = self.rows.iter().partition(not_run);
        let counted = predicted_first.map(|kind| Some(note(kind.name(), count(&answered, kind)?)));
        let mut all: Vec<Verdict> = counted.into_iter().flatten().collect();
        if !later.is_empty() {
            let rows = if later.len() == 1 {
                "row takes"
            } else {
                "rows take"
            };
            let text = format!("{} {rows} minutes", later.len());
            all.push(note("not run", text));
        }
        let mut by_note: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| !row.note.is_empty()) {
            by_note.entry(&row.note).or_default().push(&row.id);
        }
        let noted = by_note.into_iter();
        all.extend(noted.map(|(text, ids)| note(&ids.join(", "), text.into())));
        let kept: Vec<&str> = (self.rows.iter().filter(|row| row.keeps_bound))
            .map(|row| row.id.as_str())
            .collect();
        if !kept.is_empty() {
            let text = "the published figure is a bound, and ours keeps it: 0.0 % off";
            all.push(note(&kept.join(", "), text.into()));
        }
        if !self.unfinished.is_empty() {
            let rows = match self.unfinished.len() {
                1 => "row is",
                _ => "rows are",
            };
            let text = format!(
                "{} {rows} missing, since the work was stopped: {}",
                self.unfinished.len(),
                self.unfinished.join(", ")
            );
            all.push(note("not finished", text));
        }
        if self.left_out > 0 {
            let rows = match self.left_out {
                1 => "row states",
                _ => "rows state",
            };
            let text = format!(
                "{} more {rows} a configuration or context, not a figure",
                self.left_out
            );
            all.push(note("left out", text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let papers = published::builtin().into_iter();
        let of_paper = papers.filter(|paper| self.rows.iter().any(|row| row.paper == paper.name));
        let table = |paper: Paper| {
            let columns = vec![
                col("id").head("row"),
                col("what").and("condition"),
                col("published"),
                col("ours"),
                col("own_form").head("own\nform").if_any(),
                col("unit"),
                col("difference_pct").head("off").signed(),
                col("kind").in_words(),
            ];
            let title = format!("{}: {}", paper.name, paper.title);
            View::table("rows", title, columns).only(Only::Is("paper", paper.name.into()))
        };
        of_paper.map(table).collect()
    }
}

/// How many rows of a kind there are, and how far they are off.
fn count(rows: &[&ReproduceRow], kind: RowKind) -> Option<String> {
    let of_kind: Vec<_> = rows.iter().filter(|row| row.kind == kind).collect();
    let off = of_kind.iter().filter_map(|row| row.difference_pct);
    let off: Vec<f64> = off.map(f64::abs).collect();
    let rows = if of_kind.len() == 1 { "row" } else { "rows" };
    let mut text = format!("{} {rows}", of_kind.len());
    if !off.is_empty() {
        // A change has a class in its note, and a published 0 no difference in percent.
        if off.len() < of_kind.len() {
            text.push_str(&format!(", {} with a difference in percent", off.len()));
        }
        let within = |most: f64| off.iter().filter(|o| **o <= most).count();
        text.push_str(&format!(
            ": {} within 5 %, {} within 20 %, {:.1} % off in the mean, {:.1} % at worst",
            within(5.0),
            within(20.0),
            off.iter().sum::<f64>() / off.len() as f64,
            off.iter().copied().fold(0.0, f64::max)
        ));
    }
    (!of_kind.is_empty()).then_some(text)
}

/// A parameter that changes no row by this much changes nothing, in percent.
const NOTHING: f64 = 0.05;
/// A row counts as moved when it changes by more than this, in percent.
const MOVED: f64 = 5.0;

/// One published row under one parameter.
#[derive(Serialize, JsonSchema)]
struct Effect<'a> {
    key: &'a str,
    row: &'a str,
    published: f64,
    ours: f64,
    at_low: Option<f64>,
    at_high: Option<f64>,
    change_pct: f64,
}

/// A parameter, and the row that it moves most.
#[derive(Serialize, JsonSchema)]
struct Parameter<'a> {
    assumed: &'a str,
    range: String,
    most_pct: f64,
    row: Option<&'a str>,
    at_low: Option<f64>,
    usual: Option<f64>,
    at_high: Option<f64>,
    moved: usize,
}

fn moved(effect: &ParameterEffect) -> usize {
    let moves = |row: &&RowEffect| row.change_pct > MOVED;
    effect.rows.iter().filter(moves).count()
}

/// The widest range over all parts that assume it.
fn range(effect: &ParameterEffect) -> String {
    let ranges = effect.ranges.iter();
    let mut ranges: Vec<String> = ranges.map(|r| format!("{}..{}", r.low, r.high)).collect();
    ranges.dedup();
    match ranges.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

impl Outcome for Sensitivity {
    const SCHEMA: &'static str = "weir/sensitivity/1";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let matter = self.effects.iter().filter(|e| moved(e) > 0).count();
        let text = format!(
            "{} assumed parameters were set to both ends of their ranges, one at a time; {matter} of them move a \
             row by more than {MOVED} %",
            self.effects.len()
        );
        let mut all = vec![note("sensitivity", text)];
        let still = self.effects.iter().filter(|e| e.largest_pct < NOTHING);
        let names: Vec<&str> = still.map(|effect| effect.key.as_str()).collect();
        if !names.is_empty() {
            let text = format!("{} change nothing here: {}", names.len(), names.join(", "));
            all.push(note("without effect", text));
        }
        let noted = self.effects.iter().filter(|e| !e.note.is_empty());
        all.extend(noted.map(|effect| note(&effect.key, effect.note.clone())));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = vec![
            col("assumed"),
            col("range").empty(""),
            col("most_pct").signed(),
            col("row"),
            col("at_low"),
            col("usual"),
            col("at_high"),
            col("moved").head("rows\nmoved"),
        ];
        let title = "Assumed parameters that change a row, and the row that each changes most";
        vec![View::table("parameters", title, columns)]
    }

    fn frames(&self) -> Vec<Frame> {
        let effects = self.effects.iter().flat_map(|effect| {
            let row = |row| effect_of(&effect.key, row);
            effect.rows.iter().map(row)
        });
        let moving = (self.effects.iter()).filter(|effect| effect.largest_pct >= NOTHING);
        fn parameter(effect: &ParameterEffect) -> Parameter<'_> {
            let ParameterEffect { key, rows, .. } = effect;
            let most = rows.first();
            Parameter {
                assumed: key,
                range: range(effect),
                most_pct: effect.largest_pct,
                row: most.map(|row| row.id.as_str()),
                at_low: most.and_then(|row| row.at_low),
                usual: most.map(|row| row.ours),
                at_high: most.and_then(|row| row.at_high),
                moved: moved(effect),
            }
        }
        vec![
            Frame::of("effects", &effects.collect::<Vec<_>>()),
            Frame::of("parameters", &moving.map(parameter).collect::<Vec<_>>()),
        ]
    }
}

fn effect_of<'a>(key: &'a str, row: &'a RowEffect) -> Effect<'a> {
    Effect {
        key,
        row: &row.id,
        published: row.published,
        ours: row.ours,
        at_low: row.at_low,
        at_high: row.at_high,
        change_pct: row.change_pct,
    }
}
