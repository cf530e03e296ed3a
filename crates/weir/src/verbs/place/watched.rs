//! The document of `weir place watch`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::number::seconds;
use weir_model::tiering::MovedPages;
use weir_model::units::Bytes;

use crate::verbs::moved;

/// What became of a process's objects: a `place watch` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceWatched {
    /// The process.
    pub process: u32,
    /// How long it was watched, in seconds.
    pub seconds: f64,
    /// How many windows there were.
    pub windows: u64,
    /// By what touches were seen.
    pub source: String,
    /// What that does not see.
    pub unseen: Vec<String>,
    /// Why it ended.
    pub ended: String,
    /// Parts of objects that moved; the latest where there were many.
    pub moves: Vec<WatchedMove>,
    /// Earlier moves that are left out.
    pub left_out: u64,
    /// The objects at the end, the largest first.
    pub objects: Vec<WatchedObject>,
}

/// A part of an object that was to move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedMove {
    /// The end of the window in which it moved, in seconds.
    pub t_s: f64,
    /// The object.
    pub object: String,
    /// Where it should be.
    pub tier: String,
    /// What became of its pages.
    #[serde(flatten)]
    pub pages: MovedPages,
    /// Why it ended before all were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

impl WatchedMove {
    /// Why pages stayed: what ended the move says more than the counts until then.
    pub fn stayed(&self) -> Option<String> {
        self.ended.clone().or_else(|| moved::stayed(&self.pages))
    }
}

/// An object of a process that was watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedObject {
    /// The object.
    pub object: String,
    /// Its memory.
    pub resident: Bytes,
    /// The tiers that it is on, with their share of it.
    pub on: String,
    /// Touches of one of its pages in a second, in the last window.
    pub heat: f64,
    /// This much of it moved to the slower tier, all moves together.
    pub down: Bytes,
    /// This much of it came back.
    pub up: Bytes,
    /// For this many windows it must be cold before it moves to the slower tier next.
    pub wait: u32,
}

impl Outcome for PlaceWatched {
    const SCHEMA: &'static str = "weir/place-watch/1";
    const TITLE: &'static str = "Objects kept on their tiers";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let down: Bytes = self.objects.iter().map(|one| one.down).sum();
        let up: Bytes = self.objects.iter().map(|one| one.up).sum();
        let mut all = vec![
            Verdict::new(
                Severity::Note,
                format!("process {}", self.process),
                format!(
                    "{down} moved to the slower tier and {up} back in {}; {}",
                    seconds(self.seconds),
                    self.ended
                ),
            ),
            Verdict::new(Severity::Note, "seen", format!("by {}", self.source)),
            Verdict::new(Severity::Note, "not seen", self.unseen.join("; ")),
        ];
        let mut sums: BTreeMap<&str, WatchedMove> = BTreeMap::new();
        for one in &self.moves {
            match sums.entry(&one.object) {
                Entry::Vacant(place) => _ = place.insert(one.clone()),
                Entry::Occupied(mut sum) => {
                    sum.get_mut().pages += one.pages;
                    let ended = &mut sum.get_mut().ended;
                    *ended = one.ended.clone().or_else(|| ended.take());
                }
            }
        }
        for (object, sum) in sums {
            if let Some(stayed) = sum.stayed() {
                let text = format!("pages stayed: {stayed}");
                all.push(Verdict::new(Severity::Doubt, object, text));
            }
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let own = vec![
            col("object"),
            col("resident").head("in memory"),
            col("on").empty(""),
            col("heat").head("touches of a page /s"),
            col("down"),
            col("up"),
            col("wait"),
        ];
        let mut moves = vec![col("t_s").head("t"), col("object"), col("tier").head("to")];
        moves.extend(moved::columns());
        vec![
            View::table("objects", "Objects, and what moved of them", own),
            View::table("moves", "Moves", moves).at_most(20),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_a_move_is_the_reason_why_pages_stayed() {
        let moved = |object: &str, refused, ended: Option<&str>| WatchedMove {
            t_s: 1.0,
            object: object.into(),
            tier: "cxl0".into(),
            pages: MovedPages {
                refused,
                ..MovedPages::default()
            },
            ended: ended.map(str::to_owned),
        };
        let why = "process 7 may not have memory of node 1 (cpuset.mems)";
        assert_eq!(moved("heap", 313, Some(why)).stayed().unwrap(), why);
        let watched = PlaceWatched {
            process: 7,
            seconds: 2.0,
            windows: 2,
            source: "DAMON".into(),
            unseen: Vec::new(),
            ended: "stopped".into(),
            moves: vec![
                moved("heap", 313, Some(why)),
                moved("heap", 1, None),
                moved("rest", 2, None),
            ],
            left_out: 0,
            objects: Vec::new(),
        };
        let (machine, topology) = Default::default();
        let about = About {
            machine: &machine,
            topology: &topology,
            warnings: &[],
        };
        let said: Vec<String> = (watched.answer(about).iter())
            .map(|verdict| format!("{}: {}", verdict.about, verdict.text))
            .filter(|line| line.contains("stayed"))
            .collect();
        assert_eq!(
            said,
            [
                format!("heap: pages stayed: {why}"),
                "rest: pages stayed: 2 refused by the kernel".to_owned()
            ]
        );
    }
}
