//! Arguments of `weir bench movement`.

use weir_lab::movement::{self, Method};
use weir_lab::{LabError, PointSpec};
use weir_model::access::Op;
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use super::{Threads, names};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench movement
  weir bench movement --on emr2s+cxl-a --source dram --tier cxl0
  weir bench movement --method dsa_async --batch 1,16,128 --block 4K,2M")]
pub struct Args {
    /// Tiers that are written [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Tiers that are read [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    source: Vec<String>,
    /// Methods: memcpy, nt_copy, movdir64b, dsa_sync, dsa_async [default: all].
    #[arg(long, value_delimiter = ',', value_name = "METHOD")]
    method: Vec<Method>,
    /// Thread counts [default: 1].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    threads: Vec<Threads>,
    /// Descriptors submitted to the accelerator together [default: 1,16,128].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    batch: Vec<u32>,
    /// Bytes that one descriptor moves [default: 4K; and 2M for single ones].
    #[arg(long, value_delimiter = ',', value_name = "SIZE")]
    block: Vec<Bytes>,
    /// Descriptors of 4 KiB only.
    #[arg(long)]
    quick: bool,
}

impl Args {
    /// The instructions of the methods that were asked for by name.
    pub(super) fn asked(&self) -> Vec<Op> {
        self.method.iter().map(|method| method.op()).collect()
    }

    pub(super) fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let options = movement::Options {
            tiers: names(&self.tier),
            sources: names(&self.source),
            methods: self.method.clone(),
            threads: Threads::all(&self.threads),
            batches: self.batch.clone(),
            blocks: self.block.clone(),
            quick: self.quick,
        };
        movement::plan(topology, &options)
    }
}
