//! `weir bench random`: how many bytes a second threads move in blocks at random, by instruction,
//! block size and thread count (MEMO §4.3.2).
//!
//! A block is gone through line by line; the next one lies anywhere in the thread's working set.
//! Posted stores are fenced after each block, so that a device sees no more open blocks than there
//! are threads. Small blocks show what an open row and a prefetcher are worth; the best block for
//! posted stores shows how much a device takes in at once.

use weir_model::access::{Op, Pattern};
use weir_model::document::Point;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use super::point_study::{About, PointStudy};
use crate::plan::{Load, check_threads, check_working_set, choose_tiers, or_usual};
use crate::room::beyond_caches;
use crate::verdict::are_apart;
use crate::view::{Best, Medium, View};
use crate::{LabError, PointSpec, Severity, Threads, Verdict};
use std::collections::BTreeMap;

const NAME: &str = "random";

/// The instructions of the experiment unless others are asked for: one of each kind of traffic.
pub const OPS: [Op; 3] = [Op::Ld, Op::St, Op::NtSt];
/// Blocks in KiB (MEMO Fig 5), and those of a quick run.
const BLOCKS_KIB: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
const QUICK_BLOCKS_KIB: [u64; 4] = [1, 4, 16, 64];
/// Thread counts, as far as there are cores, and those of a quick run.
const THREADS: [u32; 6] = [1, 2, 4, 8, 16, 32];
const QUICK_THREADS: [u32; 3] = [1, 4, 16];

/// Blocks come back at random and not after all others, so that a share of them hits the caches; with
/// working sets this many times as large together, a tenth.
const TIMES_CACHES: u64 = 10;

/// How many bytes a second threads move in blocks at random.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench random --quick
  weir bench random --on emr2s+cxl-a --tier cxl0 --op nt_st --threads 1,2,4
  weir bench random --block 1K,16K,64K --no-prefetch --format csv")]
pub struct Random {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// Instructions [default: ld,st,nt_st].
    #[arg(long = "op", value_delimiter = ',', value_name = "OP")]
    pub ops: Vec<Op>,
    /// Bytes in a block: 1K, 64K [default: powers of two, 1 to 64 KiB].
    #[arg(long = "block", value_delimiter = ',', value_name = "SIZE")]
    pub blocks: Vec<Bytes>,
    /// Thread counts and ranges: 1,2,4 or 1..32 [default: powers of two to 32].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub threads: Vec<Threads>,
    /// Bytes that one thread touches [default: enough to leave the caches].
    #[arg(long = "size", value_name = "SIZE")]
    pub working_set: Option<Bytes>,
    /// Switch the hardware prefetchers off.
    #[arg(long)]
    pub no_prefetch: bool,
    /// Fewer blocks and thread counts.
    #[arg(long)]
    pub quick: bool,
}

impl PointStudy for Random {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench random";
    const TITLE: &'static str = "Random blocks";
    const WORDS: &'static str = "Lines in order inside a block, blocks at random. All pictures of a tier share one scale of shades.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        check_threads(&Threads::all(&self.threads), topology, 0)?;
        if let Some(size) = self.working_set {
            check_working_set(size)?;
        }
        let (blocks, threads) = if self.quick {
            (&QUICK_BLOCKS_KIB[..], &QUICK_THREADS[..])
        } else {
            (&BLOCKS_KIB[..], &THREADS[..])
        };
        let blocks: Vec<Bytes> = blocks.iter().map(|&kib| Bytes::kib(kib)).collect();
        let cores = topology.cores.len();
        let threads: Vec<u32> = (threads.iter().copied())
            .filter(|&n| n as usize <= cores)
            .collect();
        let mut points = Vec::new();
        for tier in choose_tiers(topology, &self.tiers)? {
            for op in or_usual(&self.ops, &OPS) {
                for block in or_usual(&self.blocks, &blocks) {
                    for threads in or_usual(&Threads::all(&self.threads), &threads) {
                        let set = self.working_set.unwrap_or_else(|| {
                            beyond_caches(topology, tier, threads, TIMES_CACHES)
                        });
                        check_block(block, set)?;
                        let pattern = Pattern::RandomBlock { block };
                        let load = Load::new(&tier.name, op, pattern, threads, set);
                        points.push(PointSpec::alone(NAME, load.prefetch(!self.no_prefetch)));
                    }
                }
            }
        }
        Ok(points)
    }

    fn asked(&self) -> Vec<Op> {
        self.ops.clone()
    }

    fn answer(points: &[Point], topology: &Topology) -> Vec<Verdict> {
        let tiers = topology.tiers.iter().map(|t| &t.name);
        let each = tiers.flat_map(|tier| {
            Op::ALL
                .into_iter()
                .filter_map(move |op| best_blocks(points, tier, op))
        });
        each.collect()
    }

    fn views(_: &[Point], _: About<'_>) -> Vec<View> {
        vec![
            View::grid(
                "points",
                "Random blocks on {tier}, {op}{prefetch}: by threads and block",
                "threads",
                &["block_bytes"],
                "gbps",
            )
            .each(&["tier", "op", "prefetch"])
            .on(Medium::Text),
            View::grid(
                "points",
                "Random blocks on {tier}",
                "block_bytes",
                &["threads"],
                "gbps",
            )
            .each(&["tier"])
            .panels(&["op", "prefetch"], Best::OfColumn)
            .rows_are("block")
            .on(Medium::Page),
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

fn check_block(block: Bytes, set: Bytes) -> Result<(), LabError> {
    let bytes = block.get();
    if bytes == 0 || !bytes.is_multiple_of(LINE_BYTES) || bytes > set.get() {
        return Err(LabError::Block {
            bytes,
            line: LINE_BYTES,
            most: set.get(),
        });
    }
    Ok(())
}

/// A larger block is worse if it gives less than this share of the best.
const WORSE: f64 = 0.95;

/// The best block for each thread count for which the largest is not as good.
fn best_blocks(points: &[Point], tier: &TierName, op: Op) -> Option<Verdict> {
    let mut by_threads: BTreeMap<u32, Vec<(Bytes, f64, &Point)>> = BTreeMap::new();
    for point in points {
        let mine = point.experiment == NAME && point.tier == *tier && point.op == op;
        if let (true, Some(block), Some(gbps)) = (mine, point.block_bytes, point.gbps) {
            let row = by_threads.entry(point.threads).or_default();
            row.push((block, gbps.get(), point));
        }
    }
    let mut sweet = Vec::new();
    for (threads, mut row) in by_threads.clone() {
        row.sort_by_key(|figure| figure.0);
        let best = row
            .iter()
            .copied()
            .reduce(|a, b| if b.1 > a.1 { b } else { a });
        if let (Some((block, gbps, peak)), Some(&(largest, last, end))) = (best, row.last())
            && last < gbps * WORSE
            && are_apart(peak, end)
        {
            let plural = if threads == 1 { "" } else { "s" };
            sweet.push(format!(
                "{block} with {threads} thread{plural} ({gbps:.1} GB/s; {last:.1} at {largest})"
            ));
        }
    }
    if by_threads.values().all(|row| row.len() < 2) {
        return None;
    }
    let text = if sweet.is_empty() {
        "no block is better than the largest by more than 5 % and the noise".to_owned()
    } else {
        format!("the best block is {}", sweet.join(", "))
    };
    Some(Verdict::new(
        Severity::Note,
        format!("{tier} {op} at random"),
        text,
    ))
}
