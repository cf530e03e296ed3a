//! Arguments of `weir bench latency`.

use clap::ValueEnum;
use weir_lab::{LabError, PointSpec, latency};
use weir_model::access::{Locality, Op};
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use super::names;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench latency
  weir bench latency --tier cxl0 --on emr2s+cxl-a --size 1M,64M,1G
  weir bench latency --op ld --locality random --format csv")]
pub struct Args {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Instructions: ld, st_clwb, nt_st, ... [default: ld,st_clwb,nt_st].
    #[arg(long, value_delimiter = ',', value_name = "OP")]
    pub(super) op: Vec<Op>,
    /// Accesses at once on flushed lines, besides one; 0 for none
    /// [default: 16, or none with --quick].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    burst: Vec<u32>,
    /// Working sets of the pointer chase: 48K, 2M, 1G [default: 4 KiB and up].
    #[arg(long, value_delimiter = ',', value_name = "SIZE")]
    size: Vec<Bytes>,
    /// How far one hop may reach [default: both].
    #[arg(long, value_delimiter = ',', value_enum)]
    locality: Vec<Reach>,
    /// Fewer and smaller working sets.
    #[arg(long)]
    quick: bool,
}

/// How far a hop of a pointer chase may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reach {
    /// Within what the TLB covers: no page walks in the figure.
    TlbFriendly,
    /// Anywhere in the working set: page walks are in the figure.
    Random,
}

impl Args {
    pub(super) fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let options = latency::Options {
            tiers: names(&self.tier),
            ops: self.op.clone(),
            bursts: self.burst.clone(),
            sizes: self.size.clone(),
            localities: (self.locality.iter())
                .map(|reach| match reach {
                    Reach::TlbFriendly => Locality::TlbFriendly,
                    Reach::Random => Locality::Random,
                })
                .collect(),
            quick: self.quick,
        };
        latency::plan(topology, &options)
    }
}
