//! What `weir place stage` finds, and how it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec};

use super::timeline::Course;
use crate::study::{About, Outcome};
use crate::together::Operator;
use crate::view::{View, col};
use crate::{Severity, Verdict};

weir_model::named! {
    /// How columns of a slower tier reach the workers.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Way {
        /// The workers load them from the slower tier.
        Direct = "direct",
        /// A copier brings all columns of each query near.
        Copied = "copied",
        /// A copier brings the shared column near once, and the others for each query.
        Grouped = "grouped",
    }
}

/// Queries on columns of a slower tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staging {
    /// The slower tier, which has the columns.
    pub from: TierName,
    /// The tier to which they are copied.
    pub to: TierName,
    /// The operator.
    pub operator: Operator,
    /// What copies.
    pub copier: String,
    /// Threads that copy, or that submit copies.
    pub copy_threads: u32,
    /// Threads that execute queries.
    pub threads: u32,
    /// What the copier moves alone.
    pub copier_gbps: GbPerSec,
    /// The column that all queries read.
    pub shared_bytes: Bytes,
    /// The column that each query has of its own.
    pub own_bytes: Bytes,
    /// Queries, by how they have their columns.
    pub runs: Vec<StagedRun>,
    /// The parts of a query, with what was measured of each.
    pub parts: Vec<StagedPart>,
}

/// A part of a query: how fast it goes through its column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StagedPart {
    /// The part.
    pub part: String,
    /// With its column on the slower tier, on all cores.
    pub direct_gbps: GbPerSec,
    /// With its column near.
    pub near_gbps: GbPerSec,
    /// The same with the copier.
    pub beside_gbps: GbPerSec,
    /// What the copier moves with it.
    pub copier_gbps: GbPerSec,
}

/// This many queries one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StagedRun {
    /// How many.
    pub queries: u32,
    /// How they have their columns.
    pub way: Way,
    /// Until the last is done, in milliseconds.
    pub time_ms: f64,
    /// How many times as fast as `direct`.
    pub faster: f64,
    /// Of the time, how much the workers waited for the copier, in percent.
    pub waited_pct: f64,
    /// Bytes that the slower tier has to be read for.
    pub least_bytes: Bytes,
    /// Bytes that it was read for, by the machine's counters; absent where the machine has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_bytes: Option<Bytes>,
}

impl StagedRun {
    pub(super) fn of(
        way: Way,
        (queries, least): (u32, Bytes),
        far: Option<f64>,
        course: Course,
    ) -> Self {
        Self {
            queries,
            way,
            time_ms: course.time.get() / 1e6,
            faster: 1.0,
            waited_pct: match course.time.get() > 0.0 {
                true => 100.0 * (course.waited / course.time),
                false => 0.0,
            },
            least_bytes: least,
            far_bytes: far.map(|bytes| Bytes(bytes.round() as u64)),
        }
    }
}

/// A way is faster from this factor on.
const FASTER: f64 = 1.01;

impl Outcome for Staging {
    const SCHEMA: &'static str = "weir/place-stage/1";
    const TITLE: &'static str = "Copying ahead";
    const WORDS: &'static str = "Queries one after the other on columns of a slower tier: read there, or copied to local \
                                 memory one query ahead.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let of = |way: Way| self.runs.iter().filter(move |run| run.way == way);
        let first = of(Way::Grouped).find(|run| run.faster >= FASTER);
        let most = of(Way::Grouped).max_by_key(|run| run.queries);
        let (from, to) = (&self.from, &self.to);
        let mut all = Vec::new();
        if let Some(most) = most {
            let text = match first {
                Some(first) => format!(
                    "copy the shared column to {to} once it has {} or more queries: {} of them take 1/{:.1} of the time, and \
                     {from} is read for {} instead of {}",
                    first.queries,
                    most.queries,
                    most.faster,
                    most.far_bytes.unwrap_or(most.least_bytes),
                    of(Way::Direct)
                        .find(|run| run.queries == most.queries)
                        .map_or(Bytes(0), |run| run.far_bytes.unwrap_or(run.least_bytes))
                ),
                None => format!(
                    "read the columns on {from}: {} queries that share one take {:.1} times as long with copies to {to}",
                    most.queries,
                    1.0 / most.faster
                ),
            };
            all.push(note("group", text));
        }
        let copied = of(Way::Copied).max_by_key(|run| run.queries);
        if let Some(run) = copied {
            let what = match run.faster >= FASTER {
                true => "gain by themselves",
                false => "gain nothing by themselves",
            };
            let text = format!(
                "copies ahead {what}: {:.2} times as fast as direct where no column is kept",
                run.faster
            );
            all.push(note("copy", text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let (from, to) = (&self.from, &self.to);
        vec![
            View::table(
                "runs",
                format!(
                    "Queries that share {} on {from} and have {} each; {} copies to {to}",
                    self.shared_bytes, self.own_bytes, self.copier
                ),
                vec![
                    col("queries"),
                    col("way"),
                    col("time_ms").head("time\nms"),
                    col("faster").head("times\nas fast"),
                    col("waited_pct").head("waits for\ncopier"),
                    col("least_bytes").head("has to\nread"),
                    col("far_bytes").head("reads\nthere").empty("not counted"),
                ],
            ),
            View::table(
                "parts",
                format!(
                    "Columns read by {} threads; without a copier by {}",
                    self.threads,
                    self.threads + self.copy_threads
                ),
                vec![
                    col("part"),
                    col("direct_gbps").head(format!("on\n{from}")),
                    col("near_gbps").head(format!("on\n{to}")),
                    col("beside_gbps").head("beside\ncopier"),
                    col("copier_gbps").head("copier"),
                ],
            ),
            View::lines(
                "runs",
                "Times as fast as direct",
                ("queries", "queries"),
                ("faster", "times as fast"),
                &["way"],
            ),
        ]
    }
}
