//! Arguments of `weir bench all`.

use weir_lab::{LabError, PointSpec, all};
use weir_model::topology::Topology;

use super::names;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench all --quick
  weir bench all --on emr2s+cxl-a --format json")]
pub struct Args {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Each experiment's quick form.
    #[arg(long)]
    quick: bool,
}

impl Args {
    /// The points, and what this machine is too small for.
    pub(super) fn plan(
        &self,
        topology: &Topology,
    ) -> Result<(Vec<PointSpec>, Vec<String>), LabError> {
        let options = all::Options {
            tiers: names(&self.tier),
            quick: self.quick,
        };
        all::plan(topology, &options)
    }
}
