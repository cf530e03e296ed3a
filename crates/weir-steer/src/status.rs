//! The status of a running controller.

use std::collections::VecDeque;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::tiering::{TieringCounts, TieringRecord};

use crate::record::{TierNames, WindowRecord};
use crate::steered::TenantOf;

/// Windows that are kept for viewing.
const RECENT: usize = 64;
/// Problems that are kept.
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
    /// The controller.
    pub controller: String,
    /// Whether no tenant is limited.
    pub dry: bool,
    /// How long a window is, in seconds.
    pub window_s: f64,
    /// Windows seen.
    pub windows: u64,
    /// Windows with a new decision.
    pub decisions: u64,
    /// Limits that were requested and refused, in part or whole.
    pub refusals: u64,
    /// The names of the tiers.
    pub tiers: TierNames,
    /// The tenants.
    pub tenants: Vec<TenantOf>,
    /// Capabilities that this machine lacks, and the effect of each loss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// The kernel's tiering, if `[tier]` of the configuration sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiering: Option<TieringStatus>,
    /// Problems outside of steering, which continues: a full disk, a port that was taken.
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

/// The kernel's tiering since the controller began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TieringStatus {
    /// What the kernel counted since then.
    pub total: TieringCounts,
    /// The last second.
    pub last: TieringRecord,
}

impl StatusDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/steer-status/1";

    /// Adds a window; the oldest one is removed.
    pub fn saw(&mut self, window: WindowRecord, is_new: bool) {
        self.windows += 1;
        self.decisions += u64::from(is_new);
        let refused = window.actions.iter().filter(|a| !a.refused.is_empty());
        self.refusals += refused.count() as u64;
        if let Some(last) = window.tiering.clone() {
            let before = self.tiering.take();
            let total = before.map_or(last.counts, |before| before.total.and(&last.counts));
            self.tiering = Some(TieringStatus { total, last });
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(window);
    }

    /// Adds a problem, once; the oldest one is removed.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn a_status_counts_all_windows_and_keeps_the_last() {
        let mut status: StatusDocument = from_value(json!({
            "schema": StatusDocument::SCHEMA, "weir": "0", "since": "", "plant": "host", "controller": "weir",
            "dry": false, "window_s": 0.25, "windows": 0, "decisions": 0, "refusals": 0,
            "tiers": { "fast": "dram", "slow": "cxl0" }, "tenants": [], "troubles": [], "recent": [],
        }))
        .unwrap();
        let limit = json!({ "time": 1.0, "allocation": 1.0 });
        let action = |refused: &[&str]| json!({ "tenant": "a", "requested": limit, "applied": limit, "refused": refused });
        let mut window: WindowRecord = from_value(json!({
            "t_s": 0.0, "window_s": 0.25, "gbps": {}, "tor_ns": {}, "level": 0, "quota_pct": 100.0,
            "why": { "rule": "", "level": 0 }, "tenants": [],
            "actions": [action(&["no"]), action(&[]), action(&["no", "never"])],
            "tiering": {
                "lasted_s": 1.0, "counts": { "promoted": 2 }, "promoted_gbps": Value::Null, "asked": 0,
                "part_pct": 100.0, "why": "", "requested": {}, "in_force": {},
            },
        }))
        .unwrap();
        for n in 0..RECENT + 2 {
            window.t_s = n as f64;
            status.saw(window.clone(), n % 2 == 0);
        }
        let all = RECENT as u64 + 2;
        assert_eq!((status.windows, status.decisions), (all, all / 2));
        assert_eq!(status.refusals, 2 * all);
        assert_eq!((status.recent.len(), status.recent[0].t_s), (RECENT, 2.0));
        let total = status.tiering.as_ref().unwrap().total.promoted;
        assert_eq!(total, Some(2 * all));
    }
}
