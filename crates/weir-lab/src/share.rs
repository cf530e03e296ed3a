//! Experiment `share`: how long it takes to hand one line over between two cores.
//!
//! Two threads take turns with compare-and-swap on one line. A turn is over when the other core has
//! seen it, so that each figure is one way. What lies between the cores (a shared cache, a mesh, a
//! socket's edge) shows in which pairs are near. The line's tier matters only where a hand-over
//! goes through memory.

use weir_model::access::{Op, Pattern};
use weir_model::document::Experiment;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::plan::{Load, choose_tiers};
use crate::{LabError, PointSpec};

/// Cores of which every pair is measured unless others are asked for, spread over all of them.
const CORES: usize = 12;
/// And in a quick run.
const QUICK_CORES: usize = 4;
/// Memory that holds the line: two, the least that a working set has.
pub(crate) const LINE: Bytes = Bytes(2 * LINE_BYTES);

/// What to leave out of the whole experiment, or to put in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Tiers that the line lies on; empty means the first.
    pub tiers: Vec<TierName>,
    /// Cores of which every pair is measured; empty means twelve spread over all of them.
    pub cores: Vec<u32>,
    /// Four cores only.
    pub quick: bool,
}

/// The points of the experiment: by tier, every pair of the chosen cores.
///
/// # Errors
/// A tier or core is unknown, a core is named twice, or there are not two.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    let cores = choose_cores(topology, options)?;
    let mut tiers = choose_tiers(topology, &options.tiers)?;
    if options.tiers.is_empty() {
        tiers.truncate(1);
    }
    let mut points = Vec::new();
    for tier in tiers {
        for (at, &one) in cores.iter().enumerate() {
            for &other in cores.iter().skip(at + 1) {
                let load = Load::new(&tier.name, Op::Cas, Pattern::SharedLine, 2, LINE);
                points.push(PointSpec::alone(
                    Experiment::Share,
                    load.prefetch(false).on(&[one, other]),
                ));
            }
        }
    }
    Ok(points)
}

fn choose_cores(topology: &Topology, options: &Options) -> Result<Vec<u32>, LabError> {
    let all = &topology.cores;
    let cores = if options.cores.is_empty() {
        let most = if options.quick { QUICK_CORES } else { CORES };
        spread(all, most)
    } else {
        options.cores.clone()
    };
    for (at, core) in cores.iter().enumerate() {
        if !all.contains(core) {
            let known: Vec<String> = all.iter().map(u32::to_string).collect();
            return Err(LabError::Nothing(format!(
                "no core {core} for experiments here; there are {}",
                known.join(", ")
            )));
        }
        if cores.iter().take(at).any(|before| before == core) {
            return Err(LabError::Nothing(format!("core {core} is named twice")));
        }
    }
    if cores.len() < 2 {
        return Err(LabError::Nothing(
            "a line is shared by two cores at least".into(),
        ));
    }
    Ok(cores)
}

/// At most `most` of these at equal distances, the first and the last among them.
fn spread(all: &[u32], most: usize) -> Vec<u32> {
    if all.len() <= most {
        return all.to_vec();
    }
    let last = all.len() - 1;
    (0..most)
        .filter_map(|n| all.get(n * last / (most - 1)).copied())
        .collect()
}
