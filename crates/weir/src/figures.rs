//! Keeps figures while a study runs: in the store, or in memory as long as the store does not take them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use weir_lab::{Finished, Keeper, Part, PointSpec};
use weir_model::document::Point;
use weir_model::machine::Goal;

use crate::context::Context;
use crate::machine::Chosen;
use crate::progress::Progress;
use crate::session::say;
use crate::store::{Figure, RunId, Store, StoreError};

/// This many steps are announced; fewer are reported only where they take long.
const MANY: usize = 10;

/// How many times the work of a core that streams a core takes whose accesses are timed: its windows are five times as
/// long, and it starts with warm caches. In two tours of one model it was about ten and twenty times.
const TIMED: f64 = 10.0;

/// What a run had before it was taken up again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Earlier {
    /// The run was stored before.
    pub(crate) resumed: bool,
    /// Seconds that it took so far.
    pub(crate) elapsed_s: f64,
    /// It has all its figures.
    pub(crate) complete: bool,
}

/// Keeps figures while a study runs.
pub(crate) struct Keep<'a> {
    /// What every verb is given.
    pub(crate) context: &'a Context,
    /// The machine.
    pub(crate) chosen: &'a Chosen,
    /// The verb as the store has it.
    pub(crate) verb: &'a str,
    /// How often each point is measured.
    pub(crate) rounds: u32,
    /// When this process began with it.
    pub(crate) began: Instant,
    /// What there was before.
    pub(crate) earlier: Earlier,
    /// The run in the store.
    pub(crate) run: RunId,
    /// What is kept so far.
    pub(crate) state: Mutex<Kept>,
}

/// What is kept of a run so far.
pub(crate) struct Kept {
    pub(crate) store: Store,
    pub(crate) trouble: Option<StoreError>,
    pub(crate) progress: Option<Progress>,
    /// Of a few steps.
    pub(crate) few: Option<Progress>,
    pub(crate) planned: usize,
    pub(crate) measured: usize,
    /// Other answers that were not stored.
    pub(crate) answered: usize,
    /// Repetitions that the store had.
    reused: usize,
    /// The work of the figures that are planned and not stored yet, and of those of them that were measured; see
    /// [`Keep::work`].
    work: (f64, f64),
    /// Of all planned points together.
    pub(crate) repetitions: usize,
    /// How many of those were asked for.
    pub(crate) wanted: usize,
    /// Why points have no figure, by their places.
    pub(crate) failed: BTreeMap<usize, String>,
    /// The places of points that have all their repetitions, or none.
    pub(crate) kept: BTreeSet<usize>,
    /// What the store has not taken yet.
    unsaved: Vec<Unsaved>,
    /// Steps that began, and of how many.
    steps: (usize, usize),
}

/// A figure that waits in memory until the store takes it.
struct Unsaved {
    seq: usize,
    done: Finished,
    elapsed_s: f64,
    address: String,
}

impl Kept {
    /// Nothing yet.
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            trouble: None,
            progress: None,
            few: None,
            planned: 0,
            measured: 0,
            answered: 0,
            reused: 0,
            work: (0.0, 0.0),
            repetitions: 0,
            wanted: 0,
            failed: BTreeMap::new(),
            kept: BTreeSet::new(),
            unsaved: Vec::new(),
            steps: (0, 0),
        }
    }

    /// One of this many steps begins.
    fn step(&mut self, verb: &str, of: usize, quiet: bool) {
        let (done, all) = self.steps;
        // A few steps among many are parts of one of them.
        if of < MANY && all >= MANY && done < all {
            return;
        }
        if done == all || of != all {
            self.steps = (0, of);
            for progress in [self.progress.take(), self.few.take()]
                .into_iter()
                .flatten()
            {
                progress.end();
            }
        }
        self.steps.0 += 1;
        let progress = match of >= MANY {
            true => (self.progress).get_or_insert_with(|| Progress::begin(verb, of, quiet)),
            false => (self.few).get_or_insert_with(|| Progress::few(verb, of, quiet)),
        };
        let ended = self.steps.0 - 1;
        progress.step(ended, of, ended as f64 / of as f64);
    }

    /// Whether the store is worth a try: a full disk may have room again, but a store that another process holds
    /// is waited for once.
    fn may_take(&self) -> bool {
        !matches!(self.trouble, Some(StoreError::Busy { .. }))
    }

    /// Stores a figure, after those that the store did not take before.
    fn save(&mut self, run: RunId, figure: Unsaved) {
        self.unsaved.retain(|earlier| earlier.seq != figure.seq);
        self.unsaved.push(figure);
        if self.may_take() {
            self.flush(run);
        }
    }

    /// Stores what the store did not take before.
    pub(crate) fn flush(&mut self, run: RunId) {
        if self.unsaved.is_empty() {
            return;
        }
        let figures: Vec<_> = (self.unsaved.iter())
            .map(|figure| Figure {
                seq: figure.seq,
                body: &figure.done.point,
                record: Some(&figure.done.record),
                warnings: &figure.done.warnings,
                elapsed_s: figure.elapsed_s,
                address: Some(&figure.address),
            })
            .collect();
        let added = self.store.add_all(run, &figures);
        if added.is_ok() {
            self.unsaved.clear();
        }
        self.tried(added);
    }

    fn tried(&mut self, result: std::result::Result<(), StoreError>) {
        match (result, &self.trouble) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) => {
                say("weir: the store takes figures again: none is lost");
                self.trouble = None;
            }
            (Err(trouble), known) => {
                if known.is_none() {
                    say(&format!(
                        "weir: warning: {trouble}; figures wait in memory until the store takes them"
                    ));
                }
                self.trouble = Some(trouble);
            }
        }
    }

    fn has(&mut self, seq: usize, point: &Point) {
        self.kept.insert(seq);
        match &point.error {
            Some(error) => drop(self.failed.insert(seq, error.clone())),
            None => drop(self.failed.remove(&seq)),
        }
    }
}

impl Keep<'_> {
    /// Seconds that the run took, with those of earlier processes.
    pub(crate) fn elapsed_s(&self) -> f64 {
        match self.earlier.complete {
            true => self.earlier.elapsed_s,
            false => self.earlier.elapsed_s + self.began.elapsed().as_secs_f64(),
        }
    }

    fn state(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A real machine repeats nothing: only what this run has is reused. A model's answer is good for every run.
    fn is_model(&self) -> bool {
        self.chosen.testbed.physics().is_some()
    }

    /// The answer to a point that the store has, with this many repetitions at least.
    fn answer(
        &self,
        state: &mut Kept,
        seq: usize,
        spec: &PointSpec,
        (address, least): (&str, u32),
    ) -> Option<Finished> {
        let found = state.store.answer(
            self.run,
            seq,
            address,
            self.is_model(),
            self.earlier.resumed,
        );
        let answer = found.ok().flatten()?;
        let point: Point = serde_json::from_str(&answer.body).ok()?;
        let own = answer.run == self.run;
        let whole = point.repetitions >= least;
        if !(whole && point.error.is_none() || own && point.error.is_some()) {
            return None;
        }
        let record = (answer.record.as_deref()).and_then(|text| serde_json::from_str(text).ok());
        let done = Finished {
            index: seq,
            round: point.repetitions.saturating_sub(1),
            spec: spec.clone(),
            record: record.unwrap_or_default(),
            warnings: serde_json::from_str(&answer.warnings).unwrap_or_default(),
            missing: None,
            lost: None,
            point,
        };
        if !own {
            let figure = Unsaved {
                seq,
                done: done.clone(),
                elapsed_s: self.elapsed_s(),
                address: address.to_owned(),
            };
            state.save(self.run, figure);
        }
        let had = done.point.repetitions.max(least);
        if least == self.rounds || done.point.error.is_some() {
            state.has(seq, &done.point);
        }
        state.repetitions += had as usize;
        state.reused += had as usize;
        state.work.0 -= self.work(spec) * f64::from(had);
        Some(done)
    }

    /// What a figure takes, compared with others of the run: a model simulates each core, for longer where single
    /// accesses or requests are timed; a host takes equal time.
    fn work(&self, spec: &PointSpec) -> f64 {
        if !self.is_model() {
            return 1.0;
        }
        let cores = spec.load.threads + spec.beside.as_ref().map_or(0, |load| load.threads);
        let each = match spec.pace() {
            Goal::Bandwidth => 1.0,
            Goal::Latency | Goal::Requests => TIMED,
        };
        f64::from(cores.max(1)) * each
    }

    /// Shows how far the run is, and notes what an end would wait for.
    fn show(&self, state: &mut Kept) {
        if let Some(few) = state.few.take() {
            few.end();
        }
        let new = state.wanted.saturating_sub(state.reused).max(1);
        let total = new.max(state.measured);
        // What goes through papers is on many models.
        let title = match self.chosen.identity.name.as_str() {
            "" => self.verb.to_owned(),
            machine => format!("{} on {machine}", self.verb),
        };
        let quiet = self.context.global.quiet;
        let progress = state
            .progress
            .get_or_insert_with(|| Progress::begin(&title, total, quiet));
        if state.measured > 0 {
            let (all, done) = state.work;
            progress.step(state.measured, total, done / all.max(done));
        }
        self.context
            .stop
            .waits_for(format!("figure {} of {total}", state.measured + 1));
    }
}

impl Keeper for Keep<'_> {
    fn planned(&self, more: &[PointSpec], rounds: u32) {
        let mut state = self.state();
        state.planned += more.len();
        state.wanted += more.len() * rounds as usize;
        let work: f64 = more.iter().map(|spec| self.work(spec)).sum();
        state.work.0 += work * f64::from(rounds);
    }

    fn again(&self, spec: &PointSpec) {
        let mut state = self.state();
        state.wanted += 1;
        state.work.0 += self.work(spec);
    }

    fn enough(&self, seq: usize, done: &Finished) {
        self.state().has(seq, &done.point);
    }

    fn stored(&self, seq: usize, spec: &PointSpec, address: &str, least: u32) -> Option<Finished> {
        let mut state = self.state();
        let answer = self.answer(&mut state, seq, spec, (address, least));
        if answer.is_none() {
            // Time runs from here, and the first figure may take long.
            self.show(&mut state);
        }
        answer
    }

    fn finished(&self, seq: usize, done: &Finished, address: &str) {
        let elapsed_s = self.elapsed_s();
        let mut state = self.state();
        let state = &mut *state;
        state.measured += 1;
        state.work.1 += self.work(&done.spec);
        if done.round + 1 == self.rounds || done.point.error.is_some() {
            state.has(seq, &done.point);
        }
        state.repetitions += usize::from(done.point.error.is_none());
        self.show(state);
        let figure = Unsaved {
            seq,
            done: done.clone(),
            elapsed_s,
            address: address.to_owned(),
        };
        state.save(self.run, figure);
    }

    fn step(&self, of: usize) {
        self.state().step(self.verb, of, self.context.global.quiet);
    }

    fn recall(&self, address: &str) -> Option<String> {
        let only = (!self.is_model()).then_some(self.run);
        self.state().store.recall(address, only).ok().flatten()
    }

    fn keep(&self, kind: &str, address: &str, body: &str) {
        let mut state = self.state();
        state.answered += 1;
        if state.may_take() {
            let kept = state.store.keep(self.run, kind, address, body);
            state.tried(kept);
        }
    }

    fn part(&self) -> Option<Part> {
        self.context.part
    }

    fn stop(&self) -> bool {
        self.context.stop.requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_steps_are_followed_too() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("runs")).unwrap();
        let mut kept = Kept::new(store);
        let mut after = |of| {
            kept.step("tier population", of, true);
            (kept.progress.is_some(), kept.few.is_some())
        };
        assert_eq!(after(3), (false, true));
        assert_eq!(after(MANY), (true, false));
        for of in [3, 3, MANY] {
            assert_eq!(after(of), (true, false));
        }
        assert_eq!(kept.steps, (2, MANY));
    }
}
