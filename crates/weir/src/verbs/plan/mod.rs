//! `weir plan`: whether servers should share memory.
//!
//! | file | content |
//! |---|---|
//! | `traces` | traces that are read or generated, and prices |
//! | `parquet` | our own columns as Parquet |
//! | `azure_packing` | the Azure packing trace of 2020, which is an SQLite file |
//! | `pool` | replays of clusters, side by side |
//! | `failures` | parts that fail at random moments of a replay |
//! | `insensitive` | programs that may be in a pool as a whole |
//! | `untouched` | memory that VMs never touch, day by day |
//! | `coherence` | the protocol of CXL, checked and counted; kernels of address ranges |
//! | `balance` | how errors are shared out between the two |

mod azure_packing;
mod balance;
mod coherence;
mod failures;
mod insensitive;
mod parquet;
mod pool;
mod traces;
mod untouched;

use std::path::PathBuf;

use clap::Subcommand;
use weir_lab::plan::distinct;
use weir_plan::PlanError;
use weir_plan::cost::Cost;
use weir_plan::latency::Latency;
use weir_plan::packing::{Packing, PackingBound};
use weir_plan::trace::moment;

use crate::context::{Context, Format};
use crate::documents::TraceDocument;
use crate::failure::{Failure, Result};
use crate::files;
use crate::keeping::found;
use crate::output::{count, print_as, print_text, to_json};
use crate::session::say;
use crate::store::RunId;
use crate::studies::{PLAN_COST, PLAN_LATENCY, PLAN_PACKING};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir plan latency
  weir plan cost --servers 16 --gb-per-vcpu 8
  weir plan trace -o cluster.csv --days 30
  weir plan packing --trace cluster.csv
  weir plan pool --trace cluster.csv --pools 8,16,32
  weir plan failures --trace cluster.csv --share 30%
  weir plan untouched --trace cluster.csv
  weir plan insensitive --on skx2s --tier remote
  weir plan coherence --break bias-flip
  weir plan kernels --on emr2s+cxl-ssd-tlc")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say how long a load from a pool takes, by the components it passes.
    Latency(Latency),
    /// Say when a pool pays, and what would change the answer.
    Cost(Box<Cost>),
    /// Bound how many more VMs fit into pools of machines than into single ones.
    Packing(PackingArgs),
    /// Replay a trace of VMs: memory and money that pools save, and VMs they slow down.
    Pool(Box<pool::Args>),
    /// Let parts fail while a trace is replayed: VMs that each takes down, hours
    /// lost in a year, and what a second copy costs.
    Failures(Box<failures::Args>),
    /// Say which programs may be in a pool as a whole, by a random forest over
    /// their counters.
    Insensitive(Box<insensitive::Args>),
    /// Say how much memory of VMs is never touched, by boosted trees over the
    /// history of customers.
    Untouched(Box<untouched::Args>),
    /// Share out the allowed errors between the predictors of `insensitive` and `untouched`.
    Balance(balance::Args),
    /// Check the coherence protocol of CXL in every state, and add up what its
    /// transactions take.
    Coherence(Box<coherence::CoherenceArgs>),
    /// Say what address ranges that compute save of a link, and what an early
    /// notice of a write hides.
    Kernels(coherence::KernelsArgs),
    /// Write a trace of VMs in Weir's columns: a generated one, or one of Azure or Google.
    Trace(TraceArgs),
}

/// What `packing` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Pools are packed as one machine of their whole size, cores included: the gain is
the most that pooling could give to a scheduler, not what it will.

Examples:
  weir plan packing --trace cluster.csv
  weir plan packing --inflate 1,8,16 --machines-per-pool 2,16 --at 12
  weir plan packing --trace packing.sqlite --as azure-packing --format csv")]
struct PackingArgs {
    #[command(flatten)]
    traces: traces::Options,
    /// Factors by which VMs grow.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "K",
        default_value = "1,2,4,8,16,32,64"
    )]
    inflate: Vec<u32>,
    /// Machines of a pool.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N",
        default_value = "1,2,4,8,16"
    )]
    machines_per_pool: Vec<u32>,
    /// Days after which the VMs that are there are packed [default: half of the trace].
    #[arg(long, value_name = "DAYS")]
    at: Option<f64>,
}

/// What `trace` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir plan trace -o cluster.csv --days 30 --machines 64
  weir plan trace --trace vmtable.csv --as azure-vm -o azure.csv")]
struct TraceArgs {
    #[command(flatten)]
    traces: traces::Options,
    /// The file that is written: Parquet where its name ends so, else CSV.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

impl Args {
    /// Whether it is of a machine.
    pub fn has_machine(&self) -> bool {
        matches!(
            self.what,
            What::Insensitive(_) | What::Coherence(_) | What::Kernels(_)
        )
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Stopped => Failure::Partial(format!("{error}, and nothing is kept")),
            PlanError::NotConserved { .. } => Failure::Work(error.into()),
            PlanError::OutOfBounds { .. } => Failure::Request(error.into()),
        }
    }
}

/// Plans, keeps and prints.
///
/// # Errors
/// An argument is outside its bounds, a file cannot be read, or the work was stopped.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        What::Latency(study) => found(context, PLAN_LATENCY, study.run()?),
        What::Cost(study) => {
            let prices = traces::prices(study.prices.as_deref())?;
            found(context, PLAN_COST, study.run(prices)?)
        }
        What::Packing(args) => pack(args, context),
        What::Pool(args) => pool::run(args, context),
        What::Failures(args) => failures::run(args, context),
        What::Insensitive(args) => insensitive::run(args, context),
        What::Untouched(args) => untouched::run(args, context),
        What::Balance(args) => balance::run(args, context),
        What::Coherence(args) => coherence::coherence(args, context),
        What::Kernels(args) => coherence::kernels(args, context),
        What::Trace(args) => write(args, context),
    }
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the verb runs no programs.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    match &args.what {
        What::Insensitive(args) => insensitive::resume(args, context, run),
        _ => Err(Failure::request(format!(
            "run {run} asked no machine, and is not resumed; start it again"
        ))),
    }
}

fn pack(args: &PackingArgs, context: &Context) -> Result<()> {
    let packing = Packing {
        inflate: distinct(args.inflate.iter().copied()),
        pools: distinct(args.machines_per_pool.iter().copied()),
    };
    let machine = args.traces.machine;
    let mut bound = PackingBound::default();
    for at in 0..args.traces.count() {
        let mut traced = args.traces.cluster(at, context)?;
        let trace = std::mem::take(&mut traced.trace);
        let end = trace.last_arrival();
        let second = match args.at {
            None => end / 2,
            Some(days) if (0.0..=f64::from(end) / 86_400.0).contains(&days) => {
                (days * 86_400.0) as u32
            }
            Some(days) => {
                return Err(Failure::request(format!(
                    "--at is {days} days, but the last VM of {} arrives after {:.2}",
                    traced.name,
                    f64::from(end) / 86_400.0
                )));
            }
        };
        let name = format!("{} on {}", traced.name, machine.words());
        let snapshot = trace.snapshot(second);
        if snapshot.is_empty() {
            return Err(Failure::request(format!(
                "no VM of {} is there after {}; name another moment with --at",
                traced.name,
                moment(second)
            )));
        }
        bound
            .packings
            .extend(packing.of(&name, &snapshot, machine.shape(), &|| {
                !context.stop.requested()
            })?);
        bound.notes.extend(traces::words(&traced));
    }
    found(context, PLAN_PACKING, bound)
}

fn write(args: &TraceArgs, context: &Context) -> Result<()> {
    files::check(&args.out)?;
    if args.traces.count() != 1 {
        return Err(Failure::request(
            "one trace is written at a time; name one --trace, or --clusters 1",
        ));
    }
    let traced = args.traces.cluster(0, context)?;
    let mut bytes = Vec::new();
    let written = match args.out.extension().is_some_and(|end| end == "parquet") {
        true => parquet::write(&traced.trace, &mut bytes).map_err(anyhow::Error::from),
        false => traced.trace.write(&mut bytes).map_err(anyhow::Error::from),
    };
    written.map_err(Failure::Work)?;
    files::write(&args.out, bytes)?;
    let vms = traced.trace.len() as u64;
    let days = f64::from(traced.trace.last_arrival()) / 86_400.0;
    let file = args.out.display().to_string();
    let what = format!("{file}: {} over {days:.1} days", count(vms, "VM"));
    let left_out = traces::words(&traced);
    match context.global.format {
        Format::Table => print_text(&format!("{}\n", [vec![what], left_out].concat().join("\n"))),
        format => {
            context.note(&what);
            // What is missing from the file is no progress.
            left_out
                .iter()
                .for_each(|line| say(&format!("weir: warning: {line}")));
            // As a table it would be the file.
            if format == Format::Csv {
                return Ok(());
            }
            let document = TraceDocument {
                schema: TraceDocument::SCHEMA.into(),
                weir: env!("CARGO_PKG_VERSION").into(),
                file,
                vms,
                days,
                left_out,
            };
            print_as(format, &to_json(&document)?)
        }
    }
}
