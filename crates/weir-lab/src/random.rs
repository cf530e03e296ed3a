//! Experiment `random`: how many bytes a second threads move in blocks at random, by instruction,
//! block size and thread count (MEMO §4.3.2).
//!
//! A block is gone through line by line; the next one lies anywhere in the thread's working set.
//! Posted stores are fenced after each block, so that a device sees no more open blocks than there
//! are threads. Small blocks show what an open row and a prefetcher are worth; the best block for
//! posted stores shows how much a device takes in at once.

use weir_model::access::{Op, Pattern};
use weir_model::document::Experiment;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::bandwidth::beyond_caches;
use crate::plan::{Load, check_threads, check_working_set, choose_tiers, or_usual};
use crate::{LabError, PointSpec};

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

/// What to leave out of the whole experiment, or to put in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Tiers; empty means all.
    pub tiers: Vec<TierName>,
    /// Instructions; empty means [`OPS`].
    pub ops: Vec<Op>,
    /// Bytes in a block; empty means powers of two from 1 to 64 KiB.
    pub blocks: Vec<Bytes>,
    /// Thread counts; empty means powers of two up to 32.
    pub threads: Vec<u32>,
    /// Bytes that one thread touches; `None` means enough to leave the caches behind.
    pub working_set: Option<Bytes>,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
    /// Powers of four of blocks and threads.
    pub quick: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tiers: Vec::new(),
            ops: Vec::new(),
            blocks: Vec::new(),
            threads: Vec::new(),
            working_set: None,
            prefetch: true,
            quick: false,
        }
    }
}

/// The points of the experiment: by tier, then instruction, then block, then threads.
///
/// # Errors
/// A tier is unknown, a thread count is zero or above the number of cores, or a block is no
/// multiple of a line or does not fit the working set.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    check_threads(&options.threads, topology, 0)?;
    if let Some(size) = options.working_set {
        check_working_set(size)?;
    }
    let (blocks, threads) = if options.quick {
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
    for tier in choose_tiers(topology, &options.tiers)? {
        for op in or_usual(&options.ops, &OPS) {
            for block in or_usual(&options.blocks, &blocks) {
                for threads in or_usual(&options.threads, &threads) {
                    let set = options
                        .working_set
                        .unwrap_or_else(|| beyond_caches(topology, tier, threads, TIMES_CACHES));
                    check_block(block, set)?;
                    let pattern = Pattern::RandomBlock { block };
                    let load = Load::new(&tier.name, op, pattern, threads, set);
                    points.push(PointSpec::alone(
                        Experiment::Random,
                        load.prefetch(options.prefetch),
                    ));
                }
            }
        }
    }
    Ok(points)
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
