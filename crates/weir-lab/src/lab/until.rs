//! Points that are repeated until what the study says of them is certain.

use std::sync::atomic::Ordering;

use super::{Follow, Lab, add_new};
use crate::measure::{Finished, once_more};
use crate::{LabError, PointSpec, room, side_by_side, steadiness};

/// When a study has enough repetitions. It decides from the means of repetitions alone, so that the same seed
/// gives the same repetitions, whatever was stored before.
pub trait Enough {
    /// How often a point is measured at least.
    fn least(&self, spec: &PointSpec) -> u32;

    /// The places of the points that are to be measured once more, given the mean of each repetition of each
    /// point; a point without a figure has none.
    fn once_more(&self, so_far: &[(&PointSpec, Vec<f64>)]) -> Vec<usize>;
}

impl Lab<'_> {
    /// As [`measure_each`](Self::measure_each), each point as often as `enough` says, and at most as often as the
    /// lab measures a point.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn measure_until(
        &self,
        plan: Vec<PointSpec>,
        enough: &dyn Enough,
        take: &mut dyn FnMut(Finished),
    ) -> Result<(), LabError> {
        let plan = self.runnable(plan, &[])?;
        room::check(&plan, self.bench.topology)?;
        let most = self.bench.rounds.max(1);
        let least = |spec| enough.least(spec).clamp(1, most);
        if self.dry {
            let mut notes = self.notes();
            notes.figures += plan.iter().map(|spec| least(spec) as usize).sum::<usize>();
            notes.asks.extend(plan);
            return Err(LabError::Dry);
        }
        let mut wanted: Vec<u32> = plan.iter().map(least).collect();
        for (spec, &rounds) in plan.iter().zip(&wanted) {
            self.keeper.planned(std::slice::from_ref(spec), rounds);
        }
        let first = self.asked.fetch_add(plan.len(), Ordering::Relaxed);
        // How often a point is repeated depends on all others.
        let kind = format!("point of {}", self.address("plan", &plan));
        let addresses: Vec<String> = (plan.iter())
            .map(|spec| self.address(&kind, spec))
            .collect();
        let mut so_far: Vec<Option<Finished>> = (plan.iter().zip(&addresses).enumerate())
            .map(|(at, (spec, address))| self.keeper.stored(first + at, spec, address, 1))
            .collect();
        self.notes().reused += so_far.iter().flatten().count();
        loop {
            let measures = self.owns(first);
            if !self.catch_up(&plan, &wanted, (first, measures), &addresses, &mut so_far) {
                return Err(LabError::Part);
            }
            if self.keeper.stop() {
                self.end_early();
                break;
            }
            let means: Vec<(&PointSpec, Vec<f64>)> = (plan.iter().zip(&so_far).zip(&wanted))
                .map(|((spec, done), &wanted)| (spec, means(done.as_ref(), wanted)))
                .collect();
            let more = enough.once_more(&means);
            let more: Vec<usize> = (more.into_iter())
                .filter(|&at| wanted.get(at).is_some_and(|&n| n < most))
                .filter(|&at| so_far.get(at).is_some_and(|done| may_go_on(done.as_ref())))
                .collect();
            if more.is_empty() {
                break;
            }
            for at in more {
                if let (Some(spec), Some(wanted)) = (plan.get(at), wanted.get_mut(at)) {
                    *wanted += 1;
                    self.keeper.again(spec);
                }
            }
        }
        let stopped = self.keeper.stop();
        for (at, mut done) in so_far.into_iter().enumerate() {
            let Some(mut done) = done.take() else {
                continue;
            };
            if !stopped {
                self.keeper.enough(first + at, &done);
            }
            let mut notes = self.notes();
            notes.lacking += usize::from(done.missing.is_some());
            add_new(&mut notes.lost, done.lost.take());
            add_new(&mut notes.warnings, std::mem::take(&mut done.warnings));
            drop(notes);
            take(done);
        }
        Ok(())
    }

    /// Measures every point as often as is wanted, less where it fails or the user stops the work. False where some are
    /// left and another worker measures them.
    fn catch_up(
        &self,
        plan: &[PointSpec],
        wanted: &[u32],
        (first, measures): (usize, bool),
        addresses: &[String],
        so_far: &mut [Option<Finished>],
    ) -> bool {
        let (testbed, seed) = (self.bench.testbed, self.bench.seed);
        loop {
            let left: Vec<usize> = (so_far.iter().zip(wanted).enumerate())
                .filter(|(_, (done, wanted))| {
                    may_go_on(done.as_ref()) && repetitions(done.as_ref()) < **wanted
                })
                .map(|(at, _)| at)
                .collect();
            if left.is_empty() || self.keeper.stop() {
                return true;
            }
            if !measures {
                return false;
            }
            let watcher = Follow {
                lab: self,
                first,
                left: &left,
                addresses,
                records: true,
            };
            let before: &[Option<Finished>] = so_far;
            let done = side_by_side(testbed.parallelism(), left.len(), &|job| {
                let at = *left.get(job)?;
                let (spec, before) = (plan.get(at)?, before.get(at)?.as_ref());
                let wanted = *wanted.get(at)?;
                once_more(testbed, job, spec, seed, before, wanted, &watcher)
            });
            for done in done {
                if let Some(slot) = left.get(done.index).and_then(|&at| so_far.get_mut(at)) {
                    *slot = Some(done);
                }
            }
        }
    }
}

fn repetitions(done: Option<&Finished>) -> u32 {
    done.map_or(0, |done| done.point.repetitions)
}

/// A point that failed fails again.
fn may_go_on(done: Option<&Finished>) -> bool {
    done.is_none_or(|done| done.point.error.is_none() && done.lost.is_none())
}

/// The means of the first repetitions of a point.
fn means(done: Option<&Finished>, wanted: u32) -> Vec<f64> {
    let figure = done.filter(|done| done.point.error.is_none());
    let mut means = figure.map_or_else(Vec::new, |done| steadiness::means(&done.record));
    means.truncate(wanted as usize);
    means
}
