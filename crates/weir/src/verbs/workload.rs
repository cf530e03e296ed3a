//! `weir workload`: descriptions of how programs use memory, and their cost on a model.
//!
//! | file | content |
//! |---|---|
//! | `import` | a description from a trace |
//! | `record` | a description of a command, which runs under a tracer |
//! | `reading` | how they are read in constant memory |
//! | `named` | workloads by their names, or by their files |
//! | `tag` | the library that names a command's allocations |

mod import;
mod reading;
pub mod record;

pub mod application;
mod listing;
mod options;
pub mod size;
mod tag;

use std::path::PathBuf;

use clap::Subcommand;
use weir_lab::RunAlone;
use weir_linux::application::table;
use weir_model::workload::{Application, GROUPS, Hosted};

use self::listing::{list, show, show_group, show_hosted};
use self::options::Real;
use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::named::{find, find_for, read, real_program};
use crate::session::say;
use crate::store::RunId;
use crate::verbs::check_files;
use crate::{driver, machine, studies};

pub use record::{Args as Recording, is_script};
pub use tag::Tag;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir workload list
  weir workload show bfs-twitter
  weir workload check my-program.toml
  weir workload run bfs-twitter --on emr2s+cxl-a --tier cxl0
  weir workload import program.lackey -o program.toml
  weir workload record -o program.toml -- ./program")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the workloads of the library.
    #[command(after_help = "Example:\n  weir workload list --format json")]
    List,
    /// Show a workload and its sources.
    #[command(after_help = "Example:\n  weir workload show redis-ycsb-c")]
    Show {
        /// A name from `weir workload list`, or a TOML file.
        #[arg(value_name = "NAME|FILE")]
        workload: String,
    },
    /// Check workload files for mistakes.
    #[command(after_help = "Example:\n  weir workload check my-program.toml")]
    Check {
        /// TOML files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Run a workload: on a model what it costs, on this host the real program.
    Run(Box<RunArgs>),
    /// Describe a program from a trace of its memory accesses.
    Import(import::Args),
    /// Describe a command: run it under a tracer of its memory accesses.
    Record(record::Args),
    /// Run one of Weir's own programs as a process of its own.
    #[command(hide = true)]
    Kernel {
        /// Which.
        #[arg(value_parser = kernel)]
        kernel: Application,
        /// What it is given.
        #[arg(allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// What `run` takes.
#[derive(Debug, clap::Args)]
struct RunArgs {
    #[command(flatten)]
    study: RunAlone,
    #[command(flatten)]
    real: Real,
}

/// Lists, shows, checks or runs.
///
/// # Errors
/// There is no such workload, its file has mistakes, or the machine cannot run it.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let format = context.global.format;
    match &args.what {
        What::List => list(format),
        What::Show { workload } => match Hosted::named(workload) {
            Some(hosted) => show_hosted(hosted, format),
            None => match GROUPS.iter().find(|(name, ..)| name == workload) {
                Some(group) if format == Format::Table => show_group(group),
                _ => show(&find(workload)?, format),
            },
        },
        What::Check { files } => check_files(files, format, &|file| Ok(read(file)?.name)),
        What::Import(args) => import::run(args, context),
        What::Record(args) => record::run(args, context),
        What::Run(args) => measure(&args.study, &args.real, context),
        What::Kernel { kernel, arguments } => Ok(table::run_kernel(*kernel, arguments)?),
    }
}

/// A program by its name.
fn kernel(name: &str) -> std::result::Result<Application, String> {
    Application::named(name).ok_or_else(|| format!("there is no program `{name}`"))
}

/// Runs the workloads of a group one after the other, each with those options that fit it.
fn all_of(names: &[&str], args: &RunAlone, real: &Real, context: &Context) -> Result<()> {
    let mut first = None;
    for name in names {
        let args = RunAlone {
            workload: (*name).to_owned(),
            ..args.clone()
        };
        let fitting = real_program(name)?.map(|program| real.fitting(program.application));
        let Err(why) = measure(&args, fitting.as_ref().unwrap_or(real), context) else {
            continue;
        };
        if context.stop.requested() {
            return Err(why);
        }
        // The first is reported at the end.
        match (&first, why.message()) {
            (None, _) => first = Some(why.of(name)),
            (Some(_), Some(text)) => say(&format!("weir: {name}: {text}")),
            (Some(_), None) => {}
        }
    }
    first.map_or(Ok(()), Err)
}

/// Runs a workload, keeps and prints what it cost.
fn measure(args: &RunAlone, real: &Real, context: &Context) -> Result<()> {
    for (at, (tier, _)) in args.tier.iter().enumerate() {
        if args.tier.iter().take(at).any(|(before, _)| before == tier) {
            return Err(Failure::request(format!("--tier: {tier} is named twice")));
        }
    }
    if machine::is_real(&context.global.on) {
        let group = GROUPS.iter().find(|(name, _, _)| *name == args.workload);
        if let Some((_, _, names)) = group {
            return all_of(names, args, real, context);
        }
        if let Some(program) = real_program(&args.workload)? {
            return application::run(args, real, program, context);
        }
    }
    real.refuse()?;
    let on = &context.global.on;
    let of_model = args.pages.filter(|_| !machine::is_real(on));
    let on = of_model.map_or_else(|| on.clone(), |pages| pages.on(on));
    let chosen = machine::choose(&on)?;
    studies::complete(context, &chosen, &described(args)?)
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// The run is not one of a workload, or the work failed.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    match &args.what {
        What::Run(args) => {
            driver::resume(context, run, None, |_, _, _| described(&args.study))?.verdict()
        }
        _ => Err(Failure::request("only `weir workload run` measures")),
    }
}

fn described(args: &RunAlone) -> Result<RunAlone> {
    Ok(RunAlone {
        described: Some(find_for(&args.workload, args.threads)?),
        ..args.clone()
    })
}
