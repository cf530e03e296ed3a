//! A document about published rows, kept as a run.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::host;
use crate::store::{Figure, NewRun, RunState, Store, StoreError};

/// What is kept of a document.
pub(super) struct Kept<'a, T> {
    /// The verb as it was asked for.
    pub verb: &'a str,
    /// The whole document.
    pub document: Value,
    /// Platforms used, by name, with their digests.
    pub platforms: &'a BTreeMap<String, String>,
    /// The key of the list of its figures ...
    pub list_key: &'static str,
    /// ... and the figures.
    pub list: &'a [T],
    /// Seed of every random choice.
    pub seed: u64,
    /// Wall time of the whole command, in seconds.
    pub elapsed_s: f64,
    /// What makes the figures less than trustworthy.
    pub warnings: &'a [String],
    /// Whether it was stopped before its end.
    pub partial: bool,
}

/// Keeps it.
///
/// # Errors
/// The store does not take it.
pub(super) fn keep<T: Serialize>(
    store: &mut Store,
    context: &Context,
    kept: Kept<'_, T>,
) -> Result<(), StoreError> {
    let run = store.begin(&NewRun {
        verb: kept.verb.into(),
        machine: match kept.platforms.len() {
            1 => kept.platforms.keys().cloned().collect(),
            several => format!("{several} platforms"),
        },
        machine_kind: "sim".into(),
        digest: String::new(),
        seed: kept.seed,
        arguments: json!(context.typed),
        host: host::fingerprint(),
        document: kept.document,
        list_key: kept.list_key,
        planned: kept.list.len(),
    })?;
    for (seq, body) in kept.list.iter().enumerate() {
        let figure: Figure<'_, _, ()> = Figure {
            seq,
            body,
            record: None,
            warnings: &[],
            elapsed_s: kept.elapsed_s,
            address: None,
        };
        store.add(run, &figure)?;
    }
    let state = if kept.partial {
        RunState::Partial
    } else {
        RunState::Done
    };
    store.finish(run, state, kept.elapsed_s, kept.warnings)
}
