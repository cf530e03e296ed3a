//! The decision log: a line of JSON for each window with a new decision.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::{Limit, Share};
use crate::record::{ActionRecord, WindowRecord};

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// `weir/steer-log/1`.
    pub schema: String,
    /// Its number since the controller began, from 1.
    pub n: u64,
    /// When, in UTC: `2026-03-01T14:05:09Z`.
    pub at: String,
    /// The controller.
    pub controller: String,
    /// Whether no tenant was limited.
    pub dry: bool,
    /// The window and the actions.
    pub window: WindowRecord,
}

/// Distinguishes windows with a new decision from windows that continue as before.
#[derive(Debug, Clone, Default)]
pub struct ChangeDetector {
    last: Option<(String, u32, Vec<ActionRecord>)>,
}

impl ChangeDetector {
    /// Whether this window has another rule, another level, or other actions than the one before.
    pub fn is_new(&mut self, window: &WindowRecord) -> bool {
        let rule = &window.why.rule;
        let same = (self.last.as_ref()).is_some_and(|(last, level, actions)| {
            last == rule && *level == window.level && *actions == window.actions
        });
        if !same {
            self.last = Some((rule.clone(), window.level, window.actions.clone()));
        }
        !same
    }
}

impl LogLine {
    /// The value of `schema` in lines that this version writes.
    pub const SCHEMA: &'static str = "weir/steer-log/1";

    /// The decision in words: the readings, the values compared, and the actions.
    pub fn explain(&self) -> String {
        let window = &self.window;
        let mut text = format!(
            "Decision {} of {}, {}, {:.2} s after the start.\n",
            self.n, self.controller, self.at, window.t_s
        );
        let _ = writeln!(text, "Because: {}.", window.why.rule);
        if let (Some(slow), Some(target)) = (window.why.slow, window.why.target) {
            let than = if slow > target { "more" } else { "no more" };
            let _ = writeln!(
                text,
                "A request stayed {slow:.0} in the Table of Requests: {than} than {target:.0}, with which it \
                 was compared."
            );
        }
        if let (Some(probe), Some(target)) = (window.why.probe, window.why.target) {
            let than = if probe > target { "more" } else { "no more" };
            let _ = writeln!(
                text,
                "A load from the fast tier took {probe:.0}: {than} than {target:.0}, with which it was compared."
            );
        }
        for (tier, gbps) in &window.gbps {
            let stayed = window.tor_ns.get(tier);
            let stayed =
                stayed.map_or_else(String::new, |ns| format!(", a request stayed {ns:.0}"));
            let _ = writeln!(text, "Seen: {tier} moved {gbps:.1}{stayed}.");
        }
        for unseen in &window.unseen {
            let _ = writeln!(text, "Not seen: {unseen}.");
        }
        if window.actions.is_empty() {
            text.push_str("Nothing was changed.\n");
        }
        for action in &window.actions {
            let before = window.tenants.iter().find(|t| t.name == action.tenant);
            let before = before.map_or(Limit::FREE, |t| t.held);
            let _ = writeln!(
                text,
                "{}: {}, before {}.",
                action.tenant,
                words(&action.requested),
                words(&before)
            );
            if action.applied != action.requested {
                let _ = writeln!(text, "  In force: {}.", words(&action.applied));
            }
            for refused in &action.refused {
                let _ = writeln!(text, "  Refused: {refused}.");
            }
        }
        text
    }
}

/// A limit in words: `2 cores, 50 % of their time`.
pub fn words(limit: &Limit) -> String {
    if limit.is_free() {
        return "free".into();
    }
    let percent = |share: Share| (share.get() * 1000.0).round() / 10.0;
    let mut parts = Vec::new();
    match limit.cores {
        Some(1) => parts.push("1 core".to_owned()),
        Some(cores) => parts.push(format!("{cores} cores")),
        None => {}
    }
    if limit.time != Share::ALL {
        parts.push(format!("{} % of the time", percent(limit.time)));
    }
    if limit.allocation != Share::ALL {
        parts.push(format!("{} % of the bandwidth", percent(limit.allocation)));
    }
    if let Some(clock) = limit.clock {
        parts.push(format!("{clock:.1}"));
    }
    parts.join(", ")
}
