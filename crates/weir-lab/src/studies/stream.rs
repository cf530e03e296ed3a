//! `weir bench stream`: STREAM's four kernels (McCalpin, *Memory Bandwidth and Machine Balance in
//! Current High Performance Computers*, 1995) by thread count and tier.
//!
//! Bytes are counted as STREAM does: two arrays for copy and scale, three for add and triad. Reads
//! for ownership are not counted, so that with ordinary stores more crosses the memory interface
//! than the figure says: a half more for copy and scale, a third more for add and triad.

use std::str::FromStr;

use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::document::Point;
use weir_model::topology::{Affinity, Tier, TierName, Topology};
use weir_model::units::Bytes;

use super::point_study::{About, PointStudy};
use crate::plan::{Load, caches_in_reach, check_threads_of, check_working_set, choose_tiers};
use crate::plan::{doubling, or_usual};
use crate::view::{Axis, Medium, View};
use crate::{LabError, PointSpec, Severity, Threads, Verdict};

const NAME: &str = "stream";

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// `c = a`.
    Copy,
    /// `b = s c`.
    Scale,
    /// `c = a + b`.
    Add,
    /// `a = b + s c`.
    Triad,
}

impl Kernel {
    /// Every kernel, in STREAM's order.
    pub const ALL: [Kernel; 4] = [Kernel::Copy, Kernel::Scale, Kernel::Add, Kernel::Triad];

    /// What it does with what it loads.
    pub const fn dataflow(self) -> Dataflow {
        match self {
            Kernel::Copy => Dataflow::Copy,
            Kernel::Scale => Dataflow::Scale,
            Kernel::Add => Dataflow::Add,
            Kernel::Triad => Dataflow::Triad,
        }
    }

    /// Arrays that it reads for the one that it writes.
    pub const fn sources(self) -> u32 {
        match self {
            Kernel::Copy | Kernel::Scale => 1,
            Kernel::Add | Kernel::Triad => 2,
        }
    }

    /// The stable name.
    pub const fn name(self) -> &'static str {
        self.dataflow().name()
    }
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        (Kernel::ALL.into_iter())
            .find(|kernel| kernel.name() == text.to_lowercase())
            .ok_or_else(|| {
                format!("STREAM has no kernel `{text}`; it has copy, scale, add and triad")
            })
    }
}

/// STREAM's rule: each array at least this many times the caches.
const TIMES_CACHES: u64 = 4;
/// And at least this much of it for each thread.
const LEAST_SHARE: Bytes = Bytes::mib(16);
/// Working sets are multiples of this, so that three arrays of a thread are whole huge pages.
const GRANULE: Bytes = Bytes::mib(6);
/// All arrays together take at most this part of a tier.
const PART_OF_TIER: u64 = 2;

/// STREAM's four kernels.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench stream
  weir bench stream --kernel triad --threads 1..8
  weir bench stream --on emr2s+cxl-a --tier cxl0 --op st,nt_st
  weir bench stream --on streamer --sockets 0,1 --affinity close,spread")]
pub struct Stream {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// Kernels: copy, scale, add, triad [default: all].
    #[arg(long = "kernel", value_delimiter = ',', value_name = "KERNEL")]
    pub kernels: Vec<Kernel>,
    /// The instruction that writes: st or nt_st [default: st].
    #[arg(long = "op", value_delimiter = ',', value_name = "OP")]
    pub ops: Vec<Op>,
    /// Thread counts and ranges: 1,2,4 or 1..32 [default: up to all cores].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub threads: Vec<Threads>,
    /// The socket whose cores run the threads: 0, the one of `dram`, 1, or both
    /// as 0,1 [default: 0].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1))]
    pub sockets: Vec<u32>,
    /// How threads take the cores of both sockets: close fills one, then the
    /// other, spread takes them in turn [default: close].
    #[arg(long, value_delimiter = ',', value_name = "HOW")]
    pub affinity: Vec<Affinity>,
    /// Bytes of all arrays of one thread [default: STREAM's rule].
    #[arg(long = "size", value_name = "SIZE")]
    pub working_set: Option<Bytes>,
    /// Switch the hardware prefetchers off.
    #[arg(long)]
    pub no_prefetch: bool,
    /// One thread and all cores.
    #[arg(long)]
    pub quick: bool,
}

impl PointStudy for Stream {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench stream";
    const TITLE: &'static str = "STREAM";
    const WORDS: &'static str = "Bytes as STREAM counts them, without reads for ownership.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let sockets = self.places(topology)?;
        let most = (sockets.iter())
            .map(|place| place.cores(topology).len())
            .min()
            .unwrap_or_default();
        let counts = self.thread_counts(most)?;
        if let Some(size) = self.working_set {
            check_working_set(size)?;
        }
        if let Some(op) = (self.ops.iter()).find(|op| !matches!(op, Op::St | Op::NtSt)) {
            return Err(LabError::Nothing(format!(
                "STREAM writes with st or nt_st, not with {op}"
            )));
        }
        let mut points = Vec::new();
        for tier in choose_tiers(topology, &self.tiers)? {
            for op in or_usual(&self.ops, &[Op::St]) {
                for kernel in or_usual(&self.kernels, &Kernel::ALL) {
                    for &place in &sockets {
                        for &threads in &counts {
                            let set = self
                                .working_set
                                .unwrap_or_else(|| arrays(topology, tier, kernel, threads));
                            let load = load(&tier.name, op, kernel, threads, set)
                                .prefetch(!self.no_prefetch);
                            points.push(PointSpec::alone(NAME, place.of(load)));
                        }
                    }
                }
            }
        }
        Ok(points)
    }

    fn asked(&self) -> Vec<Op> {
        self.ops.clone()
    }

    fn case(point: &Point) -> Option<String> {
        match (point.affinity, point.socket) {
            (Some(affinity), _) => Some(format!("both sockets, {affinity}")),
            (None, 0) => None,
            (None, socket) => Some(format!("socket {socket}")),
        }
    }

    fn answer(points: &[Point], topology: &Topology) -> Vec<Verdict> {
        let tiers = topology.tiers.iter();
        let mut verdicts: Vec<Verdict> = tiers
            .clone()
            .filter_map(|tier| best_kernels(points, &tier.name))
            .collect();
        let cores = topology.cores.len() as u32;
        verdicts.extend(tiers.filter_map(|tier| boundary(points, &tier.name, cores)));
        verdicts
    }

    fn views(points: &[Point], _: About<'_>) -> Vec<View> {
        let title = "bandwidth, as STREAM counts [GB/s]";
        let has_case = (points.iter()).any(|p| p.experiment == NAME && p.case.is_some());
        let case = if has_case { ", {case}" } else { "" };
        vec![
            View::grid(
                "points",
                format!("STREAM on {{tier}} with {{op}}{{prefetch}}{case}: by threads"),
                "threads",
                &["kernel"],
                "gbps",
            )
            .each(&["tier", "op", "prefetch", "case"])
            .on(Medium::Text),
            View::bars(
                "points",
                "STREAM, best over threads",
                &["tier", "op"],
                "kernel",
                ("gbps", title),
            ),
            View::lines(
                "points",
                format!("STREAM by threads on {{tier}}, {{op}}{{prefetch}}{case}"),
                ("threads", "threads"),
                ("gbps", title),
                &["kernel"],
            )
            .each(&["tier", "op", "prefetch", "case"])
            .axes(Axis::Counts, Axis::Linear),
        ]
    }

    fn in_all(tiers: &[TierName], quick: bool) -> Option<Self> {
        Some(Self {
            tiers: tiers.to_vec(),
            quick,
            ..Self::default()
        })
    }
}

/// On which cores threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Those of one socket.
    Socket(u32),
    /// Those of both.
    Both(Affinity),
}

impl Place {
    /// The cores, in the order in which threads take them.
    pub fn cores(self, topology: &Topology) -> Vec<u32> {
        match self {
            Place::Socket(socket) => topology.cores_of(socket).to_vec(),
            Place::Both(affinity) => topology.cores_by(affinity),
        }
    }

    /// The socket, 0 where it is both.
    pub const fn socket(self) -> u32 {
        match self {
            Place::Socket(socket) => socket,
            Place::Both(_) => 0,
        }
    }

    /// The order in which threads take the cores of both.
    pub const fn affinity(self) -> Option<Affinity> {
        match self {
            Place::Socket(_) => None,
            Place::Both(affinity) => Some(affinity),
        }
    }

    fn of(self, load: Load) -> Load {
        match self {
            Place::Socket(socket) => load.on_socket(socket),
            Place::Both(affinity) => load.on_both_sockets(affinity),
        }
    }
}

impl Stream {
    /// The thread counts for this many cores.
    ///
    /// # Errors
    /// One is above that.
    pub fn thread_counts(&self, cores: usize) -> Result<Vec<u32>, LabError> {
        let asked = Threads::all(&self.threads);
        check_threads_of(&asked, cores)?;
        let mut series = doubling(cores as u32);
        if self.quick {
            let last = series.len().saturating_sub(1);
            series = (series.iter().enumerate())
                .filter(|&(at, _)| at == 0 || at == last)
                .map(|(_, &n)| n)
                .collect();
        }
        Ok(or_usual(&asked, &series))
    }

    /// Where the threads run.
    ///
    /// # Errors
    /// There is no second socket, or an affinity was asked for one.
    pub fn places(&self, topology: &Topology) -> Result<Vec<Place>, LabError> {
        let has = |socket: u32| self.sockets.contains(&socket);
        if has(1) && topology.other_cores.is_empty() {
            return Err(LabError::Lacks(
                "there is no second socket here whose cores and memory threads may use".into(),
            ));
        }
        match (has(0) && has(1), self.affinity.as_slice()) {
            (true, asked) => {
                let asked = or_usual(asked, &[Affinity::Close]);
                Ok(asked.into_iter().map(Place::Both).collect())
            }
            (false, []) => Ok(vec![Place::Socket(u32::from(has(1)))]),
            (false, _) => Err(LabError::Nothing(
                "--affinity is of threads on both sockets; add --sockets 0,1".into(),
            )),
        }
    }
}

/// A kernel of this many threads, all arrays on one tier.
pub(crate) fn load(tier: &TierName, op: Op, kernel: Kernel, threads: u32, set: Bytes) -> Load {
    Load::new(tier, op, Pattern::Sequential, threads, set).reading(
        kernel.sources(),
        1,
        tier,
        kernel.dataflow(),
    )
}

/// Bytes of a thread's arrays by STREAM's rule, within the tier.
pub(crate) fn arrays(topology: &Topology, tier: &Tier, kernel: Kernel, threads: u32) -> Bytes {
    let wide = u64::from(threads.max(1));
    let caches = caches_in_reach(topology, threads).get();
    let share = caches.saturating_mul(TIMES_CACHES).div_ceil(wide);
    let one = share.max(LEAST_SHARE.get());
    let granule = GRANULE.get();
    let wanted = one
        .saturating_mul(u64::from(kernel.sources()) + 1)
        .next_multiple_of(granule);
    let room = tier.capacity.get() / PART_OF_TIER / wide;
    let room = (room - room % granule).max(granule.min(tier.capacity.get()));
    Bytes(wanted.min(room))
}

/// What the first threads on the other socket change where those of one fill their socket.
fn boundary(points: &[Point], tier: &TierName, cores: u32) -> Option<Verdict> {
    let close = |p: &&Point| {
        let own = p.experiment == NAME && p.tier == *tier;
        own && p.affinity == Some(Affinity::Close)
    };
    let mut parts = Vec::new();
    for kernel in Kernel::ALL {
        let of = |p: &&Point| p.kernel.as_deref() == Some(kernel.name());
        let points = || points.iter().filter(close).filter(of);
        let full = points().find(|p| p.threads == cores).and_then(|p| p.gbps);
        let last = (points().filter(|p| p.threads > cores)).max_by_key(|p| p.threads);
        if let (Some(full), Some((threads, both))) =
            (full, last.and_then(|p| Some((p.threads, p.gbps?))))
        {
            let change = (both.get() / full.get() - 1.0) * 100.0;
            parts.push(format!(
                "{} {change:+.0} % ({threads} threads)",
                kernel.name()
            ));
        }
    }
    (!parts.is_empty()).then(|| {
        Verdict::new(
            Severity::Note,
            format!("{tier} past the socket"),
            format!(
                "beyond the {cores} cores of the first socket, {}",
                parts.join(", ")
            ),
        )
    })
}

/// The best of each kernel and store, in one line.
fn best_kernels(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let mut best: Vec<(String, f64, &Point)> = Vec::new();
    for point in points {
        let (Some(kernel), Some(gbps)) = (&point.kernel, point.gbps) else {
            continue;
        };
        if point.experiment != NAME || point.tier != *tier {
            continue;
        }
        let name = format!("{kernel} with {}", point.op);
        match best.iter_mut().find(|known| known.0 == name) {
            Some(known) if known.1 < gbps.get() => (known.1, known.2) = (gbps.get(), point),
            Some(_) => {}
            None => best.push((name, gbps.get(), point)),
        }
    }
    let parts: Vec<String> = best
        .iter()
        .map(|(name, gbps, point)| {
            let threads = point.threads;
            let plural = if threads == 1 { "" } else { "s" };
            format!("{name} {gbps:.1} GB/s ({threads} thread{plural})")
        })
        .collect();
    (!parts.is_empty()).then(|| {
        Verdict::new(
            Severity::Note,
            format!("{tier} STREAM"),
            format!("best {}", parts.join(", ")),
        )
    })
}
