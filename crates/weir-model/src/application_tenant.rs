//! A real application of a host as a tenant: it serves requests or computes, alone and with others, and says what it got done
//! in its own metric.

use serde::{Deserialize, Serialize};

use crate::latency::LatencySummary;
use crate::tenant::Placement;
use crate::units::Nanos;
use crate::workload::RealProgram;

/// An application with its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApplicationTenant {
    /// Its name among the tenants of a run.
    pub name: String,
    /// What runs, with the bytes that its data have here.
    pub program: RealProgram,
    /// Its cores; the generator of a server's requests has the last of several.
    pub cores: Vec<u32>,
    /// Where its memory is.
    pub placement: Placement,
    /// How long a figure takes, where it does not follow from the work, in seconds.
    pub seconds: f64,
    /// Of its data and requests.
    pub seed: u64,
}

/// What it got done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApplicationDone {
    /// How much in a second.
    pub per_s: f64,
    /// Of what: `requests/s`, `tokens/s`; `runs/s` where a run has no other metric than its time.
    pub unit: String,
    /// How long a run took, where that is the metric.
    pub run: Option<Nanos>,
    /// Latency of its requests, where it answers some.
    pub latency: Option<LatencySummary>,
}
