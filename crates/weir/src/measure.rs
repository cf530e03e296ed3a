//! Takes a plan to its end: measures, shows progress, and keeps each figure as it comes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::json;
use weir_lab::{Finished, PointSpec, Watcher};
use weir_model::document::{BenchDocument, Header, Point};

use crate::context::{Context, say};
use crate::failure::{Failure, Result};
use crate::host;
use crate::interrupt::Stop;
use crate::machine::Chosen;
use crate::output::alike;
use crate::progress::Progress;
use crate::store::{Figure, NewRun, RunId, RunState, Store, StoreError};

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
        if points.len() < self.planned {
            return Err(Failure::Partial(format!(
                "stopped: {} of {} figures are kept in run {}",
                points.len(),
                self.planned,
                self.run
            )));
        }
        let missing = points.iter().filter(|p| p.error.is_some()).count();
        if missing == 0 {
            return Ok(());
        }
        let told = anyhow::anyhow!(
            "{missing} of {} figures could not be taken; the reasons stand in run {}",
            points.len(),
            self.run
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
    let mut store = Store::open(&context.store_path()?)?;
    let mut document = BenchDocument {
        header: header(context, chosen, warnings),
        points: Vec::new(),
    };
    let run = store.begin(&new_run(context, verb, &document, plan.len())?)?;

    let title = format!("{} on {}", verb, chosen.identity.name);
    let keeper = Keeper {
        stop: &context.stop,
        began: Instant::now(),
        state: Mutex::new(Keeping {
            store,
            run,
            done: 0,
            trouble: None,
            progress: Progress::begin(&title, plan.len(), context.global.quiet),
        }),
    };
    let finished = weir_lab::run(chosen.testbed.as_ref(), plan, context.global.seed, &keeper);

    let elapsed_s = keeper.began.elapsed().as_secs_f64();
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
    let complete = finished.len() == plan.len();
    let own_warnings = document.header.warnings.clone();
    document.header.partial = !complete;
    document.header.elapsed_s = elapsed_s;
    let lacking = finished.iter().filter(|d| d.missing.is_some()).count();
    for done in finished {
        add_new(&mut document.header.warnings, done.warnings);
        document.points.push(done.point);
    }
    if trouble.is_none() {
        let state = if complete {
            RunState::Done
        } else {
            RunState::Partial
        };
        trouble = store.finish(run, state, elapsed_s, &own_warnings).err();
    }
    for warning in alike(document.header.warnings.iter().map(String::as_str)) {
        say(&format!("weir: warning: {warning}"));
    }
    Ok(Measured {
        document,
        run,
        planned: plan.len(),
        trouble,
        lacking,
    })
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
    fn state(&self) -> MutexGuard<'_, Keeping> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Keeper<'_> {
    fn finished(&self, done: &Finished, of: usize) {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let mut state = self.state();
        let state = &mut *state;
        state.done += 1;
        state.progress.step(state.done, of);
        // After the first failure the figures are only printed: a full disk is not asked again.
        if state.trouble.is_some() {
            return;
        }
        let figure: Figure<'_, Point, _> = Figure {
            seq: done.index,
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
