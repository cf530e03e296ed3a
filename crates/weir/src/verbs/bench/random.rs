//! Arguments of `weir bench random`.

use weir_lab::{LabError, PointSpec, random};
use weir_model::access::Op;
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use super::{Threads, names};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench random --quick
  weir bench random --on emr2s+cxl-a --tier cxl0 --op nt_st --threads 1,2,4
  weir bench random --block 1K,16K,64K --no-prefetch --format csv")]
pub struct Args {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Instructions [default: ld,st,nt_st].
    #[arg(long, value_delimiter = ',', value_name = "OP")]
    pub(super) op: Vec<Op>,
    /// Bytes in a block: 1K, 64K [default: powers of two, 1 to 64 KiB].
    #[arg(long, value_delimiter = ',', value_name = "SIZE")]
    block: Vec<Bytes>,
    /// Thread counts and ranges: 1,2,4 or 1..32 [default: powers of two to 32].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    threads: Vec<Threads>,
    /// Bytes that one thread touches [default: enough to leave the caches].
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Switch the hardware prefetchers off.
    #[arg(long)]
    no_prefetch: bool,
    /// Fewer blocks and thread counts.
    #[arg(long)]
    quick: bool,
}

impl Args {
    pub(super) fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let options = random::Options {
            tiers: names(&self.tier),
            ops: self.op.clone(),
            blocks: self.block.clone(),
            threads: Threads::all(&self.threads),
            working_set: self.size,
            prefetch: !self.no_prefetch,
            quick: self.quick,
        };
        random::plan(topology, &options)
    }
}
