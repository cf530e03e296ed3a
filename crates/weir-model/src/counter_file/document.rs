//! The document that files of counters become, the options of reading, and what can be wrong with a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::{CounterSet, RunningShare};
use crate::diagnostic::quote;
use crate::units::Nanos;

/// Counters of a program or a machine, in total and over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountersDocument {
    /// `weir/counters/1`.
    pub schema: String,
    /// The table of events, such as `sapphire-rapids`; absent where no event needed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// How the microarchitecture is known.
    pub cpu_known_by: KnownBy,
    /// What was counted: a command's words or a file's name.
    pub of: String,
    /// The command's exit status, where it was run here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// Time from start to end, where the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Nanos>,
    /// Over the whole time; counters without a value have a reason.
    pub total: CounterSet,
    /// Over time, where intervals were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<CounterInterval>,
    /// The events behind the counters.
    pub events: Vec<CountedEvent>,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl CountersDocument {
    /// Kind and version.
    pub const SCHEMA: &str = "weir/counters/1";
}

/// Counters of one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterInterval {
    /// When it ended, from the start.
    pub end: Nanos,
    /// How long it was.
    pub length: Nanos,
    /// What was counted in it.
    pub counters: CounterSet,
}

/// One event as it was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountedEvent {
    /// As it was written.
    pub event: String,
    /// What it is in the table, or nothing if it is not known there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// Its sum, scaled to the whole time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Share of the time in which it was counted, the least of its parts.
    pub running: RunningShare,
    /// Why it has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The line of the file where it is first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// How the microarchitecture is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// The reader stated it.
    Stated,
    /// The file states it.
    Header,
    /// Its events belong to that one only.
    Events,
    /// The processor that counted stated it.
    Processor,
    /// It is not known.
    Nothing,
}

/// How to read a file.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The microarchitecture, if the reader knows it: `spr`.
    pub cpu: Option<String>,
    /// The control group to read, of a file that has several.
    pub cgroup: Option<String>,
}

/// Why a file of counters cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CounterFileError {
    /// A line is not what it seems to be.
    #[error("{file}:{line}: {message}\n  {shown}")]
    Line {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: u32,
        /// What is wrong.
        message: String,
        /// The beginning of the line.
        shown: String,
    },
    /// The file as a whole does not do.
    #[error("{file}: {message}")]
    File {
        /// The file, as the caller named it.
        file: String,
        /// What is wrong, and what to do about it.
        message: String,
    },
}

impl CounterFileError {
    pub(crate) fn file(file: &str, message: impl Into<String>) -> Self {
        Self::File {
            file: file.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn line(file: &str, line: u32, text: &str, message: impl Into<String>) -> Self {
        Self::Line {
            file: file.to_owned(),
            line,
            message: message.into(),
            shown: quote(text.trim()),
        }
    }
}
