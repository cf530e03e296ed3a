//! `weir bench movement`: how fast bytes are copied within and between tiers, by method (MEMO
//! §4.3.3 and §4.4).
//!
//! The processor copies with loads and ordinary stores (what a plain `memcpy` does), with loads and
//! non-temporal stores, or with 64-byte direct stores. The Data Streaming Accelerator copies what
//! descriptors name: waited for one by one (`dsa_sync`) or with several under way (`dsa_async`),
//! alone or in batches. A figure counts the bytes that are moved, once.

use std::str::FromStr;

use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::document::Point;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use super::point_study::{About, PointStudy};
use crate::plan::{Load, check_threads, choose_tiers, or_usual};
use crate::room::working_set;
use crate::verdict::{ALIKE, are_apart};
use crate::view::{Best, Medium, View};
use crate::{LabError, PointSpec, Severity, Threads, Verdict};

const NAME: &str = "movement";

weir_model::named! {
    /// A way to copy.
    #[derive(serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Method {
        /// Loads and ordinary stores.
        Memcpy = "memcpy",
        /// Loads and non-temporal stores.
        NtCopy = "nt_copy",
        /// 64-byte direct stores, which name source and destination.
        Movdir64b = "movdir64b",
        /// The accelerator, each submission waited for.
        DsaSync = "dsa_sync",
        /// The accelerator, several submissions under way.
        DsaAsync = "dsa_async",
    }
}

impl Method {
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
        Method::named(&plain)
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

/// How fast bytes are copied within and between tiers, by method.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench movement
  weir bench movement --on emr2s+cxl-a --source dram --tier cxl0
  weir bench movement --method dsa_async --batch 1,16,128 --block 4K,2M")]
pub struct Movement {
    /// Tiers that are written [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// Tiers that are read [default: all].
    #[arg(long = "source", value_delimiter = ',', value_name = "TIER")]
    pub sources: Vec<TierName>,
    /// Methods: memcpy, nt_copy, movdir64b, dsa_sync, dsa_async [default: all].
    #[arg(long = "method", value_delimiter = ',', value_name = "METHOD")]
    pub methods: Vec<Method>,
    /// Thread counts [default: 1].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub threads: Vec<Threads>,
    /// Descriptors submitted to the accelerator together [default: 1,16,128].
    #[arg(long = "batch", value_delimiter = ',', value_name = "N")]
    pub batches: Vec<u32>,
    /// Bytes that one descriptor moves [default: 4K; and 2M for single ones].
    #[arg(long = "block", value_delimiter = ',', value_name = "SIZE")]
    pub blocks: Vec<Bytes>,
    /// Descriptors of 4 KiB only.
    #[arg(long)]
    pub quick: bool,
}

impl PointStudy for Movement {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench movement";
    const TITLE: &'static str = "Movement";
    const WORDS: &'static str = "Bytes that are copied, counted once, by method. Rows are sources, columns are destinations.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        check_threads(&Threads::all(&self.threads), topology, 0)?;
        if self.batches.contains(&0) {
            return Err(LabError::Nothing(
                "a batch of no descriptors moves nothing".into(),
            ));
        }
        let mut points = Vec::new();
        for source in choose_tiers(topology, &self.sources)? {
            for dest in choose_tiers(topology, &self.tiers)? {
                for method in or_usual(&self.methods, &Method::ALL) {
                    for threads in or_usual(&Threads::all(&self.threads), &[1]) {
                        for pattern in patterns(method, self)? {
                            let load = copy(topology, source, dest, method.op(), pattern, threads)?;
                            points.push(PointSpec::alone(NAME, load));
                        }
                    }
                }
            }
        }
        Ok(points)
    }

    fn asked(&self) -> Vec<Op> {
        self.methods.iter().map(|method| method.op()).collect()
    }

    fn case(point: &Point) -> Option<String> {
        let name = kernel(point);
        Some(match (point.batch, point.block_bytes) {
            (Some(1), Some(bytes)) => format!("{name} {bytes}"),
            (Some(batch), Some(bytes)) => format!("{name} {batch} x {bytes}"),
            _ => name.to_owned(),
        })
    }

    fn answer(points: &[Point], _: &Topology) -> Vec<Verdict> {
        copies(points)
    }

    fn views(_: &[Point], _: About<'_>) -> Vec<View> {
        vec![
            View::grid(
                "points",
                "Copies by {threads}: bytes moved, by method and tiers",
                "case",
                &["source", "tier"],
                "gbps",
            )
            .each(&["threads"])
            .on(Medium::Text)
            .rows_are("method"),
            View::grid(
                "points",
                "Copies by {threads}, from rows to columns",
                "source",
                &["tier"],
                "gbps",
            )
            .each(&["threads"])
            .panels(&["case"], Best::OfPair)
            .rows_are("from")
            .on(Medium::Page),
        ]
    }

    fn in_all(tiers: &[TierName], quick: bool) -> Option<Self> {
        Some(Self {
            tiers: tiers.to_vec(),
            sources: tiers.to_vec(),
            quick,
            ..Self::default()
        })
    }
}

fn patterns(method: Method, options: &Movement) -> Result<Vec<Pattern>, LabError> {
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
pub(crate) fn copy(
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

/// For each pair of tiers and one thread, the best loop and the accelerator against it.
fn copies(points: &[Point]) -> Vec<Verdict> {
    let such = || {
        points
            .iter()
            .filter(|p| p.experiment == NAME && p.threads == 1)
    };
    let mut pairs: Vec<(&TierName, &TierName)> = Vec::new();
    for point in such() {
        let pair = (point.source.as_ref().unwrap_or(&point.tier), &point.tier);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
        .into_iter()
        .filter_map(|(source, dest)| {
            let of_pair: Vec<&Point> = such()
                .filter(|p| p.source.as_ref().unwrap_or(&p.tier) == source && p.tier == *dest)
                .collect();
            let text = advice(&of_pair)?;
            Some(Verdict::new(
                Severity::Note,
                format!("{source} to {dest}"),
                text,
            ))
        })
        .collect()
}

fn advice(points: &[&Point]) -> Option<String> {
    let best = |offloaded: bool, synchronous: bool| {
        points
            .iter()
            .filter(|p| p.batch.is_some() == offloaded)
            .filter(|p| !synchronous || (p.batch == Some(1) && kernel(p) == "dsa_sync"))
            .filter_map(|p| Some((p.gbps?.get(), *p)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (by_core, fastest_loop) = best(false, false)?;
    let mut text = format!(
        "{} is the fastest loop ({by_core:.1} GB/s)",
        kernel(fastest_loop)
    );
    let Some((offloaded, point)) = best(true, false) else {
        return Some(text);
    };
    let mut how = format!(
        "{offloaded:.1} GB/s, {} in batches of {}",
        kernel(point),
        point.batch.unwrap_or(1)
    );
    if let Some((one, _)) = best(true, true) {
        how += &format!("; {one:.1} GB/s if each page is waited for");
    }
    text += &if offloaded <= by_core * (1.0 + ALIKE) {
        format!("; the accelerator gives no more ({how})")
    } else if are_apart(point, fastest_loop) {
        let times = offloaded / by_core;
        format!("; the accelerator moves {times:.1}x that ({how}): give pages to it")
    } else {
        format!("; whether the accelerator gives more is not known ({how}): the intervals overlap")
    };
    Some(text)
}

fn kernel(point: &Point) -> &str {
    point.kernel.as_deref().unwrap_or(point.op.name())
}
