//! Arguments of `weir bench tail`.

use weir_lab::tail::{self, CoRunners};
use weir_lab::{LabError, PointSpec};
use weir_model::topology::Topology;

use super::{Threads, names};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench tail --quick
  weir bench tail --on emr2s+cxl-a --tier dram,cxl0 --beside readers
  weir bench tail --beside writers --threads 1,4,16 --format json")]
pub struct Args {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// What runs beside: chasers, readers, writers [default: each].
    #[arg(long, value_delimiter = ',', value_name = "KIND")]
    beside: Vec<CoRunners>,
    /// Threads beside the one that is timed [default: powers of two to 32].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    threads: Vec<Threads>,
    /// Fewer thread counts, and no quantiles beyond p99.99.
    #[arg(long)]
    quick: bool,
}

impl Args {
    pub(super) fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let options = tail::Options {
            tiers: names(&self.tier),
            co_runners: self.beside.clone(),
            threads: Threads::all(&self.threads),
            quick: self.quick,
        };
        tail::plan(topology, &options)
    }
}
