//! Everything that would spoil a measurement or a tiering set-up on this machine or a recorded one, with the
//! exact command that fixes it. [`rules`] has the rules; this module runs them.

mod look;
pub mod rules;

use weir_model::diagnosis::{Diagnosis, Unknown};

use self::look::Look;
use crate::root::Root;
use crate::topology::HostView;

/// Runs every rule. Never fails: a rule that cannot read the machine says why.
pub fn examine(root: &Root, view: &HostView) -> Diagnosis {
    let look = Look { root, view };
    let mut diagnosis = Diagnosis::default();
    for rule in rules::RULES {
        match (rule.judge)(&look) {
            Ok(findings) if findings.is_empty() => diagnosis.fine.push(rule.name.to_owned()),
            Ok(findings) => diagnosis
                .findings
                .extend(findings.into_iter().map(|finding| {
                    let mut finding = finding.done();
                    finding.rule = rule.name.to_owned();
                    finding
                })),
            Err(why) => diagnosis.unknown.push(Unknown {
                rule: rule.name.to_owned(),
                reason: why.reason,
            }),
        }
    }
    diagnosis.findings.sort_by_key(|f| (f.severity, f.spoils));
    diagnosis
}
