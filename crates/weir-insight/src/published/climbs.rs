//! Caption's climbs: programs that resemble the paper's, tuned on the platform that it measured, by the
//! estimate that it tunes by.

use weir_lab::{WorkloadOptions, side_by_side};
use weir_model::workload::{Workload, Workloads};

use super::Opened;
use super::rules::End;
use crate::best_shot::crowd;
use crate::interleave::caption::{Caption, Settings, State};
use crate::interleave::estimate::PcmReadings;
use crate::tune::{Climb, climb_by, run_at};
use crate::two_tiers::{GoOn, TierRunError};

/// What resembles the four codes of SPECrate that the paper runs (MICRO 2023 §6).
const PRESETS: [&str; 4] = ["fotonik-like", "mcf-like", "roms-like", "cactu-like"];

/// Instances of each, as in the paper.
const INSTANCES: u32 = 16;

/// Lines that each touches in a phase: every one of fifteen streams passes several rounds of pages, so
/// that the lines lie on the tiers as the pages do, within half a point.
const ACCESSES: u64 = 32_000;

/// A figure of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClimbFigure {
    /// The share of pages on the slower tier where it settles.
    Share,
    /// Tunings until then.
    Tunings,
}

/// Climbs, of each program one.
pub(super) type Climbs = Vec<Climb>;

/// Caption on each.
pub(super) fn study(on: &Opened, seed: u64, go_on: GoOn<'_>) -> Result<Climbs, TierRunError> {
    let options = WorkloadOptions {
        accesses: ACCESSES,
        seed,
        ..WorkloadOptions::default()
    };
    let library = Workloads::builtin();
    let crowds: Vec<Workload> = (PRESETS.iter())
        .filter_map(|name| Some(crowd(library.get(name)?, INSTANCES)))
        .collect();
    let testbed = &*on.testbed;
    let climbs = side_by_side(testbed.parallelism(), crowds.len(), &|index| {
        let workload = crowds.get(index)?;
        let tuned = || {
            climb_by(Settings::of_estimate(), go_on, |weights| {
                let run = run_at(testbed, workload, &on.tiers, weights, &options)?;
                let seen = PcmReadings::of(&run.counters, run.time, &on.topology)?;
                Ok(seen.estimate())
            })
        };
        go_on(crowds.len()).then(tuned)
    });
    let climbs = climbs
        .into_iter()
        .collect::<Result<Climbs, TierRunError>>()?;
    if climbs.len() < crowds.len() {
        return Err(TierRunError::Stopped);
    }
    Ok(climbs)
}

/// A figure of climbs.
pub(super) fn figure(climbs: &Climbs, figure: ClimbFigure, end: End) -> Result<f64, String> {
    end.of(climbs.iter().map(|climb| match (figure, climb.settled()) {
        (ClimbFigure::Tunings, _) => Ok(climb.tried.len() as f64),
        (ClimbFigure::Share, Some((weights, _))) => Ok(weights.share() * 100.0),
        (ClimbFigure::Share, None) => Err("nothing was tried".into()),
    }))
}

/// What Figure 12b shows of how the program ran after each tuning: better, better, worse, better.
const SHOWN: [f64; 4] = [10.0, 11.0, 10.5, 10.8];

/// The share that the tuner sets at a step of its published path, in percent, if it is told what the figure
/// shows.
pub(super) fn step_of_path(step: usize) -> f64 {
    let mut caption = Caption::new(Settings::default());
    for mean in SHOWN.into_iter().take(step) {
        caption.tune(State { mean, noise: 0.0 }, true);
    }
    caption.weights().share() * 100.0
}
