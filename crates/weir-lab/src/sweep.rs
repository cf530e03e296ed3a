//! Runs the points of a plan, side by side where the testbed allows it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use weir_model::capability::Feature;
use weir_model::document::{Point, Record};
use weir_model::machine::{MachineError, Testbed};

use crate::record::{RecordError, record};
use crate::{PointSpec, study};

/// One point of a plan that was measured, or that the machine refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Its place in the plan.
    pub index: usize,
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
}

/// Looks on while a sweep runs, and may end it. Called from the threads that measure.
pub trait Watcher: Sync {
    /// One of `of` points is done.
    fn finished(&self, done: &Finished, of: usize);

    /// Whether to end: the point under way is given up, the finished ones are kept.
    fn stop(&self) -> bool;
}

/// A watcher that never looks.
impl Watcher for () {
    fn finished(&self, _: &Finished, _: usize) {}

    fn stop(&self) -> bool {
        false
    }
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
    side_by_side(testbed.parallelism(), plan.len(), &|index| {
        let done = measure(testbed, index, plan.get(index)?, seed, watcher)?;
        watcher.finished(&done, plan.len());
        Some(done)
    })
}

/// Measures one point on a fresh machine; `None` if the watcher ended it.
pub(crate) fn measure(
    testbed: &dyn Testbed,
    index: usize,
    spec: &PointSpec,
    seed: u64,
    watcher: &dyn Watcher,
) -> Option<Finished> {
    if watcher.stop() {
        return None;
    }
    let recorded = testbed
        .open(spec.seed(seed))
        .map_err(RecordError::from)
        .and_then(|mut machine| {
            let recorded = record(machine.as_mut(), spec, &|| watcher.stop())?;
            let mut point = study::study(spec, &recorded.record, machine.topology());
            point.conditions = recorded.notes.conditions;
            Ok((point, recorded.record, recorded.notes.warnings))
        });
    let mut missing = None;
    let (point, record, warnings) = match recorded {
        Ok(done) => done,
        Err(RecordError::Stopped) => return None,
        Err(error) => {
            if let RecordError::Machine(MachineError::Missing { feature, .. }) = &error {
                missing = Some(*feature);
            }
            (study::failed(spec, error), Record::default(), Vec::new())
        }
    };
    Some(Finished {
        index,
        spec: spec.clone(),
        point,
        record,
        warnings,
        missing,
    })
}

/// Does `jobs` jobs with up to `workers` threads, each taking the next one that nobody has, and
/// returns what they gave, in order. A worker whose job gives nothing takes no other.
pub(crate) fn side_by_side<T: Send + Sync>(
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
