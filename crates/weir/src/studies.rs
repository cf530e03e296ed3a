//! Every study, a line each, and how stored runs are read.

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
use weir_lab::workload::application::{self, ApplicationRun};
use weir_lab::workload::{RunAlone, WorkloadCost};
use weir_lab::{Lab, LabError, Outcome, PointSpec, Points, Study};
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

use crate::context::Context;
use crate::driver::{self, Job};
use crate::failure::Result;
use crate::machine::Chosen;
use crate::shown::{Shown, document, show, shown};
use crate::store::{RunId, StoredRun};
use crate::verbs::tier::windows::Tiered;

/// `weir tier run`.
pub const TIER_RUN: &str = "tier run";
/// `weir workload import`.
pub const WORKLOAD_IMPORT: &str = "workload import";
/// `weir workload record`.
pub const WORKLOAD_RECORD: &str = "workload record";
/// `weir persist check`.
pub const PERSIST_CHECK: &str = "persist check";
/// `weir bench stream --dax`.
pub const STREAM_DAX: &str = "bench stream --dax";
/// `weir runs import`, of rows that are no figures of benches. The others have the verb of their tool: `import mlc`.
pub const RUNS_IMPORT: &str = "runs import";
/// `weir plan latency`.
pub const PLAN_LATENCY: &str = "plan latency";
/// `weir plan cost`.
pub const PLAN_COST: &str = "plan cost";
/// `weir plan packing`.
pub const PLAN_PACKING: &str = "plan packing";
/// `weir plan pool`.
pub const PLAN_POOL: &str = "plan pool";
/// `weir plan failures`.
pub const PLAN_FAILURES: &str = "plan failures";
/// `weir plan insensitive`.
pub const PLAN_INSENSITIVE: &str = "plan insensitive";
/// `weir plan untouched`.
pub const PLAN_UNTOUCHED: &str = "plan untouched";
/// `weir plan balance`.
pub const PLAN_BALANCE: &str = "plan balance";
/// `weir plan coherence`.
pub const PLAN_COHERENCE: &str = "plan coherence";
/// `weir plan kernels`.
pub const PLAN_KERNELS: &str = "plan kernels";

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
    Reader::of::<Tiered>(TIER_RUN),
    Reader::of::<Profile>(ProfileModel::VERB),
    Reader::of::<Advised>(Advise::VERB),
    Reader::of::<Compared>(Population::VERB),
    Reader::of::<ApplicationRun>(application::VERB),
    Reader::of::<WorkloadCost>(RunAlone::VERB),
    Reader::of::<Imported>(WORKLOAD_IMPORT),
    Reader::of::<Imported>(WORKLOAD_RECORD),
    Reader::of::<Sensitivity>(Vary::VERB),
    Reader::of::<Reproduction>(Reproduce::VERB),
    Reader::of::<Fitted>(Fit::VERB),
    Reader::of::<PoolLatencies>(PLAN_LATENCY),
    Reader::of::<CostPlan>(PLAN_COST),
    Reader::of::<PackingBound>(PLAN_PACKING),
    Reader::of::<PoolPlan>(PLAN_POOL),
    Reader::of::<FailurePlan>(PLAN_FAILURES),
    Reader::of::<InsensitivePlan>(PLAN_INSENSITIVE),
    Reader::of::<UntouchedPlan>(PLAN_UNTOUCHED),
    Reader::of::<BalancePlan>(PLAN_BALANCE),
    Reader::of::<CoherencePlan>(PLAN_COHERENCE),
    Reader::of::<KernelPlan>(PLAN_KERNELS),
    Reader::of::<Designs>(DesignStudy::VERB),
    Reader::of::<PersistCheck>(PERSIST_CHECK),
    Reader::of::<AppDirect>(STREAM_DAX),
    Reader::of::<Acceptance>(Accept::VERB),
    Reader::of::<Readings>(RUNS_IMPORT),
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
    /// Whether the outcome has lists of its own, and none of the points that it is made from.
    is_whole: fn() -> bool,
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
            is_whole: || driver::main_list::<O>().is_some(),
        }
    }
}

/// The verbs whose outcome is stored: `plan pool`. Those of points have many.
pub fn verbs() -> impl Iterator<Item = &'static str> {
    STORED.iter().map(|reader| reader.verb)
}

/// How a stored run is read, where it has an outcome. Of a study that was stopped before it had one, or failed, the
/// store has the points that it measured, and those are read.
pub fn reader(run: &StoredRun) -> Option<&'static Reader> {
    let holds = |reader: &&Reader| run.summary.verb == reader.verb || run.schema() == reader.schema;
    let found = STORED.iter().find(holds)?;
    match run.document.get(driver::POINTS).is_some() && (found.is_whole)() {
        true => STORED.iter().find(|reader| reader.verb == Planned::VERB),
        false => Some(found),
    }
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
    show(context, &done.document, done.kept_in())?;
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
