//! What to measure: points as data, each complete in itself.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use weir_model::access::{Dataflow, Op, Pattern, Timing};
use weir_model::machine::Goal;
use weir_model::tenant::{Arrivals, Placement, Reads, Stream, Tenant, Work};
use weir_model::topology::{Affinity, Tier, TierKind, TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use crate::LabError;

/// One figure that is wanted: of one load, alone on the machine or with another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointSpec {
    /// The study it belongs to.
    pub experiment: String,
    /// The load that the figure is about.
    pub load: Load,
    /// What runs with it, on the cores after its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Load>,
    /// Accesses of the load to see at least, for quantiles that need this many; zero leaves it to the
    /// machine. It decides how long to look and not what is seen.
    #[serde(default)]
    pub least_accesses: u64,
}

/// Threads that all do the same: a tenant that has no cores yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Where the pages lie that the instruction touches.
    pub tier: TierName,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// Threads, each on a core of its own.
    pub threads: u32,
    /// The cores they run on, where the figure is about which; else empty, for the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// The socket of those that it does not name: 0 for the one whose DRAM is tier `dram`, 1 for the next.
    #[serde(default, skip_serializing_if = "weir_model::topology::is_first")]
    pub socket: u32,
    /// The host of those that it does not name: 0 for the first.
    #[serde(default, skip_serializing_if = "weir_model::topology::is_first")]
    pub host: u32,
    /// The order in which they take the cores of both sockets, where they are on both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Bytes that one thread touches.
    pub working_set: Bytes,
    /// Lines that are loaded along with those that the instruction touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// How long each thread pauses between two lines.
    #[serde(default)]
    pub pause: Nanos,
    /// What the pause is counted from.
    #[serde(default, skip_serializing_if = "Arrivals::is_closed")]
    pub arrivals: Arrivals,
    /// What one sample covers, where the pattern is timed.
    #[serde(default)]
    pub timing: Timing,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
    /// Ways of the last-level cache that its lines may fill, a bit each; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u32>,
    /// Whether the device must not let its reads wait for internal tasks, as [`Tenant::deterministic`] says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
}

impl Load {
    /// A load of one instruction that never pauses, prefetchers on.
    pub fn new(
        tier: &TierName,
        op: Op,
        pattern: Pattern,
        threads: u32,
        working_set: Bytes,
    ) -> Self {
        Self {
            tier: tier.clone(),
            op,
            pattern,
            threads,
            cores: Vec::new(),
            socket: 0,
            host: 0,
            affinity: None,
            working_set,
            reads: None,
            pause: Nanos(0.0),
            arrivals: Arrivals::Closed,
            timing: Timing::default(),
            prefetch: true,
            ways: None,
            deterministic: false,
        }
    }

    /// The same in some ways of the last-level cache only.
    #[must_use]
    pub fn in_ways(mut self, mask: Option<u32>) -> Self {
        self.ways = mask;
        self
    }

    /// The same with the prefetchers switched.
    #[must_use]
    pub fn prefetch(mut self, prefetch: bool) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// The same on these cores.
    #[must_use]
    pub fn on(mut self, cores: &[u32]) -> Self {
        self.cores = cores.to_vec();
        self
    }

    /// The same on a socket.
    #[must_use]
    pub fn on_socket(mut self, socket: u32) -> Self {
        self.socket = socket;
        self
    }

    /// The same on the cores of a host.
    #[must_use]
    pub fn on_host(mut self, host: u32) -> Self {
        self.host = host;
        self
    }

    /// The same on the cores of both sockets.
    #[must_use]
    pub fn on_both_sockets(mut self, affinity: Affinity) -> Self {
        self.affinity = Some(affinity);
        self
    }

    /// The same that loads `lines` lines from a tier for `per` lines of its instruction.
    #[must_use]
    pub fn reading(mut self, lines: u32, per: u32, from: &TierName, dataflow: Dataflow) -> Self {
        self.reads = Some(Reads {
            lines,
            per,
            from: Placement::Bind(from.clone()),
            dataflow,
        });
        self
    }

    /// The same with a pause of each thread between two lines.
    #[must_use]
    pub fn pausing(mut self, pause: Nanos) -> Self {
        self.pause = pause;
        self
    }

    /// The same with samples that cover this much.
    #[must_use]
    pub fn timed(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Share of the lines crossing the memory interface that are read, once the caches are full.
    pub fn read_share(&self) -> f64 {
        let alone = || Reads {
            lines: 0,
            per: 1,
            from: Placement::Bind(self.tier.clone()),
            dataflow: Dataflow::Apart,
        };
        self.reads.clone().unwrap_or_else(alone).share(self.op)
    }

    /// Bytes that cross the memory interface for each byte the program touches, once the caches are
    /// full.
    pub fn traffic_factor(&self) -> f64 {
        let (loaded, touched) = match &self.reads {
            Some(reads) => (f64::from(reads.lines), f64::from(reads.per)),
            None => (0.0, 1.0),
        };
        (loaded + touched * self.op.traffic_factor()) / (loaded + touched)
    }

    /// The tenant on these cores.
    pub(crate) fn tenant(&self, cores: &[u32]) -> Tenant {
        Tenant {
            name: format!("{}@{}", self.op, self.tier),
            work: Work::Stream(Stream {
                op: self.op,
                pattern: self.pattern,
                working_set: self.working_set,
                reads: self.reads.clone(),
                pause: self.pause,
                arrivals: self.arrivals,
                timing: self.timing,
            }),
            cores: cores.to_vec(),
            placement: Placement::Bind(self.tier.clone()),
            placements: BTreeMap::new(),
            prefetch: self.prefetch,
            cache_ways: self.ways,
            deterministic: self.deterministic,
            second_threads: false,
        }
    }
}

impl PointSpec {
    /// A point of one load, alone on the machine.
    pub fn alone(experiment: impl Into<String>, load: Load) -> Self {
        Self {
            experiment: experiment.into(),
            load,
            beside: None,
            least_accesses: 0,
        }
    }

    /// The same with another load.
    #[must_use]
    pub fn beside(mut self, load: Load) -> Self {
        self.beside = Some(load);
        self
    }

    /// The same, watched until it made this many accesses.
    #[must_use]
    pub fn at_least(mut self, accesses: u64) -> Self {
        self.least_accesses = accesses;
        self
    }

    /// What kind of figure this is: a latency where each access is timed, else a bandwidth.
    pub fn goal(&self) -> Goal {
        if self.load.pattern.is_timed() {
            Goal::Latency
        } else {
            Goal::Bandwidth
        }
    }

    /// How a machine should pace its windows: by the slowest of what runs.
    pub fn pace(&self) -> Goal {
        match self.goal() {
            Goal::Bandwidth if self.stores() => Goal::Requests,
            goal => goal,
        }
    }

    /// The load that the figure is about, and the other one.
    pub fn loads(&self) -> impl Iterator<Item = &Load> {
        std::iter::once(&self.load).chain(&self.beside)
    }

    /// The part of the bytes touched that a figure counts: what was moved where the point is a copy.
    pub(crate) fn counted_part(&self) -> f64 {
        match (self.experiment.as_str(), &self.load.reads) {
            ("movement", Some(reads)) => f64::from(reads.per) / f64::from(reads.lines + reads.per),
            _ => 1.0,
        }
    }

    /// Whether a load puts requests to a storage device.
    pub fn stores(&self) -> bool {
        self.loads().any(|load| load.op.is_storage())
    }

    /// Threads of all loads together.
    pub fn threads(&self) -> u32 {
        let beside = self.beside.as_ref().map_or(0, |load| load.threads);
        self.load.threads.saturating_add(beside)
    }

    /// The tenants that make this point, the one that the figure is about first, or `None` if the
    /// machine has too few cores or not those that are named.
    pub fn tenants(&self, topology: &Topology) -> Option<Vec<Tenant>> {
        let own = cores_of(&self.load, topology, &[])?;
        let mut tenants = vec![self.load.tenant(&own)];
        if let Some(beside) = &self.beside {
            let mut tenant = beside.tenant(&cores_of(beside, topology, &own)?);
            tenant.name = format!("{} beside", tenant.name);
            tenants.push(tenant);
        }
        Some(tenants)
    }

    /// The seed of this point in a sweep of seed `seed`. It depends on what the point is and on nothing
    /// else, so that a point gives one result alone, in any sweep, and at any place in it. A bandwidth with
    /// another load has the seed of the same load alone, since the two are compared: its memory is at the
    /// same addresses, and chance that changes both figures does not change their ratio (common random
    /// numbers).
    pub fn seed(&self, seed: u64) -> u64 {
        // FNV-1a over the text, then the finaliser of SplitMix64 to spread every bit. Both are fixed for
        // ever, which the standard library's hasher is not.
        let text = match self.load.pattern.is_timed() {
            true => self.to_string(),
            false => format!("{}: {}", self.experiment, self.load),
        };
        let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut z = digest ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The cores of a load among those that are not taken: the first of its socket or host, unless it names them.
fn cores_of(load: &Load, topology: &Topology, taken: &[u32]) -> Option<Vec<u32>> {
    let free = |core: &u32| !taken.contains(core);
    if load.cores.is_empty() {
        let cores = match load.affinity {
            Some(affinity) => topology.cores_by(affinity),
            None if load.host > 0 => topology.cores_of_host(load.host).to_vec(),
            None => topology.cores_of(load.socket).to_vec(),
        };
        let cores = cores.into_iter().filter(free);
        let first: Vec<u32> = cores.take(load.threads as usize).collect();
        return (first.len() == load.threads as usize).then_some(first);
    }
    let fits = load.cores.len() == load.threads as usize
        && load
            .cores
            .iter()
            .all(|core| free(core) && topology.has_core(*core));
    fits.then(|| load.cores.clone())
}

/// Everything that names the point, in words: `latency: ld chase_random on dram, 1 thread x
/// 4 KiB, prefetchers off`. Its seed follows from this text, so that another word gives other figures.
impl fmt::Display for PointSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.experiment, self.load)?;
        match &self.beside {
            Some(beside) => write!(f, "; beside {beside}"),
            None => Ok(()),
        }
    }
}

/// What makes the load, in words; what is as usual is not said.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tier,
            op,
            pattern,
            threads,
            cores,
            socket,
            host,
            affinity,
            working_set,
            reads,
            pause,
            arrivals,
            timing,
            prefetch,
            ways,
            deterministic,
        } = self;
        write!(f, "{op} {}", pattern.name())?;
        match pattern {
            Pattern::RandomBlock { block } => write!(f, " of {} B", block.get())?,
            Pattern::FlushedBurst { lines } => write!(f, " of {lines}")?,
            Pattern::Descriptors {
                bytes,
                batch,
                in_flight,
            } => write!(f, " of {} B, {batch} x {in_flight}", bytes.get())?,
            Pattern::Requests {
                bytes,
                depth,
                buffered,
            } => {
                let how = if *buffered { ", buffered" } else { "" };
                write!(f, " of {} B, {depth} deep{how}", bytes.get())?;
            }
            _ => {}
        }
        let plural = if *threads == 1 { "" } else { "s" };
        let switch = if *prefetch { "on" } else { "off" };
        write!(
            f,
            " on {tier}, {threads} thread{plural} x {} B, prefetchers {switch}",
            working_set.get()
        )?;
        if !cores.is_empty() {
            let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
            write!(f, ", on cores {}", cores.join("+"))?;
        }
        if *socket > 0 {
            write!(f, ", on socket {socket}")?;
        }
        if *host > 0 {
            write!(f, ", on host {host}")?;
        }
        if let Some(affinity) = affinity {
            write!(f, ", on both sockets ({affinity})")?;
        }
        if let Some(reads) = reads {
            let from: Vec<&str> = reads.from.tiers().map(TierName::as_str).collect();
            write!(
                f,
                ", {} lines of {} read for {} ({})",
                reads.lines,
                from.join("+"),
                reads.per,
                reads.dataflow.name()
            )?;
        }
        if pause.get() > 0.0 {
            match arrivals {
                Arrivals::Closed => write!(f, ", pausing {} ns a line", pause.get())?,
                Arrivals::Open => write!(f, ", a line due every {} ns", pause.get())?,
            }
        }
        if *deterministic {
            write!(f, ", deterministic")?;
        }
        if let Some(mask) = ways {
            write!(f, ", in cache ways {mask:#x}")?;
        }
        match timing {
            Timing::Averaged => Ok(()),
            Timing::Each => write!(f, ", each timed"),
        }
    }
}

/// The tiers of memory that were asked for, or all of them; unknown ones are an error that names the known.
pub(crate) fn choose_tiers<'t>(
    topology: &'t Topology,
    wanted: &[TierName],
) -> Result<Vec<&'t Tier>, LabError> {
    if wanted.is_empty() {
        let memory = topology.tiers.iter().filter(|t| t.kind != TierKind::Ssd);
        return Ok(memory.collect());
    }
    wanted
        .iter()
        .map(|name| match topology.tier(name) {
            Some(tier) if tier.kind == TierKind::Ssd => Err(LabError::Nothing(format!(
                "`{name}` is a storage device, which takes requests and no loads; see `weir interplay`"
            ))),
            Some(tier) => Ok(tier),
            None => Err(LabError::unknown_tier(name, topology)),
        })
        .collect()
}

/// Refuses a thread count of zero or above what the machine has, less `taken` cores.
pub(crate) fn check_threads(
    wanted: &[u32],
    topology: &Topology,
    taken: u32,
) -> Result<(), LabError> {
    check_threads_of(wanted, topology.cores.len().saturating_sub(taken as usize))
}

/// Refuses a thread count of zero or above this many cores.
pub(crate) fn check_threads_of(wanted: &[u32], cores: usize) -> Result<(), LabError> {
    match wanted.iter().find(|&&n| n == 0 || n as usize > cores) {
        Some(&threads) => Err(LabError::Threads { threads, cores }),
        None => Ok(()),
    }
}

/// Powers of two up to `most`, and `most` itself at the end.
pub(crate) fn doubling(most: u32) -> Vec<u32> {
    let mut series: Vec<u32> = std::iter::successors(Some(1_u32), |n| n.checked_mul(2))
        .take_while(|&n| n <= most)
        .collect();
    if series.last().is_some_and(|&last| last < most) {
        series.push(most);
    }
    series
}

/// What was asked for, or what is usual where nothing was.
pub(crate) fn or_usual<T: Clone + PartialEq>(asked: &[T], usual: &[T]) -> Vec<T> {
    let values = if asked.is_empty() { usual } else { asked };
    distinct(values.iter().cloned())
}

/// Each of these values once, in the order in which they first occur.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Each of these points once, where it comes first: values that were given twice ask for a point twice.
pub fn each_once(mut points: Vec<PointSpec>) -> Vec<PointSpec> {
    let mut known = HashSet::new();
    points.retain(|point| known.insert(point.to_string()));
    points
}

/// Refuses a working set that does not hold two lines.
pub(crate) fn check_working_set(size: Bytes) -> Result<Bytes, LabError> {
    let least = 2 * LINE_BYTES;
    if size.get() < least {
        return Err(LabError::WorkingSet {
            bytes: size.get(),
            least,
        });
    }
    Ok(size)
}

/// What the caches within reach of the first `threads` cores hold together.
pub fn caches_in_reach(topology: &Topology, threads: u32) -> Bytes {
    topology
        .caches
        .iter()
        .map(|level| {
            let instances = threads.div_ceil(level.shared_by.max(1));
            Bytes(level.size.get().saturating_mul(u64::from(instances)))
        })
        .sum()
}
