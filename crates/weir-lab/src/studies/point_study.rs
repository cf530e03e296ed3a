//! A study of points, apart from the lab that measures them: what it plans, and what it says of its points.

use weir_model::access::Op;
use weir_model::document::{Header, Point};
use weir_model::machine::Identity;
use weir_model::topology::{TierName, Topology};

use crate::plan::each_once;
use crate::view::View;
use crate::{LabError, PointSpec, Verdict};

/// The machine that rows are of.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Which machine.
    pub machine: &'a Identity,
    /// What it is made of.
    pub topology: &'a Topology,
    /// Why its figures are to be trusted less.
    pub warnings: &'a [String],
}

impl<'a> About<'a> {
    /// The machine of a document.
    pub fn of(header: &'a Header) -> Self {
        Self {
            machine: &header.machine,
            topology: &header.topology,
            warnings: &header.warnings,
        }
    }
}

/// A study that knows what it asks before it begins, and whose rows are [`Point`]s.
pub trait PointStudy: clap::Args + Default + Send + Sync + 'static {
    /// The name in documents and after `weir bench`: `share`.
    const NAME: &'static str;
    /// The words of the command: `bench share`.
    const VERB: &'static str;

    /// The heading of its chapter.
    const TITLE: &'static str;
    /// How to read its pictures.
    const WORDS: &'static str;

    /// What to measure.
    ///
    /// # Errors
    /// The arguments do not fit the machine.
    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError>;

    /// What the plan leaves out because the machine is too small for it, each with its reason.
    fn left_out(&self, _: &Topology) -> Vec<String> {
        Vec::new()
    }

    /// Instructions that were asked for by name, so that a machine without them fails the request.
    fn asked(&self) -> Vec<Op> {
        Vec::new()
    }

    /// What the study calls a point among others of its table: `4 readers`, `3:1`.
    fn case(_: &Point) -> Option<String> {
        None
    }

    /// What the points mean.
    fn answer(points: &[Point], topology: &Topology) -> Vec<Verdict>;

    /// How the points are shown. Only those of this study are.
    fn views(points: &[Point], about: About<'_>) -> Vec<View>;

    /// This study as a part of `bench all`: its usual or its quick form on some tiers, or all where none is named;
    /// `None` where `bench all` leaves it out.
    fn in_all(_tiers: &[TierName], _quick: bool) -> Option<Self> {
        None
    }
}

/// A study of points whose type is forgotten.
pub trait AnyStudy: Send + Sync {
    /// The words of the command.
    fn verb(&self) -> &'static str;

    /// See [`PointStudy::plan`]; each point is there once.
    ///
    /// # Errors
    /// See [`PointStudy::plan`].
    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError>;

    /// See [`PointStudy::left_out`].
    fn left_out(&self, topology: &Topology) -> Vec<String>;

    /// See [`PointStudy::asked`].
    fn asked(&self) -> Vec<Op>;
}

impl<S: PointStudy> AnyStudy for S {
    fn verb(&self) -> &'static str {
        S::VERB
    }

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        PointStudy::plan(self, topology).map(each_once)
    }

    fn left_out(&self, topology: &Topology) -> Vec<String> {
        PointStudy::left_out(self, topology)
    }

    fn asked(&self) -> Vec<Op> {
        PointStudy::asked(self)
    }
}

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
    /// See [`PointStudy::views`].
    pub(super) views: fn(&[Point], About<'_>) -> Vec<View>,
    /// Its plan as a part of `bench all`; `None` where that leaves it out.
    pub(super) plan_in_all: PlanInAll,
}

impl Entry {
    pub(super) const fn of<S: PointStudy>() -> Self {
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
                S::in_all(tiers, quick).map(|study| PointStudy::plan(&study, topology))
            },
        }
    }
}
