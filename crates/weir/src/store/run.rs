//! A run as the store keeps it.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Failure, Result};

/// A run's number: short, counted from 1, never used twice in a store.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct RunId(#[schemars(range(min = 0))] pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

weir_model::named! {
    /// How a run ended.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunState {
        /// Every figure was taken.
        Done = "done",
        /// It was stopped, it was killed, it failed, or it is still under way.
        Partial = "partial",
    }
}

/// One run in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    /// Its number.
    pub id: RunId,
    /// When it began, in UTC: `2026-03-01 14:05:09`.
    pub started: String,
    /// `bench bandwidth`, `tour`, `reproduce`.
    pub verb: String,
    /// The machine's name.
    pub machine: String,
    /// `host` or `sim`; empty where no machine or several were asked.
    pub machine_kind: String,
    /// The machine's digest; empty where there are several machines.
    pub digest: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// The version of Weir that ran it.
    pub weir: String,
    /// Figures kept.
    pub kept: usize,
    /// Figures planned.
    pub planned: usize,
    /// Whether it ended before it had all its figures, or is still under way.
    pub partial: bool,
    /// Seconds until it ended, or until its last figure.
    pub elapsed_s: f64,
    /// The largest bandwidth among the figures that were asked for, in GB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_gbps: Option<f64>,
    /// The least mean latency among the figures that were asked for, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_ns: Option<f64>,
}

/// What is known of a run before it begins: all that it takes to repeat it.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// `bench bandwidth`, `tour`, `reproduce`.
    pub verb: String,
    /// The machine's name, or what stands for it where there are several.
    pub machine: String,
    /// `host` or `sim`; empty where no machine or several were asked.
    pub machine_kind: String,
    /// The machine's digest, empty where there are several.
    pub digest: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// The arguments as they were typed.
    pub arguments: Value,
    /// The computer that ran this, whichever machine was measured.
    pub host: Value,
    /// The document, its list of figures left out.
    pub document: Value,
    /// The name of that list: `points`, `rows`.
    pub list_key: &'static str,
    /// How many figures it will have.
    pub planned: usize,
    /// Seconds for which it has run already, when it comes into the store.
    pub elapsed_s: f64,
}

/// A run with everything that was kept of it.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// The line in the list.
    pub summary: RunLine,
    /// The place in the plan of each figure of the document.
    pub places: Vec<usize>,
    /// The arguments as they were typed.
    pub arguments: Value,
    /// The computer that ran it.
    pub host: Value,
    /// The whole document.
    pub document: Value,
    /// What was seen, before any statistics; one for each figure that has any.
    pub records: Vec<Value>,
}

impl StoredRun {
    /// The document's kind: `weir/bench/1`.
    pub fn schema(&self) -> &str {
        self.document["schema"].as_str().unwrap_or_default()
    }

    /// The document as a type.
    ///
    /// # Errors
    /// It is of another kind, or a later version wrote it.
    pub fn parse<D: DeserializeOwned>(&self) -> serde_json::Result<D> {
        serde_json::from_value(self.document.clone())
    }
}

/// What a run was understood to hold.
///
/// # Errors
/// It was not: this version does not read it.
pub fn understood<D: DeserializeOwned>(
    run: &StoredRun,
    parsed: serde_json::Result<D>,
) -> Result<D> {
    parsed.map_err(|error| {
        Failure::Request(anyhow::Error::new(error).context(format!(
            "run {} holds a document of kind {}, written by Weir {}, that this command does not read",
            run.summary.id,
            run.schema(),
            run.summary.weir
        )))
    })
}
