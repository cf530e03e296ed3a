//! The studies of points, a line each, and `weir bench all`, which plans all of them for one document.
//!
//! `weir bench` offers them in this order, and reports show them in it.

pub mod bandwidth;
pub mod latency;
pub mod loaded;
mod mix;
pub mod movement;
pub mod nodes;
mod point_study;
pub mod random;
pub mod share;
pub mod stream;
pub mod tail;

use std::cmp::Reverse;

use serde_json::Value;
use weir_model::document::{Point, Steadiness};
use weir_model::topology::{TierName, Topology};

pub use point_study::{About, AnyStudy, Entry, PointStudy};

use crate::verdict::{medium, trust};
use crate::view::{Only, View};
use crate::{LabError, PointSpec, Severity, Verdict};

/// Every study of points.
pub static POINT_STUDIES: &[Entry] = &[
    Entry::of::<latency::Latency>(),
    Entry::of::<tail::Tail>(),
    Entry::of::<bandwidth::Bandwidth>(),
    Entry::of::<loaded::Loaded>(),
    Entry::of::<random::Random>(),
    Entry::of::<stream::Stream>(),
    Entry::of::<movement::Movement>(),
    Entry::of::<share::Share>(),
    Entry::of::<nodes::Nodes>(),
    Entry::of::<All>(),
];

/// The study of this name.
pub fn point_study(name: &str) -> Option<&'static Entry> {
    POINT_STUDIES.iter().find(|study| study.name == name)
}

/// The views of every study that has a point here.
pub fn views(points: &[Point], about: About<'_>) -> Vec<View> {
    let mut all = Vec::new();
    for study in POINT_STUDIES {
        if points.iter().any(|point| point.experiment == study.name) {
            let own = Only::Is("experiment", Value::from(study.name));
            let of_points = |view: View| {
                let view = View {
                    study: study.name,
                    ..view
                };
                match view.frame {
                    "points" => view.only(own.clone()),
                    _ => view,
                }
            };
            all.extend((study.views)(points, about).into_iter().map(of_points));
        }
    }
    all
}

/// What points mean: the answer, which figures to trust less, then what else they say of the machine.
pub fn verdicts(points: &[Point], topology: &Topology) -> Vec<Verdict> {
    let mut all = Vec::new();
    for study in POINT_STUDIES {
        all.extend((study.answer)(points, topology));
    }
    for tier in &topology.tiers {
        all.extend(latency::against_dram(points, &tier.name));
    }
    all.extend(medium::use_of_media(points, topology));
    all.extend(trust::beats_physics(points));
    all.extend(trust::cached(points, topology));
    all.extend(trust::without_figure(points));
    all.extend(trust::noisy(points));
    for kind in [Steadiness::Bimodal, Steadiness::Drifting, Steadiness::Noisy] {
        all.extend(trust::unsteady(points, kind));
    }
    // Stable, so that rules keep their order within a severity.
    all.sort_by_key(|verdict| Reverse(verdict.severity));
    // The answer comes before its doubts.
    if let Some(answer) = all
        .iter()
        .position(|verdict| verdict.severity == Severity::Note)
    {
        all[..=answer].rotate_right(1);
    }
    all
}

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
