//! A study: arguments, what it asks of a machine, typed rows, what they mean, and how they are shown.
//!
//! Adding one is a file here, a line in [`studies`], and a test. Progress, the run store, resuming,
//! tables, CSV, Parquet, JSON, the schema and the report come from the driver and read its [`Outcome`].

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_model::document::{BenchDocument, Document, Point, Record, TailScore};
use weir_model::frame::Frame;
use weir_model::topology::Topology;

use crate::view::View;
use crate::{Lab, LabError, Verdict, studies};

pub use crate::studies::{About, AnyStudy, PointStudy};

/// What measures on a machine and says what it found.
pub trait Study: Send + Sync {
    /// The words of the command: `bench share`.
    const VERB: &'static str;
    /// What it finds.
    type Output: Outcome;

    /// Asks the lab, and may ask for more as it learns.
    ///
    /// # Errors
    /// The arguments do not fit the machine, or the work failed.
    fn run(&self, lab: &Lab<'_>) -> Result<Self::Output, LabError>;

    /// The programs that it runs, by the names or files that were given: a model may have too little memory for one. `None` where
    /// working sets are options of the study.
    fn programs(&self) -> Option<Vec<&str>> {
        None
    }
}

/// What a study finds: lists of typed rows, and what belongs to all of them.
///
/// It is printed, stored, exported and drawn by one code, whether a lab gave it, a command of this host, or a file.
pub trait Outcome: Serialize + DeserializeOwned + JsonSchema {
    /// `weir/KIND/VERSION` of its document.
    const SCHEMA: &'static str;
    /// The heading of its chapter on a page; empty where its figures have chapters of their own.
    const TITLE: &'static str = "";
    /// How to read its pictures.
    const WORDS: &'static str = "";

    /// What the rows mean. The first note is the answer in one sentence.
    fn answer(&self, about: About<'_>) -> Vec<Verdict>;

    /// How the rows are shown.
    fn views(&self, about: About<'_>) -> Vec<View>;

    /// The rows, the main list first: by default every list of the document.
    fn frames(&self) -> Vec<Frame> {
        lists(self)
    }

    /// What a stored run means today, from the rows as they were kept and the raw records.
    #[must_use]
    fn derived(self, _: &[Record], _: &Topology) -> Self {
        self
    }
}

/// Every list of a document as a frame, to which an outcome may add rows that follow from them.
pub fn lists<O: Outcome>(output: &O) -> Vec<Frame> {
    let value = serde_json::to_value(output).unwrap_or_default();
    Frame::all_of(&schema_for!(O).to_value(), &value)
}

/// What studies of [`Point`]s share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Points {
    /// The figures.
    pub points: Vec<Point>,
    /// How bad the tail of each tier is, where it was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailScore>,
}

impl Points {
    /// Figures, with what follows from all of them.
    pub fn of(mut points: Vec<Point>) -> Self {
        for point in points.iter_mut().filter(|point| point.case.is_none()) {
            point.case = studies::point_study(&point.experiment).and_then(|s| (s.case)(point));
        }
        Self {
            tails: studies::tail::scores(&points),
            points,
        }
    }
}

impl Points {
    /// Its document, as one type.
    pub fn bench(document: Document<Self>) -> BenchDocument {
        let Document { header, output } = document;
        BenchDocument {
            header,
            points: output.points,
            tails: output.tails,
        }
    }
}

impl<S: PointStudy> Study for S {
    const VERB: &'static str = S::VERB;
    type Output = Points;

    fn run(&self, lab: &Lab<'_>) -> Result<Points, LabError> {
        measure(self, lab)
    }
}

/// Measures the points that a study plans.
///
/// # Errors
/// See [`Study::run`].
pub fn measure(study: &dyn AnyStudy, lab: &Lab<'_>) -> Result<Points, LabError> {
    let plan = study.plan(lab.topology())?;
    for reason in study.left_out(lab.topology()) {
        lab.warn(reason);
    }
    Ok(Points::of(lab.measure(plan, &study.asked())?))
}

impl Outcome for Points {
    const SCHEMA: &'static str = BenchDocument::SCHEMA;

    fn answer(&self, about: About<'_>) -> Vec<Verdict> {
        studies::verdicts(&self.points, about.topology)
    }

    fn views(&self, about: About<'_>) -> Vec<View> {
        studies::views(&self.points, about)
    }

    fn derived(self, _: &[Record], _: &Topology) -> Self {
        Self::of(self.points)
    }
}
