//! What would spoil a measurement or a tiering set-up, and how to mend it: the `doctor` document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::Identity;

/// A `doctor` document: `weir/doctor/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorDocument {
    /// `weir/doctor/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// Which machine.
    pub machine: Identity,
    /// The release of its kernel; absent if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// What was found, the worst first.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
    /// The recording that was made, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingNote>,
}

impl DoctorDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/doctor/1";
}

/// The outcome of every rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// What would spoil something, the worst first.
    pub findings: Vec<Finding>,
    /// Rules that found nothing wrong, by name.
    pub fine: Vec<String>,
    /// Rules that could not look, and why.
    pub unknown: Vec<Unknown>,
}

/// Something that would spoil a measurement or a tiering set-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule's stable name: `smt`, `cxl_no_region`.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it spoils.
    pub spoils: Spoils,
    /// What was found, in words.
    pub found: String,
    /// The files that tell, and what they say.
    pub evidence: Vec<Evidence>,
    /// What it does to figures or to tiering.
    pub effect: String,
    /// Commands that mend it, in order, to be run as root; empty where no command can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What else to do or to know; empty where the commands say it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

crate::named! {
    /// How bad a finding is.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Severity {
        /// Figures mean something else than they say, or a tier cannot be used at all.
        Severe = "severe",
        /// Figures are wider or shifted, or tiering does not do what it should.
        Spoils = "spoils",
        /// Good to know: it matters for some experiments.
        Minor = "minor",
    }
}

crate::named! {
    /// What a finding spoils.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Spoils {
        /// Figures.
        Measurement = "measurement",
        /// Placing pages on tiers and moving them.
        Tiering = "tiering",
    }
}

/// A file and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The file, as in the system.
    pub path: String,
    /// What it says.
    pub says: String,
}

/// A rule that could not look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// The rule's name.
    pub rule: String,
    /// Why.
    pub reason: String,
}

/// A recording that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingNote {
    /// Where it is.
    pub file: String,
    /// How many files of the system it holds.
    pub files: usize,
    /// What was taken out of it.
    pub scrubbed: Vec<ScrubbedNote>,
}

/// Something that was taken out of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScrubbedNote {
    /// What.
    pub what: String,
    /// From which files.
    pub paths: Vec<String>,
}
