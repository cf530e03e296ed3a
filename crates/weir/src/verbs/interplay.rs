//! `weir interplay`: who hurts whom.

use weir_lab::Study as _;
use weir_lab::interplay::{ACCESSES, CoRunners, Interplay, MOST, Participant, ProgramPairs, What};
use weir_linux::storage::Wish;
use weir_model::capability::{Capability, Feature};
use weir_model::machine::MachineKind;
use weir_model::tenant::Command;

use crate::context::Context;
use crate::driver::{self, Job};
use crate::failure::{Failure, Result};
use crate::machine::Chosen;
use crate::shown;
use crate::store::{RunId, StoredRun};
use crate::verbs::participants::{named_command, participants, prepare};
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
TIER:PROGRAM is a workload of the library or a file; dram+cxl0:PROGRAM has every
other page on either. Without aggressors it is alone. On a host TIER:!NAME is a
command that --command NAME='…' gives, and its run time the figure; there
TIER:PROGRAM is a workload whose real program the host runs (`weir workload
list`), such as dram:redis-ycsb-a or dram:pr-kron, in its own metric.

Examples:
  weir interplay
  weir interplay --on interplay-a --preset table3
  weir interplay --on emr2s+cxl-a --victims dram --aggressors cxl0:nt_st
  weir interplay --victims dram:ld --aggressors dram:st --threads 1
  weir interplay --on interplay-b --preset ssd-writes
  weir interplay --on miku-a+micron-x8+micron-x8@remote --preset two-sockets
  weir interplay --on emr2s+cxl-a --victims dram:redis-ycsb-a \\
      --aggressors cxl0:nt_st
  weir interplay --on emr2s+cxl-a \\
      --victims dram:redis-ycsb-a,cxl0:redis-ycsb-a --rate 20k,40k,60k
  weir interplay --command q='sqlite3 my.db .dump' --victims dram:!q \\
      --aggressors dram:ld
  weir interplay --victims dram:redis-ycsb-a --aggressors dram:nt_st --size 1G
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
    /// A command of this host that may be a tenant, as TIER:!NAME; may be
    /// repeated.
    #[arg(long, value_name = "NAME=COMMAND LINE", value_parser = named_command)]
    command: Vec<(String, Command)>,
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

    /// The programs among the tenants.
    fn names(&self) -> impl Iterator<Item = &str> {
        let named = self.study.victims.iter().chain(&self.study.aggressors);
        named.filter_map(|side| match side {
            CoRunners::Program(placed) => Some(placed.program.as_str()),
            _ => None,
        })
    }

    /// A command that is no tenant would not run.
    fn check_commands(&self) -> Result<()> {
        let is_used = |name: &str| {
            self.names()
                .any(|named| named.strip_prefix('!') == Some(name))
        };
        match self.command.iter().find(|(name, _)| !is_used(name)) {
            None => Ok(()),
            Some((name, _)) => Err(Failure::request(format!(
                "--command {name} is no tenant here; name it as one, such as --victims 'dram:!{name}'"
            ))),
        }
    }

    /// The study of programs.
    fn programs(&self, chosen: &Chosen, context: &Context) -> Result<ProgramPairs> {
        let sides = |named: &[CoRunners]| participants(named, chosen, &self.command);
        if self.study.victims.is_empty() {
            return Err(Failure::request(
                "a program has no usual victims; name them with --victims",
            ));
        }
        let threads = weir_lab::Threads::all(&self.study.threads);
        if threads.len() > 1 {
            return Err(Failure::request(
                "with programs a stream has one number of threads; give --threads one",
            ));
        }
        let mut all = sides(&self.study.victims)?;
        let victims = all.len();
        all.extend(sides(&self.study.aggressors)?);
        self.check_commands()?;
        let is_application =
            |participant: &&Participant| matches!(participant.what, What::Application(..));
        let count = all.iter().filter(is_application).count();
        let notes = prepare(&mut all, (self.study.size, count), chosen, context)?;
        let aggressors = all.split_off(victims);
        let answers = |victim: &Participant| matches!(&victim.what, What::Program(work, _) if work.requests.is_some());
        if !self.study.rate.is_empty() && !all.iter().any(answers) {
            return Err(no_rate());
        }
        Ok(ProgramPairs {
            victims: all,
            aggressors,
            programs: self.names().map(str::to_owned).collect(),
            notes,
            threads: threads.first().copied().unwrap_or(0),
            rates: self.study.rate.clone(),
            requests: self.study.requests,
            accesses: ACCESSES,
            rounds: self.repeat.unwrap_or(ROUNDS_OF_COMMANDS),
        })
    }
}

/// Why a rate is refused.
fn no_rate() -> Failure {
    Failure::request(
        "--rate is of victims that answer requests on a model, such as dram:redis-ycsb-a, and none is here",
    )
}

/// Repetitions of a command on a host.
const ROUNDS_OF_COMMANDS: u32 = 3;

/// Measures what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId, storage: Option<Wish>) -> Result<()> {
    if args.names().next().is_some() {
        let again = |_: &StoredRun, chosen: &Chosen, _| args.programs(chosen, context);
        return driver::resume(context, run, storage, again)?.verdict();
    }
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
    if args.names().next().is_some() {
        return studies::complete(context, &chosen, &args.programs(&chosen, context)?);
    }
    args.check_commands()?;
    if !args.study.rate.is_empty() {
        return Err(no_rate());
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
    shown::show(context, &done.document, done.kept_in())?;
    done.verdict()
}
