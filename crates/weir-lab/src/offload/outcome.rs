//! What `weir place offload` finds, and how it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::topology::TierName;
use weir_model::units::GbPerSec;

use super::pair::Pair;
use super::tenths;
use crate::study::{About, Outcome};
use crate::together::Operator;
use crate::view::{View, col};
use crate::{Severity, Verdict};

/// How much may be on the slower tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offloaded {
    /// The operator.
    #[serde(default)]
    pub operator: Operator,
    /// The tier of the local threads.
    pub from: TierName,
    /// The slower tier.
    pub to: TierName,
    /// The most that the first gave to any number of threads.
    pub near_gbps: GbPerSec,
    /// The most that the other gave.
    pub far_gbps: GbPerSec,
    /// The ratio of the two: the share of data that the slower tier should take.
    pub ratio_pct: f64,
    /// Threads on both, what they drew together, and which share would make both end at once.
    pub pairs: Vec<Pair>,
    /// The bandwidth of the system by share, of that without the slower tier.
    pub cells: Vec<Cell>,
}

/// The bandwidth of the system at a share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Bytes of a buffer on the slower tier, in percent of those of another.
    pub share_pct: f64,
    /// Local threads.
    pub local: u32,
    /// Threads on the slower tier.
    pub far: u32,
    /// The bandwidth of the system, in percent of that of the local threads alone.
    pub system_pct: f64,
}

/// A bandwidth is kept where no more than this share of it is lost.
pub const KEPT_PCT: f64 = 99.0;

impl Outcome for Offloaded {
    const SCHEMA: &'static str = "weir/place-offload/1";
    const TITLE: &'static str = "Off-loading";
    const WORDS: &'static str = "How much of the data that threads read may be on a slower tier, where other threads read \
                                 it at the same time.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let Self { from, to, .. } = self;
        let mut all = vec![note(
            "share",
            format!(
                "let threads on {to} have {:.1} % of the data of as many threads on {from}: {:.1} of {:.0} GB/s",
                self.ratio_pct,
                self.far_gbps.get(),
                self.near_gbps.get()
            ),
        )];
        let lost = |cell: &&Cell| cell.system_pct < KEPT_PCT;
        let below = self
            .cells
            .iter()
            .filter(|cell| cell.share_pct <= tenths(self.ratio_pct));
        let worst = below
            .filter(lost)
            .min_by(|a, b| a.system_pct.total_cmp(&b.system_pct));
        if let Some(cell) = worst {
            let pair =
                (self.pairs.iter()).find(|pair| (pair.local, pair.far) == (cell.local, cell.far));
            let shared = pair.and_then(|pair| {
                pair.shared_cores
                    .filter(|_| cell.share_pct < pair.level_pct)
            });
            let why = match shared {
                Some(cores) => {
                    format!("{cores} local threads share their cores with others, and end last")
                }
                None => format!("each of those has less of {to} than a local thread has of {from}"),
            };
            all.push(note(
                "loss",
                format!(
                    "at {:.1} % with {} local threads and {} on {to} the system has {:.0} % of its bandwidth: {why}",
                    cell.share_pct, cell.local, cell.far, cell.system_pct
                ),
            ));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let (from, to) = (&self.from, &self.to);
        vec![
            View::table(
                "pairs",
                format!("Threads on {from} and {to} at once; the share at which both end at once"),
                vec![
                    col("local").head("local\nthreads"),
                    col("far").head("far\nthreads"),
                    col("alone_gbps").head("local\nalone"),
                    col("local_gbps").head("local"),
                    col("far_gbps").head("far"),
                    col("level_pct").head("share"),
                    col("shared_cores").head("shared\ncores").if_any(),
                ],
            ),
            View::grid(
                "cells",
                "Bandwidth with far buffers of {share_pct} %, of the local threads alone",
                "local",
                &["far"],
                "system_pct",
            )
            .each(&["share_pct"])
            .rows_are("local threads"),
        ]
    }
}
