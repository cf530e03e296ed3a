//! Published rows of untouched memory, answered on a generated cluster.

use std::sync::OnceLock;

use weir_lab::reproduce::rule::{Figure, Rule};
use weir_model::stop;

use super::untouched::{Evaluated, Prepared, Untouched, UntouchedRow};
use crate::PlanError;
use crate::trace::generate::Generate;

/// Days of the cluster.
const DAYS: f64 = 10.0;
/// Over-predictions that are allowed: three points of the curve are enough for the rows.
const TARGETS: [f64; 3] = [0.005, 0.04, 0.08];

const ON_GENERATED: &str = "on a generated cluster, whose customers are assumed to have a usual share of untouched memory, a fifth of all VMs wide";

/// Rules for over-predictions and untouched memory.
pub fn rules() -> Vec<Rule> {
    let untouched = |untouched_pct| {
        Figure::new("%", move |_| {
            let row = |row: &UntouchedRow| (row.untouched_pct, row.over_predicted_pct);
            between(rows()?.iter().map(row), untouched_pct)
        })
    };
    let over = |over_predicted_pct| {
        Figure::new("%", move |_| {
            let row = |row: &UntouchedRow| (row.over_predicted_pct, row.untouched_pct);
            between(rows()?.iter().map(row), over_predicted_pct)
        })
    };
    vec![
        Rule::predicted("PON-086", untouched(20.0)).noting(ON_GENERATED),
        Rule::predicted("PON-089", over(4.0)).noting(ON_GENERATED),
    ]
}

fn rows() -> Result<&'static [UntouchedRow], String> {
    static DONE: OnceLock<Result<Vec<UntouchedRow>, String>> = OnceLock::new();
    let done = DONE.get_or_init(|| judged().map_err(|error| error.to_string()));
    done.as_deref().map_err(Clone::clone)
}

fn judged() -> Result<Vec<UntouchedRow>, PlanError> {
    let trace = Generate {
        days: DAYS,
        ..Generate::default()
    }
    .run()?;
    let untouched = Untouched {
        targets: TARGETS.to_vec(),
        ..Untouched::default()
    };
    let prepared = Prepared::of(&trace);
    let predicted: Vec<_> = (0..prepared.days())
        .take_while(|_| !stop::requested())
        .filter_map(|day| untouched.day(&prepared, day))
        .collect();
    // A row is of all days.
    if stop::requested() {
        return Err(PlanError::Stopped);
    }
    let plan = untouched.conclude(&[Evaluated {
        name: "generated",
        trace: &trace,
        predicted: &predicted,
        days: prepared.days(),
    }]);
    Ok(plan.targets)
}

/// The value at a place of a measured curve, on the straight line between its neighbours.
fn between(points: impl Iterator<Item = (f64, f64)>, at: f64) -> Result<f64, String> {
    let mut points: Vec<(f64, f64)> = points.collect();
    points.push((0.0, 0.0));
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let pair = points
        .windows(2)
        .find(|pair| (pair[0].0..=pair[1].0).contains(&at));
    let pair = pair.ok_or_else(|| format!("no measured point reaches {at} %"))?;
    let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
    Ok(y0 + (y1 - y0) * (at - x0) / (x1 - x0).max(1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_between_points_is_on_the_line_and_one_beyond_them_is_refused() {
        let points = || [(4.0, 30.0), (2.0, 20.0)].into_iter();
        assert_eq!(between(points(), 3.0), Ok(25.0));
        assert_eq!(between(points(), 1.0), Ok(10.0));
        assert!(between(points(), 5.0).is_err());
    }
}
