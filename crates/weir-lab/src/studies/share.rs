//! `weir bench share`: how long it takes to hand one line over between two cores.
//!
//! Two threads take turns with compare-and-swap on one line. A turn is over when the other core has
//! seen it, so that each figure is one way. What lies between the cores (a shared cache, a mesh, a
//! socket's edge) shows in which pairs are near. The line's tier matters only where a hand-over
//! goes through memory.

use weir_model::access::{Op, Pattern};
use weir_model::document::Point;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use super::point_study::{About, PointStudy};
use crate::plan::{Load, choose_tiers};
use crate::verdict::{ALIKE, are_apart};
use crate::view::View;
use crate::{LabError, PointSpec, Severity, Verdict};

const NAME: &str = "share";

/// Cores of which every pair is measured unless others are asked for, spread over all of them.
const CORES: usize = 12;
/// And in a quick run.
const QUICK_CORES: usize = 4;
/// Memory that holds the line: two, the least that a working set has.
pub(crate) const LINE: Bytes = Bytes(2 * LINE_BYTES);

/// How long two cores take to hand one line over.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench share
  weir bench share --on emr2s --cores 0,1,31 --format csv")]
pub struct Share {
    /// Tiers that the line lies on [default: the first].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// Cores of which every pair is measured [default: 12 spread over all].
    #[arg(long, value_delimiter = ',', value_name = "CORE")]
    pub cores: Vec<u32>,
    /// Four cores only.
    #[arg(long)]
    pub quick: bool,
}

impl PointStudy for Share {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench share";
    const TITLE: &'static str = "Sharing a line";
    const WORDS: &'static str = "Two cores take turns on one line.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let cores = choose_cores(topology, self)?;
        let mut tiers = choose_tiers(topology, &self.tiers)?;
        if self.tiers.is_empty() {
            tiers.truncate(1);
        }
        let mut points = Vec::new();
        for tier in tiers {
            for (at, &one) in cores.iter().enumerate() {
                for &other in cores.iter().skip(at + 1) {
                    let load = Load::new(&tier.name, Op::Cas, Pattern::SharedLine, 2, LINE);
                    points.push(PointSpec::alone(
                        NAME,
                        load.prefetch(false).on(&[one, other]),
                    ));
                }
            }
        }
        Ok(points)
    }

    fn answer(points: &[Point], _: &Topology) -> Vec<Verdict> {
        hand_overs(points).into_iter().collect()
    }

    fn views(_: &[Point], _: About<'_>) -> Vec<View> {
        vec![
            View::grid(
                "points",
                "Time to hand a line of {tier} from core to core, one way",
                "cores",
                &["cores"],
                "mean_ns",
            )
            .each(&["tier"])
            .mirrored()
            .rows_are("core"),
        ]
    }

    fn in_all(tiers: &[TierName], quick: bool) -> Option<Self> {
        Some(Self {
            tiers: tiers.iter().take(1).cloned().collect(),
            quick,
            ..Self::default()
        })
    }
}

fn choose_cores(topology: &Topology, options: &Share) -> Result<Vec<u32>, LabError> {
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

/// Nearest, median and farthest pair.
fn hand_overs(points: &[Point]) -> Option<Verdict> {
    let mut pairs: Vec<(f64, &Point)> = points
        .iter()
        .filter(|p| p.experiment == NAME && p.cores.len() == 2)
        .filter_map(|p| Some((p.ns?.mean.get(), p)))
        .collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (&(least, near), &(most, far)) = (pairs.first()?, pairs.last()?);
    let median = pairs.get(pairs.len() / 2)?.0;
    let cores = |p: &Point| {
        let cores: Vec<String> = p.cores.iter().map(u32::to_string).collect();
        cores.join(" and ")
    };
    let text = if most > least * (1.0 + ALIKE) && are_apart(near, far) {
        format!(
            "a line changes hands in {least:.0} ns between the nearest cores ({}), {median:.0} ns \
             in the median, {most:.0} ns between the farthest ({})",
            cores(near),
            cores(far)
        )
    } else {
        format!("a line changes hands in {median:.0} ns, whichever cores share it")
    };
    Some(Verdict::new(Severity::Note, "shared line", text))
}
