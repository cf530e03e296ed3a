//! The studies of points, a line each.
//!
//! `weir bench` offers them in this order, and reports show them in it.

pub mod all;
pub mod bandwidth;
pub mod latency;
pub mod loaded;
pub mod movement;
pub mod nodes;
pub mod random;
pub mod share;
pub mod stream;
pub mod tail;

use serde_json::Value;
use weir_model::document::Point;
use weir_model::topology::{TierName, Topology};

use crate::study::{About, AnyStudy, PointStudy};
use crate::view::{Limit, Only, View};
use crate::{LabError, PointSpec, Verdict};

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
    Entry::of::<all::All>(),
];

type PlanInAll = fn(&Topology, &[TierName], bool) -> Option<Result<Vec<PointSpec>, LabError>>;

/// What is known of a study of points without its type.
pub struct Entry {
    /// See [`PointStudy::NAME`].
    pub name: &'static str,
    /// See [`PointStudy::TITLE`].
    pub title: &'static str,
    /// See [`PointStudy::WORDS`].
    pub words: &'static str,
    /// Its command after `weir bench`.
    pub command: fn() -> clap::Command,
    /// Its arguments as parsed.
    pub parse: fn(&clap::ArgMatches) -> Result<Box<dyn AnyStudy>, clap::Error>,
    /// See [`PointStudy::case`].
    pub case: fn(&Point) -> Option<String>,
    /// See [`PointStudy::answer`].
    pub answer: fn(&[Point], &Topology) -> Vec<Verdict>,
    views: fn(&[Point], About<'_>) -> Vec<View>,
    plan_in_all: PlanInAll,
}

impl Entry {
    const fn of<S: PointStudy>() -> Self {
        Self {
            name: S::NAME,
            title: S::TITLE,
            words: S::WORDS,
            command: || S::augment_args(clap::Command::new(S::NAME)),
            parse: |matches| Ok(Box::new(S::from_arg_matches(matches)?)),
            case: S::case,
            answer: S::answer,
            views: S::views,
            plan_in_all: |topology, tiers, quick| {
                S::in_all(tiers, quick).map(|study| study.plan(topology))
            },
        }
    }
}

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

/// The read limit of every tier, for pictures of one tier each.
fn read_limits(topology: &Topology, on_x: bool) -> Vec<Limit> {
    let limit = |tier: &weir_model::topology::Tier| {
        let read = tier.limits.as_ref()?.read;
        Some(Limit {
            tier: Some(tier.name.clone()),
            on_x,
            at: read.get(),
            name: format!("read limit {:.0} GB/s", read.get()),
        })
    };
    topology.tiers.iter().filter_map(limit).collect()
}
