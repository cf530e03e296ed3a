//! Runs the points of a plan, side by side where the testbed allows it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_model::document::Record;
use weir_model::machine::Testbed;

use crate::PointSpec;
use crate::drift::Drift;
use crate::measure::{Finished, Turn, Watcher, repeat};

/// What a plan gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sweep {
    /// The points that have been measured, in plan order.
    pub finished: Vec<Finished>,
    /// What makes all of them less than trustworthy.
    pub warnings: Vec<String>,
}

/// Measures every point of a plan on a machine of its own and returns them in plan order.
///
/// A point's result depends on the point and `seed` alone: not on its neighbours, nor on how many
/// run at once. A point that the machine refuses carries the reason, and the sweep goes on. When
/// the watcher says stop, what has finished by then is returned.
pub fn run(
    testbed: &dyn Testbed,
    plan: &[PointSpec],
    seed: u64,
    watcher: &dyn Watcher,
) -> Vec<Finished> {
    run_rounds(testbed, plan, seed, 1, watcher).finished
}

/// As [`run`], the whole plan `rounds` times over, each round with chance of its own. A figure is
/// then the mean of its repetitions, and its interval tells how they differ. What changed on the
/// machine between the first round and the last is among the warnings.
///
/// When the watcher says stop, every point keeps the repetitions that it has by then.
pub fn run_rounds(
    testbed: &dyn Testbed,
    plan: &[PointSpec],
    seed: u64,
    rounds: u32,
    watcher: &dyn Watcher,
) -> Sweep {
    let rounds = rounds.max(1);
    let all = plan.len().saturating_mul(rounds as usize);
    // A model does not change.
    let may_drift = rounds > 1 && !plan.is_empty() && testbed.physics().is_none();
    let mut drift = match may_drift.then(|| testbed.open(seed)) {
        Some(Ok(machine)) => Drift::on(machine.topology()),
        _ => Drift::default(),
    };
    drift.look(testbed, seed, watcher);
    let mut so_far: Vec<Option<Finished>> = vec![None; plan.len()];
    for round in 0..rounds {
        let turn = Turn { round, rounds };
        let done = side_by_side(testbed.parallelism(), plan.len(), &|index| {
            let before = so_far.get(index)?.as_ref();
            let mut done = repeat(
                testbed,
                index,
                plan.get(index)?,
                seed,
                before,
                turn,
                watcher,
            )?;
            watcher.finished(&done, all);
            if round + 1 == rounds && !watcher.wants_records() {
                done.record = Record::default();
            }
            Some(done)
        });
        for done in done {
            let index = done.index;
            if let Some(slot) = so_far.get_mut(index) {
                *slot = Some(done);
            }
        }
        if watcher.stop() {
            break;
        }
        drift.look(testbed, seed, watcher);
    }
    Sweep {
        finished: so_far.into_iter().flatten().collect(),
        warnings: drift.warnings(),
    }
}

/// Does `jobs` jobs with up to `workers` threads, each taking the next one that no worker has, and
/// returns what they gave, in order. A worker whose job gives nothing takes no other.
pub fn side_by_side<T: Send + Sync>(
    workers: usize,
    jobs: usize,
    job: &(dyn Fn(usize) -> Option<T> + Sync),
) -> Vec<T> {
    let results: Vec<OnceLock<T>> = std::iter::repeat_with(OnceLock::new).take(jobs).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = results.get(index) else {
                break;
            };
            let Some(result) = job(index) else { break };
            // Each index is handed out once, so that the slot is empty.
            let _ = slot.set(result);
        }
    };
    match workers.min(jobs) {
        // A real machine is measured from the calling thread.
        0 | 1 => work(),
        several => std::thread::scope(|scope| {
            for _ in 0..several {
                scope.spawn(work);
            }
        }),
    }
    results
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}
