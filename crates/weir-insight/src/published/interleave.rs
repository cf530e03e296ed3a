//! Best-shot and Caption on models: workloads that wait for bandwidth, swept over interleavings, and
//! programs that resemble Caption's, tuned on the platform that it measured.

use serde::Serialize;
use weir_lab::{Ask, Lab, LabError, WorkloadOptions, side_by_side};
use weir_model::workload::{Workload, Workloads};

use super::tiers;
use crate::best_shot::{Shot, crowd, shoot_and_sweep};
use crate::interleave::caption::{Caption, Settings, State};
use crate::interleave::estimate::PcmReadings;
use crate::tune::{Climb, climb_by, fit_interleave, run_at};
use crate::two_tiers::unloaded;

/// What resembles the codes of the paper that wait for bandwidth (SupMario §6.2).
const WAITING: [&str; 7] = [
    "bwaves-like",
    "fotonik-like",
    "lbm-like",
    "llama-decode",
    "llama-prefill",
    "roms-like",
    "stream-triad",
];

/// What resembles the four codes of SPECrate that Caption runs (MICRO 2023 §6).
const TUNED: [&str; 4] = ["fotonik-like", "mcf-like", "roms-like", "cactu-like"];

/// Instances of each, as in the paper.
const INSTANCES: u32 = 16;

fn options(seed: u64, accesses: u64) -> WorkloadOptions {
    WorkloadOptions {
        accesses,
        seed,
        ..WorkloadOptions::default()
    }
}

fn crowds(presets: &[&str], instances: u32) -> Vec<Workload> {
    let library = Workloads::builtin();
    let known = presets.iter().filter_map(|name| library.get(name));
    known.map(|workload| crowd(workload, instances)).collect()
}

/// Best-shot, and a sweep, of each workload that waits for bandwidth when all cores run it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Shots {
    pub to: &'static str,
}

impl Ask for Shots {
    type Got = Vec<Shot>;
    const KIND: &'static str = "best-shot and sweeps";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<Vec<Shot>, LabError> {
        // All cores run at once: this many lines of each thread in a phase are enough.
        let options = options(lab.seed(), 8_000);
        let tiers = tiers(lab, self.to)?;
        let fit = fit_interleave(lab, &tiers, &options)?;
        let [unloaded, _] = unloaded(lab, &tiers, &options)?;
        let crowds = crowds(&WAITING, lab.topology().cores.len() as u32);
        let inside = lab.inside();
        let shots = side_by_side(lab.parallelism(), crowds.len(), &|index| {
            let workload = crowds.get(index)?;
            lab.step(crowds.len())
                .then(|| shoot_and_sweep(&inside, &fit, workload, &tiers, unloaded, &options))
        });
        if shots.len() < crowds.len() {
            return Err(LabError::Stopped);
        }
        let shots = shots
            .into_iter()
            .collect::<Result<Vec<Option<Shot>>, LabError>>()?;
        Ok(shots.into_iter().flatten().collect())
    }
}

/// What is read from a shot; `None` where the figure is not about such workloads.
pub(super) type ReadShots = fn(&Shot) -> Option<f64>;

/// What gains by more than this counts as a gainer, as in the paper.
const GAINS: f64 = 0.05;

/// The best share of pages on the slower tier, of those that gain more than 5 %.
pub(super) fn share_of_gainers(shot: &Shot) -> Option<f64> {
    (shot.best_gain > GAINS).then(|| shot.best.share() * 100.0)
}

/// Of those that gain less.
pub(super) fn share_of_others(shot: &Shot) -> Option<f64> {
    (shot.best_gain > 0.0 && shot.best_gain <= GAINS).then(|| shot.best.share() * 100.0)
}

/// What best-shot gains over local DRAM, in percent.
pub(super) fn gain(shot: &Shot) -> Option<f64> {
    Some(shot.gain * 100.0)
}

/// How many times as long it takes with every page on the slower tier.
pub(super) fn all_slow(shot: &Shot) -> Option<f64> {
    Some(1.0 + shot.all_slow)
}

/// A figure of them, or why there is none.
pub(super) fn figure(
    shots: &[Shot],
    read: ReadShots,
    join: fn(f64, f64) -> f64,
) -> Result<f64, String> {
    let of = shots.len();
    shots.iter().filter_map(read).reduce(join).ok_or_else(|| {
        format!("of {of} presets that wait for bandwidth on all cores, none is of this kind")
    })
}

/// Caption on each of the programs that resemble the paper's.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Climbs {
    pub to: &'static str,
}

impl Ask for Climbs {
    type Got = Vec<Climb>;
    const KIND: &'static str = "caption of programs";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<Vec<Climb>, LabError> {
        // Every one of fifteen streams passes several rounds of pages in this many lines of a phase, so that
        // the lines are on the tiers as the pages are, within half a point.
        let options = options(lab.seed(), 32_000);
        let tiers = tiers(lab, self.to)?;
        let crowds = crowds(&TUNED, INSTANCES);
        let inside = lab.inside();
        let climbs = side_by_side(lab.parallelism(), crowds.len(), &|index| {
            let workload = crowds.get(index)?;
            let tuned = || {
                climb_by(Settings::of_estimate(), &|_| true, |weights| {
                    let run = run_at(&inside, workload, &tiers, weights, &options)?;
                    let seen = PcmReadings::of(&run.counters, run.time, lab.topology())?;
                    Ok(seen.estimate())
                })
            };
            lab.step(crowds.len()).then(tuned)
        });
        let climbs = climbs
            .into_iter()
            .collect::<Result<Vec<Climb>, LabError>>()?;
        match climbs.len() < crowds.len() {
            true => Err(LabError::Stopped),
            false => Ok(climbs),
        }
    }
}

/// What is read from a climb.
pub(super) type ReadClimb = fn(&Climb) -> Result<f64, String>;

/// The share of pages on the slower tier where it settles, in percent.
pub(super) fn settled_share_pct(climb: &Climb) -> Result<f64, String> {
    let (weights, _) = climb.settled().ok_or("nothing was tried")?;
    Ok(weights.share() * 100.0)
}

/// How many tunings it took.
pub(super) fn tunings(climb: &Climb) -> Result<f64, String> {
    Ok(climb.tried.len() as f64)
}

/// What Figure 12b shows of how the program ran after each tuning: better, better, worse, better.
const SHOWN: [f64; 4] = [10.0, 11.0, 10.5, 10.8];

/// The share that the tuner sets at a step of its published path, in percent, if it is given what the
/// figure shows.
pub(super) fn step_of_path(step: usize) -> f64 {
    let mut caption = Caption::new(Settings::default());
    for mean in SHOWN.into_iter().take(step) {
        caption.tune(State { mean, noise: 0.0 }, true);
    }
    caption.weights().share() * 100.0
}
