//! What the verbs that explain and predict share: workloads, files of counters, and model files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;

use anyhow::{Context as _, anyhow};
use weir_insight::InsightError;
use weir_insight::slowdown::file;
use weir_insight::two_tiers::Tiers;
use weir_model::counter_file::{self};
use weir_model::insight::SlowdownModel;
use weir_model::machine::Identity;
use weir_model::topology::{TierName, Topology};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::files;
use crate::output::quoted;
use crate::progress::Progress;

impl From<InsightError> for Failure {
    fn from(error: InsightError) -> Self {
        match error {
            InsightError::Missing { .. } => Failure::Missing(error.into()),
            InsightError::Calibration(_) => Failure::Work(error.into()),
            _ => Failure::Request(error.into()),
        }
    }
}

/// The two tiers of a comparison, by name.
///
/// # Errors
/// The machine has not these, or they are one.
pub fn tiers(topology: &Topology, from: &TierName, to: &TierName) -> Result<Tiers> {
    Tiers::of(topology, from, to).map_err(|error| Failure::Request(error.into()))
}

/// Where the model of a pair is kept: next to the run store.
///
/// # Errors
/// There is no home directory and no store was named.
pub fn model_path(context: &Context, machine: &Identity, tiers: &Tiers) -> Result<PathBuf> {
    let store = context.store_path()?;
    let folder = store.parent().unwrap_or(Path::new(".")).join("models");
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "+-_@.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = machine.name.chars().map(plain).collect();
    Ok(folder.join(format!("{name}.{}-{}.json", tiers.from, tiers.to)))
}

/// Writes a model whole or not at all.
///
/// # Errors
/// The folder cannot be made, or the file not written.
pub fn write_model(path: &Path, model: &SlowdownModel) -> Result<()> {
    let message = || format!("cannot write the model {}", path.display());
    let text = file::write(model)?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).with_context(message)?;
    }
    files::write(path, text)
}

/// The command that makes the model of a pair, at the usual place or at the one that is named.
fn making(context: &Context, from: &TierName, to: &TierName, at: Option<&Path>) -> String {
    let mut words = vec!["weir calibrate --on".to_owned(), quoted(&context.global.on)];
    if *from != TierName::dram() {
        words.push(format!("--from {from}"));
    }
    words.push(format!("--tier {to}"));
    words.extend(at.map(|file| format!("-o {}", quoted(&file.display().to_string()))));
    let typed = context.typed.iter().any(|word| word.starts_with("--store"));
    if let (true, Some(store)) = (typed, &context.global.store) {
        words.push(format!("--store {}", quoted(&store.display().to_string())));
    }
    words.join(" ")
}

/// Reads the model of a pair, which must be there: the one that is named, or the one that was calibrated for a machine.
///
/// # Errors
/// It is not there or none.
pub fn read_model(
    context: &Context,
    named: Option<&Path>,
    usual: &Path,
    from: &TierName,
    to: &TierName,
) -> Result<SlowdownModel> {
    let path = named.unwrap_or(usual);
    if !path.exists() {
        return Err(Failure::Request(anyhow!(
            "there is no model {}; `{}` makes one",
            path.display(),
            making(context, from, to, named)
        )));
    }
    let text = files::text(path, "model", counter_file::MOST_BYTES)?;
    Ok(file::read(&path.display().to_string(), &text)?)
}

/// Progress over workloads that run side by side, and the way to end early.
pub struct Going<'a> {
    context: &'a Context,
    title: &'static str,
    progress: Mutex<(Option<Progress>, usize)>,
}

impl<'a> Going<'a> {
    /// Nothing has run yet.
    pub fn on(context: &'a Context, title: &'static str) -> Self {
        Self {
            context,
            title,
            progress: Mutex::new((None, 0)),
        }
    }

    /// One of this many begins; whether to go on.
    pub fn step(&self, of: usize) -> bool {
        let mut held = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (shown, done) = &mut *held;
        if *done == of {
            // The next campaign of the same verb.
            *done = 0;
            if let Some(progress) = shown.take() {
                progress.end();
            }
        }
        *done += 1;
        let progress =
            shown.get_or_insert_with(|| Progress::begin(self.title, of, self.context.global.quiet));
        let ended = *done - 1;
        progress.step(ended, of, ended as f64 / of.max(1) as f64);
        !self.context.stop.requested()
    }

    /// Removes the bar.
    pub fn end(self) {
        let (shown, _) = self
            .progress
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(progress) = shown {
            progress.end();
        }
    }
}
