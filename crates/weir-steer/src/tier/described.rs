//! Described programs as workloads of pages: what the core model says of their regions.

use serde::Serialize;
use weir_lab::{Lab, LabError, OneRegion, OneRegionRun, WorkloadOptions};
use weir_model::counters::Counter;
use weir_model::topology::{Tier, TierKind, TierName};
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};
use weir_model::workload::{Spread, Workload};
use weir_pages::{Counted, CountedRegion, TierCurve};

/// What is assumed of a described program, besides what its description assumes.
pub const ASSUMED: &str = "all its memory is allocated at the start, in pages of 4 KiB of anonymous memory, region with \
                           region; pages of one region and popularity are visited at random times, also where the program \
                           goes through them in order";

/// Lines that each thread accesses while a region is counted.
const ACCESSES: u64 = 40_000;
/// With fewer misses than this their cost is not distinguished from chance: they wait one by one.
const FEW: u64 = 100;
/// The most accesses that are taken to be outstanding: what prefetchers hide has no visible wait.
const MOST: f64 = 256.0;

/// Requests of a described program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RequestShape {
    /// Accesses to memory in a request, in the mean.
    pub accesses: f64,
    /// How lengths are spread.
    pub spread: Spread,
}

/// Phases that are run as one, and the workload that does so.
struct Stretch {
    phases: std::ops::Range<usize>,
    workload: Workload,
}

/// A program that answers requests goes through its phases in each of them; other phases are much longer than the
/// memory of caches, and run alone.
fn stretches(workload: &Workload) -> Vec<Stretch> {
    let count = workload.phases.len();
    let without_requests = Workload {
        requests: None,
        ..workload.clone()
    };
    if workload.requests.is_some() || count == 1 {
        return vec![Stretch {
            phases: 0..count,
            workload: without_requests,
        }];
    }
    let alone = |n: usize| {
        let workload = without_requests.phase_alone(n)?;
        let phases = n..n + 1;
        Some(Stretch { phases, workload })
    };
    (0..count).filter_map(alone).collect()
}

/// The misses that a tier of this kind serves.
fn misses_of(kind: TierKind) -> Option<Counter> {
    match kind {
        TierKind::Dram => Some(Counter::TorInsertsIaMissDdr),
        TierKind::Cxl => Some(Counter::TorInsertsIaMissCxl),
        TierKind::Remote | TierKind::RemoteCxl => Some(Counter::TorInsertsIaMissRemote),
        TierKind::CpuLess | TierKind::Ssd => None,
    }
}

/// A tier and another of another kind, so that counters tell their misses apart.
///
/// # Errors
/// The machine has no such tiers.
pub fn with_another(lab: &Lab<'_>, tier: &TierName) -> Result<[TierName; 2], LabError> {
    if lab.topology().tier(tier).is_none() {
        return Err(LabError::unknown_tier(tier, lab.topology()));
    }
    let mut others = lab.topology().tiers.iter();
    let pair = |other: &Tier| [tier.clone(), other.name.clone()];
    let found = others.find(|other| misses(lab, &pair(other)).is_ok());
    found.map(pair).ok_or_else(|| {
        LabError::Nothing(format!(
            "a described program is counted on two tiers of different kinds, and this machine has no other than {tier}"
        ))
    })
}

/// The counters of misses that the fast and the slow tier serve.
///
/// # Errors
/// The machine lacks a tier, or both tiers are of one kind, so that no counter says which of them served a miss.
pub fn misses(lab: &Lab<'_>, [fast, slow]: &[TierName; 2]) -> Result<[Counter; 2], LabError> {
    let counter = |tier: &TierName| -> Result<Option<Counter>, LabError> {
        let found = lab.topology().tier(tier);
        let found = found.ok_or_else(|| LabError::unknown_tier(tier, lab.topology()))?;
        Ok(misses_of(found.kind))
    };
    match (counter(fast)?, counter(slow)?) {
        (Some(of_fast), Some(of_slow)) if of_fast != of_slow => Ok([of_fast, of_slow]),
        _ => Err(LabError::Nothing(format!(
            "the misses of a described program are distinguished by tier, and no counter does so for {fast} and {slow}; \
             name tiers of two kinds with --fast and --slow"
        ))),
    }
}

/// Counts a described program on the machine: with all memory on the fast tier, and with each region in turn on the slow one.
///
/// # Errors
/// As [`misses`], or the machine does not run the program.
pub fn counted(
    lab: &Lab<'_>,
    workload: &Workload,
    tiers: &[TierName; 2],
    curves: &[TierCurve; 2],
) -> Result<Vec<Counted>, LabError> {
    let [of_fast, of_slow] = misses(lab, tiers)?;
    let [fast, slow] = tiers;
    let options = WorkloadOptions {
        accesses: ACCESSES,
        seed: lab.seed(),
        ..WorkloadOptions::default()
    };
    let stretches = stretches(workload);
    let mut asks = Vec::new();
    for stretch in &stretches {
        let memory = stretch.workload.memory().into_iter();
        let elsewhere = memory.map(|(name, _)| Some((name.to_owned(), slow.clone())));
        asks.extend(
            std::iter::once(None)
                .chain(elsewhere)
                .map(|elsewhere| OneRegion {
                    workload: &stretch.workload,
                    tier: fast.clone(),
                    elsewhere,
                    options: &options,
                }),
        );
    }
    let mut runs = lab.ask_all(&asks)?.into_iter();
    let mut all = Vec::new();
    for stretch in &stretches {
        let own = runs.by_ref().take(1 + stretch.workload.memory().len());
        let own: Vec<OneRegionRun> = own.collect();
        let Some((base, by_region)) = own.split_first() else {
            return Err(LabError::Stopped);
        };
        all.push(
            Scale {
                stretch,
                counters: [of_fast, of_slow],
                curves,
            }
            .counted(base, by_region),
        );
    }
    Ok(all)
}

/// From what was counted in a while to a pass through the phases.
struct Scale<'a> {
    stretch: &'a Stretch,
    counters: [Counter; 2],
    curves: &'a [TierCurve; 2],
}

impl Scale<'_> {
    /// Instructions of all threads in a pass.
    fn instructions(&self) -> f64 {
        let phases = self.stretch.workload.phases.iter();
        let one: f64 = phases.map(|phase| phase.instructions as f64).sum();
        one * f64::from(self.stretch.workload.threads)
    }

    /// Latency of a tier at the traffic that a run has there, of which a write reads its line and writes it back.
    fn latency(&self, tier: usize, run: &OneRegionRun, writes: f64) -> Nanos {
        let misses = run.counters.get(self.counters[tier]).unwrap_or(0) as f64;
        let gbps = misses * (1.0 + writes) * LINE_BYTES as f64 / run.time.get();
        self.curves[tier].latency(GbPerSec(gbps), 1.0 / (1.0 + writes))
    }

    /// Lines that are written for a miss beyond the line that it moves itself, where the fast tier is DRAM, whose controller
    /// counts lines. A posted store moves one line, which it writes.
    fn written(&self, base: &OneRegionRun) -> Option<f64> {
        let get = |counter| base.counters.get(counter).ok().map(|lines| lines as f64);
        let lines = get(Counter::CasRd)? + get(Counter::CasWr)?;
        let misses = get(self.counters[0]).filter(|misses| *misses > 0.0)?;
        (self.counters[0] == Counter::TorInsertsIaMissDdr).then(|| (lines / misses - 1.0).max(0.0))
    }

    fn counted(&self, base: &OneRegionRun, by_region: &[OneRegionRun]) -> Counted {
        let threads = f64::from(self.stretch.workload.threads);
        let written = self.written(base);
        let latency_of =
            |tier: usize, run: &OneRegionRun| self.latency(tier, run, written.unwrap_or(0.0));
        let latency = latency_of(0, base);
        let each = |run: &OneRegionRun| run.time.get() / run.instructions as f64;
        let region = |run: &OneRegionRun| {
            let misses = run.counters.get(self.counters[1]).unwrap_or(0);
            let in_one = misses as f64 / run.instructions as f64;
            // Waits beyond those on the fast tier, and by how much longer an access takes.
            let waits = (each(run) - each(base)) * threads;
            let longer = in_one * (latency_of(1, run).get() - latency.get());
            let mlp = match misses >= FEW && waits > longer / MOST {
                true => (longer / waits).max(1.0),
                false if misses >= FEW => MOST,
                false => 1.0,
            };
            CountedRegion {
                misses: in_one * self.instructions(),
                mlp,
            }
        };
        let names = self.stretch.workload.memory().into_iter();
        Counted {
            phases: self.stretch.phases.clone(),
            time: Nanos(each(base) * self.instructions()),
            latency,
            written,
            regions: names
                .map(|(name, _)| name.to_owned())
                .zip(by_region.iter().map(region))
                .collect(),
        }
    }
}

/// The requests of a program, as pages see them; none where it answers none, or where how long they take hangs on more
/// than memory: on when they arrive, on a client that thinks, on a lock.
pub fn requests(workload: &Workload, counted: &[Counted]) -> Option<RequestShape> {
    let requests = workload.requests.as_ref()?;
    if requests.is_open() || requests.think.get() > 0.0 || requests.locked > 0.0 {
        return None;
    }
    let phases = workload.phases.iter();
    let instructions: f64 = phases.map(|phase| phase.instructions as f64).sum();
    let regions = counted.iter().flat_map(|stretch| &stretch.regions);
    let misses: f64 = regions.map(|(_, region)| region.misses).sum();
    let in_one = misses / (instructions * f64::from(workload.threads));
    Some(RequestShape {
        accesses: in_one * requests.instructions as f64,
        spread: requests.spread,
    })
    .filter(|shape| shape.accesses > 0.0)
}
