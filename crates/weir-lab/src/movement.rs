//! Experiment `movement`: how fast bytes are copied within and between tiers, by method (MEMO
//! §4.3.3 and §4.4).
//!
//! The processor copies with loads and ordinary stores (what a plain `memcpy` does), with loads and
//! non-temporal stores, or with 64-byte direct stores. The Data Streaming Accelerator copies what
//! descriptors name: waited for one by one (`dsa_sync`) or with several under way (`dsa_async`),
//! alone or in batches. A figure counts the bytes that are moved, once.

use std::str::FromStr;

use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::document::Experiment;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::bandwidth::working_set;
use crate::plan::{Load, check_threads, choose_tiers, or_usual};
use crate::{LabError, PointSpec};

/// A way to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Loads and ordinary stores.
    Memcpy,
    /// Loads and non-temporal stores.
    NtCopy,
    /// 64-byte direct stores, which name source and destination.
    Movdir64b,
    /// The accelerator, each submission waited for.
    DsaSync,
    /// The accelerator, several submissions under way.
    DsaAsync,
}

impl Method {
    /// Every method, in the order in which tables list them.
    pub const ALL: [Method; 5] = [
        Method::Memcpy,
        Method::NtCopy,
        Method::Movdir64b,
        Method::DsaSync,
        Method::DsaAsync,
    ];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Memcpy => "memcpy",
            Method::NtCopy => "nt_copy",
            Method::Movdir64b => "movdir64b",
            Method::DsaSync => "dsa_sync",
            Method::DsaAsync => "dsa_async",
        }
    }

    /// The instruction that writes.
    pub const fn op(self) -> Op {
        match self {
            Method::Memcpy => Op::St,
            Method::NtCopy => Op::NtSt,
            Method::Movdir64b => Op::Movdir64b,
            Method::DsaSync | Method::DsaAsync => Op::Dsa,
        }
    }

    /// The method that a load is, if it is one.
    pub fn of(load: &Load) -> Option<Self> {
        match (load.op, load.pattern) {
            (Op::St, _) => Some(Method::Memcpy),
            (Op::NtSt, _) => Some(Method::NtCopy),
            (Op::Movdir64b, _) => Some(Method::Movdir64b),
            (Op::Dsa, Pattern::Descriptors { in_flight: 1, .. }) => Some(Method::DsaSync),
            (Op::Dsa, _) => Some(Method::DsaAsync),
            _ => None,
        }
    }
}

impl FromStr for Method {
    type Err = String;

    /// Accepts the stable names, with `-` and `_` alike.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.replace('-', "_").to_lowercase();
        let known = Method::ALL.map(Method::name).join(", ");
        (Method::ALL.into_iter())
            .find(|method| method.name() == plain)
            .ok_or_else(|| format!("no method is called `{text}`; known are {known}"))
    }
}

/// Descriptors that are submitted together (MEMO Fig 4b).
pub const BATCHES: [u32; 3] = [1, 16, 128];
/// Submissions under way where they are not waited for one by one.
pub const ASYNC_DEPTH: u32 = 16;
/// Bytes that a descriptor moves: a page, and where it is alone a huge page too.
const PAGE: Bytes = Bytes::kib(4);
const HUGE_PAGE: Bytes = Bytes::mib(2);

/// What to leave out of the whole experiment, or to put in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Tiers that are written; empty means all.
    pub tiers: Vec<TierName>,
    /// Tiers that are read; empty means all.
    pub sources: Vec<TierName>,
    /// Methods; empty means all.
    pub methods: Vec<Method>,
    /// Threads; empty means one.
    pub threads: Vec<u32>,
    /// Descriptors that are submitted together; empty means [`BATCHES`].
    pub batches: Vec<u32>,
    /// Bytes that a descriptor moves; empty means 4 KiB, and 2 MiB for single ones.
    pub blocks: Vec<Bytes>,
    /// Pages of 4 KiB only.
    pub quick: bool,
}

/// The points of the experiment: by source, then destination, then method, threads, and batch.
///
/// # Errors
/// A tier is unknown, a thread count is zero or above the number of cores, a batch is empty, or a
/// descriptor moves no whole lines.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    check_threads(&options.threads, topology, 0)?;
    if options.batches.contains(&0) {
        return Err(LabError::Nothing(
            "a batch of no descriptors moves nothing".into(),
        ));
    }
    let mut points = Vec::new();
    for source in choose_tiers(topology, &options.sources)? {
        for dest in choose_tiers(topology, &options.tiers)? {
            for method in or_usual(&options.methods, &Method::ALL) {
                for threads in or_usual(&options.threads, &[1]) {
                    for pattern in patterns(method, options)? {
                        let load = copy(topology, source, dest, method.op(), pattern, threads)?;
                        points.push(PointSpec::alone(Experiment::Movement, load));
                    }
                }
            }
        }
    }
    Ok(points)
}

fn patterns(method: Method, options: &Options) -> Result<Vec<Pattern>, LabError> {
    let in_flight = match method {
        Method::Memcpy | Method::NtCopy | Method::Movdir64b => {
            return Ok(vec![Pattern::Sequential]);
        }
        Method::DsaSync => 1,
        Method::DsaAsync => ASYNC_DEPTH,
    };
    let mut patterns = Vec::new();
    for batch in or_usual(&options.batches, &BATCHES) {
        let usual: &[Bytes] = match (options.quick, batch) {
            (false, 1) => &[PAGE, HUGE_PAGE],
            _ => &[PAGE],
        };
        for bytes in or_usual(&options.blocks, usual) {
            if bytes.get() == 0 || !bytes.get().is_multiple_of(LINE_BYTES) {
                return Err(LabError::Block {
                    bytes: bytes.get(),
                    line: LINE_BYTES,
                    most: u64::MAX,
                });
            }
            patterns.push(Pattern::Descriptors {
                bytes,
                batch,
                in_flight,
            });
        }
    }
    Ok(patterns)
}

/// Threads that copy from one tier to the other, both arrays together larger than the caches and
/// within half of either tier.
fn copy(
    topology: &Topology,
    source: &Tier,
    dest: &Tier,
    op: Op,
    pattern: Pattern,
    threads: u32,
) -> Result<Load, LabError> {
    let smaller = if source.capacity < dest.capacity {
        source
    } else {
        dest
    };
    let mut set = working_set(topology, smaller, threads);
    if let Pattern::Descriptors {
        bytes,
        batch,
        in_flight,
    } = pattern
    {
        // Source and destination of everything that is under way, and as much again.
        let under_way = bytes
            .get()
            .saturating_mul(u64::from(batch) * u64::from(in_flight));
        set = set.max(Bytes(under_way.saturating_mul(4)));
        let room = smaller.capacity.get() / u64::from(threads.max(1));
        if set.get() > room {
            return Err(LabError::Block {
                bytes: bytes.get(),
                line: LINE_BYTES,
                most: room / 4 / (u64::from(batch) * u64::from(in_flight)),
            });
        }
    }
    let load = Load::new(&dest.name, op, pattern, threads, set);
    Ok(load.reading(1, 1, &source.name, Dataflow::Copy))
}
