//! `weir workload run` as a study: what a described program costs, phase by phase.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::counters::{Counter, CounterSet};
use weir_model::frame::Frame;
use weir_model::insight::{Stalls, WAITS_FOR};
use weir_model::machine::MachineKind;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Gigahertz, LINE_BYTES, Nanos};
use weir_model::workload::{Workload, Workloads};

use super::{Alone, PhaseRun, Placed, WorkloadOptions, WorkloadRun, check_threads, phases};
use crate::study::{About, Outcome, Study};
use crate::view::{View, col};
use crate::{Lab, LabError, Severity, Verdict};

/// Run a workload: on a model what it costs, on this host the real program.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  weir workload run llama-decode --on emr2s+cxl-a
  weir workload run chase --on emr2s+cxl-a --tier cxl0
  weir workload run lbm-like --on emr2s+cxl-a --tier dram=3,cxl0=1
  weir workload run column-olap --on sap23+sap23-card --place main=cxl0
  weir workload run redis-ycsb-a --tier dram,cxl0 --each --rate 20000,40000
  weir workload run pr-kron --threads 2 --size 1G
  weir workload run redis-ycsb-c --on emr2s --pages 2m

Without --on the real program runs on this host, where `weir workload show NAME`
names an application. A description is run by models only.")]
pub struct RunAlone {
    /// A name from `weir workload list`, or a TOML file.
    #[arg(value_name = "NAME|FILE")]
    pub workload: String,
    /// The tiers of its pages; with `=N`, N consecutive pages before the next tier.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "TIER[=N]",
        default_value = "dram",
        value_parser = share_of_pages
    )]
    pub tier: Vec<(TierName, u32)>,
    /// The tier of single objects instead, on a model: regions, or those with one `object`.
    #[arg(long, value_delimiter = ',', value_name = "OBJECT=TIER", value_parser = object_on)]
    pub place: Vec<(String, TierName)>,
    /// The size of its pages: 4k, 2m [default: what the model or this host uses].
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    pub pages: Option<PageSize>,
    /// Without the hardware prefetchers.
    #[arg(long)]
    pub no_prefetch: bool,
    /// Number of threads [default: that of the workload].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Lines that each thread accesses in a phase while it is counted.
    #[arg(long, value_name = "N", default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub accesses: u64,
    /// The description of the workload.
    #[arg(skip)]
    pub described: Option<Workload>,
}

weir_model::named! {
    /// The size of the pages of a program.
    pub enum PageSize {
        /// 4 KiB.
        Base = "4k",
        /// 2 MiB; on a host these are transparent huge pages.
        Huge = "2m",
    }
}

fn page_size(text: &str) -> Result<PageSize, String> {
    PageSize::named(text).ok_or_else(|| format!("`{text}` is no size of pages: 4k or 2m"))
}

impl PageSize {
    /// The size.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Base => Bytes::kib(4),
            Self::Huge => Bytes::mib(2),
        }
    }

    /// The expression of a model with pages of this size.
    pub fn on(self, model: &str) -> String {
        let host = model.find('+').unwrap_or(model.len());
        let (host, devices) = model.split_at(host);
        format!("{host},tlb.page={}{devices}", self.bytes())
    }
}

/// Reads `dram` or `dram=3`.
fn share_of_pages(text: &str) -> Result<(TierName, u32), String> {
    match text.split_once('=') {
        None => Ok((TierName::named(text), 1)),
        Some((tier, number)) => match number.parse() {
            Ok(weight) if weight <= 255 => Ok((TierName::named(tier), weight)),
            _ => Err(format!("`{number}` is not a number of pages from 0 to 255")),
        },
    }
}

/// Reads `main=cxl0`.
fn object_on(text: &str) -> Result<(String, TierName), String> {
    match text.split_once('=') {
        Some((object, tier)) if !object.is_empty() && !tier.is_empty() => {
            Ok((object.to_owned(), TierName::named(tier)))
        }
        _ => Err("it is an object and a tier, such as main=cxl0".into()),
    }
}

impl RunAlone {
    /// Where the regions of single objects are to be.
    fn placements(&self, workload: &Workload) -> Result<BTreeMap<String, Placement>, LabError> {
        let objects = workload.objects();
        let mut placements = BTreeMap::new();
        for (wanted, tier) in &self.place {
            let found = objects.iter().find(|(object, ..)| object == wanted);
            let Some((.., regions)) = found else {
                let names: Vec<&str> = objects.iter().map(|(object, ..)| *object).collect();
                return Err(LabError::Nothing(format!(
                    "`{}` has no object `{wanted}`; it has {}",
                    workload.name,
                    names.join(", ")
                )));
            };
            for region in regions {
                placements.insert((*region).to_owned(), Placement::Bind(tier.clone()));
            }
        }
        Ok(placements)
    }

    /// Where its pages are to be.
    pub fn placement(&self) -> Placement {
        match self.tier.as_slice() {
            [(tier, _)] => Placement::Bind(tier.clone()),
            several => Placement::Interleave(several.to_vec()),
        }
    }
}

/// The workloads of the library whose programs a host runs.
fn applications() -> Vec<String> {
    let library = Workloads::builtin();
    let with = library
        .list()
        .iter()
        .filter(|workload| workload.application.is_some());
    with.map(|workload| workload.name.clone()).collect()
}

impl Study for RunAlone {
    const VERB: &'static str = "workload run";
    type Output = WorkloadCost;

    fn run(&self, lab: &Lab<'_>) -> Result<WorkloadCost, LabError> {
        let workload = self.described.as_ref().ok_or_else(|| {
            LabError::Nothing("workload run needs the description of a workload".into())
        })?;
        if lab.machine().kind == MachineKind::Host {
            return Err(LabError::Nothing(format!(
                "`{}` is the description of a program, which only a model runs; name one with --on, or run the \
                 program itself; this host runs the programs of {}",
                workload.name,
                applications().join(", ")
            )));
        }
        let placement = self.placement();
        let placements = self.placements(workload)?;
        let is_missing = |tier: &&TierName| lab.topology().tier(tier).is_none();
        let tiers = placement
            .tiers()
            .chain(self.place.iter().map(|(_, tier)| tier));
        if let Some(tier) = tiers.into_iter().find(is_missing) {
            return Err(LabError::unknown_tier(tier, lab.topology()));
        }
        check_threads(workload, lab.topology())?;
        let options = WorkloadOptions {
            prefetch: !self.no_prefetch,
            accesses: self.accesses,
            seed: lab.seed(),
        };
        let placed = Placed {
            placement: placement.clone(),
            placements,
            ..Placed::local(workload, &options)
        };
        let asks: Vec<Alone<'_>> = phases(&placed).collect();
        let ran = lab.ask(&asks)?;
        if ran.len() < asks.len() {
            return Err(LabError::Stopped);
        }
        let (run, threads) = (WorkloadRun::of(workload, ran), workload.threads);
        let clock = lab.topology().clock;
        let line = |phase| PhaseLine::of_phase(phase, clock);
        Ok(WorkloadCost {
            workload: workload.name.clone(),
            prefetch: options.prefetch,
            threads,
            whole: PhaseLine::of_run(&run, clock),
            phases: run.phases.iter().map(line).collect(),
            objects: objects(workload, &placed, &run),
            counters: run.counters,
            placement,
        })
    }

    fn programs(&self) -> Option<Vec<&str>> {
        Some(vec![&self.workload])
    }
}

/// What a workload cost: the own part of a `workload run` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadCost {
    /// The workload's name.
    pub workload: String,
    /// Where its pages were.
    pub placement: Placement,
    /// Whether the hardware prefetchers ran.
    pub prefetch: bool,
    /// Threads.
    pub threads: u32,
    /// All phases together.
    pub whole: PhaseLine,
    /// Each of them.
    pub phases: Vec<PhaseLine>,
    /// What was done in each of its objects, where the machine counts that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectLine>,
    /// What was counted in all phases: the cores of this workload, and the uncore.
    pub counters: CounterSet,
}

impl Outcome for WorkloadCost {
    const SCHEMA: &'static str = "weir/workload-run/1";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let Self { whole, .. } = self;
        let shares = [whole.stores, whole.l1, whole.l2, whole.l3, whole.dram];
        let (cause, share) = (WAITS_FOR.into_iter().zip(shares))
            .fold(("", -1.0), |a, b| if b.1 > a.1 { b } else { a });
        let lost = match 100.0 * share {
            pct if pct >= 0.5 => format!("most is lost to {cause}, {pct:.0} % of all cycles"),
            _ => "hardly a cycle is lost to caches and memory".to_owned(),
        };
        let text = format!(
            "{:.2} cycles an instruction on {} with {} thread{}{}; {lost}",
            whole.cpi,
            named(&self.placement),
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            if self.prefetch {
                ""
            } else {
                ", without prefetchers"
            }
        );
        let shares = "of all cycles: those in which nothing was executed because the store buffer was full, or \
                      while a load was under way that had missed this many caches. The last column is the latency \
                      of demand reads beyond L2";
        vec![note(&self.workload, text), note("shares", shares.into())]
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = vec![
            col("phase"),
            col("cpi").head("CPI"),
            col("stores").share(),
            col("l1").head("L1").share(),
            col("l2").head("L2").share(),
            col("l3").head("L3").share(),
            col("dram").head("DRAM").share(),
            col("gbps").head(""),
            col("latency_ns").head(""),
        ];
        let objects = vec![
            col("object"),
            col("on"),
            col("bytes").head("size"),
            col("read_gbps").head("read"),
            col("write_gbps").head("write"),
            col("waits_pct").head("waits"),
        ];
        vec![
            View::table("phases", "Cycles lost, by phase", columns),
            View::table(
                "objects",
                "Memory: where it is, and what it is waited for",
                objects,
            ),
        ]
    }

    /// The phases, and all of them together where there are several.
    fn frames(&self) -> Vec<Frame> {
        let whole = (self.phases.len() != 1).then_some(&self.whole);
        let lines: Vec<&PhaseLine> = self.phases.iter().chain(whole).collect();
        vec![
            Frame::of("phases", &lines),
            Frame::of("objects", &self.objects),
        ]
    }
}

/// What was done in an object in all phases together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLine {
    /// Its name.
    pub object: String,
    /// The tiers that it is on.
    pub on: String,
    /// Its size.
    pub bytes: Bytes,
    /// What it reads from memory.
    pub read_gbps: GbPerSec,
    /// What it writes to memory.
    pub write_gbps: GbPerSec,
    /// How long the threads wait for it, in percent of the run time.
    pub waits_pct: f64,
}

fn objects(workload: &Workload, placed: &Placed<'_>, run: &WorkloadRun) -> Vec<ObjectLine> {
    if run.phases.iter().all(|phase| phase.uses.is_empty()) {
        return Vec::new();
    }
    let line = |(object, bytes, regions): (&str, Bytes, Vec<&str>)| {
        let uses = run.phases.iter().flat_map(|phase| &phase.uses);
        let own = uses.filter(|own| regions.contains(&own.region.as_str()));
        let (read, written, waited) = own.fold((0, 0, Nanos(0.0)), |sum, one| {
            (sum.0 + one.read, sum.1 + one.written, sum.2 + one.waited)
        });
        let there = regions
            .first()
            .and_then(|region| placed.placements.get(*region));
        let gbps = |lines: u64| GbPerSec::from_bytes_in(Bytes(lines * LINE_BYTES), run.time);
        ObjectLine {
            object: object.to_owned(),
            on: named(there.unwrap_or(&placed.placement)),
            bytes,
            read_gbps: gbps(read),
            write_gbps: gbps(written),
            waits_pct: waited / run.time / f64::from(workload.threads.max(1)) * 100.0,
        }
    };
    workload.objects().into_iter().map(line).collect()
}

/// The tiers of a placement, as they are asked for.
fn named(placement: &Placement) -> String {
    let tiers: Vec<String> = match placement {
        Placement::Interleave(parts) => {
            let part = |(tier, pages): &(TierName, u32)| format!("{tier}={pages}");
            parts.iter().map(part).collect()
        }
        placement => placement.tiers().map(ToString::to_string).collect(),
    };
    tiers.join(",")
}

/// What a phase cost. Shares are of all cycles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseLine {
    /// Its name.
    pub phase: String,
    /// Instructions of all threads.
    pub instructions: u64,
    /// How long it takes.
    pub time_ns: Nanos,
    /// Core cycles of an instruction.
    pub cpi: f64,
    /// Share in which nothing was executed because the store buffer was full.
    pub stores: f64,
    /// Share in which nothing was executed while loads were under way that all hit L1, ...
    pub l1: f64,
    /// ... of which one had missed L1, ...
    pub l2: f64,
    /// ... L2, ...
    pub l3: f64,
    /// ... and the last-level cache.
    pub dram: f64,
    /// Lines that crossed the memory interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<f64>,
    /// Mean latency of demand reads beyond L2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
}

impl PhaseLine {
    /// Of one phase that this many threads run.
    fn of_phase(run: &PhaseRun, clock: Option<Gigahertz>) -> Self {
        let (time, counters) = (run.time, &run.counters);
        Self::of(&run.phase, (run.instructions, clock), time, counters)
    }

    /// Of all of them.
    fn of_run(run: &WorkloadRun, clock: Option<Gigahertz>) -> Self {
        Self::of("all", (run.instructions, clock), run.time, &run.counters)
    }

    fn of(
        phase: &str,
        (instructions, clock): (u64, Option<Gigahertz>),
        time: Nanos,
        counters: &CounterSet,
    ) -> Self {
        let count = |counter| counters.get(counter).map_or(0.0, |n| n as f64);
        let cycles = count(Counter::Cycles).max(1.0);
        let shares = Stalls::of(counters).over(cycles).causes();
        let [stores, l1, l2, l3, dram] = shares.unwrap_or_default();
        let lines = counters.get(Counter::TorInsertsIaMiss).ok();
        let bytes = lines.map(|lines| Bytes(lines * LINE_BYTES));
        let outstanding = counters.ratio(
            Counter::OffcoreOutstandingDemandDataRd,
            Counter::OffcoreDemandDataRd,
        );
        Self {
            phase: phase.to_owned(),
            instructions,
            time_ns: time,
            cpi: cycles / (instructions.max(1) as f64),
            stores,
            l1,
            l2,
            l3,
            dram,
            gbps: bytes.map(|bytes| GbPerSec::from_bytes_in(bytes, time).get()),
            // Cores that have no request halt, so that time and cycles do not tell the clock.
            latency_ns: outstanding
                .ok()
                .zip(clock)
                .map(|(cycles, clock)| cycles / clock.get()),
        }
    }
}
