//! Arguments of `weir bench bandwidth`.

use weir_lab::{LabError, PointSpec, bandwidth};
use weir_model::access::Op;
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use super::{Threads, names};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench bandwidth --op ld --threads 1,2,4
  weir bench bandwidth --on spr2s+2xcxl-a --tier cxl0,cxl1 --threads 1..32
  weir bench bandwidth --no-prefetch --size 256M --format json")]
pub struct Args {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Instructions: ld, st, st_clwb, nt_st, movdir64b, cas [default: all].
    #[arg(long, value_delimiter = ',', value_name = "OP")]
    pub(super) op: Vec<Op>,
    /// Thread counts and ranges: 1,2,4 or 1..32 [default: up to all cores].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    threads: Vec<Threads>,
    /// Bytes that one thread touches [default: enough to leave the caches].
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Switch the hardware prefetchers off.
    #[arg(long)]
    no_prefetch: bool,
    /// Fewer instructions and thread counts.
    #[arg(long)]
    quick: bool,
}

impl Args {
    pub(super) fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let options = bandwidth::Options {
            tiers: names(&self.tier),
            ops: self.op.clone(),
            threads: Threads::all(&self.threads),
            working_set: self.size,
            prefetch: !self.no_prefetch,
            quick: self.quick,
        };
        bandwidth::plan(topology, &options)
    }
}
