//! The lab: answers what a study asks, from what is stored or from a machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_model::access::Op;
use weir_model::capability::{Capability, Feature};
use weir_model::document::Point;
use weir_model::machine::{Identity, Machine, MachineError, Testbed};
use weir_model::topology::Topology;

use crate::measure::{Finished, Watcher};
use crate::record::check_uncached;
use crate::sweep::run_rounds;
use crate::{LabError, Part, PointSpec, room};

mod until;

pub use until::Enough;

/// Where answers are kept, and what follows the work. Called from the threads that measure.
pub trait Keeper: Sync {
    /// This many more points are planned, each to be measured this often.
    fn planned(&self, _more: &[PointSpec], _rounds: u32) {}

    /// A point is to be measured once more than was planned.
    fn again(&self, _spec: &PointSpec) {}

    /// The answer to a point that was stored before, with this many repetitions at least.
    fn stored(
        &self,
        _seq: usize,
        _spec: &PointSpec,
        _address: &str,
        _least: u32,
    ) -> Option<Finished> {
        None
    }

    /// A point is measured, or measured once more. `seq` is its place among all that the study asked.
    fn finished(&self, _seq: usize, _done: &Finished, _address: &str) {}

    /// A point has all repetitions that its study needs, where that was not known before.
    fn enough(&self, _seq: usize, _done: &Finished) {}

    /// One of this many steps begins: an ask that is not a point, or a part of one.
    fn step(&self, _of: usize) {}

    /// The answer to another ask that was stored before, as JSON.
    fn recall(&self, _address: &str) -> Option<String> {
        None
    }

    /// Stores the answer to another ask, as JSON.
    fn keep(&self, _kind: &str, _address: &str, _body: &str) {}

    /// The part of the work that is this process's, where workers share it.
    fn part(&self) -> Option<Part> {
        None
    }

    /// Whether to end: what is under way is given up, what has finished is kept.
    fn stop(&self) -> bool {
        false
    }
}

/// A keeper that stores nothing.
impl Keeper for () {}

/// Something other than a point that a study asks of a machine.
pub trait Ask: Serialize + Sync {
    /// The answer.
    type Got: Serialize + DeserializeOwned + Send + Sync;
    /// What names this kind of ask in the store.
    const KIND: &'static str;
    /// Whether it uses all threads itself, so that nothing else may run at the same time.
    const ALL_THREADS: bool = false;

    /// Asks the lab's machine. The same seed gives the same answer on a model.
    ///
    /// # Errors
    /// The machine refused or failed, or the user stopped the work. An answer that was cut short by a stop is
    /// returned and not stored.
    fn ask(&self, lab: &Lab<'_>) -> Result<Self::Got, LabError>;

    /// What makes the answer less than trustworthy.
    fn warnings(&self, _: &Self::Got) -> Vec<String> {
        Vec::new()
    }
}

/// The testbed of a study that opens its own machines: it has none.
pub struct NoMachine;

impl Testbed for NoMachine {
    fn open(&self, _: u64) -> Result<Box<dyn Machine>, MachineError> {
        let text = "this study opens machines of its own";
        Err(MachineError::Request(text.into()))
    }

    fn physics(&self) -> Option<u32> {
        Some(0)
    }

    fn parallelism(&self) -> usize {
        1
    }
}

/// What a lab works with.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// Where machines come from.
    pub testbed: &'a dyn Testbed,
    /// Which machine they are.
    pub machine: &'a Identity,
    /// What it is made of.
    pub topology: &'a Topology,
    /// What it offers and lacks.
    pub capabilities: &'a [Capability],
    /// Seed of every random choice.
    pub seed: u64,
    /// How often each point is measured; at most, where the study says when it has enough.
    pub rounds: u32,
}

/// What a study asks.
pub struct Lab<'a> {
    bench: Bench<'a>,
    keeper: &'a dyn Keeper,
    dry: bool,
    part: Option<Part>,
    /// Another worker measures what this lab is asked and is not stored.
    only_stored: bool,
    /// Whether steps are not shown: they are parts of a step that is.
    quiet: bool,
    asked: AtomicUsize,
    notes: Mutex<Notes>,
}

/// What a study's work left with its rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// What makes all figures less than trustworthy.
    pub warnings: Vec<String>,
    /// Why the request cannot be met in full: an instruction that was asked for is missing.
    pub refused: Option<String>,
    /// Figures that are missing because the machine lacks a feature.
    pub lacking: usize,
    /// Why some figures lack repetitions, each reason once.
    pub lost: Vec<String>,
    /// Figures that came from the store.
    pub reused: usize,
    /// Whether the work was stopped before its end.
    pub partial: bool,
    /// Why figures are less exact than was asked for.
    pub inexact: Option<String>,
    /// What a dry lab was asked, in order.
    pub asks: Vec<PointSpec>,
    /// How many measurements those are at least.
    pub figures: usize,
}

impl<'a> Lab<'a> {
    /// A lab that answers from the store or from the machine.
    pub fn new(bench: Bench<'a>, keeper: &'a dyn Keeper) -> Self {
        Self {
            bench,
            keeper,
            dry: false,
            part: keeper.part(),
            only_stored: false,
            quiet: false,
            asked: AtomicUsize::new(0),
            notes: Mutex::default(),
        }
    }

    /// A lab that only counts: the first ask ends the study with [`LabError::Dry`].
    ///
    /// For a study that asks once, its [`Notes::asks`] are all of them; for others they are the least.
    pub fn dry(bench: Bench<'a>) -> Self {
        Self {
            dry: true,
            ..Self::new(bench, &())
        }
    }

    /// What the machine is made of.
    pub fn topology(&self) -> &'a Topology {
        self.bench.topology
    }

    /// How many asks the machine answers at once.
    pub fn parallelism(&self) -> usize {
        self.bench.testbed.parallelism()
    }

    /// Which machine this is.
    pub fn machine(&self) -> &'a Identity {
        self.bench.machine
    }

    /// Where the machine comes from.
    pub fn testbed(&self) -> &'a dyn Testbed {
        self.bench.testbed
    }

    /// Seed of every random choice.
    pub fn seed(&self) -> u64 {
        self.bench.seed
    }

    /// Whether this lab only counts.
    pub fn is_dry(&self) -> bool {
        self.dry
    }

    /// Whether workers share what this lab is asked. A study whose later asks depend on the answers of earlier ones ends
    /// with [`LabError::Part`] where answers of others are missing.
    pub fn is_shared(&self) -> bool {
        self.part.is_some()
    }

    /// Whether what is asked at this place is measured here, where it is not stored.
    fn owns(&self, place: usize) -> bool {
        !self.only_stored && self.part.is_none_or(|part| part.has(place))
    }

    /// As [`on`](Self::on), for all that is asked at a place of this lab: one worker measures it. The lab of the others
    /// answers what is stored, and else [`LabError::Part`].
    pub fn on_share<'b>(
        &'b self,
        place: usize,
        testbed: &'b dyn Testbed,
        machine: &'b Identity,
        topology: &'b Topology,
    ) -> Lab<'b> {
        Lab {
            only_stored: !self.owns(place),
            ..self.on(testbed, machine, topology)
        }
    }

    /// The same lab with another machine. What it notes is not among the notes of this one.
    pub fn on<'b>(
        &'b self,
        testbed: &'b dyn Testbed,
        machine: &'b Identity,
        topology: &'b Topology,
    ) -> Lab<'b> {
        let bench = Bench {
            testbed,
            machine,
            topology,
            ..self.bench
        };
        Lab {
            dry: self.dry,
            part: None,
            only_stored: self.only_stored,
            quiet: self.quiet,
            ..Lab::new(bench, self.keeper)
        }
    }

    /// The same lab for a part of a step: its own steps are not shown.
    pub fn inside(&self) -> Lab<'a> {
        Lab {
            dry: self.dry,
            part: None,
            only_stored: self.only_stored,
            quiet: true,
            ..Lab::new(self.bench, self.keeper)
        }
    }

    /// Says that one of this many steps begins, and returns whether to go on.
    pub fn step(&self, of: usize) -> bool {
        if !self.quiet {
            self.keeper.step(of);
        }
        !self.keeper.stop()
    }

    /// Records that the work ended early.
    pub fn end_early(&self) {
        self.notes().partial = true;
    }

    /// Figures are missing, for these reasons.
    pub fn lose(&self, reasons: impl IntoIterator<Item = String>) {
        add_new(&mut self.notes().lost, reasons);
    }

    /// Records that figures are less exact than was asked for.
    pub fn inexact(&self, why: String) {
        self.notes().inexact = Some(why);
    }

    /// Adds what makes all figures less than trustworthy.
    pub fn warn(&self, warning: String) {
        add_new(&mut self.notes().warnings, [warning]);
    }

    /// Whether the user asked to end.
    pub fn stopped(&self) -> bool {
        self.keeper.stop()
    }

    /// What the work left with the rows.
    pub fn into_notes(self) -> Notes {
        self.notes
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures points, as many at once as the machine allows, and returns those that finished in order.
    ///
    /// Points whose instruction the processor lacks are left out with a note; one that is in `asked` also fails
    /// the request in the end.
    ///
    /// # Errors
    /// Nothing is left to measure, or the lab is dry.
    pub fn measure(&self, plan: Vec<PointSpec>, asked: &[Op]) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::new();
        self.take_each(plan, asked, false, &mut |done| points.push(done.point))?;
        Ok(points)
    }

    /// As [`measure`](Self::measure), with the raw record of each point, one after the other in order.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn measure_each(
        &self,
        plan: Vec<PointSpec>,
        asked: &[Op],
        take: &mut dyn FnMut(Finished),
    ) -> Result<(), LabError> {
        self.take_each(plan, asked, true, take)
    }

    fn take_each(
        &self,
        plan: Vec<PointSpec>,
        asked: &[Op],
        records: bool,
        take: &mut dyn FnMut(Finished),
    ) -> Result<(), LabError> {
        let plan = self.runnable(plan, asked)?;
        room::check(&plan, self.bench.topology)?;
        check_uncached(&plan, self.bench.testbed, self.bench.seed)?;
        if self.dry {
            let mut notes = self.notes();
            notes.figures += plan.len().saturating_mul(self.bench.rounds.max(1) as usize);
            notes.asks.extend(plan);
            return Err(LabError::Dry);
        }
        let rounds = self.bench.rounds;
        self.keeper.planned(&plan, rounds);
        let first = self.asked.fetch_add(plan.len(), Ordering::Relaxed);
        let addresses: Vec<String> = plan
            .iter()
            .map(|spec| self.address("point", spec))
            .collect();
        let mut stored: Vec<Option<Finished>> = (plan.iter().zip(&addresses).enumerate())
            .map(|(at, (spec, address))| self.keeper.stored(first + at, spec, address, rounds))
            .collect();
        let left = (0..plan.len()).filter(|&at| stored[at].is_none());
        let (left, of_others): (Vec<usize>, Vec<usize>) =
            left.partition(|&at| self.owns(first + at));
        let missing: Vec<PointSpec> = left.iter().map(|&at| plan[at].clone()).collect();
        let watcher = Follow {
            lab: self,
            first,
            left: &left,
            addresses: &addresses,
            records,
        };
        let Bench { testbed, seed, .. } = self.bench;
        let sweep = run_rounds(testbed, &missing, seed, rounds, &watcher);
        if !of_others.is_empty() {
            return Err(LabError::Part);
        }
        let is_whole = |done: &Finished| done.round + 1 >= rounds || done.point.error.is_some();
        let mut notes = self.notes();
        notes.reused += plan.len() - left.len();
        notes.partial |=
            sweep.finished.len() < missing.len() || !sweep.finished.iter().all(is_whole);
        add_new(&mut notes.warnings, sweep.warnings);
        for done in sweep.finished {
            if let Some(slot) = left.get(done.index).and_then(|&at| stored.get_mut(at)) {
                *slot = Some(done);
            }
        }
        for mut done in stored.into_iter().flatten() {
            notes.lacking += usize::from(done.missing.is_some());
            add_new(&mut notes.lost, done.lost.take());
            add_new(&mut notes.warnings, std::mem::take(&mut done.warnings));
            take(done);
        }
        Ok(())
    }

    /// As [`ask`](Self::ask), for a study that needs every answer.
    ///
    /// # Errors
    /// As [`ask`](Self::ask), and where the user stopped the work.
    pub fn ask_all<A: Ask>(&self, asks: &[A]) -> Result<Vec<A::Got>, LabError> {
        let answers = self.ask(asks)?;
        match answers.len() < asks.len() {
            true => Err(LabError::Stopped),
            false => Ok(answers),
        }
    }

    /// Answers other asks in order, as many at once as the machine allows. Fewer come back where the user
    /// stopped the work.
    ///
    /// # Errors
    /// The first ask that failed, or the lab is dry.
    pub fn ask<A: Ask>(&self, asks: &[A]) -> Result<Vec<A::Got>, LabError> {
        if self.dry {
            return Err(LabError::Dry);
        }
        let workers = match A::ALL_THREADS {
            true => 1,
            false => self.bench.testbed.parallelism(),
        };
        let (own, of_others): (Vec<_>, Vec<_>) =
            (asks.iter().enumerate()).partition(|&(at, _)| self.owns(at));
        let answers = crate::side_by_side(workers, own.len(), &|at| {
            let (_, ask) = *own.get(at)?;
            self.step(own.len()).then(|| self.answer(ask))
        });
        self.notes().partial |= answers.len() < own.len();
        let answers: Result<Vec<_>, LabError> = answers.into_iter().collect();
        if of_others.is_empty() {
            return answers;
        }
        drop(answers?);
        let recalled = asks.iter().map(|ask| {
            let stored = self.recalled(&self.address(A::KIND, ask));
            stored.ok_or(LabError::Part)
        });
        recalled.collect()
    }

    fn recalled<T: DeserializeOwned>(&self, address: &str) -> Option<T> {
        serde_json::from_str(&self.keeper.recall(address)?).ok()
    }

    /// Answers another ask, from the store or from the machine.
    ///
    /// # Errors
    /// As [`Ask::ask`].
    pub fn answer<A: Ask>(&self, ask: &A) -> Result<A::Got, LabError> {
        let address = self.address(A::KIND, ask);
        if let Some(got) = self.recalled(&address) {
            return Ok(got);
        }
        if self.only_stored {
            return Err(LabError::Part);
        }
        let got = ask.ask(self)?;
        if let Ok(body) = serde_json::to_string(&got)
            && !self.keeper.stop()
        {
            self.keeper.keep(A::KIND, &address, &body);
        }
        Ok(got)
    }

    /// What an answer depends on, hashed: the ask, the machine, the seed, repetitions, and the version of the
    /// model's physics.
    fn address(&self, kind: &str, ask: &impl Serialize) -> String {
        let Bench {
            machine,
            seed,
            rounds,
            testbed,
            ..
        } = self.bench;
        let text = serde_json::to_string(ask).unwrap_or_default();
        let physics = testbed.physics().unwrap_or_default();
        fnv128(&format!(
            "{kind}\n{text}\n{}\n{seed}\n{rounds}\n{physics}",
            machine.digest
        ))
    }

    /// Drops points whose instruction the processor lacks, with a note for each.
    fn runnable(&self, plan: Vec<PointSpec>, asked: &[Op]) -> Result<Vec<PointSpec>, LabError> {
        let machine = &self.bench.machine.name;
        let missing = |op: Op| {
            let feature = needed(op)?;
            let mut known = self.bench.capabilities.iter();
            known.find(|c| c.feature == feature && !c.present)
        };
        let lacks = |op: &Op| {
            let capability = missing(*op)?;
            Some(format!(
                "`{op}` needs {}, which {machine} lacks: {}; leave it out",
                capability.feature, capability.detail
            ))
        };
        let refused = asked.iter().find_map(lacks);
        let uses = |spec: &PointSpec, op: Op| spec.loads().any(|load| load.op == op);
        let mut notes = self.notes();
        for op in Op::ALL.into_iter().chain(Op::BY_NAME).chain(Op::STORAGE) {
            if let Some(capability) = missing(op)
                && plan.iter().any(|spec| uses(spec, op))
            {
                let note = format!("{op} is left out: {}", capability.detail);
                add_new(&mut notes.warnings, [note]);
            }
        }
        let planned = plan.len();
        let left: Vec<PointSpec> = (plan.into_iter())
            .filter(|spec| spec.loads().all(|load| missing(load.op).is_none()))
            .collect();
        if let (true, true, Some(why)) = (left.is_empty(), planned > 0, &refused) {
            return Err(LabError::Lacks(why.clone()));
        }
        if left.is_empty() && planned > 0 {
            return Err(LabError::Lacks(notes.warnings.join("; ")));
        }
        notes.refused = notes.refused.take().or(refused);
        Ok(left)
    }
}

/// The feature that an instruction needs beyond what every processor has.
fn needed(op: Op) -> Option<Feature> {
    match op {
        Op::Movdir64b => Some(Feature::Movdir64b),
        Op::Dsa => Some(Feature::Dsa),
        Op::RandRead | Op::RandWrite | Op::SeqRead | Op::SeqWrite => Some(Feature::Storage),
        Op::StClwb => Some(Feature::Clwb),
        Op::Ld | Op::NtLd | Op::UcLd | Op::St | Op::NtSt | Op::Cas => None,
    }
}

/// Adds what is not there yet: a warning of every point is still one warning.
pub fn add_new(all: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for text in more {
        if !all.contains(&text) {
            all.push(text);
        }
    }
}

/// 128-bit FNV-1a (Fowler, Noll, Vo), in hexadecimal: fixed for ever, as the standard library's hasher is not.
fn fnv128(text: &str) -> String {
    let hash = text.bytes().fold(
        0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128,
        |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        },
    );
    format!("{hash:032x}")
}

/// Hands the points of one call to the keeper under their places in the whole study.
struct Follow<'l, 'a> {
    lab: &'l Lab<'a>,
    first: usize,
    left: &'l [usize],
    addresses: &'l [String],
    records: bool,
}

impl Watcher for Follow<'_, '_> {
    fn finished(&self, done: &Finished, _: usize) {
        if let Some(&at) = self.left.get(done.index)
            && let Some(address) = self.addresses.get(at)
        {
            self.lab.keeper.finished(self.first + at, done, address);
        }
    }

    fn stop(&self) -> bool {
        self.lab.keeper.stop()
    }

    fn wants_records(&self) -> bool {
        self.records
    }
}
