//! Which programs may be in a pool as a whole: a random forest over counters of local runs, against thresholds on one
//! quantity (Pond, sections 4.4 and 6.4.1).
//!
//! Programs are split at random into equal halves, again and again. A half trains, and sets how many votes a program needs so
//! that false positives stay below each target; the other half is held out. A false positive is a program that is marked and
//! sensitive; it counts as a share of all programs, so that Equation 1 can add it to what untouched memory costs.

mod outcome;

use weir_model::counters::CounterSet;

pub use outcome::{FeatureRow, InsensitivePlan, MarkedRow, ProgramRow, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::forest::Forest;
use super::tree::Columns;
use super::{features, risk};
use crate::PlanError;
use crate::error::within;
use weir_model::random::Random;

/// Trees of a forest: the usual number of scikit-learn, which Pond takes.
const TREES: u32 = 100;
/// Half of the 99 % interval of a mean, in standard errors.
const STANDARD_ERRORS: f64 = 2.576;
/// Fewer programs cannot be split into halves that say anything.
pub const FEWEST: usize = 20;
/// Columns whose share of the gain is listed.
const LISTED: usize = 10;

/// A program that ran on local memory and on the pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The machine, or the file that it was counted in.
    pub machine: String,
    /// What was counted on local memory.
    pub local: CounterSet,
    /// How much slower it was on the pool.
    pub slowdown_pct: f64,
}

/// How programs are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Insensitive {
    /// A program that is slowed by at most this much is insensitive.
    pub margin_pct: f64,
    /// False positives that are allowed, as shares of all programs.
    pub targets: Vec<f64>,
    /// How often programs are split into halves.
    pub splits: u32,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// A forest to be kept, with what is needed to use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InsensitiveModel {
    /// `weir/insensitive-model/1`.
    pub schema: String,
    /// The machine, or the file of counters.
    pub machine: String,
    /// The slowdown up to which a program counted as insensitive.
    pub margin_pct: f64,
    /// Columns, by name, in the order of their numbers in trees.
    pub features: Vec<String>,
    /// Votes that a program needs, for each target.
    pub thresholds: Vec<Threshold>,
    /// The trees, whose answers are votes for insensitive.
    pub forest: Forest,
}

/// Votes for a target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// False positives that are allowed, of all programs.
    pub target_pct: f64,
    /// Share of votes from which on a program is marked; absent where none may be.
    pub votes: Option<f64>,
}

impl InsensitiveModel {
    /// The value of `schema`.
    pub const SCHEMA: &'static str = "weir/insensitive-model/1";
}

weir_model::named! {
    /// What marks programs.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Predictor {
        /// Votes of a random forest.
        Forest = "random forest",
        /// Least share of cycles stalled on memory behind the last-level cache.
        DramBound = "DRAM-bound",
        /// Least share of cycles stalled on caches, memory and stores.
        MemoryBound = "memory-bound",
    }
}

/// Programs of one machine as columns and labels.
struct Data<'p> {
    programs: Vec<&'p Program>,
    rows: Vec<Vec<f64>>,
    labels: Vec<f64>,
    /// Less bound is better: the scores of the two thresholds.
    bounds: [Vec<f64>; 2],
}

impl Data<'_> {
    fn sensitive(&self, row: usize) -> bool {
        self.labels[row] < 0.5
    }

    fn grow(&self, rows: &[usize], random: &mut Random) -> super::forest::Grown {
        let value = |row: usize, column: usize| self.rows[rows[row]][column];
        let columns = Columns::of(rows.len(), self.rows[0].len(), value);
        let labels: Vec<f64> = rows.iter().map(|row| self.labels[*row]).collect();
        Forest::grow(&columns, &labels, TREES, random, value)
    }
}

/// Shares of the held-out programs, for one target of one predictor.
#[derive(Debug, Clone, Default)]
struct Sums {
    marked: Vec<f64>,
    wrong: Vec<f64>,
    hindsight: Vec<f64>,
}

impl Insensitive {
    /// Refuses arguments outside their bounds.
    ///
    /// # Errors
    /// One is.
    pub fn check(&self) -> Result<(), PlanError> {
        within("--margin", self.margin_pct, (0.0, 1000.0), "0 % to 1000 %")?;
        let splits = f64::from(self.splits);
        within("--splits", splits, (1.0, 10_000.0), "1 to 10000")?;
        for target in &self.targets {
            within("a target", *target, (0.0, 1.0), "0 % to 100 %")?;
        }
        Ok(())
    }

    /// Judges programs, machine by machine. Programs without cycles are left out and counted.
    ///
    /// # Errors
    /// An argument is outside its bounds, or a machine has too few programs.
    pub fn run(
        &self,
        programs: &[Program],
    ) -> Result<(InsensitivePlan, Vec<InsensitiveModel>), PlanError> {
        self.check()?;
        let mut machines: Vec<&str> = Vec::new();
        for program in programs {
            if !machines.contains(&program.machine.as_str()) {
                machines.push(&program.machine);
            }
        }
        let mut plan = InsensitivePlan::new(self.margin_pct, self.splits);
        let mut models = Vec::new();
        for machine in machines {
            let of: Vec<&Program> = programs.iter().filter(|p| p.machine == machine).collect();
            let (data, unread) = self.data(of);
            plan.unread.extend(unread.map(|programs| Unread {
                machine: machine.to_owned(),
                programs,
            }));
            let count = data.programs.len() as f64;
            within(
                "the number of programs with counters",
                count,
                (FEWEST as f64, 1e9),
                "20 or more on each machine",
            )?;
            plan.curves.extend(self.curves(machine, &data));
            models.push(self.model(machine, &data, &mut plan));
        }
        Ok((plan, models))
    }

    fn data<'p>(&self, programs: Vec<&'p Program>) -> (Data<'p>, Option<u64>) {
        let mut data = Data {
            programs: Vec::new(),
            rows: Vec::new(),
            labels: Vec::new(),
            bounds: [Vec::new(), Vec::new()],
        };
        let all = programs.len();
        for program in programs {
            let Some(row) = features::of(&program.local) else {
                continue;
            };
            data.rows.push(row);
            let insensitive = program.slowdown_pct <= self.margin_pct;
            data.labels.push(f64::from(u8::from(insensitive)));
            let bounds = [features::dram_bound, features::memory_bound];
            for (scores, bound) in data.bounds.iter_mut().zip(bounds) {
                // What cannot be determined is marked last.
                scores.push(bound(&program.local).map_or(f64::NEG_INFINITY, |share| -share));
            }
            data.programs.push(program);
        }
        let left_out = (all - data.programs.len()) as u64;
        (data, Some(left_out).filter(|left_out| *left_out > 0))
    }

    fn curves(&self, machine: &str, data: &Data<'_>) -> Vec<MarkedRow> {
        let mut random = Random::new(self.seed ^ 0x7370_6c69_7400);
        let mut sums = vec![vec![Sums::default(); self.targets.len()]; Predictor::ALL.len()];
        for _ in 0..self.splits {
            let mut order: Vec<usize> = (0..data.rows.len()).collect();
            for at in (1..order.len()).rev() {
                let other = (random.share() * (at + 1) as f64) as usize;
                order.swap(at, other.min(at));
            }
            let (train, test) = order.split_at(order.len() / 2);
            for (predictor, sums) in Predictor::ALL.into_iter().zip(&mut sums) {
                let (known, held_out) = scores(data, predictor, (train, test), &mut random);
                for (target, sums) in self.targets.iter().zip(sums) {
                    sums.add(&held_out, risk::threshold(&known, *target), *target);
                }
            }
        }
        let mut rows = Vec::new();
        for (predictor, sums) in Predictor::ALL.into_iter().zip(&sums) {
            for (target, sums) in self.targets.iter().zip(sums) {
                rows.push(sums.row(machine, predictor, *target));
            }
        }
        rows
    }

    /// The forest of all programs, its thresholds, and what it says of each program by trees that did not see it.
    fn model(
        &self,
        machine: &str,
        data: &Data<'_>,
        plan: &mut InsensitivePlan,
    ) -> InsensitiveModel {
        let all: Vec<usize> = (0..data.rows.len()).collect();
        let grown = data.grow(&all, &mut Random::new(self.seed ^ 0x616c_6c00));
        let votes = &grown.out_of_bag;
        let scored: Vec<(f64, bool)> = all
            .iter()
            .map(|&row| (votes[row], data.sensitive(row)))
            .collect();
        let names = features::names();
        let mut gains: Vec<(f64, &String)> = grown
            .forest
            .shares_of_gain(names.len())
            .into_iter()
            .zip(&names)
            .collect();
        gains.sort_by(|a, b| b.0.total_cmp(&a.0));
        plan.features.extend(
            gains
                .into_iter()
                .take(LISTED)
                .map(|(share, name)| FeatureRow {
                    machine: machine.to_owned(),
                    feature: name.clone(),
                    gain_pct: 100.0 * share,
                }),
        );
        for (row, program) in data.programs.iter().enumerate() {
            plan.programs.push(ProgramRow {
                machine: machine.to_owned(),
                program: program.name.clone(),
                slowdown_pct: program.slowdown_pct,
                insensitive: !data.sensitive(row),
                votes_pct: 100.0 * votes[row],
                dram_bound_pct: Some(-100.0 * data.bounds[0][row])
                    .filter(|share| share.is_finite()),
                memory_bound_pct: Some(-100.0 * data.bounds[1][row])
                    .filter(|share| share.is_finite()),
            });
        }
        let threshold = |target: &f64| Threshold {
            target_pct: 100.0 * target,
            votes: Some(risk::threshold(&scored, *target)).filter(|votes| votes.is_finite()),
        };
        InsensitiveModel {
            schema: InsensitiveModel::SCHEMA.into(),
            machine: machine.to_owned(),
            margin_pct: self.margin_pct,
            features: names,
            thresholds: self.targets.iter().map(threshold).collect(),
            forest: grown.forest,
        }
    }
}

type Scored = Vec<(f64, bool)>;

/// Scores of both halves, each with whether the program is sensitive. Those of the first half are by trees that did not see
/// the program.
fn scores(
    data: &Data<'_>,
    predictor: Predictor,
    (train, test): (&[usize], &[usize]),
    random: &mut Random,
) -> (Scored, Scored) {
    let with = |rows: &[usize], score: &dyn Fn(usize) -> f64| -> Scored {
        rows.iter()
            .map(|&row| (score(row), data.sensitive(row)))
            .collect()
    };
    let bound = |at: usize| {
        let score = |row: usize| data.bounds[at][row];
        (with(train, &score), with(test, &score))
    };
    match predictor {
        Predictor::DramBound => bound(0),
        Predictor::MemoryBound => bound(1),
        Predictor::Forest => {
            let grown = data.grow(train, random);
            let known = train.iter().zip(&grown.out_of_bag);
            let known = known
                .map(|(&row, votes)| (*votes, data.sensitive(row)))
                .collect();
            let votes = |row: usize| grown.forest.votes(|column| data.rows[row][column]);
            (known, with(test, &votes))
        }
    }
}

impl Sums {
    fn add(&mut self, held_out: &[(f64, bool)], from: f64, target: f64) {
        let share = |count: usize| count as f64 / held_out.len().max(1) as f64;
        let marked = |from: f64| {
            held_out
                .iter()
                .filter(move |(score, _)| *score >= from && score.is_finite())
        };
        self.marked.push(share(marked(from).count()));
        self.wrong.push(share(
            marked(from).filter(|(_, sensitive)| *sensitive).count(),
        ));
        let best = risk::in_hindsight(held_out, target);
        self.hindsight.push(share(marked(best).count()));
    }

    fn row(&self, machine: &str, predictor: Predictor, target: f64) -> MarkedRow {
        let (marked, marked_ci99) = mean(&self.marked);
        let (wrong, wrong_ci99) = mean(&self.wrong);
        MarkedRow {
            machine: machine.to_owned(),
            predictor,
            target_pct: 100.0 * target,
            false_positives_pct: 100.0 * wrong,
            false_positives_ci99_pct: 100.0 * wrong_ci99,
            marked_pct: 100.0 * marked,
            marked_ci99_pct: 100.0 * marked_ci99,
            hindsight_pct: 100.0 * mean(&self.hindsight).0,
        }
    }
}

/// A mean, and half of its 99 % interval over splits.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (n - 1.0).max(1.0)).sqrt();
    (mean, STANDARD_ERRORS * deviation / n.sqrt())
}

#[cfg(test)]
mod tests;
