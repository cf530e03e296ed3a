//! Workloads that wait for bandwidth, swept over interleavings.

use weir_lab::{WorkloadOptions, side_by_side};
use weir_model::workload::{Workload, Workloads};

use super::Opened;
use super::rules::{End, ShotFigure};
use crate::best_shot::{Shot, crowd, shoot_and_sweep};
use crate::tune::fit_interleave;
use crate::two_tiers::{GoOn, TierRunError, lone_chase};

/// What resembles the codes of the paper that wait for bandwidth (SupMario §6.2).
const PRESETS: [&str; 7] = [
    "bwaves-like",
    "fotonik-like",
    "lbm-like",
    "llama-decode",
    "llama-prefill",
    "roms-like",
    "stream-triad",
];

/// Lines that each thread touches in a phase: all cores run at once.
const ACCESSES: u64 = 8_000;

/// Best-shot, and a sweep, of each that waits for bandwidth when all cores run it.
pub(super) fn study(on: &Opened, seed: u64, go_on: GoOn<'_>) -> Result<Vec<Shot>, TierRunError> {
    let options = WorkloadOptions {
        accesses: ACCESSES,
        seed,
        ..WorkloadOptions::default()
    };
    let cores = on.topology.cores.len() as u32;
    let testbed = &*on.testbed;
    let fit = fit_interleave(testbed, &on.tiers, cores, &options, go_on)?;
    let unloaded = lone_chase(testbed, &on.tiers.from, &options)?;
    let library = Workloads::builtin();
    let crowds: Vec<Workload> = (PRESETS.iter())
        .filter_map(|name| Some(crowd(library.get(name)?, cores)))
        .collect();
    let go = || go_on(crowds.len());
    let shots = side_by_side(testbed.parallelism(), crowds.len(), &|index| {
        let workload = crowds.get(index)?;
        Some(shoot_and_sweep(
            testbed, &fit, workload, &on.tiers, unloaded, &options, &go,
        ))
    });
    let shots: Vec<Option<Shot>> = shots.into_iter().collect::<Result<_, _>>()?;
    Ok(shots.into_iter().flatten().collect())
}

/// What gains by more than this is counted among those that gain, as the paper does.
const GAINS: f64 = 0.05;

/// A figure of them, or why there is none.
pub(super) fn figure(shots: &[Shot], figure: ShotFigure, end: End) -> Result<f64, String> {
    let gains = |shot: &&Shot| shot.best_gain > GAINS;
    let figures: Vec<f64> = match figure {
        ShotFigure::ShareOfGainers => shots.iter().filter(gains).map(best_share).collect(),
        ShotFigure::ShareOfOthers => (shots.iter())
            .filter(|shot| !gains(shot) && shot.best_gain > 0.0)
            .map(best_share)
            .collect(),
        ShotFigure::Gain => shots.iter().map(|shot| shot.gain * 100.0).collect(),
        ShotFigure::AllSlow => shots.iter().map(|shot| 1.0 + shot.all_slow).collect(),
    };
    if figures.is_empty() {
        return Err(format!(
            "of {} presets that wait for bandwidth on all cores, none is of this kind",
            shots.len()
        ));
    }
    end.of(figures.into_iter().map(Ok))
}

fn best_share(shot: &Shot) -> f64 {
    shot.best.share() * 100.0
}
