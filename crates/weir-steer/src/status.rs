//! How it is: what a running controller tells whoever asks.

use std::collections::VecDeque;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plant::TenantOf;
use crate::record::{TierNames, WindowRecord};

/// Windows that are kept to be looked at.
const RECENT: usize = 64;
/// Troubles that are kept.
const TROUBLES: usize = 16;

/// A `steer status` document: `weir/steer-status/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusDocument {
    /// `weir/steer-status/1`.
    pub schema: String,
    /// The version of Weir that runs.
    pub weir: String,
    /// Its process; absent on a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When it began, in UTC.
    pub since: String,
    /// What is steered: `host`, or a platform and a scenario.
    pub plant: String,
    /// Who decides.
    pub controller: String,
    /// Whether nobody is held.
    pub dry: bool,
    /// How long a window is, in seconds.
    pub window_s: f64,
    /// Windows seen.
    pub windows: u64,
    /// Windows in which something was decided anew.
    pub decisions: u64,
    /// Holds that were asked for and refused, in part or whole.
    pub refusals: u64,
    /// What the tiers are called.
    pub tiers: TierNames,
    /// The tenants.
    pub tenants: Vec<TenantOf>,
    /// What this machine lacks, and what each loss costs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// What went wrong beside steering, which goes on: a full disk, a port that was taken.
    pub troubles: VecDeque<String>,
    /// The decision log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Where metrics are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// The last windows, oldest first.
    pub recent: VecDeque<WindowRecord>,
}

impl StatusDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/steer-status/1";

    /// Takes a window in; the oldest one goes.
    pub fn saw(&mut self, window: WindowRecord, is_new: bool) {
        self.windows += 1;
        self.decisions += u64::from(is_new);
        let refused = window.actions.iter().filter(|a| !a.refused.is_empty());
        self.refusals += refused.count() as u64;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(window);
    }

    /// Takes a trouble in, once; the oldest one goes.
    pub fn trouble(&mut self, what: String) {
        if self.troubles.contains(&what) {
            return;
        }
        if self.troubles.len() == TROUBLES {
            self.troubles.pop_front();
        }
        self.troubles.push_back(what);
    }

    /// The last window, if there is one.
    pub fn last(&self) -> Option<&WindowRecord> {
        self.recent.back()
    }
}
