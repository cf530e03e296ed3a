//! Published figures with ours, row by row; rows that miss stay in the table.
//!
//! A [`Rule`] says how a row is answered. Every row that states a measured figure is listed: with our
//! figure, or with what it would need. Rows that state a configuration (cores, capacities) or context
//! are counted and left out.

pub mod figures;
pub mod points;
pub mod rule;
mod rules;
pub mod sensitivity;
mod study;

use std::collections::BTreeMap;
use std::rc::Rc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::document::{ReproduceRow, RowKind};
use weir_model::interplay::ChangeClass;
use weir_model::published::{Published, PublishedKind};

use crate::{Lab, LabError, side_by_side};
use rule::{Asked, Open, Opened, Results, Rule, find};
pub use rules::{rules, unanswered};
pub use study::{Models, Reproduce, Vary};

/// Published rows with our figures: the own part of a `reproduce` document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reproduction {
    /// Platforms used, by name, with their digests.
    pub platforms: BTreeMap<String, String>,
    /// The published figures with ours, in the order of the published data.
    pub rows: Vec<ReproduceRow>,
    /// Published rows that state no measured figure, and so are not among `rows`.
    #[serde(default)]
    pub left_out: usize,
    /// Published rows that were not finished when the work was stopped, and so are not among `rows`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// What makes our figures less than trustworthy.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// Whether it was stopped before its end.
    #[serde(skip)]
    pub partial: bool,
    /// Whether answers of other workers are missing.
    #[serde(skip)]
    pub of_others: bool,
}

/// How rows are answered.
#[derive(Clone, Copy)]
pub struct Engine<'a> {
    /// The rules; the first for a row counts.
    pub rules: &'a [Rule],
    /// Opens platforms.
    pub open: &'a Open<'a>,
    /// Answers what rules ask for, on a platform of their choice.
    pub lab: &'a Lab<'a>,
    /// Whether rows that take minutes are answered too.
    pub with_slow: bool,
}

/// How the note of a row begins that was not answered for the time that it takes.
const TAKES_MINUTES: &str = "takes minutes";

/// A row that has a rule, or has none.
type Ruled<'r> = (&'r Published, Option<&'r Rule>);

impl Engine<'_> {
    /// Answers published rows. The answer of a row does not depend on the other rows.
    pub fn rows(&self, published: &[Published]) -> Reproduction {
        let ruled = self.ruled(published);
        let mut results = Results::new(self.open, self.lab.seed());
        let mut of_others = false;
        loop {
            self.ask(&ruled, &results);
            let asked = results.asked();
            if asked.is_empty() {
                break;
            }
            of_others = !self.run(&asked, &mut results);
            if self.lab.stopped() || of_others {
                break;
            }
        }
        let (mut rows, mut left_out, mut unfinished) = (Vec::new(), 0, Vec::new());
        for (row, rule) in ruled {
            match self.answer(row, rule, &results) {
                Some(Some(row)) => rows.push(row),
                Some(None) => left_out += 1,
                None => unfinished.push(row.id.clone()),
            }
        }
        Reproduction {
            rows,
            platforms: results.digests(),
            warnings: results.warnings(),
            left_out,
            partial: !unfinished.is_empty(),
            unfinished,
            of_others,
        }
    }

    /// What each of some rows asks for.
    pub fn asks<'p>(
        &self,
        published: &'p [Published],
    ) -> impl Iterator<Item = (&'p Published, Vec<Asked>)> {
        let results = Results::new(self.open, self.lab.seed());
        published.iter().map(move |row| {
            self.ask(&self.ruled(std::slice::from_ref(row)), &results);
            (row, results.asked())
        })
    }

    fn ruled<'r>(&'r self, published: &'r [Published]) -> Vec<Ruled<'r>> {
        let rows = published.iter();
        rows.map(|row| (row, find(self.rules, &row.id))).collect()
    }

    /// Notes in the results what the rows need and is not there.
    fn ask(&self, ruled: &[Ruled<'_>], results: &Results<'_>) {
        let rules = ruled.iter().filter_map(|(_, rule)| *rule);
        for rule in rules.filter(|rule| self.with_slow || !rule.is_slow) {
            for figure in rule.figure.iter().chain(&rule.own) {
                if self.lab.stopped() {
                    return;
                }
                results.figure(figure);
            }
        }
    }

    /// Asks the lab: first for what can run side by side, then for what uses all threads. False where answers of other
    /// workers are missing.
    fn run(&self, asked: &[Asked], results: &mut Results<'_>) -> bool {
        // Nothing is asked for on a platform that cannot be opened.
        let opened = asked
            .iter()
            .filter_map(|asked| Some((asked, results.on(asked.on).ok()?)));
        let opened: Vec<(&Asked, Rc<Opened>)> = opened.collect();
        let (alone, together): (Vec<_>, Vec<_>) = (opened.iter().enumerate())
            .map(|(place, (asked, on))| (place, *asked, &**on))
            .partition(|(_, asked, _)| asked.all_threads);
        // Nothing where the work was stopped, and no answer where another worker has it.
        let one = |&(place, asked, on): &(usize, &'_ Asked, &Opened)| {
            let lab = (self.lab).on_share(place, &*on.testbed, &on.identity, &on.topology);
            match asked.answer(&lab) {
                Err(LabError::Stopped) => None,
                Err(LabError::Part) => Some((place, None)),
                answer => Some((place, Some(answer.map_err(|error| error.to_string())))),
            }
        };
        let workers = (together.iter())
            .map(|(_, _, on)| on.testbed.parallelism())
            .min();
        let mut done = side_by_side(workers.unwrap_or(1), together.len(), &|index| {
            let asked = together.get(index)?;
            let go_on = self.lab.step(together.len());
            go_on.then(|| one(asked)).flatten()
        });
        done.extend(
            (alone.iter()).map_while(|asked| (!self.lab.stopped()).then(|| one(asked)).flatten()),
        );
        let mut all = true;
        for (place, result) in done {
            match (opened.get(place), result) {
                (Some((asked, _)), Some(result)) => results.keep(asked, result),
                _ => all = false,
            }
        }
        all
    }

    /// The answer of a row: `None` if it is not finished, `Some(None)` if the row states no figure.
    fn answer(
        &self,
        row: &Published,
        rule: Option<&Rule>,
        results: &Results<'_>,
    ) -> Option<Option<ReproduceRow>> {
        let without = |note: String| Some(Some(ReproduceRow { note, ..plain(row) }));
        let (rule, figure) = match rule.map(|rule| (rule, &rule.figure)) {
            Some((rule, Some(figure))) => (rule, figure),
            rule => {
                return match (row.kind, rule) {
                    (PublishedKind::Claim, _) | (PublishedKind::Calibration, None) => Some(None),
                    (_, Some((rule, _))) => without(rule.note.into()),
                    (PublishedKind::Result, None) => without("no experiment answers it yet".into()),
                };
            }
        };
        if rule.is_slow && !self.with_slow {
            let paper = &row.paper;
            return without(format!(
                "{TAKES_MINUTES}; `weir reproduce {paper}` and --only answer it"
            ));
        }
        let ours = match results.figure(figure)? {
            Ok(ours) => ours,
            // Work that was given up is no reason why a row has no figure.
            Err(_) if self.lab.stopped() => return None,
            Err(why) => return without(why),
        };
        let own = rule.own.as_ref().map(|own| results.figure(own));
        let class = rule.is_change.then(|| classes(row.value, ours));
        let notes: Vec<&str> = (class.as_deref().into_iter().chain([rule.note]))
            .filter(|note| !note.is_empty())
            .collect();
        Some(Some(ReproduceRow {
            ours: Some(ours),
            own_form: own.flatten().and_then(Result::ok),
            difference_pct: row.difference_pct(ours).filter(|_| !rule.is_change),
            keeps_bound: row.keeps_bound(ours) && !rule.is_change,
            kind: rule.kind,
            note: notes.join("; "),
            ..plain(row)
        }))
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

/// The classes of two changes, as CXL-Interplay has them.
fn classes(published: f64, ours: f64) -> String {
    let (theirs, class) = (ChangeClass::of(published), ChangeClass::of(ours));
    match class.distance(theirs) {
        0 => format!("{class}, as published"),
        off => format!("{class}, published {theirs}: {off} off"),
    }
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
        own_form: None,
        unit: row.unit.clone(),
        difference_pct: None,
        keeps_bound: false,
        kind: RowKind::NotModelled,
        note: String::new(),
    }
}
