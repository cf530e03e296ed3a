//! Every experiment, one after the other.

use weir_model::document::Experiment;
use weir_model::topology::{TierName, Topology};

use crate::{LabError, PointSpec};
use crate::{bandwidth, latency, loaded, movement, random, share, stream, tail};

/// What to leave out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Tiers; empty means all. Copies go between them only.
    pub tiers: Vec<TierName>,
    /// Each experiment's quick form.
    pub quick: bool,
}

/// The points of every experiment, in the order in which reports show them, and the experiments
/// that this machine is too small for, with the reason.
///
/// # Errors
/// A tier is unknown.
pub fn plan(
    topology: &Topology,
    options: &Options,
) -> Result<(Vec<PointSpec>, Vec<String>), LabError> {
    let mut points = Vec::new();
    let mut left_out = Vec::new();
    for experiment in Experiment::ALL {
        match one(topology, options, experiment) {
            Ok(more) => points.extend(more),
            Err(LabError::Nothing(reason)) => {
                left_out.push(format!("{} is left out: {reason}", experiment.name()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((points, left_out))
}

fn one(
    topology: &Topology,
    options: &Options,
    experiment: Experiment,
) -> Result<Vec<PointSpec>, LabError> {
    let Options { tiers, quick } = options.clone();
    match experiment {
        Experiment::Latency => latency::plan(
            topology,
            &latency::Options {
                tiers,
                quick,
                ..Default::default()
            },
        ),
        Experiment::Tail => tail::plan(
            topology,
            &tail::Options {
                tiers,
                quick,
                ..Default::default()
            },
        ),
        Experiment::Bandwidth => bandwidth::plan(
            topology,
            &bandwidth::Options {
                tiers,
                quick,
                ..Default::default()
            },
        ),
        Experiment::Loaded => loaded::plan(
            topology,
            &loaded::Options {
                tiers,
                quick,
                ..Default::default()
            },
        ),
        Experiment::Random => random::plan(
            topology,
            &random::Options {
                tiers,
                quick,
                ..Default::default()
            },
        ),
        Experiment::Stream => stream::plan(
            topology,
            &stream::Options {
                tiers,
                quick,
                ..Default::default()
            },
        ),
        Experiment::Movement => movement::plan(
            topology,
            &movement::Options {
                sources: tiers.clone(),
                tiers,
                quick,
                ..Default::default()
            },
        ),
        // A matrix has a verb of its own.
        Experiment::Interplay => Ok(Vec::new()),
        Experiment::Share => share::plan(
            topology,
            &share::Options {
                tiers: tiers.into_iter().take(1).collect(),
                quick,
                ..Default::default()
            },
        ),
    }
}
