//! Every study, a line each, and how stored runs are read.

use std::path::Path;

use schemars::schema_for;
use serde::Deserialize as _;
use serde_json::Value;
use weir_insight::documents::{Calibrated, Explained, Predictions, Tuned};
use weir_insight::objects::PlaceAdvice;
use weir_insight::studies::calibrate::Calibrate;
use weir_insight::studies::explain::Explain;
use weir_insight::studies::place::AdviseObjects;
use weir_insight::studies::predict::Predict;
use weir_insight::studies::tune::Interleave;
use weir_lab::accept::{Accept, Acceptance};
use weir_lab::app_direct::AppDirect;
use weir_lab::coherence::{Share, Sharing};
use weir_lab::disaggregated::{Disaggregated, Disaggregation};
use weir_lab::files::{FileTimes, Files};
use weir_lab::fit::{Fit, Fitted};
use weir_lab::import::Readings;
use weir_lab::interplay::{Interplay, Matrix, ProgramPairs, ProgramTable};
use weir_lab::levels::{ByLevel, Levels};
use weir_lab::offload::{Offload, Offloaded};
use weir_lab::reproduce::sensitivity::Sensitivity;
use weir_lab::reproduce::{Reproduce, Reproduction, Vary};
use weir_lab::stage::{Stage, Staging};
use weir_lab::view::View;
use weir_lab::workload::application::{self, ApplicationRun};
use weir_lab::workload::{RunAlone, WorkloadCost};
use weir_lab::{About, Lab, LabError, Outcome, PointSpec, Points, Severity, Study, Verdict};
use weir_model::document::{Document, Header, Record};
use weir_model::frame::{Frame, with_prefix};

use weir_steer::document::ScenarioOutcome;
use weir_steer::study::Regulate;
use weir_steer::tier::advise::{Advise, Advised};
use weir_steer::tier::population::{Compared, Population};
use weir_steer::tier::profile::{Profile, ProfileModel};
use weir_steer::tier::{Simulate, Simulated};
use weir_trace::check::Imported;

use weir_ann::outcome::Neighbours;
use weir_ann::study::NeighbourSearch;
use weir_design::outcome::Designs;
use weir_design::study::DesignStudy;
use weir_persist::outcome::PersistCheck;
use weir_plan::coherence::CoherencePlan;
use weir_plan::cost::CostPlan;
use weir_plan::failures::FailurePlan;
use weir_plan::kernels::KernelPlan;
use weir_plan::latency::PoolLatencies;
use weir_plan::packing::PackingBound;
use weir_plan::pool::PoolPlan;
use weir_plan::predict::balance::BalancePlan;
use weir_plan::predict::insensitive::InsensitivePlan;
use weir_plan::predict::untouched::UntouchedPlan;

use crate::context::{Context, Format};
use crate::driver::{self, Job};
use crate::failure::{Failure, Result};
use crate::files;
use crate::machine::Chosen;
use crate::output::{print, print_text, seconds, to_json, wrap};
use crate::render::{self, csv};
use crate::store::{RunId, StoredRun, understood};
use crate::verbs::bench::dax;
use crate::verbs::runs;
use crate::verbs::tier::{self, Tiered};
use crate::verbs::workload;
use crate::verbs::{persist, plan};

/// Points that were planned elsewhere: by a file of sweeps, by the tour, or by a run that was stopped.
#[derive(Debug, Clone)]
pub struct Planned {
    plan: Vec<PointSpec>,
}

impl Planned {
    /// These points.
    pub fn new(plan: Vec<PointSpec>) -> Self {
        Self { plan }
    }
}

/// The study that measures the plan of a stored run, whatever measured it first.
///
/// # Errors
/// None.
pub fn points_again(_: &StoredRun, _: &Chosen, plan: Vec<PointSpec>) -> Result<Planned> {
    Ok(Planned::new(plan))
}

impl Study for Planned {
    const VERB: &'static str = "bench sweep";
    type Output = Points;

    fn run(&self, lab: &Lab<'_>) -> std::result::Result<Points, LabError> {
        Ok(Points::of(lab.measure(self.plan.clone(), &[])?))
    }
}

/// Every outcome that is stored, with the verb whose runs have it, the most special first: runs of `interplay` were
/// once stored as points of a bench.
pub static STORED: &[Reader] = &[
    Reader::of::<Matrix>(Interplay::VERB),
    Reader::of::<ProgramTable>(ProgramPairs::VERB),
    Reader::of::<Explained>(Explain::VERB),
    Reader::of::<Calibrated>(Calibrate::VERB),
    Reader::of::<Predictions>(Predict::VERB),
    Reader::of::<Tuned>(Interleave::VERB),
    Reader::of::<PlaceAdvice>(AdviseObjects::VERB),
    Reader::of::<Offloaded>(Offload::VERB),
    Reader::of::<Staging>(Stage::VERB),
    Reader::of::<ByLevel>(Levels::VERB),
    Reader::of::<Sharing>(Share::VERB),
    Reader::of::<Disaggregation>(Disaggregated::VERB),
    Reader::of::<FileTimes>(Files::VERB),
    Reader::of::<Neighbours>(NeighbourSearch::VERB),
    Reader::of::<ScenarioOutcome>(Regulate::VERB),
    Reader::of::<Simulated>(Simulate::VERB),
    Reader::of::<Tiered>(tier::RUN),
    Reader::of::<Profile>(ProfileModel::VERB),
    Reader::of::<Advised>(Advise::VERB),
    Reader::of::<Compared>(Population::VERB),
    Reader::of::<ApplicationRun>(application::VERB),
    Reader::of::<WorkloadCost>(RunAlone::VERB),
    Reader::of::<Imported>(workload::IMPORT),
    Reader::of::<Imported>(workload::RECORD),
    Reader::of::<Sensitivity>(Vary::VERB),
    Reader::of::<Reproduction>(Reproduce::VERB),
    Reader::of::<Fitted>(Fit::VERB),
    Reader::of::<PoolLatencies>(plan::LATENCY),
    Reader::of::<CostPlan>(plan::COST),
    Reader::of::<PackingBound>(plan::PACKING),
    Reader::of::<PoolPlan>(plan::POOL),
    Reader::of::<FailurePlan>(plan::FAILURES),
    Reader::of::<InsensitivePlan>(plan::INSENSITIVE),
    Reader::of::<UntouchedPlan>(plan::UNTOUCHED),
    Reader::of::<BalancePlan>(plan::BALANCE),
    Reader::of::<CoherencePlan>(plan::COHERENCE),
    Reader::of::<KernelPlan>(plan::KERNELS),
    Reader::of::<Designs>(DesignStudy::VERB),
    Reader::of::<PersistCheck>(persist::CHECK),
    Reader::of::<AppDirect>(dax::VERB),
    Reader::of::<Acceptance>(Accept::VERB),
    Reader::of::<Readings>(runs::IMPORT),
    Reader::of::<Points>(Planned::VERB),
];

/// How stored runs of an outcome are read.
pub struct Reader {
    verb: &'static str,
    /// See [`Outcome::SCHEMA`].
    pub schema: &'static str,
    /// The run, ready to be rendered.
    pub shown: fn(&StoredRun) -> Result<Shown>,
    /// Its document.
    pub json: fn(&StoredRun) -> Result<Value>,
}

impl Reader {
    const fn of<O: Outcome>(verb: &'static str) -> Self {
        Self {
            verb,
            schema: O::SCHEMA,
            shown: |run| Ok(shown(&document::<O>(run)?)),
            json: |run| {
                serde_json::to_value(document::<O>(run)?).map_err(|error| {
                    anyhow::Error::new(error)
                        .context("cannot write JSON")
                        .into()
                })
            },
        }
    }
}

/// The verbs whose outcome is stored: `plan pool`. Those of points have many.
pub fn verbs() -> impl Iterator<Item = &'static str> {
    STORED.iter().map(|reader| reader.verb)
}

/// How a stored run is read, where it has an outcome.
pub fn reader(run: &StoredRun) -> Option<&'static Reader> {
    let holds = |reader: &&Reader| run.summary.verb == reader.verb || run.schema() == reader.schema;
    STORED.iter().find(holds)
}

/// Whether runs of this verb have an outcome other than points.
pub fn is_study(verb: &str) -> bool {
    verb != Planned::VERB && STORED.iter().any(|reader| reader.verb == verb)
}

/// Runs a study once on a machine, keeps and prints what it found.
///
/// # Errors
/// The arguments do not fit the machine, the work failed or was stopped, or the store does not take the run.
pub fn complete<S: Study>(context: &Context, chosen: &Chosen, study: &S) -> Result<()> {
    let done = Job::once(context, chosen, S::VERB).run(study)?;
    show(context, &done.document, Some(done.run))?;
    done.verdict()
}

/// A study whose arguments are all that it needs, and whose type is forgotten.
pub trait Whole {
    /// See [`complete`].
    ///
    /// # Errors
    /// See [`complete`].
    fn complete(&self, context: &Context, chosen: &Chosen) -> Result<()>;

    /// Runs what a stopped run of it still lacks.
    ///
    /// # Errors
    /// See [`driver::resume`].
    fn resume(&self, context: &Context, run: RunId) -> Result<()>;
}

impl<S: Study + Clone> Whole for S {
    fn complete(&self, context: &Context, chosen: &Chosen) -> Result<()> {
        complete(context, chosen, self)
    }

    fn resume(&self, context: &Context, run: RunId) -> Result<()> {
        driver::resume(context, run, None, |_, _, _| Ok(self.clone()))?.verdict()
    }
}

/// Prints what a study found, in the format that was asked for.
///
/// # Errors
/// Standard output cannot be written to.
pub fn show<O: Outcome>(
    context: &Context,
    document: &Document<O>,
    run: Option<RunId>,
) -> Result<()> {
    show_in(None, context, document, run)
}

/// As [`show`], into a file where one is named.
///
/// # Errors
/// The file or standard output cannot be written to.
pub fn show_in<O: Outcome>(
    file: Option<&Path>,
    context: &Context,
    document: &Document<O>,
    run: Option<RunId>,
) -> Result<()> {
    let format = context.global.format;
    let text = match format {
        Format::Table => shown(document).text(),
        Format::Json => to_json(document)?,
        Format::Csv => csv::to_csv(&shown(document).frame(None)?)?,
    };
    match (file, format) {
        (Some(file), _) => files::write(file, text)?,
        (None, Format::Table) => print_text(&text)?,
        (None, _) => print(&text)?,
    }
    if let (Format::Table, Some(run)) = (format, run) {
        let took = seconds(document.header.elapsed_s);
        context.note(&format!(
            "run {run} took {took}; `weir report {run}` draws it"
        ));
    }
    Ok(())
}

/// A run ready to be rendered.
#[derive(Debug, Clone)]
pub struct Shown {
    /// See [`Outcome::TITLE`].
    pub title: &'static str,
    /// See [`Outcome::WORDS`].
    pub words: &'static str,
    /// What it was measured on, and how.
    pub header: Header,
    /// Its lists of rows, the main one first.
    pub frames: Vec<Frame>,
    /// How they are shown.
    pub views: Vec<View>,
    /// What they mean, the answer first.
    pub answer: Vec<Verdict>,
}

impl Shown {
    /// The rows of this list, or of the main one, with the machine in front.
    ///
    /// # Errors
    /// There is no list of this name.
    pub fn frame(&self, name: Option<&str>) -> Result<Frame> {
        let mut known = self.frames.iter();
        let frame = known.find(|frame| name.is_none_or(|name| frame.name == name));
        let frame = frame.ok_or_else(|| {
            let names: Vec<&str> = self.frames.iter().map(|f| f.name.as_str()).collect();
            Failure::request(format!(
                "no list of rows is called `{}` here; there are {}",
                name.unwrap_or_default(),
                names.join(", ")
            ))
        })?;
        Ok(match self.header.name() {
            "" => frame.clone(),
            machine => with_prefix(&[("machine", machine.into())], frame),
        })
    }

    /// The answer with its doubts, tables of the rows, and what else they mean.
    pub fn text(&self) -> String {
        let (notes, doubts): (Vec<&Verdict>, Vec<&Verdict>) = self
            .answer
            .iter()
            .partition(|verdict| verdict.severity == Severity::Note);
        let line = |verdict: &Verdict, first: &str| {
            wrap(&format!("{}: {}", verdict.about, verdict.text), first, "  ")
        };
        let mut text = String::new();
        for verdict in notes.iter().take(1) {
            text.push_str(&line(verdict, ""));
        }
        for verdict in doubts {
            text.push_str(&line(verdict, "! "));
        }
        let tables = render::text::tables(&self.frames, &self.views);
        if !text.is_empty() && !tables.is_empty() {
            text.push('\n');
        }
        text.push_str(&tables);
        if notes.len() > 1 {
            text.push('\n');
        }
        for verdict in notes.iter().skip(1) {
            text.push_str(&line(verdict, "- "));
        }
        text
    }
}

/// A document, ready to be rendered.
pub fn shown<O: Outcome>(document: &Document<O>) -> Shown {
    let Document { header, output } = document;
    let header = header.clone();
    let about = About {
        machine: &header.machine,
        topology: &header.topology,
    };
    Shown {
        title: O::TITLE,
        words: O::WORDS,
        frames: output.frames(),
        views: output.views(about),
        answer: output.answer(about),
        header,
    }
}

/// The document of a stored run, with what follows from its rows today.
///
/// # Errors
/// This version does not read what the run holds.
pub fn document<O: Outcome>(run: &StoredRun) -> Result<Document<O>> {
    let mut value = run.document.clone();
    // The store has the list that was measured; the others follow from it.
    for name in Frame::all_of(&schema_for!(O).to_value(), &value)
        .into_iter()
        .map(|frame| frame.name)
    {
        if value.get(&name).is_none() {
            value[name] = Value::Array(Vec::new());
        }
    }
    let parsed = serde_json::from_value::<Document<O>>(value);
    let Document { mut header, output } = understood(run, parsed)?;
    // A former version of the same kind keeps its own.
    let kind = |schema: &str| schema.rsplit_once('/').map(|(kind, _)| kind.to_owned());
    if kind(&header.schema) != kind(O::SCHEMA) {
        header.schema = O::SCHEMA.into();
    }
    let records: Vec<Record> = (run.records.iter())
        .map(Record::deserialize)
        .collect::<serde_json::Result<_>>()
        .map_err(|error| anyhow::Error::new(error).context("cannot read the run's records"))?;
    let output = output.derived(&records, &header.topology);
    Ok(Document { header, output })
}
