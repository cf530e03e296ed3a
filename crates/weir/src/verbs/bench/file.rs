//! `weir bench --file`: sweeps from a file, one run for each machine that it names.

use std::path::Path;

use anyhow::Context as _;

use super::{Args, Request, What, planned, show_all};
use crate::context::Context;
use crate::estimate::agree;
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen};
use crate::measure::{self, Measured};
use crate::store::{RunId, Store};
use crate::sweep_file::{self, Entry, MOST_BYTES};

/// The verb of such runs in the store.
const VERB: &str = "bench sweep";

/// What to do about runs that were begun before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier<'a> {
    /// Measure everything anew.
    Leave,
    /// Measure what this run lacks, or what the newest run of the same points does.
    TakeUp(Option<&'a str>),
}

/// One machine's part of the file.
struct Part {
    chosen: Chosen,
    planned: super::Runnable,
    notes: Vec<String>,
    /// The run to take up.
    earlier: Option<RunId>,
}

/// Measures every sweep of a file on every machine that it names.
///
/// # Errors
/// The file has mistakes or fits a machine not, a figure could not be taken or kept, there is
/// nothing to take up, or the sweep was stopped.
pub fn run(path: &Path, earlier: Earlier<'_>, args: &Args, context: &Context) -> Result<()> {
    let parts = parts(path, context)?;
    let parts = match earlier {
        Earlier::Leave => parts,
        Earlier::TakeUp(run) => with_runs(parts, path, run, args, context)?,
    };
    for part in &parts {
        if part.earlier.is_none() {
            let rounds = args.rounds(&part.chosen);
            agree(context, &part.chosen, &part.planned.plan, rounds, args.yes)?;
        }
    }
    let mut measured: Vec<Measured> = Vec::new();
    let mut refused = None;
    for part in parts {
        measured.push(match part.earlier {
            Some(run) => measure::resume(context, run)?,
            None => {
                let (plan, rounds) = (&part.planned.plan, args.rounds(&part.chosen));
                measure::measure_rounds(context, VERB, &part.chosen, plan, rounds, part.notes)?
            }
        });
        refused = refused.or(part.planned.refused);
        if context.stop.requested() {
            break;
        }
    }
    show_all(context, &measured)?;
    for measured in measured {
        measured.verdict()?;
    }
    match refused {
        Some(refused) => Err(Failure::Missing(anyhow::anyhow!("{refused}"))),
        None => Ok(()),
    }
}

/// The plan of each machine, in the order in which the file names them.
fn parts(path: &Path, context: &Context) -> Result<Vec<Part>> {
    let name = path.display().to_string();
    let text = read_file(path)?;
    let entries: Vec<Entry<What>> = sweep_file::read(&name, &text)
        .map_err(|mistakes| Failure::request(mistakes.to_string()))?;
    let of = |entry: &Entry<What>| match entry.on.as_slice() {
        [] => vec![context.global.on.clone()],
        named => named.to_vec(),
    };
    let mut machines: Vec<String> = Vec::new();
    for machine in entries.iter().flat_map(of) {
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    let mut parts = Vec::new();
    for machine in machines {
        let chosen = machine::choose(&machine).map_err(|failure| match failure {
            Failure::Request(error) => Failure::Request(error.context(name.clone())),
            other => other,
        })?;
        let mut whole = Request {
            verb: VERB,
            plan: Vec::new(),
            asked: Vec::new(),
            notes: Vec::new(),
        };
        for entry in entries.iter().filter(|entry| of(entry).contains(&machine)) {
            let request = entry
                .experiment
                .request(&chosen.topology)
                .map_err(|error| {
                    let what = format!("{name}: `{}` on {machine}", entry.typed.join(" "));
                    Failure::Request(anyhow::Error::new(error).context(what))
                })?;
            whole.plan.extend(request.plan);
            whole.asked.extend(request.asked);
            whole.notes.extend(request.notes);
        }
        let (planned, notes) = planned(whole, &chosen)?;
        parts.push(Part {
            chosen,
            planned,
            notes,
            earlier: None,
        });
    }
    Ok(parts)
}

/// The text of the file; one that is far too large is not read.
fn read_file(path: &Path) -> Result<String> {
    let read = || -> anyhow::Result<String> {
        let length = std::fs::metadata(path)?.len();
        anyhow::ensure!(
            length <= MOST_BYTES as u64,
            "it is longer than {MOST_BYTES} bytes, and so is no sweep file"
        );
        Ok(std::fs::read_to_string(path)?)
    };
    read()
        .with_context(|| format!("cannot read the sweep file {}", path.display()))
        .map_err(Failure::Request)
}

/// Finds the run of each part: the one that was named, or the newest with the same points on the
/// same machine with the same seed.
fn with_runs(
    mut parts: Vec<Part>,
    path: &Path,
    named: Option<&str>,
    args: &Args,
    context: &Context,
) -> Result<Vec<Part>> {
    let file = path.display();
    let store_path = context.store_path()?;
    let store = Store::open_existing(&store_path)?;
    let Some(store) = store else {
        return Err(Failure::request(format!(
            "there are no runs in {} to take up; leave --resume out",
            store_path.display()
        )));
    };
    let named = named.map(|name| store.find(name)).transpose()?;
    for part in &mut parts {
        let plan = measure::as_plan(&part.chosen, &part.planned.plan, args.rounds(&part.chosen))?;
        let (digest, seed) = (&part.chosen.identity.digest, context.global.seed);
        part.earlier = match named {
            None => store.newest_of(&plan, digest, seed)?.map(|run| run.id),
            Some(run) => store.is_of(run, &plan, digest, seed)?.then_some(run),
        };
    }
    if parts.iter().any(|part| part.earlier.is_some()) {
        return Ok(parts);
    }
    Err(Failure::request(match named {
        Some(run) => format!(
            "run {run} was not made from {file} as it is now with seed {}: its points, their order, its machine or its seed are others; `weir runs resume {run}` takes it up as it was planned",
            context.global.seed
        ),
        None => format!(
            "no run in {} has the points of {file} as it is now with seed {}; leave --resume out to measure them, or name an older run with `weir runs resume RUN`",
            store_path.display(),
            context.global.seed
        ),
    }))
}
