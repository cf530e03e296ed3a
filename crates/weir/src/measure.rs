//! Takes a plan to its end: measures, shows progress, and keeps each figure as it comes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::json;
use weir_lab::{Finished, PointSpec, Watcher};
use weir_linux::storage::Wish;
use weir_model::document::{BenchDocument, Header, Point};
use weir_model::machine::MachineKind;
use weir_model::topology::TierKind;

use crate::context::{Context, say};
use crate::failure::{Failure, Result};
use crate::host;
use crate::interrupt::Stop;
use crate::machine::{self, Chosen};
use crate::output::alike;
use crate::progress::Progress;
use crate::store::{Figure, NewRun, Plan, RunId, RunState, Store, StoreError};

/// What a sweep gave, and whether the store took it.
#[derive(Debug)]
pub struct Measured {
    /// The document to print.
    pub document: BenchDocument,
    /// Its number in the store.
    pub run: RunId,
    /// How many figures were planned.
    pub planned: usize,
    /// Why the store did not take everything.
    pub trouble: Option<StoreError>,
    /// How many figures are missing only because the machine lacks a feature.
    pub lacking: usize,
    /// Why some figures lack repetitions: each reason once.
    pub lost: Vec<String>,
}

impl Measured {
    /// Whether all that was asked for was measured and kept; printed results stay valid if not.
    ///
    /// # Errors
    /// Some figures are missing, or the store did not take them.
    pub fn verdict(self) -> Result<()> {
        let points = &self.document.points;
        if let Some(trouble) = self.trouble {
            let told = anyhow::Error::new(trouble).context("the results above are not all kept");
            return Err(Failure::Work(told));
        }
        if self.document.header.partial {
            return Err(Failure::Partial(format!(
                "stopped: {} of {} figures are kept in run {}",
                points.len(),
                self.planned,
                self.run
            )));
        }
        let missing = points.iter().filter(|p| p.error.is_some()).count();
        let first = points.iter().find_map(|p| p.error.as_ref());
        if missing == 0 && self.lost.is_empty() {
            return Ok(());
        }
        if missing == 0 {
            return Err(Failure::work(format!(
                "repetitions were lost: {}; what was measured is kept in run {}",
                self.lost.join("; "),
                self.run
            )));
        }
        let told = anyhow::anyhow!(
            "{missing} of {} figures could not be taken; the reasons stand in run {}, the first is: {}",
            points.len(),
            self.run,
            first.map_or("", String::as_str)
        );
        Err(if missing == self.lacking {
            Failure::Missing(told)
        } else {
            Failure::Work(told)
        })
    }
}

/// Measures every point of a plan and keeps it in the store.
///
/// # Errors
/// The store refuses the run before anything is measured. Later trouble is in the result.
pub fn measure(
    context: &Context,
    verb: &str,
    chosen: &Chosen,
    plan: &[PointSpec],
    warnings: Vec<String>,
) -> Result<Measured> {
    measure_rounds(context, verb, chosen, plan, 1, warnings)
}

/// As [`measure`], the whole plan `rounds` times over.
///
/// # Errors
/// As [`measure`].
pub fn measure_rounds(
    context: &Context,
    verb: &str,
    chosen: &Chosen,
    plan: &[PointSpec],
    rounds: u32,
    warnings: Vec<String>,
) -> Result<Measured> {
    let mut store = Store::open(&context.store_path()?)?;
    let document = BenchDocument {
        header: header(context, chosen, warnings),
        points: Vec::new(),
        tails: Vec::new(),
    };
    let kept = as_plan(chosen, plan, rounds)?;
    let run = store.begin_planned(&new_run(context, verb, &document, plan.len())?, &kept)?;
    let missing = plan.iter().cloned().enumerate().collect();
    Ok(carry_out(
        context,
        chosen,
        store,
        Begun {
            run,
            title: format!("{verb} on {}", chosen.identity.name),
            planned: plan.len(),
            rounds,
            elapsed_s: 0.0,
            own_warnings: document.header.warnings.clone(),
            document,
            places: Vec::new(),
            missing,
        },
    ))
}

/// A plan as the store keeps it.
///
/// # Errors
/// A point cannot be written.
pub fn as_plan(chosen: &Chosen, plan: &[PointSpec], rounds: u32) -> Result<Plan> {
    Plan::new(&chosen.named, rounds, plan).map_err(|error| {
        anyhow::Error::new(error)
            .context("cannot keep the plan")
            .into()
    })
}

/// Measures what a run that was stopped still lacks. A run that lacks nothing is only read.
///
/// # Errors
/// There is no such run, its plan was not kept, or the machine or its storage is not the one it began
/// on.
pub fn resume(context: &Context, run: RunId, storage: Option<Wish>) -> Result<Measured> {
    let store = Store::open(&context.store_path()?)?;
    let stored = store.load(run)?;
    let began = &stored.summary;
    let left = store.unfinished::<PointSpec>(run)?.ok_or_else(|| {
        Failure::request(format!(
            "run {run} ({} by Weir {}) was kept without its plan and cannot be taken up; measure it anew",
            began.verb, began.weir
        ))
    })?;
    let mut document: BenchDocument = crate::verbs::runs::bench_document(&stored)?;
    let tiers = &document.header.topology.tiers;
    let stores = tiers.iter().any(|tier| tier.kind == TierKind::Ssd);
    let real = document.header.machine.kind == MachineKind::Host;
    if real && stores && storage.is_none() {
        return Err(Failure::request(format!(
            "run {run} puts requests to storage, which is named anew each time: weir runs resume {run} --storage PATH"
        )));
    }
    let chosen = machine::choose_with(&left.machine_as, storage)?;
    if chosen.identity.digest != began.digest {
        return Err(Failure::request(format!(
            "run {run} began on {} with digest {}, which today has digest {}: its figures would not belong together; measure it anew",
            began.machine, began.digest, chosen.identity.digest
        )));
    }
    let mut own_warnings = document.header.warnings.clone();
    if !left.missing.is_empty() && began.weir != env!("CARGO_PKG_VERSION") {
        let warning = format!(
            "the first {} figures are of Weir {}, the others of Weir {}",
            began.kept,
            began.weir,
            env!("CARGO_PKG_VERSION")
        );
        add_new(&mut own_warnings, vec![warning]);
    }
    document.header.warnings.clone_from(&own_warnings);
    let begun = Begun {
        run,
        title: format!("{} on {}, taken up", began.verb, began.machine),
        planned: began.planned,
        rounds: left.rounds,
        elapsed_s: began.elapsed_s,
        own_warnings,
        places: stored.places.clone(),
        missing: left.missing,
        document,
    };
    let mut store = store;
    if !begun.missing.is_empty() {
        store.reopen(run, &begun.own_warnings)?;
    }
    Ok(carry_out(context, &chosen, store, begun))
}

/// A run in the store that still lacks figures.
struct Begun {
    run: RunId,
    title: String,
    /// Figures in all.
    planned: usize,
    /// How often each point is measured.
    rounds: u32,
    /// Seconds that it took before.
    elapsed_s: f64,
    /// Warnings of the run, not of a figure.
    own_warnings: Vec<String>,
    /// With the figures it has, and the place in the plan of each.
    document: BenchDocument,
    places: Vec<usize>,
    missing: Vec<(usize, PointSpec)>,
}

fn carry_out(context: &Context, chosen: &Chosen, store: Store, begun: Begun) -> Measured {
    let Begun {
        run,
        title,
        planned,
        rounds,
        elapsed_s: before_s,
        mut own_warnings,
        mut document,
        places,
        missing,
    } = begun;
    let (seqs, plan): (Vec<usize>, Vec<PointSpec>) = missing.into_iter().unzip();
    let seed = document.header.seed;
    let keeper = Keeper {
        stop: &context.stop,
        began: Instant::now(),
        before_s,
        seqs: &seqs,
        state: Mutex::new(Keeping {
            store,
            run,
            done: 0,
            trouble: None,
            progress: Progress::begin(
                &title,
                plan.len().saturating_mul(rounds as usize),
                context.global.quiet,
            ),
        }),
    };
    let sweep = weir_lab::run_rounds(chosen.testbed.as_ref(), &plan, seed, rounds, &keeper);

    let elapsed_s = keeper.elapsed_s();
    let Keeping {
        mut store,
        mut trouble,
        progress,
        ..
    } = keeper
        .state
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    progress.end();
    let finished = sweep.finished;
    add_new(&mut own_warnings, sweep.warnings.clone());
    add_new(&mut document.header.warnings, sweep.warnings);
    let is_whole = |done: &Finished| done.round + 1 >= rounds || done.point.error.is_some();
    let complete = finished.len() == plan.len() && finished.iter().all(is_whole);
    let mut lost = Vec::new();
    add_new(
        &mut lost,
        finished.iter().filter_map(|d| d.lost.clone()).collect(),
    );
    let lacking = finished.iter().filter(|d| d.missing.is_some()).count();
    let mut points: BTreeMap<usize, Point> = places.into_iter().zip(document.points).collect();
    for done in finished {
        add_new(&mut document.header.warnings, done.warnings);
        points.extend(seqs.get(done.index).map(|&seq| (seq, done.point)));
    }
    document.points = points.into_values().collect();
    document.tails = weir_lab::tail_scores(&document.points);
    document.header.partial = !complete;
    if plan.is_empty() {
        document.header.elapsed_s = before_s;
    } else {
        document.header.elapsed_s = elapsed_s;
    }
    if trouble.is_none() {
        let state = if complete {
            RunState::Done
        } else {
            RunState::Partial
        };
        trouble = store
            .finish(run, state, document.header.elapsed_s, &own_warnings)
            .err();
    }
    for warning in alike(document.header.warnings.iter().map(String::as_str)) {
        say(&format!("weir: warning: {warning}"));
    }
    Measured {
        document,
        run,
        planned,
        trouble,
        lacking,
        lost,
    }
}

fn header(context: &Context, chosen: &Chosen, warnings: Vec<String>) -> Header {
    Header {
        schema: BenchDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        machine: chosen.identity.clone(),
        topology: chosen.topology.clone(),
        seed: context.global.seed,
        elapsed_s: 0.0,
        capabilities: chosen.capabilities.clone(),
        warnings,
        partial: true,
    }
}

fn new_run(
    context: &Context,
    verb: &str,
    document: &BenchDocument,
    planned: usize,
) -> Result<NewRun> {
    let machine = &document.header.machine;
    let name_of_kind = serde_json::to_value(machine.kind).unwrap_or_default();
    Ok(NewRun {
        verb: verb.into(),
        machine: machine.name.clone(),
        machine_kind: name_of_kind.as_str().unwrap_or_default().into(),
        digest: machine.digest.clone(),
        seed: context.global.seed,
        arguments: json!(context.typed),
        host: host::fingerprint(),
        document: serde_json::to_value(document)
            .map_err(|error| anyhow::Error::new(error).context("cannot keep the run"))?,
        list_key: "points",
        planned,
    })
}

/// Adds what is not there yet: a warning of every point is still one warning.
fn add_new(all: &mut Vec<String>, more: Vec<String>) {
    for warning in more {
        if !all.contains(&warning) {
            all.push(warning);
        }
    }
}

/// Keeps figures while a sweep runs.
struct Keeper<'a> {
    stop: &'a Stop,
    began: Instant,
    /// Seconds that the run took before it was taken up.
    before_s: f64,
    /// The place in the run's plan of each point that is measured now.
    seqs: &'a [usize],
    state: Mutex<Keeping>,
}

struct Keeping {
    store: Store,
    run: RunId,
    done: usize,
    trouble: Option<StoreError>,
    progress: Progress,
}

impl Keeper<'_> {
    fn elapsed_s(&self) -> f64 {
        self.before_s + self.began.elapsed().as_secs_f64()
    }

    fn state(&self) -> MutexGuard<'_, Keeping> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Keeper<'_> {
    fn finished(&self, done: &Finished, of: usize) {
        let elapsed_s = self.elapsed_s();
        let Some(&seq) = self.seqs.get(done.index) else {
            return;
        };
        let mut state = self.state();
        let state = &mut *state;
        state.done += 1;
        state.progress.step(state.done, of);
        // After the first failure the figures are only printed: a full disk is not asked again.
        if state.trouble.is_some() {
            return;
        }
        let figure: Figure<'_, Point, _> = Figure {
            seq,
            body: &done.point,
            record: Some(&done.record),
            warnings: &done.warnings,
            elapsed_s,
        };
        if let Err(trouble) = state.store.add(state.run, &figure) {
            say(&format!("weir: warning: {trouble}"));
            state.trouble = Some(trouble);
        }
    }

    fn stop(&self) -> bool {
        self.stop.requested()
    }
}
