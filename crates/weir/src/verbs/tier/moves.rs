//! Parts of processes' memory that `weir tier run` moves to a tier, and what became of their pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{Severity, Verdict};
use weir_linux::Root;
use weir_linux::memory::Mover;
use weir_model::tiering::MovedPages;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, Nanos};

use super::requests::Args;
use super::requests::Move;
use crate::failure::Result;
use crate::nodes::{all_here, node_of};
use crate::system::System;
use crate::verbs::moved;

/// Rows of a table before it is cut.
pub(super) const ROWS: usize = 40;

/// What became of the pages of a part of a process's memory in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierMove {
    /// The end of the window, in seconds.
    pub t_s: f64,
    /// The part, as it was asked for.
    pub range: String,
    /// The tier to which it moves.
    pub tier: TierName,
    /// Pages that were looked at.
    pub looked: u64,
    /// What became of them.
    #[serde(flatten)]
    pub pages: MovedPages,
    /// Memory that was not looked at yet.
    pub rest: Bytes,
    /// Why it ended before all was looked at.
    pub ended: Option<String>,
}

/// A move to a tier.
#[derive(Debug)]
pub(super) struct Moving {
    mover: Mover,
    range: String,
    tier: TierName,
}

impl Moving {
    /// All moves that are asked for.
    pub fn all(args: &Args, host: &System, topology: &Topology) -> Result<Vec<Self>> {
        let tiers: Vec<TierName> = args.moves.iter().map(|of| of.1.clone()).collect();
        all_here(host, topology, &tiers)?;
        let one = |Move(range, tier): &Move| {
            let node = node_of(topology, tier)?;
            let mover = Mover::open(&host.root, range, node, args.move_rate);
            Ok(Self {
                mover: mover?,
                range: range.to_string(),
                tier: tier.clone(),
            })
        };
        args.moves.iter().map(one).collect()
    }

    /// Moves what the rate permits after this much more time.
    pub fn advance(&mut self, root: &Root, time: Nanos) {
        self.mover.advance(root, time);
    }

    /// Whether nothing is left to move.
    pub fn is_over(&self) -> bool {
        self.mover.is_over()
    }

    /// What was done since the last call.
    pub fn take(&mut self, t_s: f64) -> TierMove {
        let pages = self.mover.counted();
        TierMove {
            t_s,
            range: self.range.clone(),
            tier: self.tier.clone(),
            looked: pages.pages(),
            pages,
            rest: self.mover.rest(),
            ended: self.mover.ended().map(ToString::to_string),
        }
    }
}

/// The answer about each part.
pub(super) fn answer(moves: &[TierMove], page: Bytes) -> Vec<Verdict> {
    let mut all = Vec::new();
    let t_s = moves.last().map(|last| last.t_s);
    for last in moves.iter().filter(|row| Some(row.t_s) == t_s) {
        let TierMove { range, tier, .. } = last;
        let mut sum = MovedPages::default();
        (moves
            .iter()
            .filter(|row| (&row.range, &row.tier) == (range, tier)))
        .for_each(|row| sum += row.pages);
        let bytes = Bytes(sum.moved * page.get());
        let text = format!(
            "of {range} {} pages ({bytes}) moved to {tier}, {} were there, {} do not exist",
            sum.moved, sum.there, sum.absent
        );
        all.push(Verdict::new(Severity::Note, "move", text));
        let mut doubt = |text| all.push(Verdict::new(Severity::Doubt, "move", text));
        if let Some(stayed) = moved::stayed(&sum) {
            doubt(format!("pages of {range} stayed: {stayed}"));
        }
        if sum.absent > 0 && sum.absent == sum.pages() {
            doubt(format!(
                "{range} has no pages: never touched, swapped out, or unmapped"
            ));
        }
        match (&last.ended, last.rest) {
            (Some(why), rest) => doubt(format!("{why}: {rest} of {range} were not looked at")),
            (None, Bytes(0)) => {}
            (None, rest) => doubt(format!(
                "time was over before {rest} of {range} were looked at"
            )),
        }
    }
    all
}

/// Its table.
pub(super) fn table() -> View {
    let mut columns = vec![
        col("t_s").head("t"),
        col("range"),
        col("tier"),
        col("looked").head("looked at"),
    ];
    columns.extend(moved::columns());
    columns.push(col("rest"));
    View::table("moves", "Parts of memory that moved", columns).at_most(ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_sums_windows_and_says_what_stayed_and_why_it_ended() {
        let row = |t_s, moved, busy, ended: Option<&str>| TierMove {
            t_s,
            range: "pid:1:0x1000-0x9000".into(),
            tier: TierName::named("cxl0"),
            looked: moved + busy,
            pages: MovedPages {
                moved,
                busy,
                ..MovedPages::default()
            },
            rest: Bytes(4096),
            ended: ended.map(Into::into),
        };
        let rows = [
            row(1.0, 3, 0, None),
            row(2.0, 2, 1, Some("process 1 has ended")),
        ];
        let said = answer(&rows, Bytes(4096));
        let said: Vec<String> = said
            .iter()
            .map(|verdict| verdict.text.to_string())
            .collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].contains("5 pages"), "{said:?}");
        assert!(said[1].contains("1 in use"), "{said:?}");
        assert!(said[2].contains("has ended"), "{said:?}");
    }
}
