//! `weir bench all`: every study of points in one document.

use weir_model::topology::{TierName, Topology};

use super::POINT_STUDIES;
use crate::study::{Points, Study};
use crate::{Lab, LabError, PointSpec};

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
    /// The points, and what this machine is too small for, with the reason.
    ///
    /// # Errors
    /// A tier is unknown.
    pub fn plan(&self, topology: &Topology) -> Result<(Vec<PointSpec>, Vec<String>), LabError> {
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

impl Study for All {
    const VERB: &'static str = "bench all";
    type Output = Points;

    fn run(&self, lab: &Lab<'_>) -> Result<Points, LabError> {
        let (plan, left_out) = self.plan(lab.topology())?;
        for reason in left_out {
            lab.warn(reason);
        }
        Ok(Points::of(lab.measure(plan, &[])?))
    }
}
