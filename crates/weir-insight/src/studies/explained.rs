//! What `weir explain` says: where a run loses its cycles, and what a slower memory or another tenant adds.

use schemars::JsonSchema;
use serde::Serialize;
use weir_lab::study::lists;
use weir_lab::view::{Medium, Only, Part, View, col};
use weir_lab::{About, Outcome, Verdict};
use weir_model::frame::Frame;
use weir_model::insight::Components;
use weir_model::latency::LatencySummary;
use weir_model::number::{figure, slower};
use weir_model::units::Nanos;

use super::{DRAM, HOST, L1, L2, L3, ONE_RUN, OTHER, REST, STORE, doubt, note, rest};
use crate::InsightError;
use crate::documents::{
    Explained, ExplainedDifference, ExplainedPhase, ExplainedRun, KernelCounts, Yardstick,
};
use crate::explain::CountedRun;

/// The causes in the order in which a request meets them.
const CAUSES: [Part; 5] = [STORE, L1, L2, L3, DRAM];

/// Cycles that are lost, or what a slower memory adds: of a run, of two, or of a phase.
#[derive(Serialize, JsonSchema)]
struct CauseRow {
    /// `lost`, in percent of a run's own cycles, or `slowdown`, in percent of the cycles on the first memory.
    what: &'static str,
    /// The workload, or the file of its counters.
    workload: String,
    /// The run by its memory; both of a slowdown.
    run: String,
    /// The phase; absent of the whole.
    phase: Option<String>,
    /// What names it among others of its kind.
    name: String,
    /// The phase's share of the run's cycles; of its processor time where cycles are not known.
    share_pct: Option<f64>,
    /// How long it lasts, in percent of the first run.
    length_pct: Option<f64>,
    #[serde(flatten)]
    causes: Components,
    /// What no cause is known for.
    rest: Option<f64>,
    /// All of a slowdown.
    all_pct: Option<f64>,
    #[serde(flatten)]
    kernel: KernelCounts,
}

/// A quantity of a run that is behind its causes.
#[derive(Serialize, JsonSchema)]
struct QuantityRow {
    /// What, with its unit.
    quantity: String,
    /// The run by its memory.
    run: String,
    /// How much; absent where it is not known.
    value: Option<f64>,
}

/// How a quantity of a run is read.
type Read = fn(&ExplainedRun) -> Option<f64>;

fn served(run: &ExplainedRun) -> Option<&LatencySummary> {
    run.metric.as_ref()?.ns.as_ref()
}

fn us(latency: Nanos) -> f64 {
    latency.get() / 1e3
}

const QUANTITIES: [(&str, Read); 16] = [
    ("p50 of its requests [us]", |r| {
        served(r).map(|ns| us(ns.p50))
    }),
    ("p99 of its requests [us]", |r| served(r)?.p99.map(us)),
    ("time [ms]", |r| r.time_ns.map(|t| t.get() / 1e6)),
    ("processors busy", |r| {
        let elapsed = r.time_ns.filter(|t| t.get() > 0.0)?;
        Some(r.kernel.cpu_ns? / elapsed)
    }),
    ("memory [MiB]", |r| {
        r.memory.map(|bytes| bytes.get() as f64 / 1024.0 / 1024.0)
    }),
    ("page faults", |r| r.kernel.page_faults.map(|n| n as f64)),
    ("context switches", |r| {
        r.kernel.context_switches.map(|n| n as f64)
    }),
    ("moves to another processor", |r| {
        r.kernel.cpu_migrations.map(|n| n as f64)
    }),
    ("instructions in a cycle", |r| r.ipc),
    ("memory bandwidth [GB/s]", |r| r.gbps.map(|b| b.get())),
    ("latency of a read beyond the core [clk]", |r| {
        r.offcore_latency.map(|c| c.get())
    }),
    ("the same, amortised [clk]", |r| r.aol.map(|c| c.get())),
    ("demand reads at once", |r| r.mlp),
    ("loads that find their line in flight [%]", |r| {
        r.prefetch.fill_buffer_hits_pct
    }),
    ("L1 prefetches from memory, 1000 instr.", |r| {
        r.prefetch.l1_misses_pki
    }),
    ("L2 prefetches from memory, 1000 instr.", |r| {
        r.prefetch.l2_misses_pki
    }),
];

impl Explained {
    /// Runs by themselves, and the second against the first.
    ///
    /// # Errors
    /// The counters cannot be of a run, or nothing at all was counted or timed.
    pub fn of(counted: &[CountedRun]) -> Result<Self, InsightError> {
        Ok(Self {
            runs: (counted.iter())
                .map(CountedRun::explain)
                .collect::<Result<_, _>>()?,
            difference: match counted {
                [local, other, ..] => Some(local.difference(other)?),
                _ => None,
            },
        })
    }

    /// What the runs are called among each other.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for run in &self.runs {
            let tier = run.tier.as_ref().map(ToString::to_string);
            let name = match &run.beside {
                Some(other) => format!("with {other}"),
                None if self.has_neighbour() => "alone".into(),
                None => tier.unwrap_or_else(|| run.workload.clone()),
            };
            names.push(match names.contains(&name) {
                true => format!("{name} again"),
                false => name,
            });
        }
        names
    }

    /// `on cxl0`, `alone`, `beside cxl0:nt_st`.
    fn on(&self, name: &str) -> String {
        match self.has_neighbour() {
            true => name.to_owned(),
            false => format!("on {name}"),
        }
    }

    /// Whether a run has another tenant with it.
    fn has_neighbour(&self) -> bool {
        self.runs.iter().any(|run| run.beside.is_some())
    }

    fn counts_cycles(&self) -> bool {
        self.runs.iter().any(ExplainedRun::counts_cycles)
    }

    fn causes(&self) -> Vec<CauseRow> {
        let names = self.names();
        let slower = 1.0 + self.difference.as_ref().map_or(0.0, |d| d.slowdown_pct) / 100.0;
        let mut rows = Vec::new();
        for (at, (run, name)) in self.runs.iter().zip(&names).enumerate() {
            let row = |phase: Option<&ExplainedPhase>| CauseRow {
                what: "lost",
                workload: run.workload.clone(),
                run: name.clone(),
                phase: phase.map(|phase| phase.phase.clone()),
                name: phase.map_or_else(
                    || format!("lost {}", self.on(name)),
                    |phase| phase.phase.clone(),
                ),
                share_pct: phase.map(|phase| phase.share_pct),
                length_pct: phase.map(|phase| phase.share_pct * if at == 0 { 1.0 } else { slower }),
                causes: phase.map_or(run.lost, |phase| phase.lost),
                rest: None,
                all_pct: None,
                kernel: phase.map_or(run.kernel, |phase| phase.kernel),
            };
            rows.push(row(None));
            rows.extend(run.phases.iter().map(|phase| row(Some(phase))));
        }
        if let (Some(difference), Some(run)) = (&self.difference, self.runs.last()) {
            let row = |phase: Option<&str>, causes: &Components, all: f64| CauseRow {
                what: "slowdown",
                workload: run.workload.clone(),
                run: match self.has_neighbour() {
                    true => names.last().cloned().unwrap_or_default(),
                    false => names.join(" to "),
                },
                phase: phase.map(str::to_owned),
                name: phase.map_or_else(|| run.workload.clone(), |phase| format!("its {phase}")),
                share_pct: None,
                length_pct: None,
                rest: rest(all, &parts(causes)),
                causes: *causes,
                all_pct: Some(all),
                kernel: KernelCounts::default(),
            };
            rows.push(row(None, &difference.components, difference.slowdown_pct));
            rows.extend(
                (difference.phases.iter())
                    .map(|phase| row(Some(&phase.phase), &phase.components, phase.slowdown_pct)),
            );
        }
        rows
    }

    fn quantities(&self) -> Vec<QuantityRow> {
        let names = self.names();
        let metric = self.runs.iter().find_map(|run| run.metric.as_ref());
        let done: Read = |run| run.metric.as_ref().map(|metric| metric.rate);
        let own = metric.map(|metric| (metric.unit.clone(), done));
        let usual = QUANTITIES
            .iter()
            .map(|&(name, read)| (name.to_owned(), read));
        let known = |read: Read| self.runs.iter().any(|run| read(run).is_some());
        let mut rows = Vec::new();
        for (quantity, read) in own
            .into_iter()
            .chain(usual)
            .filter(|(_, read)| known(*read))
        {
            rows.extend(self.runs.iter().zip(&names).map(|(run, name)| QuantityRow {
                quantity: quantity.clone(),
                run: name.clone(),
                value: read(run),
            }));
        }
        rows
    }

    /// Slowdown in a sentence, with the cause that adds most.
    fn summary(difference: &ExplainedDifference) -> String {
        let all = difference.slowdown_pct;
        let mut text = slower(all);
        match difference.by {
            Yardstick::Cycles => {}
            Yardstick::Time => {
                return format!(
                    "{text} by time; causes are unknown, and both runs are assumed to do the same work"
                );
            }
            Yardstick::Rate => return format!("{text} by what it gets done; causes are unknown"),
        }
        let names = CAUSES.iter().chain([&OTHER]).map(|part| part.name);
        // What gains most, where the second is the faster.
        let largest = (names.zip(parts(&difference.components)))
            .filter_map(|(name, points)| Some((name, points?)))
            .max_by(|a, b| (a.1 * all.signum()).total_cmp(&(b.1 * all.signum())));
        if let Some((name, points)) = largest.filter(|(_, points)| points.abs() >= 0.05) {
            text.push_str(&format!(", most of it {name}: {points:.1} points"));
        }
        match difference.instructions {
            Some(ratio) if !(0.95..=1.05).contains(&ratio) => text.push_str(&format!(
                "; the second run has {ratio:.2} x the instructions, and both are compared for one"
            )),
            Some(_) => {}
            None => text.push_str(
                "; instructions were not counted, and both runs are taken for the same work",
            ),
        }
        text
    }
}

fn parts(causes: &Components) -> [Option<f64>; 6] {
    let Components {
        store,
        l1,
        l2,
        l3,
        dram,
        other,
        ..
    } = *causes;
    [store, l1, l2, l3, dram, other]
}

/// Percent of its cycles below which it is no matter what a program waits for in memory.
const HARDLY: f64 = 1.0;

/// The cause that most cycles are lost to, and their share in percent, if any are known to be lost.
fn most_lost(causes: &Components) -> Option<(&'static str, f64)> {
    let known = CAUSES.iter().map(|cause| cause.name).zip(parts(causes));
    let lost = known.filter_map(|(cause, pct)| Some((cause, pct.filter(|pct| *pct > 0.0)?)));
    lost.reduce(|most, next| if next.1 > most.1 { next } else { most })
}

impl Outcome for Explained {
    const SCHEMA: &'static str = "weir/explain/1";
    const TITLE: &'static str = "Slowdown by cause";
    const WORDS: &'static str = "Cycles in which the core waits, by what it waits for: a full store buffer, a line on \
                                 its way to L1, L2, the last-level cache, memory. A slowdown is what a slower memory \
                                 adds to each, against the cycles on local memory. A part left of zero is a cause that \
                                 loses less there.";

    fn answer(&self, about: About<'_>) -> Vec<Verdict> {
        let names = self.names();
        let mut all = Vec::new();
        if let (Some(difference), Some(run)) = (&self.difference, self.runs.last()) {
            let on = run.tier.as_ref().map(|tier| format!(" on {tier}"));
            let beside = run.beside.as_ref().map(|other| format!(" with {other}"));
            let about = [Some(run.workload.clone()), on, beside];
            let about: String = about.into_iter().flatten().collect();
            let p99 = |run: &ExplainedRun| served(run)?.p99.map(|p99| figure(us(p99)));
            let tail = self
                .runs
                .first()
                .and_then(|first| Some((p99(first)?, p99(run)?)));
            let tail = tail.map_or_else(String::new, |(from, to)| {
                let what = match difference.by {
                    Yardstick::Rate => "it",
                    _ => "an instruction",
                };
                format!("p99 of a request from {from} to {to} us; {what} is ")
            });
            all.push(note(&about, format!("{tail}{}", Self::summary(difference))));
            if let Some(verdict) = &difference.verdict
                && verdict.cause.is_one()
            {
                let evidence = verdict.evidence.join("; ");
                all.push(note(
                    "where it waits",
                    format!("{}: {evidence}", verdict.cause),
                ));
            }
        }
        for (run, name) in self.runs.iter().zip(&names) {
            all.extend(run.metric.as_ref().map(|metric| note(name, metric.words())));
        }
        for (run, name) in self
            .runs
            .iter()
            .zip(&names)
            .filter(|(run, _)| run.counts_cycles())
        {
            let text = match (run.bound, run.lost.dram) {
                (Some(_), Some(pct)) if pct < HARDLY => format!(
                    "hardly waits for memory, which costs {} % of its cycles",
                    figure(pct)
                ),
                (Some(bound), _) => format!("waits for {bound}: {}", run.evidence),
                (None, _) => match most_lost(&run.lost) {
                    Some((cause, pct)) => format!(
                        "loses most to {cause}: {} % of its cycles; whether it waits for latency or for bandwidth is not known: {}",
                        figure(pct),
                        run.evidence
                    ),
                    None => format!("what it waits for is not known: {}", run.evidence),
                },
            };
            all.push(note(name, text));
        }
        if !self.counts_cycles() {
            let alone = self
                .runs
                .iter()
                .zip(&names)
                .filter(|_| self.difference.is_none());
            all.extend(alone.filter_map(|(run, name)| {
                let took = figure(run.time_ns?.get() / 1e6);
                let text = match run.metric {
                    Some(_) => format!("observed for {took} ms"),
                    None => format!("took {took} ms"),
                };
                Some(note(name, text))
            }));
            let text =
                "cycles were not counted: what follows is measured time and what the kernel counts";
            all.push(doubt("causes", text));
        }
        for (run, name) in self.runs.iter().zip(&names) {
            all.extend(run.untold.iter().map(|untold| {
                let text = format!(
                    "`{}` is missing ({}), and so {} is not known",
                    untold.counter, untold.why, untold.cost
                );
                note(name, text)
            }));
        }
        if self.difference.is_some() && about.machine.name == HOST {
            all.push(note("one run each", ONE_RUN));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let workload = self.runs.first().map_or("", |run| &run.workload);
        let is = |column, word: &str| Only::Is(column, word.into());
        let causes = || {
            CAUSES
                .iter()
                .chain([&OTHER])
                .map(|part| col(part.column).head(part.name))
        };
        let quantities = View::grid("quantities", "Behind them", "quantity", &["run"], "value")
            .rows_are("")
            .on(Medium::Text);
        if !self.counts_cycles() {
            let columns = vec![
                col("phase").head("until"),
                col("share_pct").head("of its\nCPU time"),
                col("page_faults"),
                col("context_switches").head("context\nswitches"),
                col("cpu_migrations").head("migrations"),
            ];
            let over_time = View::table("causes", "{run} over time", columns).each(&["run"]);
            return vec![quantities, over_time.only(Only::Has("phase"))];
        }
        let mut whole = vec![col("what"), col("run")];
        whole.extend(causes());
        let mut title = "Cycles lost [% of the run's own]".to_owned();
        if self.difference.is_some() {
            whole.push(col("all_pct").head("all").signed());
            let first = self.names().into_iter().next().unwrap_or_default();
            title.push_str(&format!(
                ", and slowdown [% of the cycles {}]",
                self.on(&first)
            ));
        }
        let mut all = vec![
            View::table("causes", title, whole).only(Only::Lacks("phase")),
            quantities,
        ];
        let by_phase = |first| [col("phase"), first].into_iter().chain(causes()).collect();
        let compared = self
            .difference
            .as_ref()
            .is_some_and(|d| !d.phases.is_empty());
        all.push(match compared {
            true => View::table(
                "causes",
                "Slowdown of each phase [%]",
                by_phase(col("all_pct").head("all").signed()),
            )
            .only(is("what", "slowdown")),
            false => View::table(
                "causes",
                match self.has_neighbour() {
                    true => "Cycles lost in each phase {run} [%]",
                    false => "Cycles lost in each phase on {run} [%]",
                },
                by_phase(col("share_pct").head("share")),
            )
            .each(&["run"])
            .only(is("what", "lost")),
        });
        if let Some(view) = all.last_mut() {
            *view = view.clone().only(Only::Has("phase"));
        }
        let slowdown = [&CAUSES[..], &[OTHER, REST]].concat();
        let lost = "cycles lost [% of the run's own]";
        all.extend([
            View::stacks(
                "causes",
                "Slowdown by cause",
                &["machine", "run"],
                "name",
                (&slowdown, "slowdown [% of the cycles on local memory]"),
            )
            .only(is("what", "slowdown"))
            .together(),
            View::stacks(
                "causes",
                format!("Cycles lost by {workload}"),
                &["workload"],
                "run",
                (&CAUSES, lost),
            )
            .only(is("what", "lost"))
            .only(Only::Lacks("phase")),
            View::stacks(
                "causes",
                format!("Phases of {workload}"),
                &["run"],
                "name",
                (&CAUSES, "cycles lost [% of the phase's own]"),
            )
            .only(is("what", "lost"))
            .only(Only::Has("phase"))
            .over("length_pct", "time [% of the run on the first tier]"),
        ]);
        all
    }

    fn frames(&self) -> Vec<Frame> {
        let mut all = vec![Frame::of("causes", &self.causes())];
        all.extend(lists(self));
        all.push(Frame::of("quantities", &self.quantities()));
        all
    }
}
