//! The driver: takes a study from its arguments to its exit code.
//!
//! Machine, estimate, progress, the run store, rendering and the verdict on the work are here, once for all studies.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use schemars::schema_for;
use serde_json::{Value, json};
use weir_lab::{Bench, Finished, Keeper, Lab, LabError, Notes, Outcome, PointSpec, Study};
use weir_linux::storage::Wish;
use weir_model::document::{Document, Header, Point};
use weir_model::frame::Frame;
use weir_model::machine::MachineKind;
use weir_model::topology::TierKind;

use crate::context::{Context, say};
use crate::estimate::agree;
use crate::failure::{Failure, Result};
use crate::host;
use crate::insight::header_of;
use crate::machine::{self, Chosen};
use crate::output::alike;
use crate::progress::Progress;
use crate::store::{
    Figure, NewRun, Plan, RunId, RunState, Store, StoreError, StoredRun, understood,
};

/// A study at work: where, how often, under which name.
pub struct Job<'a> {
    /// What every verb is given.
    pub context: &'a Context,
    /// The machine.
    pub chosen: &'a Chosen,
    /// The verb as the store has it.
    pub verb: &'a str,
    /// How often each point is measured.
    pub rounds: u32,
    /// Start very many measurements without a question.
    pub yes: bool,
    /// What makes the figures less than trustworthy before they are taken.
    pub warnings: Vec<String>,
}

/// What a study gave, and whether the store took it.
#[derive(Debug)]
pub struct Done<O> {
    /// The document to print.
    pub document: Document<O>,
    /// Its number in the store.
    pub run: RunId,
    planned: usize,
    kept: usize,
    failed: Vec<String>,
    trouble: Option<StoreError>,
    notes: Notes,
}

impl<O> Done<O> {
    /// Whether all that was asked for was measured and kept; printed results stay valid if not.
    ///
    /// # Errors
    /// Some figures are missing, or the store did not take them.
    pub fn verdict(self) -> Result<()> {
        if let Some(trouble) = self.trouble {
            let error = anyhow::Error::new(trouble).context("the results above are not all kept");
            return Err(Failure::Work(error));
        }
        let run = self.run;
        if self.document.header.partial {
            let kept = match self.planned {
                0 => "what was finished is".to_owned(),
                planned => format!("{} of {planned} figures are", self.kept),
            };
            return Err(Failure::Partial(format!(
                "stopped: {kept} kept in run {run}; `weir runs resume {run}` goes on"
            )));
        }
        if let Some(first) = self.failed.first() {
            let error = anyhow::anyhow!(
                "{} of {} figures could not be taken; run {run} has the reasons, the first is: {first}",
                self.failed.len(),
                self.planned
            );
            return Err(match self.failed.len() == self.notes.lacking {
                true => Failure::Missing(error),
                false => Failure::Work(error),
            });
        }
        if !self.notes.lost.is_empty() {
            return Err(Failure::work(format!(
                "repetitions were lost: {}; what was measured is kept in run {run}",
                self.notes.lost.join("; ")
            )));
        }
        match self.notes.refused {
            Some(refused) => Err(Failure::Missing(anyhow::anyhow!("{refused}"))),
            None => Ok(()),
        }
    }
}

impl<'a> Job<'a> {
    /// A study that asks each thing once.
    pub fn once(context: &'a Context, chosen: &'a Chosen, verb: &'a str) -> Self {
        Self {
            context,
            chosen,
            verb,
            rounds: 1,
            yes: true,
            warnings: Vec::new(),
        }
    }

    fn bench(&self) -> Bench<'a> {
        Bench {
            testbed: self.chosen.testbed.as_ref(),
            machine: &self.chosen.identity,
            topology: &self.chosen.topology,
            capabilities: &self.chosen.capabilities,
            seed: self.context.global.seed,
            rounds: self.rounds,
        }
    }

    /// What the study asks before it has an answer: all of it for a study that asks once, else the least.
    ///
    /// # Errors
    /// The arguments do not fit the machine.
    pub fn asks<S: Study>(&self, study: &S) -> Result<Notes> {
        let lab = Lab::dry(self.bench());
        match study.run(&lab) {
            Ok(_) | Err(LabError::Dry) => Ok(lab.into_notes()),
            Err(error) => Err(refusal(error, self.chosen)),
        }
    }

    /// Runs the study and keeps each figure as soon as it is finished.
    ///
    /// # Errors
    /// The arguments do not fit the machine, or the store refuses the run before anything is measured. Later
    /// trouble is in the result.
    pub fn run<S: Study>(&self, study: &S) -> Result<Done<S::Output>> {
        let asks = self.asks(study)?.asks;
        agree(self.context, self.chosen, &asks, self.rounds, self.yes)?;
        let mut store = Store::open(&self.context.store_path()?)?;
        let header = self.header(S::Output::SCHEMA);
        let plan = Plan::new(&self.chosen.named, self.rounds, &asks)
            .map_err(|error| anyhow::Error::new(error).context("cannot keep the plan"))?;
        let mut new = new_run(self.context, self.verb, &header, asks.len())?;
        if new.machine.is_empty() {
            new.machine.clone_from(&self.chosen.named);
        }
        let run = store.begin_planned(&new, &plan)?;
        self.carry_out(study, header, store, run, Earlier::default())
    }

    fn header(&self, schema: &str) -> Header {
        Header {
            warnings: self.warnings.clone(),
            partial: true,
            ..header_of(schema, self.context, self.chosen)
        }
    }

    fn carry_out<S: Study>(
        &self,
        study: &S,
        mut header: Header,
        store: Store,
        run: RunId,
        earlier: Earlier,
    ) -> Result<Done<S::Output>> {
        let keeper = Keep {
            job: self,
            began: Instant::now(),
            earlier,
            run,
            state: Mutex::new(Kept {
                store,
                trouble: None,
                progress: None,
                planned: 0,
                measured: 0,
                reused: 0,
                failed: Vec::new(),
                kept: 0,
                steps: (0, 0),
            }),
        };
        let lab = Lab::new(self.bench(), &keeper);
        let output = study.run(&lab).map_err(|error| match error {
            LabError::Stopped => {
                Failure::Partial(format!("{error}; `weir runs resume {run}` goes on"))
            }
            error => refusal(error, self.chosen),
        });
        let mut notes = lab.into_notes();
        let elapsed_s = keeper.elapsed_s();
        let Kept {
            mut store,
            mut trouble,
            progress,
            planned,
            failed,
            kept,
            ..
        } = keeper
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(progress) = progress {
            progress.end();
        }
        notes.partial |= self.context.stop.requested() && kept < planned;
        weir_lab::lab::add_new(&mut header.warnings, notes.warnings.clone());
        header.partial = notes.partial;
        header.elapsed_s = elapsed_s;
        let document = output.map(|output| Document {
            header: header.clone(),
            output,
        });
        let list = main_list::<S::Output>();
        if let (None, Ok(document), Some(list)) = (&trouble, &document, &list) {
            trouble = store.settle(run, document, list).err();
        }
        if trouble.is_none() {
            let state = if notes.partial || document.is_err() {
                RunState::Partial
            } else {
                RunState::Done
            };
            trouble = store.finish(run, state, elapsed_s, &header.warnings).err();
        }
        for warning in alike(header.warnings.iter().map(String::as_str)) {
            say(&format!("weir: warning: {warning}"));
        }
        if notes.reused > 0 {
            self.context.note(&format!(
                "{} of {planned} figures were measured before and come from the store",
                notes.reused
            ));
        }
        Ok(Done {
            document: document?,
            run,
            planned,
            kept,
            failed,
            trouble,
            notes,
        })
    }
}

/// The list of a document whose rows are kept one by one while they are measured.
pub const POINTS: &str = "points";

/// So many steps are worth a report of progress.
const MANY: usize = 10;

/// A run that is about to begin.
///
/// # Errors
/// The header cannot be written.
pub fn new_run(context: &Context, verb: &str, header: &Header, planned: usize) -> Result<NewRun> {
    let machine = &header.machine;
    Ok(NewRun {
        verb: verb.into(),
        machine: header.name().into(),
        machine_kind: kind_name(machine.kind).into(),
        digest: machine.digest.clone(),
        seed: header.seed,
        arguments: json!(context.typed),
        host: host::fingerprint(),
        document: serde_json::to_value(header)
            .map_err(|error| anyhow::Error::new(error).context("cannot keep the run"))?,
        list_key: POINTS,
        planned,
    })
}

/// Measures what a run that was stopped still lacks, with the study that `again` makes from the run, its machine and
/// its plan. A run that lacks nothing is only read.
///
/// # Errors
/// There is no such run, its plan was not kept, or the machine or its storage is not the one it began on.
pub fn resume<S: Study>(
    context: &Context,
    run: RunId,
    storage: Option<Wish>,
    again: impl FnOnce(&StoredRun, &Chosen, Vec<PointSpec>) -> Result<S>,
) -> Result<Done<S::Output>> {
    let mut store = Store::open(&context.store_path()?)?;
    let stored: StoredRun = store.load(run)?;
    let began = &stored.summary;
    let (weir, verb) = (&began.weir, &began.verb);
    let plan = store.plan::<PointSpec>(run)?.ok_or_else(|| {
        Failure::request(format!(
            "run {run} ({verb} by Weir {weir}) was kept without its plan and cannot be resumed; measure it again"
        ))
    })?;
    let mut header: Header = understood(&stored, stored.parse())?;
    let stores = header
        .topology
        .tiers
        .iter()
        .any(|tier| tier.kind == TierKind::Ssd);
    if header.machine.kind == MachineKind::Host && stores && storage.is_none() {
        return Err(Failure::request(format!(
            "run {run} puts requests to storage, which must be named each time: weir runs resume {run} --storage PATH"
        )));
    }
    let chosen = match header.machine.is_unknown() {
        true => Chosen::of_models(),
        false => machine::choose_with(&plan.machine_as, storage)?,
    };
    if chosen.identity.digest != began.digest {
        return Err(Failure::request(format!(
            "run {run} began on {} with digest {}, which now has digest {}: its figures would not belong together; measure it again",
            began.machine, began.digest, chosen.identity.digest
        )));
    }
    let complete = !began.partial;
    if !complete && weir != env!("CARGO_PKG_VERSION") {
        header.warnings.push(format!(
            "the first {} figures are of Weir {weir}, the others of Weir {}",
            began.kept,
            env!("CARGO_PKG_VERSION")
        ));
    }
    if !complete {
        store.reopen(run, &header.warnings)?;
    }
    let mut own = context.clone();
    own.global.seed = began.seed;
    let job = Job {
        context: &own,
        chosen: &chosen,
        verb,
        rounds: plan.rounds,
        yes: true,
        warnings: Vec::new(),
    };
    let earlier = Earlier {
        resumed: true,
        elapsed_s: began.elapsed_s,
        complete,
    };
    let study = again(&stored, &chosen, plan.points)?;
    job.carry_out(&study, header, store, run, earlier)
}

/// Why a study cannot run: a wrong request, or one that this machine lacks something for.
fn refusal(error: LabError, chosen: &Chosen) -> Failure {
    match error {
        LabError::UnknownTier { ref name, .. } if chosen.identity.kind == MachineKind::Host => {
            machine::no_tier(name, error.to_string(), &chosen.capabilities)
        }
        LabError::Lacks(why) => Failure::Missing(anyhow::anyhow!("{why}")),
        LabError::Machine(error) => error.into(),
        LabError::Failed(why) => Failure::work(why),
        error => Failure::Request(error.into()),
    }
}

fn kind_name(kind: MachineKind) -> &'static str {
    match kind {
        MachineKind::Host => "host",
        MachineKind::Sim => "sim",
    }
}

/// What a run had before it was taken up again.
#[derive(Debug, Clone, Copy, Default)]
struct Earlier {
    resumed: bool,
    elapsed_s: f64,
    /// It has all its figures.
    complete: bool,
}

/// Keeps figures while a study runs.
struct Keep<'j, 'a> {
    job: &'j Job<'a>,
    began: Instant,
    earlier: Earlier,
    run: RunId,
    state: Mutex<Kept>,
}

struct Kept {
    store: Store,
    trouble: Option<StoreError>,
    progress: Option<Progress>,
    planned: usize,
    measured: usize,
    /// Of the planned points, those that the store had.
    reused: usize,
    failed: Vec<String>,
    kept: usize,
    /// Steps that began, and of how many.
    steps: (usize, usize),
}

impl Kept {
    fn tried(&mut self, result: std::result::Result<(), StoreError>) {
        // After the first failure the figures are only printed: a full disk is not asked again.
        if let Err(trouble) = result {
            say(&format!("weir: warning: {trouble}"));
            self.trouble.get_or_insert(trouble);
        }
    }

    fn has(&mut self, point: &Point) {
        self.kept += 1;
        self.failed.extend(point.error.clone());
    }
}

impl Keep<'_, '_> {
    fn elapsed_s(&self) -> f64 {
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
        self.job.chosen.testbed.physics().is_some()
    }
}

impl Keeper for Keep<'_, '_> {
    fn planned(&self, more: &[PointSpec]) {
        let mut state = self.state();
        state.planned += more.len();
    }

    fn stored(&self, seq: usize, spec: &PointSpec, address: &str) -> Option<Finished> {
        let mut state = self.state();
        let state = &mut *state;
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
        let whole = point.repetitions >= self.job.rounds;
        if !(whole && point.error.is_none() || own && point.error.is_some()) {
            return None;
        }
        let record = (answer.record.as_deref()).and_then(|text| serde_json::from_str(text).ok());
        let done = Finished {
            index: seq,
            round: self.job.rounds.saturating_sub(1),
            spec: spec.clone(),
            record: record.unwrap_or_default(),
            warnings: serde_json::from_str(&answer.warnings).unwrap_or_default(),
            missing: None,
            lost: None,
            point,
        };
        if !own && state.trouble.is_none() {
            let figure = Figure {
                seq,
                body: &done.point,
                record: Some(&done.record),
                warnings: &done.warnings,
                elapsed_s: self.elapsed_s(),
                address: Some(address),
            };
            let added = state.store.add(self.run, &figure);
            state.tried(added);
        }
        state.has(&done.point);
        state.reused += 1;
        Some(done)
    }

    fn finished(&self, seq: usize, done: &Finished, address: &str) {
        let elapsed_s = self.elapsed_s();
        let mut state = self.state();
        let state = &mut *state;
        state.measured += 1;
        let new = state.planned.saturating_sub(state.reused).max(1);
        let of = new * self.job.rounds as usize;
        if done.round + 1 == self.job.rounds || done.point.error.is_some() {
            state.has(&done.point);
        }
        let total = of.max(state.measured);
        let title = format!("{} on {}", self.job.verb, self.job.chosen.identity.name);
        let quiet = self.job.context.global.quiet;
        let progress = state
            .progress
            .get_or_insert_with(|| Progress::begin(&title, total, quiet));
        progress.step(state.measured, total);
        if state.trouble.is_some() {
            return;
        }
        let figure = Figure {
            seq,
            body: &done.point,
            record: Some(&done.record),
            warnings: &done.warnings,
            elapsed_s,
            address: Some(address),
        };
        let added = state.store.add(self.run, &figure);
        state.tried(added);
    }

    fn step(&self, of: usize) {
        let mut state = self.state();
        let state = &mut *state;
        let (done, all) = state.steps;
        if done == all || of != all {
            state.steps = (0, of);
            if let Some(progress) = state.progress.take() {
                progress.end();
            }
        }
        state.steps.0 += 1;
        if of >= MANY {
            let (verb, quiet) = (self.job.verb, self.job.context.global.quiet);
            let begin = || Progress::begin(verb, of, quiet);
            state
                .progress
                .get_or_insert_with(begin)
                .step(state.steps.0, of);
        }
    }

    fn recall(&self, address: &str) -> Option<String> {
        let only = (!self.is_model()).then_some(self.run);
        self.state().store.recall(address, only).ok().flatten()
    }

    fn keep(&self, kind: &str, address: &str, body: &str) {
        let mut state = self.state();
        if state.trouble.is_none() {
            let kept = state.store.keep(self.run, kind, address, body);
            state.tried(kept);
        }
    }

    fn stop(&self) -> bool {
        self.job.context.stop.requested()
    }
}

/// The list that has the figures of a document that is kept as a whole, or `none`; `None` for points, which are kept
/// one by one.
pub fn main_list<O: Outcome>() -> Option<String> {
    let schema = schema_for!(O).to_value();
    let lists = Frame::all_of(&schema, &Value::Null);
    let of_points = lists.iter().any(|list| list.name == POINTS);
    let first = lists.into_iter().next();
    (!of_points).then(|| first.map_or_else(|| "none".into(), |list| list.name))
}
