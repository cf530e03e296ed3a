//! Arguments of `weir bench stream`.

use weir_lab::stream::{self, Kernel};
use weir_lab::{LabError, PointSpec};
use weir_model::access::Op;
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use super::{Threads, names};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench stream
  weir bench stream --kernel triad --threads 1..8
  weir bench stream --on emr2s+cxl-a --tier cxl0 --op st,nt_st")]
pub struct Args {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Kernels: copy, scale, add, triad [default: all].
    #[arg(long, value_delimiter = ',', value_name = "KERNEL")]
    kernel: Vec<Kernel>,
    /// The instruction that writes: st or nt_st [default: st].
    #[arg(long, value_delimiter = ',', value_name = "OP")]
    pub(super) op: Vec<Op>,
    /// Thread counts and ranges: 1,2,4 or 1..32 [default: up to all cores].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    threads: Vec<Threads>,
    /// Bytes of all arrays of one thread [default: STREAM's rule].
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Switch the hardware prefetchers off.
    #[arg(long)]
    no_prefetch: bool,
    /// One thread and all cores.
    #[arg(long)]
    quick: bool,
}

impl Args {
    pub(super) fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let options = stream::Options {
            tiers: names(&self.tier),
            kernels: self.kernel.clone(),
            ops: self.op.clone(),
            threads: Threads::all(&self.threads),
            working_set: self.size,
            prefetch: !self.no_prefetch,
            quick: self.quick,
        };
        stream::plan(topology, &options)
    }
}
