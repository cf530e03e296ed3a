//! Runs the points of a plan, side by side where the testbed allows it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use weir_model::capability::Feature;
use weir_model::document::{Point, Record};
use weir_model::machine::{MachineError, Testbed};

use crate::drift::Drift;
use crate::record::{RecordError, record};
use crate::{PointSpec, figure};

/// One point of a plan that was measured, or that the machine refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Its place in the plan.
    pub index: usize,
    /// The round that this is after, counted from 0.
    #[serde(default)]
    pub round: u32,
    /// What was asked for.
    pub spec: PointSpec,
    /// The figure, or the error in its place.
    pub point: Point,
    /// What the figure was made from; empty if there is none.
    pub record: Record,
    /// What makes the figure less than trustworthy.
    pub warnings: Vec<String>,
    /// The feature whose absence is the reason for the error, where that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Feature>,
    /// Why a figure that has some of its repetitions will not have the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// Looks on while a sweep runs, and may end it. Called from the threads that measure.
pub trait Watcher: Sync {
    /// One of `of` measurements is done. A point of several rounds is reported after each, with all its
    /// repetitions so far.
    fn finished(&self, done: &Finished, of: usize);

    /// Whether to end: the point under way is given up, the finished ones are kept.
    fn stop(&self) -> bool;

    /// Whether the sweep returns raw records, 5 to 15 KB for each point.
    fn wants_records(&self) -> bool {
        true
    }
}

/// A watcher that never looks.
impl Watcher for () {
    fn finished(&self, _: &Finished, _: usize) {}

    fn stop(&self) -> bool {
        false
    }
}

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
    let mut drift = match testbed.open(seed) {
        Ok(machine) if rounds > 1 && !plan.is_empty() => Drift::on(machine.topology()),
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

/// Which of how many rounds.
#[derive(Debug, Clone, Copy)]
struct Turn {
    round: u32,
    rounds: u32,
}

impl Turn {
    /// The sweep's seed in this round: its own in the first.
    fn seed(self, seed: u64) -> u64 {
        seed.wrapping_add(u64::from(self.round) << 32)
    }

    /// What a point says that does not have all its repetitions.
    fn unfinished(self, repetitions: u32) -> Option<String> {
        (repetitions < self.rounds).then(|| format!("{repetitions} of {} repetitions", self.rounds))
    }
}

/// Measures one point on a fresh machine; `None` if the watcher ended it.
pub(crate) fn measure(
    testbed: &dyn Testbed,
    index: usize,
    spec: &PointSpec,
    seed: u64,
    watcher: &dyn Watcher,
) -> Option<Finished> {
    let once = Turn {
        round: 0,
        rounds: 1,
    };
    repeat(testbed, index, spec, seed, None, once, watcher)
}

/// Measures one point once more, of so many times as are wanted, and tells the watcher; `None` if that ended it.
pub(crate) fn once_more(
    testbed: &dyn Testbed,
    index: usize,
    spec: &PointSpec,
    seed: u64,
    before: Option<&Finished>,
    wanted: u32,
    watcher: &dyn Watcher,
) -> Option<Finished> {
    let round = before.map_or(0, |done| done.point.repetitions);
    let turn = Turn {
        round,
        rounds: wanted.max(round + 1),
    };
    let done = repeat(testbed, index, spec, seed, before, turn, watcher)?;
    watcher.finished(&done, wanted as usize);
    Some(done)
}

/// Measures one point once more; `None` if the watcher ended it.
fn repeat(
    testbed: &dyn Testbed,
    index: usize,
    spec: &PointSpec,
    seed: u64,
    before: Option<&Finished>,
    turn: Turn,
    watcher: &dyn Watcher,
) -> Option<Finished> {
    if watcher.stop() {
        return None;
    }
    // Of a point that failed before, only the failure is known.
    let earlier = before.filter(|done| done.point.error.is_none());
    let recorded = testbed
        .open(spec.seed(turn.seed(seed)))
        .map_err(RecordError::from)
        .and_then(|mut machine| {
            let mut recorded = record(machine.as_mut(), spec, &|| watcher.stop())?;
            if let Some(earlier) = earlier {
                recorded = recorded.after(&earlier.record);
            }
            let point = figure::figure(spec, &recorded.record, machine.topology());
            Ok((point, recorded))
        });
    let mut done = Finished {
        index,
        round: turn.round,
        spec: spec.clone(),
        point: figure::failed(spec, ""),
        record: Record::default(),
        warnings: before.map(|done| done.warnings.clone()).unwrap_or_default(),
        missing: None,
        lost: before.and_then(|done| done.lost.clone()),
    };
    match (recorded, earlier) {
        (Ok((point, recorded)), _) => {
            done.point = point;
            done.record = recorded.record;
            let mut conditions = recorded.notes.conditions;
            if turn.rounds == 1 {
                conditions.extend(recorded.loose);
            }
            let known = earlier.map_or(&[][..], |earlier| &earlier.point.conditions);
            done.point.conditions = joined(known, conditions);
            for warning in recorded.notes.warnings {
                if !done.warnings.contains(&warning) {
                    done.warnings.push(warning);
                }
            }
        }
        (Err(RecordError::Stopped), _) => return None,
        (Err(error), Some(earlier)) => {
            done.point = earlier.point.clone();
            done.record = earlier.record.clone();
            // The first failure tells; those after it are most often the same.
            if done.lost.is_none() {
                let message = format!("repetition {} failed: {error}", turn.round + 1);
                done.warnings.push(format!("{spec}: {message}"));
                done.lost = Some(error.to_string());
            }
        }
        (Err(error), None) => {
            if let RecordError::Machine(MachineError::Missing { feature, .. }) = &error {
                done.missing = Some(*feature);
            }
            done.point = figure::failed(spec, error);
            return Some(done);
        }
    }
    let repetitions = done.point.repetitions;
    let conditions = &mut done.point.conditions;
    conditions.retain(|c| Some(c) != turn.unfinished(repetitions.saturating_sub(1)).as_ref());
    if let Some(unfinished) = turn.unfinished(repetitions)
        && !conditions.contains(&unfinished)
    {
        conditions.push(unfinished);
    }
    Some(done)
}

/// What was said before, and what is new: a condition that differs only in its figures is not.
fn joined(before: &[String], now: Vec<String>) -> Vec<String> {
    let words = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    let mut all = before.to_vec();
    for condition in now {
        if !all.iter().any(|known| words(known) == words(&condition)) {
            all.push(condition);
        }
    }
    all
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
