//! `weir interplay` as a study: its arguments, what its cells mean, and how they are shown.

use std::fmt::Write as _;

use weir_model::access::{Op, Pattern};
use weir_model::document::Record;
use weir_model::interplay::{Cause, Cell, ChangeClass, TierOp};
use weir_model::number::{count, figure, percent};
use weir_model::topology::Topology;
use weir_model::units::{Bytes, GbPerSec};

use super::certainty::UntilCertain;
use super::preset::Preset;
use super::{CoRunners, Matrix, Measured, Options, matrix, pairs, plan};
use crate::study::{About, Outcome, Study};
use crate::view::{Mark, Only, View, col};
use crate::{Finished, Lab, LabError, PointSpec, Severity, Threads, Verdict, studies};

/// What tenants on disjoint cores do to each other.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Interplay {
    /// Tenants that are measured [default: every tier's usual tenants].
    #[arg(long, value_delimiter = ',', value_name = "TENANT")]
    pub victims: Vec<CoRunners>,
    /// What runs with them [default: every tier's usual tenants].
    #[arg(long, value_delimiter = ',', value_name = "TENANT")]
    pub aggressors: Vec<CoRunners>,
    /// Threads of either side [default: 1, 4, 8, 16, up to half of the cores].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub threads: Vec<Threads>,
    /// Requests a second that arrive at a victim which answers requests, each
    /// in turn [default: what its description says].
    #[arg(long, value_delimiter = ',', value_name = "N", conflicts_with = "preset", value_parser = per_second)]
    pub rate: Vec<f64>,
    /// Requests that such a victim answers while it is observed.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    pub requests: u64,
    /// Bytes that all threads of a tenant go through, and the timed chase
    /// [default: enough to leave the caches]; of an application on a host, its
    /// data [default: as described, where half of the free memory holds them].
    #[arg(long, value_name = "SIZE", conflicts_with = "preset")]
    pub size: Option<Bytes>,
    /// A published case study: table3, movdir64b, ssd-writes, shared-line,
    /// llc-fits, llc-exceeds, background, two-sockets.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["victims", "aggressors"])]
    pub preset: Option<Preset>,
    /// Storage requests through the page cache: the kernel copies their data,
    /// and a thread has one under way (a model only).
    #[arg(long)]
    pub buffered: bool,
    /// The largest number of threads only.
    #[arg(long)]
    pub quick: bool,
    /// Why storage must not be written to, where it must not.
    #[arg(skip)]
    pub only_reads: Option<String>,
    /// Whether pairs are repeated until their class is certain, and no more.
    #[arg(skip)]
    pub until_certain: bool,
    /// The points of a run that was stopped.
    #[arg(skip)]
    pub planned: Option<Vec<PointSpec>>,
}

impl Interplay {
    fn options(&self, topology: &Topology) -> Result<Options, LabError> {
        let mut options = match self.preset {
            Some(preset) => preset.options(topology)?,
            None => Options {
                pairs: pairs(topology, &self.victims, &self.aggressors)?,
                ..Options::default()
            },
        };
        if !self.threads.is_empty() {
            options.threads = Threads::all(&self.threads);
        }
        if self.size.is_some() {
            (options.working_set, options.timed_set) = (self.size, self.size);
        }
        options.quick |= self.quick;
        options.buffered = self.buffered;
        Ok(options)
    }

    /// A tenant that was named and writes to storage.
    fn asked_to_write(&self) -> Option<&TierOp> {
        let named = self.victims.iter().chain(&self.aggressors);
        named
            .filter_map(|co_runners| match co_runners {
                CoRunners::One(tier_op) => Some(tier_op),
                CoRunners::Tier(..) | CoRunners::Program(_) => None,
            })
            .find(|tier_op| writes(tier_op.op))
    }
}

/// Reads a rate of requests: `50000`, or `50k`.
///
/// # Errors
/// It is none.
pub fn per_second(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(rate) if (1e-3..=1e9).contains(&(rate * factor)) => Ok(rate * factor),
        _ => Err(format!(
            "`{text}` is no rate of requests; write 50000, or 50k"
        )),
    }
}

fn writes(op: Op) -> bool {
    matches!(op, Op::RandWrite | Op::SeqWrite)
}

impl Study for Interplay {
    const VERB: &'static str = "interplay";
    type Output = Matrix;

    fn run(&self, lab: &Lab<'_>) -> Result<Matrix, LabError> {
        let mut plan = match &self.planned {
            Some(points) => points.clone(),
            None => plan(lab.topology(), &self.options(lab.topology())?)?,
        };
        if let Some(why) = &self.only_reads {
            if let Some(tier_op) = self.asked_to_write() {
                return Err(LabError::Nothing(format!("{tier_op} is refused: {why}")));
            }
            let all = plan.len();
            plan.retain(|spec| !spec.loads().any(|load| writes(load.op)));
            let left_out = format!("requests that write are left out: {why}");
            match plan.len() {
                0 => return Err(LabError::Lacks(left_out)),
                some if some < all => lab.warn(left_out),
                _ => {}
            }
        }
        let (mut points, mut records) = (Vec::new(), Vec::new());
        let mut take = |mut done: Finished| {
            // Cells are made from counters and windows; single latencies would fill the memory.
            done.record.latency = Vec::new();
            points.push(done.point);
            records.push(done.record);
        };
        match self.until_certain {
            true => lab.measure_until(plan, &UntilCertain, &mut take)?,
            false => lab.measure_each(plan, &[], &mut take)?,
        }
        let output = Matrix {
            points,
            ..Matrix::default()
        };
        Ok(output.derived(&records, lab.topology()))
    }
}

impl Outcome for Matrix {
    const SCHEMA: &'static str = "weir/interplay/1";

    fn answer(&self, about: About<'_>) -> Vec<Verdict> {
        let note = |about: String, text: String| Verdict::new(Severity::Note, about, text);
        let cells = &self.cells;
        let lead = lead(cells).map(|text| note("interplay".into(), text));
        let of_points = studies::verdicts(&self.points, about.topology);
        let doubts = (of_points.into_iter()).filter(|v| v.severity != Severity::Note);
        let mut all: Vec<Verdict> = lead.into_iter().chain(doubts).collect();
        let is_as_alone = |cell: &&Cell| {
            cell.verdict.cause == Cause::Unharmed
                && cell.class == Some(ChangeClass::None)
                && cell.certain
        };
        let mut changed: Vec<&Cell> = cells.iter().filter(|cell| !is_as_alone(cell)).collect();
        changed.sort_by(|a, b| change(a).total_cmp(&change(b)));
        for cell in changed {
            let pair = format!("{} with {}", cell.victim, cell.aggressor);
            all.push(note(pair, sentence(cell)));
        }
        let names: Vec<String> = (cells.iter().filter(is_as_alone))
            .map(|c| format!("{} with {}", c.victim, c.aggressor))
            .collect();
        if !names.is_empty() {
            all.push(note("unharmed".into(), names.join(", ")));
        }
        let mut unseen: Vec<&String> = Vec::new();
        for missing in cells.iter().flat_map(|c| &c.verdict.unseen) {
            if !unseen.contains(&missing) {
                unseen.push(missing);
                all.push(note("counters".into(), missing.clone()));
            }
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        const STORAGE: [&str; 4] = ["randread", "randwrite", "seqread", "seqwrite"];
        let beside = |title: String, frame, first| {
            let columns = vec![
                first,
                col("aggressor").head("beside"),
                col(match frame {
                    "cells" => "at_aggressor_threads",
                    _ => "aggressor_threads",
                })
                .head("threads"),
                col("ns_solo_mean").head("mean\nalone"),
                col("ns_corun_mean").head("mean\nbeside"),
                col("ns_solo_p99").head("p99\nalone"),
                col("ns_corun_p99").head("p99\nbeside"),
            ];
            View::table(frame, title, columns)
        };
        let mark = |sign, of, words| Mark { sign, of, words };
        let unsteady = Only::OneOf("steadiness", &["noisy", "bimodal", "drifting"]);
        let title = "Bandwidth of {victim_tier} with {aggressor_tier}: change, the largest over thread counts";
        let mut all = vec![
            View::grid("cells", title, "victim", &["aggressor"], "change_pct")
                .each(&["victim_tier", "aggressor_tier"])
                .changes(vec![
                    mark(
                        "?",
                        Only::Is("certain", serde_json::Value::Bool(false)),
                        "a change whose class is uncertain",
                    ),
                    mark("~", unsteady, "a change whose repetitions disagree"),
                ]),
        ];
        let timed = [
            ("Latency of one thread that chases pointers", "chase", false),
            (
                "Time to hand a line over between two cores, one way",
                Pattern::SharedLine.name(),
                false,
            ),
            (
                "Time to hand a line over between cores of two sockets, one way",
                Pattern::SharedLine.name(),
                true,
            ),
        ];
        const SAME: &[&str] = &["tier", "aggressor", "pattern", "socket", "host", "across"];
        for (title, pattern, across) in timed {
            for (on, of) in [
                ("", ""),
                (" on socket {socket}", "socket"),
                (" on host {host}", "host"),
            ] {
                let apart = match across {
                    true => Only::Has("across"),
                    false => Only::Lacks("across"),
                };
                let title = format!("{title}{on}");
                let only = |column| match of == column {
                    true => Only::Has(column),
                    false => Only::Lacks(column),
                };
                let view = beside(title, "latencies", col("tier").head("in"))
                    .only(Only::Begins("pattern", pattern))
                    .only(apart)
                    .only(only("socket"))
                    .only(only("host"))
                    .only(Only::Most("aggressor_threads", SAME))
                    .only(Only::Least("aggressor_pause_ns", SAME));
                let view = match of {
                    "socket" => view.each(&["socket"]),
                    "host" => view.each(&["host"]),
                    _ => view,
                };
                all.push(view);
            }
        }
        all.push(
            beside(
                "Latency of requests to storage, from submission to completion".into(),
                "cells",
                col("victim").head("of"),
            )
            .only(Only::OneOf("victim_op", &STORAGE))
            .only(Only::Has("ns_corun_mean")),
        );
        if self.surface.iter().any(|p| p.at.victim_ways.is_some()) {
            let columns = vec![
                col("victim"),
                col("aggressor"),
                col("at_victim_ways")
                    .head("victim\nways")
                    .bits()
                    .empty("all"),
                col("at_aggressor_ways")
                    .head("aggressor\nways")
                    .bits()
                    .empty("all"),
                col("corun_gbps").head("victim"),
                col("aggressor_gbps").head("aggressor"),
            ];
            let title = "Bandwidth by ways of the last-level cache";
            all.push(View::table("surface", title, columns));
        }
        all
    }

    fn derived(self, records: &[Record], topology: &Topology) -> Self {
        let measured: Vec<Measured<'_>> = (self.points.iter().zip(records))
            .map(|(point, record)| Measured { point, record })
            .collect();
        let made = matrix(topology, &measured);
        Self {
            points: self.points,
            ..made
        }
    }
}

fn change(cell: &Cell) -> f64 {
    cell.change_pct.unwrap_or(0.0)
}

/// What loses most of the pairs whose class is certain.
fn lead(cells: &[Cell]) -> Option<String> {
    let known: Vec<&Cell> = cells.iter().filter(|c| c.change_pct.is_some()).collect();
    let certain = known.iter().filter(|cell| cell.certain);
    let (certain, uncertain) = (certain.clone().count(), known.len() - certain.count());
    let lacking = cells.len() - known.len();
    let loses = |cell: &&&Cell| cell.certain && cell.class.is_some_and(|c| c < ChangeClass::None);
    let harmed = known.iter().filter(loses);
    let worst = harmed
        .clone()
        .min_by(|a, b| change(a).total_cmp(&change(b)));
    let repeat = match known.iter().all(|cell| cell.repetitions <= 1) {
        true => "each was measured once, so that a change may be chance; repeat with --repeat 5",
        false => "more repetitions tell",
    };
    let mut text = match worst {
        _ if known.is_empty() => return None,
        _ if certain == 0 => {
            return Some(format!(
                "uncertain: no class of {} is certain; {repeat}",
                count(known.len() as u64, "pair")
            ));
        }
        None if cells.len() == 1 => "the pair loses no more than 5 %".into(),
        None if certain == 1 => "one pair loses no more than 5 %".into(),
        None => format!("of {certain} pairs, none loses more than 5 %"),
        Some(worst) => format!(
            "{} loses most, {:.1} % with {}; {} of {} more than 5 %",
            worst.victim,
            -change(worst),
            worst.aggressor,
            harmed.count(),
            match certain {
                1 => "1 pair loses".to_owned(),
                certain => format!("{certain} pairs lose"),
            }
        ),
    };
    if uncertain > 0 {
        let _ = write!(text, "; {uncertain} more are uncertain");
    }
    if lacking > 0 {
        let _ = write!(text, "; {} without a figure", count(lacking as u64, "pair"));
    }
    Some(text)
}

/// `-92.9 % (206 to 14.6 GB/s, 16 and 16 threads), deep suppression. ToR/IRQ congestion: ...`
pub fn sentence(cell: &Cell) -> String {
    let mut text = match (&cell.error, cell.change_pct, cell.at) {
        (Some(error), ..) => return error.clone(),
        (None, Some(change), Some(at)) => {
            let gbps = |g: Option<GbPerSec>| figure(g.map_or(0.0, |g| g.get()));
            format!(
                "{} % ({} to {} GB/s, {} and {} threads), {}",
                percent(change),
                gbps(cell.solo_gbps),
                gbps(cell.corun_gbps),
                at.victim_threads,
                at.aggressor_threads,
                cell.describe_class()
            )
        }
        _ => "no figure".to_owned(),
    };
    if cell.is_unstable() {
        text.push_str(", repetitions disagree");
    }
    // A gain, or a change that may be one, has no cause of harm.
    if !matches!(cell.verdict.cause, Cause::Unharmed | Cause::Uncertain) {
        let _ = write!(text, ". {}", cell.verdict.cause);
    }
    if !cell.verdict.evidence.is_empty() {
        let _ = write!(text, ": {}", cell.verdict.evidence.join("; "));
    }
    text
}
