//! How the errors that are allowed are shared out between the two predictors (Pond, section 4.4, Equation 1).
//!
//! ```text
//! maximise    LI(FP) + UM(OP)
//! subject to  FP + OP <= 100 - TP
//! ```
//!
//! `LI` is the share of programs that is marked with false positives `FP`, `UM` the share of memory that is predicted to be
//! untouched with over-predictions `OP`, and `TP` the share of VMs that must not be slowed. Both curves are measured at some
//! budgets, and are steps: between two measured budgets the smaller one is what can be had. So the best point is among pairs of
//! measured ones, and is found exactly.
//!
//! The sum adds shares of different wholes: VMs that are marked need no prediction of untouched memory. What the pool has is
//! `LI + (1 - LI) UM` (`pooled`), and only a quarter of the over-predictions makes a VM slower than the margin (PON-098). Each is
//! a problem of its own here, besides the printed one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};

use super::insensitive::{InsensitivePlan, Predictor};
use super::untouched::UntouchedPlan;
use crate::PlanError;
use crate::error::within;
use crate::pool::split::SLOWED;

/// Rounding of sums of percentages.
const ROUNDING: f64 = 1e-9;
/// The two curves.
const MARKED: &str = "programs marked";
const UNTOUCHED: &str = "memory untouched";

/// A measured curve: what can be had for a budget of errors, all in percent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Budget and what it gives, both rising, the first without errors.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// Of measured points in any order. A point that gives less than one with a smaller budget is replaced by that one, since a
    /// budget need not be used up.
    pub fn of(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut all: Vec<(f64, f64)> = points.into_iter().collect();
        all.push((0.0, 0.0));
        all.retain(|(budget, gives)| budget.is_finite() && gives.is_finite() && *budget >= 0.0);
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut curve = Self::default();
        for (budget, gives) in all {
            match curve.points.last() {
                Some(last) if gives <= last.1 => {}
                _ => curve.points.push((budget, gives)),
            }
        }
        curve
    }

    /// The measured point that a budget allows.
    pub fn within(&self, budget: f64) -> (f64, f64) {
        let allowed = self
            .points
            .partition_point(|point| point.0 <= budget + ROUNDING);
        allowed
            .checked_sub(1)
            .map_or((0.0, 0.0), |at| self.points[at])
    }

    /// What a budget gives.
    pub fn at(&self, budget: f64) -> f64 {
        self.within(budget).1
    }
}

weir_model::named! {
    /// What is maximised, and what the budget counts.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Problem {
        /// Equation 1 as it is printed.
        Printed = "as printed",
        /// The share of memory in the pool.
        Pooled = "share of the pool",
        /// The same, where over-predictions count as far as they slow a VM.
        Slowing = "share of the pool, over-predictions by a quarter",
    }
}

impl Problem {
    /// What is maximised, in percent.
    pub fn value(self, marked_pct: f64, untouched_pct: f64) -> f64 {
        match self {
            Problem::Printed => marked_pct + untouched_pct,
            Problem::Pooled | Problem::Slowing => pooled_pct(marked_pct, untouched_pct),
        }
    }

    /// What of the budget an over-prediction uses up.
    fn charge(self) -> f64 {
        match self {
            Problem::Printed | Problem::Pooled => 1.0,
            Problem::Slowing => SLOWED,
        }
    }
}

fn pooled_pct(marked_pct: f64, untouched_pct: f64) -> f64 {
    marked_pct + (1.0 - marked_pct / 100.0) * untouched_pct
}

/// A solution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BalanceRow {
    /// What is maximised.
    pub problem: Problem,
    /// VMs that must not be slowed.
    pub tail_pct: f64,
    /// False positives of the marked programs, of all.
    pub false_positives_pct: f64,
    /// Over-predictions of untouched memory.
    pub over_predicted_pct: f64,
    /// Programs that are marked.
    pub marked_pct: f64,
    /// Memory of the others that is predicted to be untouched.
    pub untouched_pct: f64,
    /// Memory in the pool.
    pub pooled_pct: f64,
}

/// Solves a problem on two curves.
pub fn solve(problem: Problem, marked: &Curve, untouched: &Curve, tail_pct: f64) -> BalanceRow {
    let budget = 100.0 - tail_pct;
    let mut best: Option<(f64, BalanceRow)> = None;
    for &(false_positives_pct, marked_pct) in &marked.points {
        let left = budget - false_positives_pct;
        if left < -ROUNDING {
            break;
        }
        let (over_predicted_pct, untouched_pct) = untouched.within(left / problem.charge());
        let value = problem.value(marked_pct, untouched_pct);
        if best.as_ref().is_none_or(|(most, _)| value > *most) {
            let row = BalanceRow {
                problem,
                tail_pct,
                false_positives_pct,
                over_predicted_pct,
                marked_pct,
                untouched_pct,
                pooled_pct: pooled_pct(marked_pct, untouched_pct),
            };
            best = Some((value, row));
        }
    }
    // The point without errors is always allowed.
    best.map_or_else(
        || BalanceRow {
            problem,
            tail_pct,
            false_positives_pct: 0.0,
            over_predicted_pct: 0.0,
            marked_pct: 0.0,
            untouched_pct: 0.0,
            pooled_pct: 0.0,
        },
        |(_, row)| row,
    )
}

/// A step of either curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveStep {
    /// Which curve.
    pub curve: String,
    /// Errors that are allowed.
    pub budget_pct: f64,
    /// What they give.
    pub gives_pct: f64,
}

/// How errors are shared out between the predictors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BalancePlan {
    /// A solution for each problem.
    pub balances: Vec<BalanceRow>,
    /// The two curves, without steps that give nothing more.
    pub steps: Vec<CurveStep>,
    /// The machine of the programs.
    pub programs_of: String,
}

/// Solves every problem on the curves of two documents: programs of a machine that the forest marks, and memory that is predicted
/// to be untouched. Budgets are the targets, below which the measured errors of held-out programs and days stay; where one was
/// above its target, it is the measured error.
///
/// # Errors
/// The tail is no percentage, or there are no programs of the machine.
pub fn balance(
    programs: &InsensitivePlan,
    memory: &UntouchedPlan,
    machine: Option<&str>,
    tail_pct: f64,
) -> Result<BalancePlan, PlanError> {
    within("--tail", tail_pct, (0.0, 100.0), "0 % to 100 %")?;
    let machines = programs.machines();
    let machine = machine
        .or_else(|| machines.first().copied())
        .unwrap_or_default();
    if !machines.contains(&machine) {
        return Err(PlanError::OutOfBounds {
            what: "the machine of the programs",
            found: format!("`{machine}`"),
            wanted: format!("one of the document: {}", machines.join(", ")).into(),
        });
    }
    let forest = programs
        .curves
        .iter()
        .filter(|row| row.machine == machine && row.predictor == Predictor::Forest);
    let marked =
        Curve::of(forest.map(|row| (row.target_pct.max(row.false_positives_pct), row.marked_pct)));
    let untouched = Curve::of(memory.targets.iter().map(|row| {
        (
            row.target_pct.max(row.over_predicted_pct),
            row.untouched_pct,
        )
    }));
    let steps = |name: &str, curve: &Curve| -> Vec<CurveStep> {
        let step = |&(budget_pct, gives_pct): &(f64, f64)| CurveStep {
            curve: name.to_owned(),
            budget_pct,
            gives_pct,
        };
        curve.points.iter().map(step).collect()
    };
    Ok(BalancePlan {
        balances: Problem::ALL
            .into_iter()
            .map(|problem| solve(problem, &marked, &untouched, tail_pct))
            .collect(),
        steps: [steps(MARKED, &marked), steps(UNTOUCHED, &untouched)].concat(),
        programs_of: machine.to_owned(),
    })
}

impl BalancePlan {
    /// Errors that are allowed and that no step of either curve has a use for; `None` where a curve goes on.
    fn unused(&self, row: &BalanceRow) -> Option<f64> {
        let ends = |curve: &str, at: f64| {
            let mut of = self.steps.iter().filter(|step| step.curve == curve);
            of.all(|step| step.budget_pct <= at + ROUNDING)
        };
        let used = row.false_positives_pct + row.problem.charge() * row.over_predicted_pct;
        let unused = 100.0 - row.tail_pct - used;
        (unused > ROUNDING
            && ends(MARKED, row.false_positives_pct)
            && ends(UNTOUCHED, row.over_predicted_pct))
        .then_some(unused)
    }
}

impl Outcome for BalancePlan {
    const SCHEMA: &'static str = "weir/plan-balance/1";
    const TITLE: &'static str = "False positives and over-predictions in balance";
    const WORDS: &'static str =
        "The budget of errors is shared out so that most memory is in the pool.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let Some(row) = self.balances.first() else {
            return Vec::new();
        };
        let limit = match self.unused(row) {
            Some(unused) => format!(
                "both curves end there, and {} % of the VMs may be slowed, {unused:.1} % more",
                100.0 - row.tail_pct
            ),
            None => format!(
                "the most for which {} % of the VMs are not slowed",
                row.tail_pct
            ),
        };
        vec![
            note(
                &format!("{:.0} % of the memory in the pool", row.pooled_pct),
                format!(
                    "{:.1} % false positives mark {:.0} % of the programs, {:.1} % over-predictions find {:.0} % of the others' memory \
                     untouched: {limit}",
                    row.false_positives_pct,
                    row.marked_pct,
                    row.over_predicted_pct,
                    row.untouched_pct,
                ),
            ),
            note(
                "replay it with",
                format!(
                    "weir plan pool --marked {:.1}% --false-positives {:.2}% --untouched {:.1}% --over-predicted {:.2}%",
                    row.marked_pct,
                    row.false_positives_pct,
                    row.untouched_pct,
                    row.over_predicted_pct
                ),
            ),
        ]
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let balances = vec![
            col("problem"),
            col("false_positives_pct").head("false positives").places(2),
            col("over_predicted_pct").head("over-predicted").places(2),
            col("marked_pct").head("marked").places(1),
            col("untouched_pct").head("untouched").places(1),
            col("pooled_pct").head("in pool").places(1),
        ];
        let steps = vec![
            col("curve"),
            col("budget_pct").head("errors").places(2),
            col("gives_pct").head("gives").places(1),
        ];
        vec![
            View::table("balances", "Errors in balance", balances),
            View::table("steps", "The two curves", steps),
            View::lines(
                "steps",
                "What a budget of errors gives",
                ("budget_pct", "errors allowed (%)"),
                ("gives_pct", "gives (%)"),
                &["curve"],
            )
            .axes(Axis::Linear, Axis::Linear),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_budget_goes_where_it_gives_most() {
        let marked = Curve::of([(0.5, 10.0), (1.0, 30.0), (2.0, 31.0)]);
        let untouched = Curve::of([(1.0, 20.0), (2.0, 35.0)]);
        let row = solve(Problem::Printed, &marked, &untouched, 98.0);
        assert_eq!(
            (row.false_positives_pct, row.over_predicted_pct),
            (1.0, 1.0)
        );
        assert_eq!(
            (row.marked_pct, row.untouched_pct, row.pooled_pct),
            (30.0, 20.0, 44.0)
        );
        // A quarter of the over-predictions slows: all of both fits.
        let row = solve(Problem::Slowing, &marked, &untouched, 97.5);
        assert_eq!(
            (row.false_positives_pct, row.over_predicted_pct),
            (2.0, 2.0)
        );
        let none = solve(Problem::Printed, &marked, &untouched, 100.0);
        assert_eq!(
            (none.marked_pct, none.untouched_pct, none.pooled_pct),
            (0.0, 0.0, 0.0)
        );
    }

    #[test]
    fn a_budget_that_gives_less_than_a_smaller_one_is_not_used_up() {
        let curve = Curve::of([(1.0, 10.0), (2.0, 8.0), (f64::NAN, 90.0)]);
        assert_eq!((curve.within(5.0), curve.at(0.5)), ((1.0, 10.0), 0.0));
    }

    fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
        // Budgets in tenths of a percent, so that brute force meets them all.
        let point =
            (0..60u32, 0.0..100.0f64).prop_map(|(tenths, gives)| (f64::from(tenths) / 10.0, gives));
        prop::collection::vec(point, 0..12)
    }

    proptest! {
        #[test]
        fn a_solution_is_that_of_brute_force(marked in points(), untouched in points(), tenths in 0..80u32) {
            let (marked, untouched) = (Curve::of(marked), Curve::of(untouched));
            let budget = f64::from(tenths) / 10.0;
            for problem in Problem::ALL {
                let found = solve(problem, &marked, &untouched, 100.0 - budget);
                prop_assert!(found.false_positives_pct + problem.charge() * found.over_predicted_pct <= budget + 1e-6);
                let value = problem.value(found.marked_pct, found.untouched_pct);
                let mut most: f64 = 0.0;
                for fp in 0..=tenths {
                    // Over-predictions that count by a quarter may be four times as many.
                    let most_over = (f64::from(tenths - fp) / problem.charge()).round() as u32;
                    for op in 0..=most_over {
                        let at = |curve: &Curve, tenths: u32| curve.at(f64::from(tenths) / 10.0);
                        most = most.max(problem.value(at(&marked, fp), at(&untouched, op)));
                    }
                }
                prop_assert!((value - most).abs() < 1e-6, "{} and {}", value, most);
            }
        }

        #[test]
        fn a_larger_budget_never_gives_less(marked in points(), untouched in points(), a in 0.0..10.0f64, b in 0.0..10.0f64) {
            let (marked, untouched) = (Curve::of(marked), Curve::of(untouched));
            for problem in Problem::ALL {
                let value = |budget: f64| {
                    let row = solve(problem, &marked, &untouched, 100.0 - budget);
                    problem.value(row.marked_pct, row.untouched_pct)
                };
                prop_assert!(value(a.min(b)) <= value(a.max(b)) + 1e-9);
            }
        }
    }
}
