//! Every kind of document, with its JSON Schema.

use schemars::JsonSchema;

use crate::verbs::place::{
    apply::PlaceApplied, live::LiveAdvice, objects::ProcessMemory, watched::PlaceWatched,
};
use weir_ann::outcome::Neighbours;
use weir_design::outcome::Designs;
use weir_insight::documents::{Calibrated, Explained, Predictions, Tuned};
use weir_insight::objects::PlaceAdvice;
use weir_lab::Outcome;
use weir_lab::accept::Acceptance;

use weir_lab::app_direct::AppDirect;
use weir_lab::coherence::Sharing;
use weir_lab::disaggregated::Disaggregation;
use weir_lab::files::FileTimes;
use weir_lab::fit::Fitted;
use weir_lab::import::Readings;
use weir_lab::interplay::{Matrix, ProgramTable};
use weir_lab::levels::ByLevel;
use weir_lab::offload::Offloaded;
use weir_lab::reproduce::Reproduction;
use weir_lab::reproduce::sensitivity::Sensitivity;
use weir_lab::stage::Staging;
use weir_lab::workload::WorkloadCost;
use weir_lab::workload::application::ApplicationRun;
use weir_model::counter_file::CountersDocument;
use weir_model::diagnosis::DoctorDocument;
use weir_model::document::{BenchDocument, Document};
use weir_model::insight::SlowdownModel;
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
use weir_steer::document::ScenarioOutcome;
use weir_steer::log::LogLine;
use weir_steer::status::StatusDocument;
use weir_steer::tier::Simulated;
use weir_steer::tier::advise::Advised;
use weir_steer::tier::population::Compared;
use weir_steer::tier::profile::Profile;
use weir_trace::check::Imported;

use crate::documents::{
    CheckDocument, CompareDocument, CountersListDocument, MergeDocument, PlaceDocument,
    PlatformDocument, PlatformsDocument, RecordDocument, RestoreDocument, RunsDocument,
    TopoDocument, TraceDocument, WorkloadDocument, WorkloadsDocument,
};
use crate::verbs::namespace::NamespacesDocument;
use crate::verbs::pool::PoolDocument;
use crate::verbs::tier::windows::Tiered;

/// A kind of document.
pub struct Kind {
    /// `weir/KIND/VERSION`.
    pub schema: &'static str,
    /// What writes it: a command, or a part of it.
    pub written_by: &'static str,
    /// Its JSON Schema.
    pub json_schema: fn() -> serde_json::Value,
}

/// The document of an outcome.
struct Of<O>(std::marker::PhantomData<O>);

impl<O: Outcome> Of<O> {
    const SCHEMA: &'static str = O::SCHEMA;
}

impl<O: Outcome> JsonSchema for Of<O> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        O::SCHEMA.into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = Document::<O>::json_schema(generator);
        let kind = O::SCHEMA.split('/').nth(1).unwrap_or_default();
        schema.insert(
            "description".into(),
            format!("What `weir {kind}` writes.").into(),
        );
        schema
    }
}

macro_rules! kinds {
    ($($document:ty => $written_by:literal,)*) => {
        /// Every kind of document, in the order of docs/json.md.
        pub static KINDS: &[Kind] = &[$(Kind {
            schema: <$document>::SCHEMA,
            written_by: $written_by,
            json_schema: || schemars::schema_for!($document).to_value(),
        }),*];
    };
}

kinds! {
    BenchDocument => "weir bench",
    MergeDocument => "weir runs merge",
    Of<Readings> => "weir runs import, of counters and values over time",
    Of<Acceptance> => "weir accept",
    Of<Matrix> => "weir interplay",
    Of<ProgramTable> => "weir interplay, with a program among the tenants",
    Of<Explained> => "weir explain",
    Of<Calibrated> => "weir calibrate",
    SlowdownModel => "the file that weir calibrate writes",
    Of<Predictions> => "weir predict",
    Of<Tuned> => "weir tune interleave",
    Of<PlaceAdvice> => "weir place advise",
    Of<Offloaded> => "weir place offload",
    Of<Staging> => "weir place stage",
    Of<ByLevel> => "weir place levels",
    Of<Sharing> => "weir place share",
    Of<Disaggregation> => "weir place disaggregated",
    Of<FileTimes> => "weir place files",
    Of<Designs> => "weir design",
    Of<Neighbours> => "weir place neighbours",
    Of<ProcessMemory> => "weir place objects",
    Of<PlaceApplied> => "weir place apply, restore",
    Of<LiveAdvice> => "weir place advise --pid",
    Of<PlaceWatched> => "weir place watch",
    Of<ScenarioOutcome> => "weir steer run --on PLATFORM",
    Of<Simulated> => "weir tier simulate",
    Of<Tiered> => "weir tier run",
    Of<Profile> => "weir tier profile",
    Of<Advised> => "weir tier advise",
    Of<Compared> => "weir tier population",
    StatusDocument => "weir steer status, and the status socket",
    RestoreDocument => "weir steer restore",
    TraceDocument => "weir plan trace",
    LogLine => "weir steer explain, and a line of the decision log",
    Of<Reproduction> => "weir reproduce",
    Of<Sensitivity> => "weir reproduce --sensitivity",
    TopoDocument => "weir topo",
    PlaceDocument => "weir place",
    DoctorDocument => "weir doctor",
    CountersDocument => "weir counters record, show",
    CountersListDocument => "weir counters list",
    PlatformsDocument => "weir platforms list",
    PlatformDocument => "weir platforms show",
    Of<Fitted> => "weir platforms fit",
    WorkloadsDocument => "weir workload list",
    WorkloadDocument => "weir workload show",
    Of<PoolLatencies> => "weir plan latency",
    Of<CostPlan> => "weir plan cost",
    Of<PackingBound> => "weir plan packing",
    Of<PoolPlan> => "weir plan pool",
    Of<FailurePlan> => "weir plan failures",
    Of<InsensitivePlan> => "weir plan insensitive",
    Of<UntouchedPlan> => "weir plan untouched",
    Of<BalancePlan> => "weir plan balance",
    Of<CoherencePlan> => "weir plan coherence",
    Of<KernelPlan> => "weir plan kernels",
    Of<PersistCheck> => "weir persist check",
    Of<AppDirect> => "weir bench stream --dax",
    PoolDocument => "weir pool create, add, release, recover, status",
    NamespacesDocument => "weir namespace",
    Of<WorkloadCost> => "weir workload run --on PLATFORM",
    Of<Imported> => "weir workload import, weir workload record",
    Of<ApplicationRun> => "weir workload run",
    CheckDocument => "weir platforms check, weir workload check",
    RunsDocument => "weir runs list",
    CompareDocument => "weir runs compare",
    RecordDocument => "weir runs export --as record",
}
