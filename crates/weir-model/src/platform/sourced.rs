//! A value and where it comes from.

use std::fmt;
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a number comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// A public source, in words: a paper's row, a manual's section, a vendor's page.
    Source(String),
    /// No public value: the range that is plausible, as written, and the reason.
    Assumed {
        /// Lowest plausible value, as written.
        low: String,
        /// Highest plausible value, as written.
        high: String,
        /// Why this value.
        why: String,
    },
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Source(source) => f.write_str(source),
            Provenance::Assumed { low, high, why } => write!(f, "assumed ({low} to {high}): {why}"),
        }
    }
}

/// A value with its provenance; reads as the value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Its origin.
    pub provenance: Provenance,
}

impl<T> Sourced<T> {
    /// A value from a public source.
    pub fn from_source(value: T, source: impl Into<String>) -> Self {
        Self {
            value,
            provenance: Provenance::Source(source.into()),
        }
    }
}

impl<T> Deref for Sourced<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
