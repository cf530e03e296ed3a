//! The document of `weir plan untouched`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::study::lists;
use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::frame::Frame;
use weir_model::number::{count, figure};

use super::history::untouched_pct;
use super::{Predicted, Untouched, is_over, whole_slices};
use crate::predict::monitor::MonitorRow;
use crate::trace::problems::ProblemCount;
use crate::trace::{GIB, Trace, Vm};

/// The target that the answer is for, in percent: that of Pond's production model (Figure 19).
const ANSWERED_PCT: f64 = 4.0;

/// How much memory of VMs is never touched, as it can be predicted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntouchedPlan {
    /// A row for each target, over all days.
    pub targets: Vec<UntouchedRow>,
    /// A row for each cluster, day and target.
    pub days: Vec<UntouchedDay>,
    /// What the monitor does about VMs for which too much is predicted, by target.
    pub monitor: Vec<MonitorRow>,
    /// Lines of traces with problems.
    pub problems: Vec<ProblemCount>,
    /// VMs of the days that are judged.
    pub vms: u64,
    /// Those whose customer had no VM that left within a week before.
    pub without_history: u64,
    /// Days before enough VMs had left to train a model; nothing is predicted on them.
    pub days_without_model: u64,
}

/// All days at one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntouchedRow {
    /// Over-predictions that are allowed.
    pub target_pct: f64,
    /// VMs that touch memory which was predicted to be untouched.
    pub over_predicted_pct: f64,
    /// The same of VMs whose customer had no history; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_without_history_pct: Option<f64>,
    /// Memory that is predicted to be untouched, of all memory, in whole GiB of each VM.
    pub untouched_pct: f64,
    /// The fixed share of each VM that gives as much.
    pub fixed_share_pct: f64,
    /// VMs that touch it with this fixed share.
    pub fixed_over_predicted_pct: f64,
    /// How many times more they are; absent where the model over-predicts for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_fewer: Option<f64>,
    /// Days with more over-predictions than are allowed, of all days.
    pub days_above_pct: f64,
}

/// One day at one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntouchedDay {
    /// The cluster.
    pub cluster: String,
    /// The day, from 0.
    pub day: u32,
    /// Over-predictions that are allowed.
    pub target_pct: f64,
    /// VMs that arrived.
    pub vms: u64,
    /// VMs whose customer had no history.
    pub without_history: u64,
    /// VMs that the model learned from.
    pub learned_from: u64,
    /// VMs that touch memory which was predicted to be untouched.
    pub over_predicted_pct: f64,
    /// Memory that is predicted to be untouched.
    pub untouched_pct: f64,
    /// VMs that touch what the fixed share of the target takes.
    pub fixed_over_predicted_pct: f64,
}

/// A point of a curve on the page.
#[derive(Serialize, JsonSchema)]
struct CurveRow {
    /// What predicts: the model, or a fixed share.
    by: &'static str,
    /// VMs that touch memory which was predicted to be untouched.
    over_predicted_pct: f64,
    /// Memory that is predicted to be untouched.
    untouched_pct: f64,
}

/// A cluster with what was predicted for its days.
#[derive(Debug)]
pub struct Evaluated<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its VMs.
    pub trace: &'t Trace,
    /// The days that have a model.
    pub predicted: &'t [Predicted],
    /// How many days there are.
    pub days: u32,
}

/// VMs and slices of some days.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    vms: u64,
    over: u64,
    new: u64,
    new_over: u64,
    slices: u64,
    memory_mib: u64,
    fixed_over: u64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.vms += other.vms;
        self.over += other.over;
        self.new += other.new;
        self.new_over += other.new_over;
        self.slices += other.slices;
        self.memory_mib += other.memory_mib;
        self.fixed_over += other.fixed_over;
    }

    fn over_pct(&self) -> f64 {
        percent(self.over, self.vms)
    }

    fn untouched_pct(&self) -> f64 {
        percent(self.slices * u64::from(GIB), self.memory_mib)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

impl Untouched {
    /// What all clusters together say. The monitor's rows and the problems of traces are added by the caller.
    pub fn conclude(&self, clusters: &[Evaluated<'_>]) -> UntouchedPlan {
        let mut plan = UntouchedPlan::default();
        for cluster in clusters {
            let judged = cluster.predicted.len() as u64;
            plan.days_without_model += u64::from(cluster.days) - judged;
            plan.vms += cluster
                .predicted
                .iter()
                .map(|day| day.places.len() as u64)
                .sum::<u64>();
            plan.without_history += cluster
                .predicted
                .iter()
                .map(Predicted::without_history)
                .sum::<u64>();
        }
        for (at, target) in self.targets.iter().enumerate() {
            let fixed = fixed_share(clusters, at);
            let (mut all, mut above, mut days) = (Sums::default(), 0u64, 0u64);
            for cluster in clusters {
                for day in cluster.predicted {
                    let sums = of_day(cluster.trace, day, at, fixed);
                    all.add(&sums);
                    days += 1;
                    above += u64::from(sums.over as f64 > target * sums.vms as f64);
                    plan.days.push(UntouchedDay {
                        cluster: cluster.name.to_owned(),
                        day: day.day,
                        target_pct: 100.0 * target,
                        vms: sums.vms,
                        without_history: day.without_history(),
                        learned_from: day.learned_from as u64,
                        over_predicted_pct: sums.over_pct(),
                        untouched_pct: sums.untouched_pct(),
                        fixed_over_predicted_pct: percent(sums.fixed_over, sums.vms),
                    });
                }
            }
            let over = all.over as f64;
            plan.targets.push(UntouchedRow {
                target_pct: 100.0 * target,
                over_predicted_pct: all.over_pct(),
                over_without_history_pct: (all.new > 0).then(|| percent(all.new_over, all.new)),
                untouched_pct: all.untouched_pct(),
                fixed_share_pct: 100.0 * fixed,
                fixed_over_predicted_pct: percent(all.fixed_over, all.vms),
                times_fewer: (all.over > 0).then(|| all.fixed_over as f64 / over),
                days_above_pct: percent(above, days),
            });
        }
        plan
    }
}

/// VMs of a day of which the trace says what they touch.
fn known<'t>(trace: &'t Trace, day: &'t Predicted) -> impl Iterator<Item = (usize, Vm)> + 't {
    let vms = day.places.clone().enumerate();
    vms.filter_map(move |(at, place)| Some((at, trace.get(place)?)))
        .filter(|(_, vm)| untouched_pct(vm).is_some())
}

fn of_day(trace: &Trace, day: &Predicted, target: usize, fixed: f64) -> Sums {
    let mut sums = Sums::default();
    for (at, vm) in known(trace, day) {
        let slices = day.slices[target][at];
        let over = u64::from(is_over(&vm, slices));
        let new = u64::from(day.new[at]);
        sums.vms += 1;
        sums.over += over;
        sums.new += new;
        sums.new_over += new * over;
        sums.slices += u64::from(slices);
        sums.memory_mib += u64::from(vm.memory_mib);
        sums.fixed_over += u64::from(is_over(&vm, whole_slices(&vm, fixed)));
    }
    sums
}

/// The least fixed share of every VM that puts at least as much into the pool as was predicted.
fn fixed_share(clusters: &[Evaluated<'_>], target: usize) -> f64 {
    let days = || {
        clusters.iter().flat_map(|cluster| {
            cluster
                .predicted
                .iter()
                .map(move |day| (cluster.trace, day))
        })
    };
    let predicted = |(trace, day): (&Trace, &Predicted)| -> u64 {
        known(trace, day)
            .map(|(at, _)| u64::from(day.slices[target][at]))
            .sum()
    };
    let wanted: u64 = days().map(predicted).sum();
    let with = |share: f64| -> u64 {
        let of = |(trace, day): (&Trace, &Predicted)| -> u64 {
            known(trace, day)
                .map(|(_, vm)| u64::from(whole_slices(&vm, share)))
                .sum()
        };
        days().map(of).sum()
    };
    if wanted == 0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        match with(middle) >= wanted {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

impl Outcome for UntouchedPlan {
    const SCHEMA: &'static str = "weir/plan-untouched/1";
    const TITLE: &'static str = "Memory that is never touched";
    const WORDS: &'static str = "A model is trained every night on VMs that have left, and judged on the VMs of the next day. A \
                                 fixed share that puts as much memory into the pool is judged, too.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let near = |a: &&UntouchedRow, b: &&UntouchedRow| {
            let off = |row: &UntouchedRow| (row.target_pct - ANSWERED_PCT).abs();
            off(a).total_cmp(&off(b))
        };
        let mut notes = Vec::new();
        if let Some(row) = self.targets.iter().min_by(near).filter(|_| self.vms > 0) {
            let times = match row.times_fewer {
                Some(times) => format!(", {times:.1} times as many"),
                None => String::new(),
            };
            notes.push(note(
                &format!("{} % of the memory is predicted to be untouched", figure(row.untouched_pct)),
                format!(
                    "{:.1} % of the VMs touch some of it ({} % are allowed). A fixed share of {:.0} % of each VM would give as \
                     much memory, and {:.1} % of the VMs would touch it{times}",
                    row.over_predicted_pct,
                    row.target_pct,
                    row.fixed_share_pct,
                    row.fixed_over_predicted_pct
                ),
            ));
        } else {
            let text = "too few VMs had left before any day to train a model";
            notes.push(note("nothing is predicted", text.into()));
        }
        let above = self
            .targets
            .iter()
            .filter(|row| row.over_predicted_pct > row.target_pct);
        let above: Vec<String> = above
            .map(|row| {
                format!(
                    "{:.2} % where {} % are allowed",
                    row.over_predicted_pct, row.target_pct
                )
            })
            .collect();
        if !above.is_empty() {
            notes.push(Verdict::new(
                Severity::Doubt,
                "over-predictions",
                above.join("; "),
            ));
        }
        notes.push(note(
            "history",
            format!(
                "{:.1} % of {} VMs have none, as no VM of their customer left within a week before; {} came before a model",
                percent(self.without_history, self.vms),
                self.vms,
                count(self.days_without_model, "day")
            ),
        ));
        notes
    }

    fn frames(&self) -> Vec<Frame> {
        let both = self.targets.iter().flat_map(|row| {
            [
                ("model", row.over_predicted_pct),
                ("fixed share", row.fixed_over_predicted_pct),
            ]
            .map(|(by, over_predicted_pct)| CurveRow {
                by,
                over_predicted_pct,
                untouched_pct: row.untouched_pct,
            })
        });
        let mut all = lists(self);
        all.push(Frame::of("curve", &both.collect::<Vec<_>>()));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let targets = vec![
            col("target_pct").head("target"),
            col("over_predicted_pct").head("over-predicted").places(2),
            col("over_without_history_pct")
                .head("without history")
                .places(2)
                .if_any(),
            col("untouched_pct").head("untouched").places(1),
            col("fixed_share_pct").head("fixed share").places(1),
            col("fixed_over_predicted_pct")
                .head("its over-predicted")
                .places(1),
            col("times_fewer")
                .head("times fewer")
                .places(1)
                .empty("none"),
            col("days_above_pct").head("days above").places(0),
        ];
        let monitor = vec![
            col("target_pct").head("target"),
            col("vms").head("VMs with a pool"),
            col("asked").head("touch it"),
            col("slowed").head("slow"),
            col("copied"),
            col("migrated"),
            col("no_room").head("no room"),
            col("left").head("left early"),
            col("repaired_pct").head("repaired").places(2),
            col("copy_mean_ms").head("copy (ms)"),
            col("found_mean_s").head("found after"),
        ];
        let problems = vec![
            col("problem").in_words(),
            col("lines"),
            col("first").head("first lines"),
            col("policy"),
        ];
        vec![
            View::table("targets", "Untouched memory of the next day's VMs", targets),
            View::table("monitor", "What the monitor does, {cluster}", monitor).each(&["cluster"]),
            View::table("problems", "Lines with problems", problems),
            View::lines(
                "curve",
                "Untouched memory by over-predictions",
                ("over_predicted_pct", "over-predicted (% of the VMs)"),
                (
                    "untouched_pct",
                    "predicted to be untouched (% of the memory)",
                ),
                &["by"],
            )
            .axes(Axis::Linear, Axis::Linear),
            View::lines(
                "days",
                "Over-predictions by day and target [%], {cluster}",
                ("day", "day"),
                ("over_predicted_pct", "over-predicted (% of the VMs)"),
                &["target_pct"],
            )
            .each(&["cluster"])
            .axes(Axis::Linear, Axis::Linear),
        ]
    }
}
