//! Measures one point, and once more: its figure after all its repetitions so far, and what is doubtful about it.

use serde::{Deserialize, Serialize};
use weir_model::capability::Feature;
use weir_model::document::{Point, Record};
use weir_model::machine::{MachineError, Testbed};

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

/// Which of how many rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Counted from 0.
    pub(crate) round: u32,
    /// How many there are.
    pub(crate) rounds: u32,
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

/// Measures one point once more, of this many times as are wanted, and tells the watcher; `None` if that ended it.
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
pub(crate) fn repeat(
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
