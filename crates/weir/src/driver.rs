//! The driver: takes a study from its arguments to its exit code.
//!
//! Machine, estimate, progress, the run store, rendering and the verdict on the work are here, once for all studies.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use schemars::schema_for;
use serde_json::{Value, json};
use weir_lab::{Bench, Lab, LabError, Notes, Outcome, PointSpec, Study};
use weir_linux::storage::Wish;
use weir_model::document::{Document, Header};
use weir_model::frame::Frame;
use weir_model::machine::MachineKind;
use weir_model::topology::TierKind;

use crate::context::Context;
use crate::disturbance;
use crate::estimate::agree;
use crate::failure::{Failure, Result};
use crate::figures::{Earlier, Keep, Kept};
use crate::host;
use crate::machine::{self, Chosen};
use crate::named::with_room;
use crate::output::alike;
use crate::session;
use crate::session::say;
use crate::store::{NewRun, Plan, RunId, RunState, Store, StoreError, StoredRun, understood};

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
    /// Planned points that have all their repetitions.
    kept: usize,
    /// Repetitions that are kept, and how many were wanted.
    repetitions: (usize, usize),
    /// The first of the planned points without a figure, and how many there are.
    failed: Option<(String, usize)>,
    trouble: Option<StoreError>,
    notes: Notes,
}

impl<O> Done<O> {
    /// The run that has all of this; none if the store did not take it.
    pub fn kept_in(&self) -> Option<RunId> {
        self.trouble.is_none().then_some(self.run)
    }

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
            let kept = match (self.planned, self.repetitions) {
                (0, _) => "what was finished is".to_owned(),
                (planned, (_, wanted)) if wanted == planned => {
                    format!("{} of {planned} figures are", self.kept)
                }
                (planned, (repetitions, wanted)) => format!(
                    "{repetitions} of {wanted} repetitions ({} of {planned} figures have all of theirs) are",
                    self.kept
                ),
            };
            return Err(Failure::Partial(format!(
                "stopped: {kept} kept in run {run}; `weir runs resume {run}` goes on"
            )));
        }
        if let Some((first, failed)) = self.failed {
            let error = anyhow::anyhow!(
                "{failed} of {} figures could not be taken; run {run} has the reasons, the first is: {first}",
                self.planned
            );
            return Err(match failed == self.notes.lacking {
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
        if let Some(inexact) = self.notes.inexact {
            return Err(Failure::work(format!(
                "{inexact}; run {run} keeps what was found"
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
            Err(error) => Err(refused(study, error, self.chosen)),
        }
    }

    /// Runs the study and keeps each figure as soon as it is finished.
    ///
    /// # Errors
    /// The arguments do not fit the machine, or the store refuses the run before anything is measured. Later
    /// trouble is in the result.
    pub fn run<S: Study>(&self, study: &S) -> Result<Done<S::Output>> {
        if self.context.part.is_some() && self.chosen.testbed.physics().is_none() {
            return Err(Failure::request(format!(
                "workers share the work of models; {} is measured where it is, without --engine and --part",
                self.chosen.identity.name
            )));
        }
        let Notes { asks, figures, .. } = self.asks(study)?;
        agree(self.context, self.chosen, &asks, figures, self.yes)?;
        let mut store = Store::open(&self.context.store_path()?)?;
        let mut header = self.header(S::Output::SCHEMA);
        if self.chosen.identity.kind == MachineKind::Host {
            header
                .warnings
                .extend(disturbance::before_measuring(self.context));
        }
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
        session::is_of(run);
        let is_new = !earlier.resumed;
        let keeper = Keep {
            context: self.context,
            chosen: self.chosen,
            verb: self.verb,
            rounds: self.rounds,
            began: Instant::now(),
            earlier,
            run,
            state: Mutex::new(Kept::new(store)),
        };
        let lab = Lab::new(self.bench(), &keeper);
        let output = study.run(&lab).map_err(|error| match error {
            LabError::Part if !self.context.stop.requested() => Failure::Part,
            LabError::Part => Failure::Partial(format!(
                "stopped: run {run} keeps what was finished; the same command goes on"
            )),
            LabError::Stopped => {
                Failure::Partial(format!("{error}; `weir runs resume {run}` goes on"))
            }
            error => refused(study, error, self.chosen),
        });
        let mut notes = lab.into_notes();
        let elapsed_s = keeper.elapsed_s();
        let mut state = (keeper.state.into_inner()).unwrap_or_else(PoisonError::into_inner);
        state.flush(run);
        let Kept {
            mut store,
            mut trouble,
            progress,
            few,
            planned,
            repetitions,
            wanted,
            failed,
            kept,
            measured,
            answered,
            ..
        } = state;
        for progress in [progress, few].into_iter().flatten() {
            progress.end();
        }
        let kept = kept.len();
        let keeps_nothing = repetitions + kept == 0;
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
        // A part that has all that it was to have is whole.
        if let (None, Err(Failure::Part)) = (&trouble, &document) {
            let new = measured + answered;
            match new > 0 {
                true => store.finish(run, RunState::Done, elapsed_s, &header.warnings),
                false => store.remove(run),
            }?;
            if new > 0 {
                self.context.note(&format!(
                    "run {run} keeps this part, {new} answers; the rest belongs to other workers"
                ));
            }
        } else if let (true, Err(Failure::Request(_) | Failure::Missing(_))) =
            (is_new && keeps_nothing, &document)
        {
            // A request that cannot be carried out is no run that could go on, whatever was asked before that was known.
            store.remove(run)?;
        } else if trouble.is_none() {
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
            repetitions: (repetitions, wanted),
            failed: (failed.values().next()).map(|first| (first.clone(), failed.len())),
            trouble,
            notes,
        })
    }
}

/// The list of a document whose rows are kept one by one while they are measured.
pub const POINTS: &str = "points";

/// The header of a document whose counters are of no machine that is known yet.
pub fn header(schema: &str, context: &Context, processor: &str) -> Header {
    Header {
        schema: schema.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        processor: processor.into(),
        seed: context.global.seed,
        ..Header::default()
    }
}

/// The header of a document of a machine.
pub fn header_of(schema: &str, context: &Context, chosen: &Chosen) -> Header {
    Header {
        machine: chosen.identity.clone(),
        topology: chosen.topology.clone(),
        capabilities: chosen.capabilities.clone(),
        ..header(schema, context, &chosen.topology.processor)
    }
}

/// A run that is about to begin.
///
/// # Errors
/// The header cannot be written.
pub fn new_run(context: &Context, verb: &str, header: &Header, planned: usize) -> Result<NewRun> {
    let machine = &header.machine;
    Ok(NewRun {
        verb: verb.into(),
        machine: header.name().into(),
        machine_kind: match machine.is_unknown() {
            true => String::new(),
            false => kind_name(machine.kind).into(),
        },
        digest: machine.digest.clone(),
        seed: header.seed,
        arguments: json!(context.typed),
        host: host::fingerprint(),
        document: serde_json::to_value(header)
            .map_err(|error| anyhow::Error::new(error).context("cannot keep the run"))?,
        list_key: POINTS,
        planned,
        elapsed_s: header.elapsed_s,
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
pub fn refusal(error: LabError, chosen: &Chosen) -> Failure {
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

/// What a study says is wrong: of a program that is larger than a tier of a model, with the place in its file.
fn refused<S: Study>(study: &S, error: LabError, chosen: &Chosen) -> Failure {
    let failure = refusal(error, chosen);
    match (study.programs(), chosen.identity.kind) {
        (Some(programs), MachineKind::Sim) => with_room(failure, programs),
        _ => failure,
    }
}

fn kind_name(kind: MachineKind) -> &'static str {
    match kind {
        MachineKind::Host => "host",
        MachineKind::Sim => "sim",
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
