//! The document of `weir plan insensitive`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};

use super::Predictor;
use crate::predict::risk;

/// The target that the answer is for, in percent: what Pond's evaluation allows (section 6.4.1).
const ANSWERED_PCT: f64 = 2.0;

/// Which programs may be in a pool as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InsensitivePlan {
    /// A row for each machine, predictor and target.
    pub curves: Vec<MarkedRow>,
    /// The columns of counters that the forest of all programs uses most.
    pub features: Vec<FeatureRow>,
    /// The programs.
    pub programs: Vec<ProgramRow>,
    /// Programs that were left out, since they have no cycles.
    pub unread: Vec<Unread>,
    /// The slowdown up to which a program is insensitive.
    pub margin_pct: f64,
    /// How often programs were split into halves.
    pub splits: u32,
}

/// How many held-out programs a predictor marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarkedRow {
    /// The machine, or the file of counters.
    pub machine: String,
    /// What marks programs.
    pub predictor: Predictor,
    /// False positives that are allowed, of all programs.
    pub target_pct: f64,
    /// Held-out programs that are marked and sensitive, of all: the mean over splits.
    pub false_positives_pct: f64,
    /// Half of the 99 % interval of this mean over splits.
    pub false_positives_ci99_pct: f64,
    /// Held-out programs that are marked, of all: the mean over splits.
    pub marked_pct: f64,
    /// Half of the 99 % interval of this mean over splits.
    pub marked_ci99_pct: f64,
    /// Held-out programs that would be marked if the threshold were chosen on them: the mean over splits.
    pub hindsight_pct: f64,
}

/// A column of counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureRow {
    /// The machine, or the file of counters.
    pub machine: String,
    /// The column.
    pub feature: String,
    /// Its part of what all splits lower the error by.
    pub gain_pct: f64,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramRow {
    /// The machine, or the file of counters.
    pub machine: String,
    /// Its name.
    pub program: String,
    /// How much slower it was on the pool.
    pub slowdown_pct: f64,
    /// Whether that is within the margin.
    pub insensitive: bool,
    /// Trees that vote for insensitive, of those that did not see it.
    pub votes_pct: f64,
    /// Cycles stalled on memory behind the last-level cache; absent where not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram_bound_pct: Option<f64>,
    /// Cycles stalled on caches, memory and stores; absent where not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bound_pct: Option<f64>,
}

/// Programs that were left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unread {
    /// The machine, or the file of counters.
    pub machine: String,
    /// How many.
    pub programs: u64,
}

impl InsensitivePlan {
    pub(super) fn new(margin_pct: f64, splits: u32) -> Self {
        Self {
            margin_pct,
            splits,
            ..Self::default()
        }
    }

    /// The row of a predictor at a target.
    pub fn row(&self, machine: &str, predictor: Predictor, target_pct: f64) -> Option<&MarkedRow> {
        self.curves.iter().find(|row| {
            row.machine == machine
                && row.predictor == predictor
                && (row.target_pct - target_pct).abs() < 1e-9
        })
    }

    /// The machines in their order.
    pub fn machines(&self) -> Vec<&str> {
        let mut machines: Vec<&str> = Vec::new();
        for row in &self.curves {
            if !machines.contains(&row.machine.as_str()) {
                machines.push(&row.machine);
            }
        }
        machines
    }

    /// Targets that no threshold can be shown to keep with this few programs, so that nothing is marked.
    fn too_few(&self, machine: &str) -> Option<Verdict> {
        let of_machine = |row: &&ProgramRow| row.machine == machine;
        let programs = self.programs.iter().filter(of_machine).count();
        let forest =
            |row: &&MarkedRow| row.machine == machine && row.predictor == Predictor::Forest;
        let targets = self.curves.iter().filter(forest).map(|row| row.target_pct);
        let strict = |target: &f64| *target > 0.0 && !risk::holds(0, programs / 2, target / 100.0);
        let strict: Vec<f64> = targets.filter(strict).collect();
        let least = strict.iter().copied().reduce(f64::max)?;
        let enough = 2.0 * (100.0 / least - 1.0).ceil();
        let strict: Vec<String> = strict.iter().map(f64::to_string).collect();
        let text = format!(
            "{machine}: half of {programs} are too few to show that at most {} % are false, so that none is marked; {least} % takes {enough} programs",
            strict.join(" or ")
        );
        Some(Verdict::new(Severity::Doubt, "programs", text))
    }

    fn of_machine(&self, machine: &str) -> Option<Verdict> {
        let of = |predictor| self.row(machine, predictor, ANSWERED_PCT);
        let target = match of(Predictor::Forest) {
            Some(_) => ANSWERED_PCT,
            None => {
                self.curves
                    .iter()
                    .find(|row| row.machine == machine)?
                    .target_pct
            }
        };
        let of = |predictor| self.row(machine, predictor, target);
        let forest = of(Predictor::Forest)?;
        let dram = of(Predictor::DramBound)?;
        let memory = of(Predictor::MemoryBound)?;
        let programs: Vec<&ProgramRow> = self
            .programs
            .iter()
            .filter(|row| row.machine == machine)
            .collect();
        let insensitive = programs.iter().filter(|row| row.insensitive).count();
        let about = format!(
            "{:.0} % of the programs may be in the pool as a whole",
            forest.marked_pct
        );
        let text = format!(
            "{machine}: that many of the held-out programs a random forest marks with {:.1} % false positives, where \
             {target} % are allowed; a threshold on DRAM-bound marks {:.0} %, one on memory-bound {:.0} %; {insensitive} of \
             {} programs are slowed by {} % at most",
            forest.false_positives_pct,
            dram.marked_pct,
            memory.marked_pct,
            programs.len(),
            self.margin_pct
        );
        Some(Verdict::new(Severity::Note, about, text))
    }
}

impl Outcome for InsensitivePlan {
    const SCHEMA: &'static str = "weir/plan-insensitive/1";
    const TITLE: &'static str = "Programs that may be in a pool as a whole";
    const WORDS: &'static str = "Programs are split into halves at random, again and again; a half trains and sets the \
                                 threshold, the other is held out. False positives are marked programs that are slowed by \
                                 more than the margin, of all programs.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let machines = self.machines();
        let mut notes: Vec<Verdict> = machines
            .iter()
            .filter_map(|machine| self.of_machine(machine))
            .collect();
        notes.extend(machines.iter().filter_map(|machine| self.too_few(machine)));
        let above = self
            .curves
            .iter()
            .filter(|row| row.false_positives_pct > row.target_pct);
        let above: Vec<String> = above
            .map(|row| {
                format!(
                    "{} on {} has {:.2} % where {} % are allowed",
                    row.predictor, row.machine, row.false_positives_pct, row.target_pct
                )
            })
            .collect();
        if !above.is_empty() {
            notes.push(Verdict::new(
                Severity::Doubt,
                "false positives",
                above.join("; "),
            ));
        }
        notes.extend(self.unread.iter().map(|unread| {
            let text = format!(
                "{} programs of {} have no cycles",
                unread.programs, unread.machine
            );
            Verdict::new(Severity::Doubt, "left out", text)
        }));
        notes
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let curves = vec![
            col("predictor").in_words(),
            col("target_pct").head("target"),
            col("false_positives_pct").head("false positives").places(2),
            col("marked_pct").head("marked").places(1),
            col("marked_ci99_pct").head("±").places(1),
            col("hindsight_pct").head("in hindsight").places(1),
        ];
        let features = vec![col("feature"), col("gain_pct").head("gain").places(1)];
        vec![
            View::table(
                "curves",
                "Held-out programs that are marked, {machine}",
                curves,
            )
            .each(&["machine"]),
            View::table(
                "features",
                "What the forest reads most, {machine}",
                features,
            )
            .each(&["machine"]),
            View::lines(
                "curves",
                "Programs marked by false positives, {machine}",
                ("false_positives_pct", "false positives (% of the programs)"),
                ("marked_pct", "marked (% of the programs)"),
                &["predictor"],
            )
            .each(&["machine"])
            .axes(Axis::Linear, Axis::Linear),
            View::scatter(
                "programs",
                "Slowdown by cycles stalled on DRAM, {machine}",
                ("dram_bound_pct", "stalled on DRAM (% of the cycles)"),
                ("slowdown_pct", "slowdown on the pool (%)"),
                ("program", "insensitive"),
                &[],
            )
            .each(&["machine"]),
        ]
    }
}
