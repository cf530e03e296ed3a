//! `weir interplay`: who hurts whom.

use weir_lab::Study as _;
use weir_lab::interplay::{Interplay, MOST};
use weir_linux::storage::Wish;
use weir_model::capability::{Capability, Feature};
use weir_model::machine::MachineKind;

use crate::context::Context;
use crate::driver::{self, Job};
use crate::failure::{Failure, Result};
use crate::machine::Chosen;
use crate::store::{RunId, StoredRun};
use crate::{machine, storage, studies};

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
    #[command(flatten)]
    study: Interplay,
    /// How often each figure is measured, others in between [default: 6 on a
    /// real machine; on a model 2, and more until the class of a pair is
    /// certain, 5 at most].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Start a matrix of very many figures without being asked.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    storage: storage::Named,
}

impl Args {
    /// The study of a machine.
    fn on(&self, chosen: &Chosen) -> Interplay {
        Interplay {
            only_reads: chosen.only_reads.clone(),
            until_certain: self.repeat.is_none() && chosen.identity.kind == MachineKind::Sim,
            ..self.study.clone()
        }
    }
}

/// Measures what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId, storage: Option<Wish>) -> Result<()> {
    let again = |_: &StoredRun, chosen: &Chosen, points| {
        Ok(Interplay {
            planned: Some(points),
            only_reads: None,
            ..args.on(chosen)
        })
    };
    driver::resume(context, run, storage, again)?.verdict()
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
    let study = args.on(&chosen);
    let rounds = args.repeat.unwrap_or(match chosen.identity.kind {
        MachineKind::Host => ROUNDS_ON_HOST,
        MachineKind::Sim => MOST,
    });
    let job = Job {
        context,
        chosen: &chosen,
        verb: Interplay::VERB,
        rounds,
        yes: args.yes,
        warnings: Vec::new(),
    };
    let done = job.run(&study)?;
    studies::show(context, &done.document, Some(done.run))?;
    done.verdict()
}
