//! Published figures beside ours, row by row; rows that miss stay in the table.
//!
//! A [rule](rules::Rule) says which [statistic](statistic::Statistic) of which points answers a
//! row. Every row that states a measured figure is listed: with ours, or with what it would need.
//! Rows that state a configuration (cores, capacities) or context are counted and left out.

mod bench;
pub mod rules;
pub mod sensitivity;
pub mod statistic;
mod unanswered;

use std::collections::BTreeMap;

use weir_model::document::{ReproduceRow, RowKind};
use weir_model::interplay::ChangeClass;
use weir_model::machine::Testbed;
use weir_model::published::{Published, PublishedKind};

use crate::{LabError, Watcher};
use bench::Bench;
use rules::Rule;
use statistic::Statistic;

/// Opens the testbed of a platform expression, or says why there is none.
pub type Open<'a> = dyn Fn(&str) -> Result<Box<dyn Testbed>, String> + Sync + 'a;

/// Our figure of a row that needs more than points.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The figure, or why there is none.
    pub ours: Result<f64, String>,
    /// What to know when comparing; empty if nothing.
    pub note: String,
    /// Whether a published course was gone through again, which predicts nothing.
    pub replayed: bool,
}

/// Answers by the ids of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// Those that were finished.
    pub rows: BTreeMap<String, Answer>,
    /// Digests of the platforms used, by name.
    pub platforms: BTreeMap<String, String>,
}

/// Whoever answers rows that need more than points: what counters mean, for one, which this crate does
/// not know.
pub trait Beyond {
    /// Whether it answers a row.
    fn knows(&self, id: &str) -> bool;

    /// Answers those of some rows that it knows. Rows that were not finished when somebody said stop are
    /// missing.
    fn answer(&self, rows: &[&Published], open: &Open<'_>, seed: u64) -> Answers;
}

/// Nobody.
impl Beyond for () {
    fn knows(&self, _: &str) -> bool {
        false
    }

    fn answer(&self, _: &[&Published], _: &Open<'_>, _: u64) -> Answers {
        Answers::default()
    }
}

/// Published rows with our figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Reproduction {
    /// The rows, in the order of the published data.
    pub rows: Vec<ReproduceRow>,
    /// Digests of the platforms used, by name.
    pub platforms: BTreeMap<String, String>,
    /// What makes our figures less than trustworthy.
    pub warnings: Vec<String>,
    /// Published rows that state no measured figure, and so are not among `rows`.
    pub left_out: usize,
    /// Whether the watcher ended it; rows that were not finished by then are missing.
    pub partial: bool,
}

/// Answers published rows on platforms that `open` supplies; those that need more than points by `beyond`.
/// No row's answer depends on which others are asked for.
pub fn rows(
    published: &[Published],
    open: &Open<'_>,
    seed: u64,
    watcher: &dyn Watcher,
    beyond: &dyn Beyond,
) -> Reproduction {
    let rules: Vec<&'static Rule> = published
        .iter()
        .filter_map(|row| rules::find(&row.id))
        .collect();
    let wanted: Vec<_> = rules
        .iter()
        .flat_map(|rule| rule.statistic.wanted())
        .collect();
    let bench = Bench::measure(&wanted, open, seed, watcher);
    let theirs: Vec<&Published> = (published.iter())
        .filter(|row| beyond.knows(&row.id))
        .collect();
    let mut answers = Answers::default();
    if !theirs.is_empty() && !bench.is_partial() {
        answers = beyond.answer(&theirs, open, seed);
    }
    let partial = bench.is_partial() || answers.rows.len() < theirs.len();

    let mut rows = Vec::new();
    let mut left_out = 0;
    for row in published {
        if beyond.knows(&row.id) {
            rows.extend(
                answers
                    .rows
                    .remove(&row.id)
                    .map(|answer| beyond_points(row, answer)),
            );
            continue;
        }
        match rules::find(&row.id) {
            Some(rule) if bench.has_all(&rule.statistic.wanted()) => {
                rows.push(answered(row, rule, &bench));
            }
            Some(_) => {}
            None => match not_modelled(row) {
                Some(row) => rows.push(row),
                None => left_out += 1,
            },
        }
    }
    let mut platforms = bench.digests();
    platforms.extend(answers.platforms);
    Reproduction {
        rows,
        platforms,
        warnings: bench.warnings(),
        left_out,
        partial,
    }
}

/// A row that was answered by somebody else: nothing was set from it here.
fn beyond_points(row: &Published, answer: Answer) -> ReproduceRow {
    match answer.ours {
        Ok(ours) => ReproduceRow {
            ours: Some(ours),
            difference_pct: (row.value != 0.0).then(|| (ours - row.value) / row.value * 100.0),
            kind: if answer.replayed {
                RowKind::Replayed
            } else {
                RowKind::Predicted
            },
            note: answer.note,
            ..plain(row)
        },
        Err(why) => ReproduceRow {
            note: why,
            ..plain(row)
        },
    }
}

/// The rows of some papers, by their short names; of all papers where none is named.
///
/// # Errors
/// A paper is not among them.
pub fn of_papers(
    papers: &[String],
    mut published: Vec<Published>,
) -> Result<Vec<Published>, LabError> {
    let is_of = |row: &Published, paper: &String| row.paper.eq_ignore_ascii_case(paper);
    for paper in papers {
        if !published.iter().any(|row| is_of(row, paper)) {
            let mut known: Vec<&str> = published.iter().map(|row| row.paper.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(LabError::Nothing(format!(
                "no published figures are of `{paper}`; there are {}",
                known.join(", ")
            )));
        }
    }
    if !papers.is_empty() {
        published.retain(|row| papers.iter().any(|paper| is_of(row, paper)));
    }
    Ok(published)
}

fn answered(row: &Published, rule: &Rule, bench: &Bench) -> ReproduceRow {
    match rule.statistic.value(bench) {
        Ok(ours) => ReproduceRow {
            ours: Some(ours),
            difference_pct: (row.value != 0.0 && !is_change(rule))
                .then(|| (ours - row.value) / row.value * 100.0),
            kind: if rule.sets_parameter && row.kind == PublishedKind::Calibration {
                RowKind::Calibrated
            } else {
                RowKind::Predicted
            },
            note: match (is_change(rule), rule.note) {
                (false, note) => note.into(),
                (true, "") => classes(row.value, ours),
                (true, note) => format!("{}; {note}", classes(row.value, ours)),
            },
            ..plain(row)
        },
        Err(why) => ReproduceRow {
            note: why,
            ..plain(row)
        },
    }
}

/// Whether the figure is a change, of which a class means more than a share.
fn is_change(rule: &Rule) -> bool {
    matches!(rule.statistic, Statistic::ExtremeChangePct(..))
}

/// The classes of two changes, as CXL-Interplay has them.
fn classes(published: f64, ours: f64) -> String {
    let (theirs, class) = (ChangeClass::of(published), ChangeClass::of(ours));
    match class.distance(theirs) {
        0 => format!("{class}, as published"),
        off => format!("{class}, published {theirs}: {off} off"),
    }
}

/// A row that states a measured figure and has no rule, with what it needs; `None` for rows that
/// state a configuration or context.
fn not_modelled(row: &Published) -> Option<ReproduceRow> {
    let description = format!("{} {} {}", row.platform, row.what, row.condition);
    let needs = match (row.kind, unanswered::needs(&row.id, &description)) {
        (PublishedKind::Claim, _) | (PublishedKind::Calibration, None) => return None,
        (_, Some(needs)) => needs,
        (PublishedKind::Result, None) => "no experiment answers it yet",
    };
    Some(ReproduceRow {
        note: needs.into(),
        ..plain(row)
    })
}

/// The published side of a row.
fn plain(row: &Published) -> ReproduceRow {
    let condition = match row.condition.as_str() {
        "" | "-" => row.platform.clone(),
        condition => format!("{}: {condition}", row.platform),
    };
    ReproduceRow {
        id: row.id.clone(),
        paper: row.paper.clone(),
        what: row.what.clone(),
        condition,
        published: row.value,
        ours: None,
        unit: row.unit.clone(),
        difference_pct: None,
        kind: RowKind::NotModelled,
        note: String::new(),
    }
}
