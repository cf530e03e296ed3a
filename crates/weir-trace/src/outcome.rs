//! A description and its check, in words, tables and pictures.

use schemars::JsonSchema;
use serde::Serialize;
use weir_lab::study::lists;
use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::frame::Frame;
use weir_model::number::figure;
use weir_model::units::Bytes;

use crate::check::{CacheMisses, Imported, off};
use crate::describe::CACHES;

/// How far a description may be off before it is said, in percent.
const NEAR: f64 = 10.0;
/// Fewer misses in a thousand instructions cost next to nothing, and are too few to compare.
const FEW: f64 = 0.05;

impl Imported {
    fn compared(&self) -> impl Iterator<Item = &CacheMisses> {
        let is_one = |row: &&CacheMisses| CACHES.contains(&row.cache.lines());
        self.misses.iter().filter(is_one)
    }

    /// The largest difference of misses in caches of the sizes that matter and of touched memory, in percent.
    pub fn off(&self) -> f64 {
        let all = self.regions.iter().filter(|row| row.region == "all");
        let touched =
            all.map(|row| off(row.trace_touched.0 as f64, row.described_touched.0 as f64));
        touched.fold(self.worst(), |worst, off| {
            worst.max(off.unwrap_or(0.0).abs())
        })
    }

    /// Whether that is more than a description should have.
    pub fn is_off(&self) -> bool {
        self.off() > NEAR
    }

    /// The largest difference of misses in caches of the sizes that matter, in percent.
    fn worst(&self) -> f64 {
        let far = self
            .compared()
            .filter(|row| row.trace_mpki >= FEW || row.described_mpki >= FEW);
        far.map(|row| row.off_pct.map_or(f64::INFINITY, f64::abs))
            .fold(0.0, f64::max)
    }
}

impl Outcome for Imported {
    const SCHEMA: &'static str = "weir/workload-import/1";
    const TITLE: &'static str = "Descriptions from traces";
    const WORDS: &'static str = "What a program does to memory, from a trace of its accesses, and whether the description misses \
                                 in caches of several sizes as often as the trace.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let doubt = |about: &str, text: String| Verdict::new(Severity::Doubt, about, text);
        let sizes: Vec<String> = (self.compared().enumerate())
            .map(|(n, row)| {
                let (cache, described) = (row.cache, figure(row.described_mpki));
                let trace = figure(row.trace_mpki);
                match n {
                    0 => format!(
                        "with a cache of {cache} the description misses {described} times in 1000 instructions, the trace \
                         {trace} times"
                    ),
                    _ => format!("with {cache} {described} and {trace}"),
                }
            })
            .collect();
        let mut all = vec![note(&self.workload.name, sizes.join("; "))];
        let worst = self.worst();
        if worst > NEAR {
            all.push(doubt(
                "misses",
                format!(
                    "the description is off by more than {NEAR} % in at least one of these caches"
                ),
            ));
        }
        for row in &self.regions {
            let touched =
                off(row.trace_touched.0 as f64, row.described_touched.0 as f64).unwrap_or(0.0);
            if row.region == "all" && touched.abs() > NEAR {
                all.push(doubt(
                    "touched memory",
                    format!("the description is off by {touched:+.0} %"),
                ));
            }
            let share = (row.described_share_pct - row.trace_share_pct).abs();
            if share > NEAR / 2.0 {
                all.push(doubt(
                    &row.region,
                    format!("its share of accesses is off by {share:.1} % of all"),
                ));
            }
        }
        if self.replayed_pct < 99.0 {
            all.push(doubt(
                "comparison",
                format!(
                    "it draws {:.1} % of the accesses of the description, so that first uses are more of them than in the trace",
                    self.replayed_pct
                ),
            ));
        }
        all.push(note(
            "looked at",
            format!(
                "{} trace, {} accesses, of which {:.1} % hit a cache of 32 KiB; their time is in cpi",
                match self.looked_at_pct {
                    all if all >= 99.9995 => "the whole".to_owned(),
                    part => format!("{part:.3} % of the"),
                },
                self.accesses,
                self.l1_pct
            ),
        ));
        if self.lines_each > 1.0 {
            all.push(note(
                "reuse",
                format!(
                    "one line in {} is followed, chosen by a hash",
                    self.lines_each
                ),
            ));
        }
        if let Some(assumed) = &self.workload.assumed {
            all.push(note("assumed", assumed.clone()));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        vec![
            View::table(
                "misses",
                "Misses in 1000 instructions, caches of LRU order",
                vec![
                    col("cache"),
                    col("trace_mpki").head("trace").places(3),
                    col("described_mpki").head("described").places(3),
                    col("off_pct").head("off").signed(),
                ],
            ),
            View::table(
                "regions",
                "Memory: touched; share of accesses beyond L1; share of lines written; D: as described",
                vec![
                    col("region"),
                    col("trace_touched").head("touched"),
                    col("described_touched").head("D"),
                    col("trace_share_pct").head("share").places(1),
                    col("described_share_pct").head("D").places(1),
                    col("trace_written_pct").head("written").places(1),
                    col("described_written_pct").head("D").places(1),
                ],
            ),
            View::lines(
                "curves",
                format!("Misses of {}", self.of),
                ("cache", "cache [bytes]"),
                ("mpki", "misses in 1000 instructions"),
                &["series"],
            )
            .axes(Axis::Sizes, Axis::Linear),
        ]
    }

    fn frames(&self) -> Vec<Frame> {
        let of = |series: &'static str, mpki: fn(&CacheMisses) -> f64| {
            self.misses.iter().map(move |row| CurveRow {
                series,
                cache: row.cache,
                mpki: mpki(row),
            })
        };
        let rows: Vec<CurveRow> = of("trace", |row| row.trace_mpki)
            .chain(of("description", |row| row.described_mpki))
            .collect();
        let mut frames = lists(self);
        frames.push(Frame::of("curves", &rows));
        frames
    }
}

/// Misses in a cache, of the trace or of the description.
#[derive(Serialize, JsonSchema)]
struct CurveRow {
    /// Which of the two.
    series: &'static str,
    /// The size of the cache.
    cache: Bytes,
    /// Misses in a thousand instructions.
    mpki: f64,
}
