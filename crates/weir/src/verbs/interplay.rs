//! `weir interplay`: who hurts whom.

use weir_lab::interplay::{self, CoRunners, Matrix, Measured as Figure};
use weir_lab::{LabError, Threads, interplay::preset::Preset};
use weir_model::capability::{Capability, Feature};
use weir_model::document::Record;
use weir_model::interplay::{InterplayDocument, TierOp};
use weir_model::machine::MachineKind;
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use super::runs::bench_document;
use crate::cli::Format;
use crate::context::Context;
use crate::driver::Job;
use crate::failure::{Failure, Result};
use crate::output::{self, point_rows, print, seconds, to_json};
use crate::render::csv;
use crate::store::{RunId, Store, StoredRun};
use crate::studies::Planned;
use crate::{machine, storage};

/// The verb as the store has it.
pub const VERB: &str = "interplay";

/// Repetitions on a real machine: the fewest whose median has an interval of 95 %.
const ROUNDS_ON_HOST: u32 = 6;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A tenant is TIER:OP, such as dram:ld or cxl0:nt_st; a tier alone means its usual
tenants (ld, st and nt_st; of storage randread and randwrite); TIER:OP:SOURCE
copies from SOURCE. A tenant with @1 behind it runs on the other socket's cores,
for whom the tiers keep their names: remote:ld@1 loads from its own DRAM.

Examples:
  weir interplay
  weir interplay --on interplay-a --preset table3
  weir interplay --on emr2s+cxl-a --victims dram --aggressors cxl0:nt_st
  weir interplay --victims dram:ld --aggressors dram:st --threads 1
  weir interplay --on interplay-b --preset ssd-writes
  weir interplay --on miku-a+micron-x8+micron-x8@remote --preset two-sockets
  weir interplay --storage /var/tmp --victims dram:ld --aggressors ssd0

A matrix that was stopped goes on with `weir runs resume`.")]
pub struct Args {
    /// Whose bandwidth is watched [default: every tier's usual tenants].
    #[arg(long, value_delimiter = ',', value_name = "TENANT")]
    victims: Vec<CoRunners>,
    /// Who runs beside them [default: every tier's usual tenants].
    #[arg(long, value_delimiter = ',', value_name = "TENANT")]
    aggressors: Vec<CoRunners>,
    /// Threads of either side [default: 1, 4, 8, 16, up to half of the cores].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    threads: Vec<Threads>,
    /// Bytes that all threads of a tenant go through, and the timed chase
    /// [default: enough to leave the caches].
    #[arg(long, value_name = "SIZE", conflicts_with = "preset")]
    size: Option<Bytes>,
    /// A published case study: table3, movdir64b, ssd-writes, shared-line,
    /// llc-fits, llc-exceeds, background, two-sockets.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["victims", "aggressors"])]
    preset: Option<Preset>,
    /// Storage requests through the page cache: the kernel copies their data,
    /// and a thread has one under way (a model only).
    #[arg(long)]
    buffered: bool,
    /// The largest number of threads only.
    #[arg(long)]
    quick: bool,
    /// How often each figure is measured, others in between [default: 6 on a
    /// real machine, 1 on a model].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Start a matrix of very many figures without being asked.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    storage: storage::Named,
}

impl Args {
    fn options(&self, topology: &Topology) -> std::result::Result<interplay::Options, LabError> {
        let mut options = match self.preset {
            Some(preset) => preset.options(topology)?,
            None => interplay::Options {
                pairs: interplay::pairs(topology, &self.victims, &self.aggressors)?,
                ..Default::default()
            },
        };
        if !self.threads.is_empty() {
            options.threads = Threads::all(&self.threads);
        }
        if self.size.is_some() {
            (options.working_set, options.timed_set) = (self.size, self.size);
        }
        options.quick |= self.quick;
        options.buffered = self.buffered;
        Ok(options)
    }

    /// A tenant that was named and writes to storage.
    fn asked_to_write(&self) -> Option<&TierOp> {
        let named = self.victims.iter().chain(&self.aggressors);
        named
            .filter_map(|co_runners| match co_runners {
                CoRunners::One(tier_op) => Some(tier_op),
                CoRunners::Tier(..) => None,
            })
            .find(|tier_op| storage::writes(tier_op.op))
    }
}

/// Storage that was named must be of use.
fn check_storage(capabilities: &[Capability]) -> Result<()> {
    let storage = capabilities.iter().find(|c| c.feature == Feature::Storage);
    match storage.filter(|c| !c.present) {
        None => Ok(()),
        Some(lacks) => Err(Failure::Missing(anyhow::anyhow!(
            "{} is missing: {}; {}",
            lacks.feature,
            lacks.detail,
            lacks.remedy
        ))),
    }
}

/// Measures the matrix, keeps and prints it.
///
/// # Errors
/// The request fits no machine, a figure could not be taken or kept, or the sweep was stopped.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let wish = args.storage.wish();
    let named = wish.is_some();
    let chosen = machine::choose_with(&context.global.on, wish)?;
    if named {
        check_storage(&chosen.capabilities)?;
    }
    let request = |error: LabError| Failure::Request(error.into());
    let options = args.options(&chosen.topology).map_err(request)?;
    let plan = interplay::plan(&chosen.topology, &options).map_err(request)?;
    let mut plan = plan;
    let mut warnings = Vec::new();
    if let Some(why) = &chosen.only_reads {
        if let Some(tier_op) = args.asked_to_write() {
            return Err(Failure::request(format!("{tier_op} is refused: {why}")));
        }
        let all = plan.len();
        plan.retain(|spec| !spec.loads().any(|load| storage::writes(load.op)));
        if plan.len() < all {
            warnings.push(format!("requests that write are left out: {why}"));
        }
    }
    if plan.is_empty() {
        return Err(Failure::Missing(anyhow::anyhow!("{}", warnings.join("; "))));
    }
    let rounds = args.repeat.unwrap_or(match chosen.identity.kind {
        MachineKind::Host => ROUNDS_ON_HOST,
        MachineKind::Sim => 1,
    });
    let job = Job {
        context,
        chosen: &chosen,
        verb: VERB,
        rounds,
        yes: args.yes,
        warnings,
    };
    let done = job.run(&Planned::new(plan))?;
    show(context, done.run)?;
    done.verdict()
}

/// Prints a matrix that is in the store.
///
/// # Errors
/// It cannot be read, or standard output cannot be written to.
pub fn show(context: &Context, run: RunId) -> Result<()> {
    let stored = Store::open(&context.store_path()?)?.load(run)?;
    let document = document(&stored)?;
    print(&match context.global.format {
        Format::Table => output::interplay(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => csv::to_csv(&point_rows(&document.header.machine.name, &document.points))?,
    })?;
    if context.global.format == Format::Table {
        context.note(&format!(
            "run {run} took {}; `weir report {run}` draws it",
            seconds(document.header.elapsed_s)
        ));
    }
    Ok(())
}

/// The matrix of a stored run: its cells are made from its figures each time, so that a later version
/// may judge them anew.
///
/// # Errors
/// The run holds something else.
pub fn document(run: &StoredRun) -> Result<InterplayDocument> {
    let bench = bench_document(run)?;
    let records: Vec<Record> = (run.records.iter())
        .map(|record| serde_json::from_value(record.clone()))
        .collect::<serde_json::Result<_>>()
        .map_err(|error| anyhow::Error::new(error).context("cannot read the run's records"))?;
    let figures: Vec<Figure<'_>> = (bench.points.iter().zip(&records))
        .map(|(point, record)| Figure { point, record })
        .collect();
    let Matrix {
        cells,
        surface,
        latencies,
    } = interplay::matrix(&bench.header.topology, &figures);
    let mut header = bench.header;
    header.schema = InterplayDocument::SCHEMA.into();
    Ok(InterplayDocument {
        header,
        cells,
        surface,
        latencies,
        points: bench.points,
    })
}
