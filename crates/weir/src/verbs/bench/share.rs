//! Arguments of `weir bench share`.

use weir_lab::{LabError, PointSpec, share};
use weir_model::topology::Topology;

use super::names;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench share
  weir bench share --on emr2s --cores 0,1,31 --format csv")]
pub struct Args {
    /// Tiers that the line lies on [default: the first].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Cores of which every pair is measured [default: 12 spread over all].
    #[arg(long, value_delimiter = ',', value_name = "CORE")]
    cores: Vec<u32>,
    /// Four cores only.
    #[arg(long)]
    quick: bool,
}

impl Args {
    pub(super) fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let options = share::Options {
            tiers: names(&self.tier),
            cores: self.cores.clone(),
            quick: self.quick,
        };
        share::plan(topology, &options)
    }
}
