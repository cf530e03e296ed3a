//! `weir bench all`: every study of points in one document.

use weir_model::document::Point;
use weir_model::topology::{TierName, Topology};

use super::POINT_STUDIES;
use crate::study::{About, PointStudy};
use crate::view::View;
use crate::{LabError, PointSpec, Verdict};

/// Every experiment, in one document.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench all --quick
  weir bench all --on emr2s+cxl-a --format json")]
pub struct All {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// Each experiment's quick form.
    #[arg(long)]
    pub quick: bool,
}

impl All {
    /// The points of every study that fits the machine, and why others do not fit.
    fn parts(&self, topology: &Topology) -> Result<(Vec<PointSpec>, Vec<String>), LabError> {
        let (mut points, mut left_out) = (Vec::new(), Vec::new());
        for study in POINT_STUDIES {
            match (study.plan_in_all)(topology, &self.tiers, self.quick) {
                None => {}
                Some(Ok(more)) => points.extend(more),
                Some(Err(LabError::Nothing(reason))) => {
                    left_out.push(format!("{} is left out: {reason}", study.name));
                }
                Some(Err(error)) => return Err(error),
            }
        }
        Ok((points, left_out))
    }
}

impl PointStudy for All {
    const NAME: &'static str = "all";
    const VERB: &'static str = "bench all";
    const TITLE: &'static str = "";
    const WORDS: &'static str = "";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        Ok(self.parts(topology)?.0)
    }

    fn left_out(&self, topology: &Topology) -> Vec<String> {
        self.parts(topology)
            .map_or(Vec::new(), |(_, left_out)| left_out)
    }

    fn answer(_: &[Point], _: &Topology) -> Vec<Verdict> {
        Vec::new()
    }

    fn views(_: &[Point], _: About<'_>) -> Vec<View> {
        Vec::new()
    }
}
