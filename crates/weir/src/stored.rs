//! Runs of the store: as documents, and as frames of rows.

use std::path::Path;

use serde_json::Value;
use weir_lab::import::Readings;
use weir_lab::{Outcome as _, Points};
use weir_model::counter_file::CountersDocument;
use weir_model::document::BenchDocument;
use weir_model::frame::Frame;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::shown::document;
use crate::store::{Store, StoredRun};
use crate::studies;

/// The run of this name from a store that may not exist yet.
///
/// # Errors
/// There is no such run, or no store.
pub fn load(store: Option<&Store>, path: &Path, name: &str) -> Result<StoredRun> {
    let store = store.ok_or_else(|| {
        Failure::request(format!(
            "there are no runs in {} yet; `weir bench` makes one",
            path.display()
        ))
    })?;
    Ok(store.load(store.find(name)?)?)
}

/// The document of a stored run, with what follows from it today.
///
/// # Errors
/// This version does not read it.
pub fn json(run: &StoredRun) -> Result<Value> {
    match studies::reader(run) {
        Some(reader) => (reader.json)(run),
        None => Ok(run.document.clone()),
    }
}

/// The run's document, if it is a bench.
///
/// # Errors
/// It is another, or this version does not understand it.
pub fn bench_document(run: &StoredRun) -> Result<BenchDocument> {
    Ok(Points::bench(document::<Points>(run)?))
}

/// The rows of a run of any kind: those of one of its lists, the main one where none is named.
///
/// # Errors
/// There is no such list, or this version does not know what the run holds.
pub fn frame(run: &StoredRun, name: Option<&str>) -> Result<Frame> {
    match studies::reader(run) {
        Some(reader) => (reader.shown)(run)?.frame(name),
        None => Err(Failure::request(format!(
            "run {} holds a document of kind {}, which has no such rows; take --as json",
            run.summary.id,
            run.schema()
        ))),
    }
}

/// The counters of an imported run, where a run and no file is named: a number, or `last`.
///
/// # Errors
/// There is no such run, or it has no counters.
pub fn counters(context: &Context, name: &Path) -> Result<Option<CountersDocument>> {
    let text = name.to_string_lossy();
    let is_run = text == "last" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
    if !is_run || name.exists() {
        return Ok(None);
    }
    let path = context.store_path()?;
    let run = load(Store::open_existing(&path)?.as_ref(), &path, &text)?;
    let id = run.summary.id;
    if run.schema() != Readings::SCHEMA {
        let why = format!(
            "run {id} is of `{}`, which has no file of counters",
            run.summary.verb
        );
        return Err(Failure::request(why));
    }
    let document = document::<Readings>(&run)?;
    let counters = document.output.counters.map(Some);
    counters.ok_or_else(|| Failure::request(format!("run {id} is not of perf stat")))
}
