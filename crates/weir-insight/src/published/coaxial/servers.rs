//! Every program on all cores of a server, and what two servers make of it.

use serde::{Deserialize, Serialize};
use weir_lab::reproduce::rule::Results;
use weir_lab::{Ask, Lab, LabError, Placed, WorkloadOptions};
use weir_model::counters::{Counter, CounterSet};
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::{LINE_BYTES, Nanos};

use crate::Run;
use crate::coaxial::{Program, programs};
use crate::published::slowdown::failed;

/// A server, the tier with all pages, and its DDR5-4800 channels.
pub(super) type Server = (&'static str, &'static str, f64);

pub(super) const DDR: Server = ("coaxial-ddr", "dram", 1.0);
pub(super) const FOUR: Server = (
    "coaxial-ddr,llc.size=12MiB+4xcoaxial-x8@interleaved",
    "cxl0",
    4.0,
);
pub(super) const ASYM: Server = (
    "coaxial-ddr,llc.size=12MiB+4xcoaxial-asym@interleaved",
    "cxl0",
    8.0,
);
/// Memory of 150 ns, and of two latencies with that mean.
pub(super) const TOYS: [Server; 4] = [
    ("coaxial-ddr+8xcoaxial-toy@interleaved", "cxl0", 256.0),
    (
        "coaxial-ddr+8xcoaxial-toy@interleaved,tail.share=0.2,tail.mean=250ns",
        "cxl0",
        256.0,
    ),
    (
        "coaxial-ddr+8xcoaxial-toy@interleaved,tail.share=0.2,tail.mean=375ns",
        "cxl0",
        256.0,
    ),
    (
        "coaxial-ddr+8xcoaxial-toy@interleaved,tail.share=0.2,tail.mean=500ns",
        "cxl0",
        256.0,
    ),
];
/// Peak of a channel.
pub(super) const PEAK_GBPS: f64 = 38.4;

/// Every program on this many cores of a server.
#[derive(Debug, Clone, Serialize)]
struct All {
    tier: &'static str,
    cores: u32,
}

/// What a program did.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Ran {
    /// Instructions of a core in a cycle.
    pub ipc: f64,
    /// From a miss of the last-level cache to its data, or of a line that is written back to its end.
    pub latency: Nanos,
    /// Lines read and written back, in GB/s.
    pub gbps: f64,
}

/// Lines of each thread that are simulated.
const LINES: u64 = 6_000;

impl Ask for All {
    type Got = Vec<Ran>;
    const KIND: &'static str = "programs of COAXIAL";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<Vec<Ran>, LabError> {
        let mut programs = programs().map_err(failed)?;
        programs.push(Program::lone());
        let options = WorkloadOptions {
            prefetch: false,
            accesses: LINES,
            seed: lab.seed(),
        };
        let workloads: Vec<_> = programs
            .iter()
            .map(|p| match p.name == Program::lone().name {
                true => p.steady(1),
                false => p.workload(self.cores),
            })
            .collect();
        let placed = |workload| Placed {
            placement: Placement::Bind(TierName::named(self.tier)),
            ..Placed::local(workload, &options)
        };
        let asks: Vec<Placed<'_>> = workloads.iter().map(placed).collect();
        let ran = lab.ask(&asks)?;
        if ran.len() < asks.len() {
            return Err(LabError::Stopped);
        }
        ran.iter()
            .map(|run| Ran::of(&run.counters, run.time))
            .collect()
    }
}

impl Ran {
    fn of(counters: &CounterSet, time: Nanos) -> Result<Self, LabError> {
        let run = Run::of(counters)?;
        let count = |counter| run.count(counter).map_err(|why| failed(why.reason));
        let misses = count(Counter::TorInsertsIaMiss)?;
        Ok(Self {
            ipc: run.instructions().map_err(|why| failed(why.reason))? / run.cycles().get(),
            latency: Nanos(count(Counter::TorOccupancyIaMiss)? / misses / UNCORE_GHZ),
            gbps: misses * LINE_BYTES as f64 / time.get(),
        })
    }
}

/// Clock of the tables whose occupancy is counted.
const UNCORE_GHZ: f64 = 2.0;

/// What each program did on a server, in the order of table 4; last the lone read.
pub(super) fn on(results: &Results<'_>, server: Server, cores: u32) -> Result<Vec<Ran>, String> {
    let (platform, tier, _) = server;
    let mut all = Vec::new();
    results.read(platform.into(), &All { tier, cores }, |got: &Vec<Ran>| {
        all.clone_from(got);
        Ok(1.0)
    })?;
    // Any figures do where there is no result yet.
    let none = Ran {
        ipc: 1.0,
        latency: Nanos(1.0),
        gbps: 1.0,
    };
    all.resize(programs()?.len() + 1, none);
    Ok(all)
}

/// A program on the baseline and on another server.
pub(super) struct Pair {
    pub program: Program,
    pub base: Ran,
    pub other: Ran,
    /// The latency of a lone read on either.
    pub lone: [Nanos; 2],
    /// The peak of all channels of either, in GB/s.
    pub peaks: [f64; 2],
}

impl Pair {
    pub fn speedup(&self) -> f64 {
        self.other.ipc / self.base.ipc
    }

    pub fn utilisation(&self) -> f64 {
        100.0 * self.base.gbps / self.peaks[0]
    }

    pub fn queue(&self) -> f64 {
        self.base.latency.get() - self.lone[0].get()
    }

    /// Of the latency, in percent.
    pub fn queue_share(&self) -> f64 {
        100.0 * self.queue() / self.base.latency.get()
    }
}

pub(super) fn pairs(results: &Results<'_>, other: Server, cores: u32) -> Result<Vec<Pair>, String> {
    let (base, wide) = (on(results, DDR, cores)?, on(results, other, cores)?);
    let lone = [&base, &wide].map(|all| all.last().map_or(Nanos(0.0), |ran| ran.latency));
    let peaks = [DDR.2, other.2].map(|channels| channels * PEAK_GBPS);
    let both = programs()?.into_iter().zip(base.into_iter().zip(wide));
    let pair = |(program, (base, other))| Pair {
        program,
        base,
        other,
        lone,
        peaks,
    };
    Ok(both.map(pair).collect())
}
