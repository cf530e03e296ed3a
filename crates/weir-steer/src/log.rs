//! The decision log: a line of JSON for each window with a new decision.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::{Limit, words};
use crate::readings::Role;
use crate::record::{ActionRecord, WindowRecord};

/// Tenants that an explanation lists.
const MOST_TENANTS: usize = 8;

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
    /// The part of its limit that promotion had last, and why.
    promotion: Option<(f64, String)>,
}

impl ChangeDetector {
    /// Whether this window has another rule, another level, or other actions than the one before, or another part of
    /// the limit of promotion.
    pub fn is_new(&mut self, window: &WindowRecord) -> bool {
        let rule = &window.why.rule;
        let same = (self.last.as_ref()).is_some_and(|(last, level, actions)| {
            last == rule && *level == window.level && *actions == window.actions
        });
        if !same {
            self.last = Some((rule.clone(), window.level, window.actions.clone()));
        }
        let promotion = (window.tiering.as_ref()).map(|of| (of.part_pct, of.why.clone()));
        let promotes_as_before = promotion.is_none() || promotion == self.promotion;
        if !promotes_as_before {
            self.promotion = promotion;
        }
        !same || !promotes_as_before
    }
}

impl LogLine {
    /// The value of `schema` in lines that this version writes.
    pub const SCHEMA: &'static str = "weir/steer-log/1";

    /// The decision in words: the actions, the reason, the tenants, and what was read.
    pub fn explain(&self) -> String {
        let window = &self.window;
        let mut text = format!(
            "Decision {} of {}, {}, {:.2} s after the start.\n",
            self.n, self.controller, self.at, window.t_s
        );
        for action in &window.actions {
            let before = window.tenants.iter().find(|t| t.name == action.tenant);
            let before = before.map_or(Limit::FREE, |t| t.held);
            let _ = writeln!(
                text,
                "The limit of {}: {}; before: {}.",
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
        if window.actions.is_empty() {
            text.push_str("No limit was changed.\n");
        }
        let _ = writeln!(text, "Because: {}.", window.why.rule);
        self.explain_readings(&mut text);
        text
    }

    fn explain_readings(&self, text: &mut String) {
        let WindowRecord { why, .. } = &self.window;
        for tenant in self.window.tenants.iter().take(MOST_TENANTS) {
            let role = match tenant.role {
                Role::Protected => "is protected",
                Role::Restrained => "may be limited",
                Role::Bystander => "is observed only",
            };
            let drew = match tenant.gbps {
                Some(gbps) if tenant.busy => format!(", drew {gbps:.1}"),
                _ if tenant.busy => ", was busy".to_owned(),
                _ => ", was idle".to_owned(),
            };
            let _ = writeln!(
                text,
                "Tenant {} {role}: {} cores{drew}.",
                tenant.name, tenant.cores
            );
        }
        if let more @ 1.. = self.window.tenants.len().saturating_sub(MOST_TENANTS) {
            let _ = writeln!(text, "And {more} more tenants.");
        }
        for (tier, gbps) in &self.window.gbps {
            let stayed = self.window.tor_ns.get(tier).map_or_else(String::new, |ns| {
                format!(", and a request stayed {ns:.0} in the Table of Requests")
            });
            let _ = writeln!(text, "Tier {tier} moved {gbps:.1}{stayed}.");
        }
        let compared = [
            ("a request for the slow tier stayed", why.slow),
            ("requests waited before the table", why.wait),
            ("a load from the fast tier took", why.probe),
        ];
        for (what, time) in compared {
            if let (Some(time), Some(target)) = (time, why.target) {
                let _ = writeln!(
                    text,
                    "Threshold: {what} {time:.0}; too long is more than {target:.0}."
                );
            }
        }
        if let Some(of) = &self.window.tiering {
            let part = of.part_pct;
            let _ = writeln!(text, "Promotion gets {part:.0} % of its limit: {}.", of.why);
        }
        for unseen in &self.window.unseen {
            let _ = writeln!(text, "Not counted: {unseen}.");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn a_decision_is_new_with_another_rule_level_action_or_part_of_promotion() {
        let limit = json!({ "time": 1.0, "allocation": 1.0 });
        let action = json!({ "tenant": "a", "requested": limit, "applied": limit });
        let window = |level: u32, rule: &str, actions: &[&Value], part: Option<f64>| {
            let tiering = part.map(|part| {
                json!({
                    "lasted_s": 1.0, "counts": {}, "promoted_gbps": Value::Null, "asked": 0, "part_pct": part,
                    "why": "", "requested": {}, "in_force": {},
                })
            });
            let window = json!({
                "t_s": 0.0, "window_s": 0.25, "gbps": {}, "tor_ns": {}, "level": level, "quota_pct": 100.0,
                "why": { "rule": rule, "level": level }, "tenants": [], "actions": actions, "tiering": tiering,
            });
            from_value::<WindowRecord>(window).unwrap()
        };
        let mut detector = ChangeDetector::default();
        for (level, rule, actions, part, is_new) in [
            (0, "a", [].as_slice(), None, true),
            (0, "a", &[], None, false),
            (1, "a", &[], None, true),
            (1, "b", &[], None, true),
            (1, "b", &[&action], None, true),
            (1, "b", &[&action], Some(50.0), true),
            // Promotion is recorded once a second.
            (1, "b", &[&action], None, false),
            (1, "b", &[&action], Some(50.0), false),
            (1, "b", &[&action], Some(40.0), true),
        ] {
            let window = window(level, rule, actions, part);
            assert_eq!(detector.is_new(&window), is_new, "{level} {rule} {part:?}");
        }
    }
}
