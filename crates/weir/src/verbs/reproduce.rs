//! `weir reproduce`: published figures with ours, row by row.

use weir_lab::reproduce::rule::{On, Rule};
use weir_lab::reproduce::sensitivity::{Assumption, End};
use weir_lab::reproduce::{self, Models, Reproduce, Vary};
use weir_model::machine::Testbed;

use crate::context::Context;
use crate::driver;
use crate::failure::Result;
use crate::machine::{self, Chosen};
use crate::store::RunId;
use crate::studies::complete;

/// The rules of every crate; the first for a row counts.
pub fn rules() -> Vec<Rule> {
    let mut rules = reproduce::rules();
    rules.extend(weir_insight::published::rules());
    rules.extend(weir_steer::published::rules());
    rules.extend(weir_steer::tier::published::rules());
    rules.extend(weir_plan::published::rules());
    rules.extend(weir_persist::published::rules());
    rules.extend(weir_ann::published::rules());
    rules.extend(weir_design::published::rules());
    rules.extend(reproduce::unanswered());
    rules
}

const MODELS: Models = Models {
    rules,
    open: |on, change| open(on, change).map_err(|failure| failure.message().unwrap_or_default()),
    compose: |on| machine::compose(on).map_err(|failure| failure.message().unwrap_or_default()),
};

fn open(on: On, change: Option<(&Assumption, End)>) -> Result<Box<dyn Testbed>> {
    match change {
        None if on.sampled => Ok(machine::choose_sampled(on.platform, None)?.testbed),
        None => machine::simulate(on.platform),
        Some((assumption, end)) => {
            let changes = assumption.ranges.iter().map(|range| machine::Change {
                part: &range.part,
                key: &assumption.key,
                value: end.of(range),
            });
            machine::simulate_changed(on.platform, &changes.collect::<Vec<_>>())
        }
    }
}

/// Answers the rows, keeps and prints them.
///
/// # Errors
/// There is no such paper or row, or the work was stopped before its end.
pub fn run(args: &Reproduce, context: &Context) -> Result<()> {
    let study = with_models(args);
    let chosen = Chosen::of_models();
    match args.sensitivity {
        true => complete(context, &chosen, &Vary { of: study }),
        false => complete(context, &chosen, &study),
    }
}

fn with_models(args: &Reproduce) -> Reproduce {
    Reproduce {
        models: Some(MODELS),
        ..args.clone()
    }
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them.
pub fn resume(args: &Reproduce, context: &Context, run: RunId) -> Result<()> {
    let study = with_models(args);
    match args.sensitivity {
        true => driver::resume(context, run, None, |_, _, _| Ok(Vary { of: study }))?.verdict(),
        false => driver::resume(context, run, None, |_, _, _| Ok(study))?.verdict(),
    }
}
