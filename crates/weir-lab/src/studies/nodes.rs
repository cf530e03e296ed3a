//! `weir bench nodes`: latency and bandwidth from each node with cores to each memory, as Intel MLC's `--latency_matrix`
//! and `--bandwidth_matrix` show first.
//!
//! Latency is that of one thread which chases pointers, prefetchers off; bandwidth is that of loads from every core
//! of the initiator's socket.

use weir_model::access::{Op, Pattern};
use weir_model::document::Point;
use weir_model::topology::{TierName, Topology};

use super::loaded::chase;
use super::point_study::{About, PointStudy};
use crate::plan::{Load, choose_tiers};
use crate::room::working_set;
use crate::verdict::{ALIKE, are_apart};
use crate::view::{Only, View};
use crate::{LabError, PointSpec, Severity, Verdict};

const NAME: &str = "nodes";

/// Latency and bandwidth from each socket to each memory.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench nodes
  weir bench nodes --on emr2s+cxl-a --tier dram,cxl0")]
pub struct Nodes {
    /// Memory, as `weir topo` names it from the first socket [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
}

impl PointStudy for Nodes {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench nodes";
    const TITLE: &'static str = "Nodes";
    const WORDS: &'static str = "Rows are sockets with cores, columns are memories.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let mut points = Vec::new();
        for tier in choose_tiers(topology, &self.tiers)? {
            for socket in [0, 1] {
                let cores = topology.cores_of(socket).len() as u32;
                if cores == 0 {
                    continue;
                }
                let set = working_set(topology, tier, cores);
                let reads = Load::new(&tier.name, Op::Ld, Pattern::Sequential, cores, set);
                for load in [chase(topology, tier), reads] {
                    points.push(PointSpec::alone(NAME, load.on_socket(socket)));
                }
            }
        }
        Ok(points)
    }

    fn case(point: &Point) -> Option<String> {
        Some(format!("socket {}", point.socket))
    }

    fn answer(points: &[Point], _: &Topology) -> Vec<Verdict> {
        let mut all: Vec<(f64, &Point)> = (points.iter())
            .filter(|p| p.experiment == NAME)
            .filter_map(|p| Some((p.ns?.mean.get(), p)))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (Some((near, from)), Some((far, to))) = (all.first(), all.last()) else {
            return Vec::new();
        };
        let name = |p: &Point| format!("{} from socket {}", p.tier, p.socket);
        // A ratio is stated only where the intervals are apart.
        let text = match *far > near * (1.0 + ALIKE) && are_apart(from, to) {
            true => format!(
                "{} is nearest with {near:.0} ns, {} is farthest with {far:.0} ns, {:.1}x",
                name(from),
                name(to),
                far / near
            ),
            false => format!("every memory is {near:.0} to {far:.0} ns away from every socket"),
        };
        vec![Verdict::new(Severity::Note, "nodes", text)]
    }

    fn views(_: &[Point], _: About<'_>) -> Vec<View> {
        vec![
            View::grid(
                "points",
                "Latency of a dependent load",
                "case",
                &["tier"],
                "mean_ns",
            )
            .only(Only::Has("mean_ns"))
            .rows_are("from"),
            View::grid(
                "points",
                "Bandwidth of loads from every core",
                "case",
                &["tier"],
                "gbps",
            )
            .only(Only::Has("gbps"))
            .rows_are("from"),
        ]
    }
}
