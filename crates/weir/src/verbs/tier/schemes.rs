//! Schemes of DAMON that `weir tier run` sets, and what they did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{Severity, Verdict};
use weir_linux::Root;
use weir_linux::tiering::{Scheme, scheme_counts};
use weir_model::tiering::{Heat, SchemeCounts};
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use super::moves::ROWS;
use super::requests::Args;
use super::requests::Migrate;
use crate::failure::Result;
use crate::nodes::{all_here, node_of};
use crate::system::System;

/// What a scheme of DAMON did in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierScheme {
    /// The end of the window, in seconds.
    pub t_s: f64,
    /// What it takes.
    pub heat: Heat,
    /// The tier to which it brings that.
    pub tier: TierName,
    /// What it did.
    #[serde(flatten)]
    pub counts: SchemeCounts,
    /// Why it has ended.
    pub ended: Option<String>,
}

/// A scheme that is in force.
#[derive(Debug)]
pub(super) struct Migrating {
    /// For the kernel.
    pub scheme: Scheme,
    tier: TierName,
    number: usize,
    last: SchemeCounts,
}

impl Migrating {
    /// All schemes that are asked for.
    pub fn all(args: &Args, host: &System, topology: &Topology) -> Result<Vec<Self>> {
        let tiers: Vec<TierName> = args.schemes.iter().map(|of| of.tier.clone()).collect();
        all_here(host, topology, &tiers)?;
        let one = |(number, Migrate { heat, tier, rate }): (usize, &Migrate)| {
            Ok(Self {
                scheme: Scheme {
                    heat: *heat,
                    node: node_of(topology, tier)?,
                    rate: *rate,
                },
                tier: tier.clone(),
                number,
                last: SchemeCounts::default(),
            })
        };
        args.schemes.iter().enumerate().map(one).collect()
    }

    /// What was done since the last call.
    pub fn take(&mut self, root: &Root, t_s: f64) -> TierScheme {
        let now = scheme_counts(root, self.number);
        let ended = now.as_ref().err().map(ToString::to_string);
        let now = now.unwrap_or(self.last);
        let counts = now.since(&self.last);
        self.last = now;
        TierScheme {
            t_s,
            heat: self.scheme.heat,
            tier: self.tier.clone(),
            counts,
            ended,
        }
    }
}

/// The answer about each scheme.
pub(super) fn answer(rows: &[TierScheme]) -> Vec<Verdict> {
    let mut all = Vec::new();
    let t_s = rows.last().map(|last| last.t_s);
    for last in rows.iter().filter(|row| Some(row.t_s) == t_s) {
        let TierScheme { heat, tier, .. } = last;
        let of = || {
            rows.iter()
                .filter(|row| (&row.heat, &row.tier) == (heat, tier))
        };
        let bytes = |count: fn(&SchemeCounts) -> u64| of().map(|row| count(&row.counts)).sum();
        let (tried, applied) = (bytes(|counts| counts.tried), bytes(|counts| counts.applied));
        let exceeded = bytes(|counts| counts.quota_exceeded);
        let text = format!(
            "of {} of {heat} regions {} migrated to {tier}; the quota was used up {exceeded} times",
            Bytes(tried),
            Bytes(applied)
        );
        all.push(Verdict::new(Severity::Note, "scheme", text));
        let mut doubt = |text| all.push(Verdict::new(Severity::Doubt, "scheme", text));
        if tried > 0 && applied == 0 {
            doubt(format!(
                "nothing {heat} migrated to {tier}: it is full, or pages are in use, of other groups, or of no process"
            ));
        }
        if let Some(why) = &last.ended {
            doubt(format!("{heat} to {tier}: {why}"));
        }
    }
    all
}

/// Its table.
pub(super) fn table() -> View {
    let columns = vec![
        col("t_s").head("t"),
        col("heat"),
        col("tier"),
        col("tried"),
        col("applied").head("migrated"),
        col("tried_regions").head("regions"),
        col("applied_regions").head("of which"),
        col("quota_exceeded").head("quota used up"),
    ];
    View::table("schemes", "Schemes of DAMON", columns).at_most(ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_sums_windows_of_each_scheme_and_says_what_did_not_migrate() {
        let row = |t_s, heat, tier, applied, ended: Option<&str>| TierScheme {
            t_s,
            heat,
            tier: TierName::named(tier),
            counts: SchemeCounts {
                tried: 3 << 20,
                applied,
                ..SchemeCounts::default()
            },
            ended: ended.map(Into::into),
        };
        let rows = [
            row(1.0, Heat::Hot, "dram", 1 << 20, None),
            row(1.0, Heat::Cold, "cxl0", 0, None),
            row(2.0, Heat::Hot, "dram", 1 << 20, Some("it has stopped")),
            row(2.0, Heat::Cold, "cxl0", 0, None),
        ];
        let said: Vec<String> = (answer(&rows).iter())
            .map(|verdict| verdict.text.to_string())
            .collect();
        let of = |n: usize, text: &str| assert!(said[n].contains(text), "{said:?}");
        assert_eq!(said.len(), 4);
        of(0, "of 6 MiB of hot regions 2 MiB migrated to dram");
        of(1, "it has stopped");
        of(3, "nothing cold migrated to cxl0");
    }
}
