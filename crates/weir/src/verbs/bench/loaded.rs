//! Arguments of `weir bench loaded`.

use weir_lab::loaded::{self, Mix};
use weir_lab::{LabError, PointSpec};
use weir_model::topology::Topology;
use weir_model::units::Nanos;

use super::{Threads, names};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A mix is what crosses the memory interface, reads:writes; a temporal store reads
its line first, so that stores alone are 1:1. MLC's -W 0, 3, 2, 4, 5 and 6 are
reads, 3:1, 2:1, 3:2, 1:1 and nt_writes.

Examples:
  weir bench loaded --quick
  weir bench loaded --on emr2s+cxl-a --tier cxl0 --mix reads,1:1
  weir bench loaded --mix nt_writes --threads 4 --pause 0ns,50ns,500ns")]
pub struct Args {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Mixes: reads, 3:1, 1:1, nt_writes, ... [default: six].
    #[arg(long, value_delimiter = ',', value_name = "MIX")]
    mix: Vec<Mix>,
    /// Threads that load, beside the one that is timed [default: all others].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    threads: Vec<Threads>,
    /// Pauses of each loading thread between two lines [default: a series].
    #[arg(long, value_delimiter = ',', value_name = "TIME")]
    pause: Vec<Nanos>,
    /// Two mixes and fewer pauses.
    #[arg(long)]
    quick: bool,
}

impl Args {
    pub(super) fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let options = loaded::Options {
            tiers: names(&self.tier),
            mixes: self.mix.clone(),
            threads: Threads::all(&self.threads),
            pauses: self.pause.clone(),
            quick: self.quick,
        };
        loaded::plan(topology, &options)
    }
}
