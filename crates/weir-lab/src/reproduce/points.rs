//! Points as rules name them, and what is read from one that was measured.

use crate::reproduce::rule::Results;
use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::capability::Unavailable;
use weir_model::counters::Counter;
use weir_model::tenant::{Placement, Reads};
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

use crate::grouped::GroupMeans;
use crate::interplay::{REQUESTS, STORAGE_SET};
use crate::measure::measure;
use crate::{Ask, Finished, Lab, LabError, Load, PointSpec, Watcher, room};

impl Ask for PointSpec {
    type Got = Finished;
    const KIND: &'static str = "published point";

    fn ask(&self, lab: &Lab<'_>) -> Result<Finished, LabError> {
        let done = measure(lab.testbed(), 0, self, lab.seed(), &Stop(lab));
        done.ok_or(LabError::Stopped)
    }

    fn warnings(&self, done: &Finished) -> Vec<String> {
        done.warnings.clone()
    }
}

struct Stop<'a>(&'a Lab<'a>);

impl Watcher for Stop<'_> {
    fn finished(&self, _: &Finished, _: usize) {}

    fn stop(&self) -> bool {
        self.0.stopped()
    }
}

/// Threads that all do the same, on a platform and a tier by name.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// The platform expression.
    pub platform: &'static str,
    /// The tier.
    pub tier: &'static str,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// Lines loaded for this many lines that the instruction touches, in a mix.
    pub reads: Option<(u32, u32)>,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
    /// Bytes of one thread; `None` for more than the caches hold.
    pub working_set: Option<Bytes>,
    /// Accesses to see at least; 0 leaves it to the machine.
    pub least_accesses: u64,
}

/// Lines until the varying bandwidth of a slow device has been seen for milliseconds.
pub const LINES: u64 = 400_000;

/// Lines of a victim: fewer than alone, since there are many pairs and a victim is slow.
const VICTIM_LINES: u64 = 40_000;

impl Stream {
    /// One instruction line by line, prefetchers on.
    pub const fn new(platform: &'static str, tier: &'static str, op: Op) -> Self {
        Self {
            platform,
            tier,
            op,
            pattern: Pattern::Sequential,
            reads: None,
            prefetch: true,
            working_set: None,
            least_accesses: LINES,
        }
    }

    /// Requests to a storage device.
    pub const fn requests(platform: &'static str, tier: &'static str, op: Op) -> Self {
        Self {
            pattern: REQUESTS,
            // The machine knows how long to look at requests.
            least_accesses: 0,
            ..Self::new(platform, tier, op)
        }
    }

    /// The same without prefetchers.
    pub const fn without_prefetch(self) -> Self {
        Self {
            prefetch: false,
            ..self
        }
    }

    /// The same in blocks at random.
    pub const fn in_blocks(self, block: Bytes) -> Self {
        Self {
            pattern: Pattern::RandomBlock { block },
            ..self
        }
    }

    /// The load of this many threads, on a machine of this topology.
    fn load(&self, threads: u32, topology: &Topology) -> Result<Load, String> {
        let tier: &Tier = (topology.tier(&TierName::named(self.tier)))
            .ok_or_else(|| format!("platform {} has no tier {}", self.platform, self.tier))?;
        let size = self
            .working_set
            .unwrap_or_else(|| match self.op.is_storage() {
                true => STORAGE_SET,
                false => room::working_set(topology, tier, threads),
            });
        let mut load = Load::new(&tier.name, self.op, self.pattern, threads, size);
        load.reads = self.reads.map(|(lines, per)| Reads {
            lines,
            per,
            from: Placement::Bind(tier.name.clone()),
            dataflow: Dataflow::Apart,
        });
        Ok(load.prefetch(self.prefetch))
    }

    /// What is read from the point of this many threads, alone or together with an aggressor.
    ///
    /// # Errors
    /// The platform has no such tier or too few cores, or the point has no such figure; the reason.
    pub fn read(
        &self,
        threads: u32,
        aggressor: Option<(Stream, u32)>,
        results: &Results<'_>,
        read: impl FnOnce(&Finished) -> Result<f64, String>,
    ) -> Result<f64, String> {
        let platform = self.platform;
        let opened = results.on(platform.into())?;
        let all = threads + aggressor.map_or(0, |(_, threads)| threads);
        let cores = opened.topology.cores.len();
        if all as usize > cores {
            return Err(format!(
                "{all} threads wanted, but platform {platform} has {cores} cores"
            ));
        }
        let load = self.load(threads, &opened.topology)?;
        let experiment = match (self.pattern.is_timed(), aggressor) {
            (_, Some(_)) => "interplay",
            (true, None) => "latency",
            (false, None) => "bandwidth",
        };
        let mut spec = PointSpec {
            least_accesses: self.least_accesses,
            ..PointSpec::alone(experiment, load)
        };
        if let Some((aggressor, threads)) = aggressor {
            spec.least_accesses = self.least_accesses.min(VICTIM_LINES);
            spec = spec.beside(aggressor.load(threads, &opened.topology)?);
        }
        results.read(platform.into(), &spec, read)
    }
}

/// Bandwidth in GB/s.
pub fn gbps(done: &Finished) -> Result<f64, String> {
    let figure = done.point.gbps.map(|gbps| gbps.get());
    figure.ok_or_else(|| no_figure(done, "no bandwidth"))
}

/// Bandwidth of what runs with it, in GB/s.
pub fn gbps_beside(done: &Finished) -> Result<f64, String> {
    let beside = done.point.beside.as_ref().and_then(|beside| beside.gbps);
    beside
        .map(|gbps| gbps.get())
        .ok_or_else(|| no_figure(done, "no bandwidth beside"))
}

/// Mean latency in ns.
pub fn latency(done: &Finished) -> Result<f64, String> {
    let ns = done.point.ns.ok_or_else(|| no_figure(done, "no latency"))?;
    Ok(ns.mean.get())
}

/// Single accesses that must be longer than a quantile for it to mean something.
const LEAST_BEYOND: f64 = 10.0;

/// What a probe that logs the mean of this many dependent hops would give for this quantile of its
/// log, in ns.
pub fn quantile_of_means(done: &Finished, hops: u32, share: f64) -> Result<f64, String> {
    let singles = &done.record.latency;
    let means = GroupMeans::of(singles, hops).ok_or_else(|| no_figure(done, "no latency"))?;
    let all: u64 = singles.iter().map(|&(_, count)| count).sum();
    // One long hop makes its whole group long.
    if all as f64 * (1.0 - share) / f64::from(hops) < LEAST_BEYOND {
        return Err(format!("{all} accesses are too few for that quantile"));
    }
    Ok(means.quantile(share).get())
}

fn no_figure(done: &Finished, otherwise: &str) -> String {
    done.point.error.clone().unwrap_or_else(|| otherwise.into())
}

fn observed(done: &Finished) -> Nanos {
    done.record.samples.iter().map(|&(window, _)| window).sum()
}

/// How long a request to CXL memory stays in the Table of Requests, in ns: occupancy over inserts, by
/// the counted clock.
pub fn tor_residency(done: &Finished) -> Result<f64, String> {
    if let Some(error) = &done.point.error {
        return Err(error.clone());
    }
    let counters = &done.record.counters;
    let missing = |why: Unavailable| format!("no residency: {why}");
    let cycles = counters
        .ratio(Counter::TorOccupancyIaMissCxl, Counter::TorInsertsIaMissCxl)
        .map_err(missing)?;
    let ticks = counters.get(Counter::ChaClockticks).map_err(missing)? as f64;
    let per_ns = ticks / observed(done).get();
    if per_ns > 0.0 {
        Ok(cycles / per_ns)
    } else {
        Err("the uncore clock did not tick".into())
    }
}

/// Core cycles that a demand load which missed L2 was outstanding: outstanding over requests
/// (`Load_L2_Miss_Latency` of Intel's top-down metrics).
pub fn l2_miss(done: &Finished) -> Result<f64, String> {
    let (cycles, loads) = (
        Counter::OffcoreOutstandingDemandDataRd,
        Counter::OffcoreDemandDataRd,
    );
    let mean = done.record.counters.ratio(cycles, loads);
    mean.map_err(|why| no_figure(done, &format!("no latency of L2 misses: {why}")))
}

/// Requests a second of the first tenant's cores to the last-level cache, in units of 10^9
/// (`L3_Cache_Access_BW` of the same metrics): `offcore_requests.all_requests` over time.
pub fn l3_accesses(done: &Finished) -> Result<f64, String> {
    let victim = done.record.tenants.first();
    let victim = victim.ok_or_else(|| no_figure(done, "no counters of the victim's cores"))?;
    let sent = victim.get(Counter::OffcoreAllRequests);
    let sent = sent.map_err(|why| no_figure(done, &format!("no requests counted: {why}")))?;
    match sent {
        0 => Err("the victim's cores sent no request to the last-level cache".into()),
        sent => Ok(sent as f64 / observed(done).get()),
    }
}

/// What went out to CXL memory, in MB/s.
pub fn cxl_writes(done: &Finished) -> Result<f64, String> {
    let lines = done.record.counters.get(Counter::CxlTxMemData);
    let lines = lines.map_err(|why| no_figure(done, &format!("no lines counted: {why}")))?;
    Ok(GbPerSec::from_bytes_in(Bytes(lines * LINE_BYTES), observed(done)).get() * 1e3)
}
