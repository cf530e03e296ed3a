//! `weir tier`: pages on fast and slow tiers.
//!
//! | file | content |
//! |---|---|
//! | `advise` | the profile from which advice is given |
//! | `moves` | parts of memory that move to a tier, and what became of them |
//! | `profile` | which pages are touched how often: arguments |
//! | `profile_host` | of running processes |
//! | `profile_trace` | of a trace |
//! | `requests` | what `run` is asked for: arguments, and their words |
//! | `run` | the kernel's own tiering on this host: set, counted, restored |
//! | `schemes` | schemes of DAMON, and what they did |
//! | `watch` | its windows, and what it asks of the kernel in them |
//! | `windows` | its document |

mod advise;
mod moves;
mod profile;
mod profile_host;
mod profile_trace;
mod requests;
mod run;
mod schemes;
mod watch;
pub mod windows;

use clap::Subcommand;
use weir_model::diagnostic::closest;
use weir_model::machine::MachineKind;
use weir_model::workload::{GROUPS, Hosted, Workload, Workloads};
use weir_steer::tier::advise::Advise;
use weir_steer::tier::population::Population;
use weir_steer::tier::profile::ProfileModel;
use weir_steer::tier::{Simulate, shapes};

use crate::context::Context;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen};
use crate::named::find_for;
use crate::store::RunId;
use crate::studies::complete;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tier simulate --on emr2s+cxl-a --workload web1
  weir tier simulate --on emr2s+cxl-a --workload cache1 --ratio 1:4
  weir tier population --on emr2s+cxl-a
  weir tier profile --on emr2s+cxl-a --workload cache1
  weir tier advise last --on emr2s+cxl-a --ratio 1:4
  weir tier run --for 10s
  weir tier run --demotion on --balancing tiering --promote-limit '0.1 GB/s'")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compare policies of page placement on the model of a machine.
    Simulate(Simulate),
    /// Say which pages are touched how often: of a workload on a model, of processes of this host, of a trace.
    Profile(profile::Args),
    /// Compare policies on workloads that are drawn at random.
    Population(Population),
    /// Say from a profile whether tiering is worth it, and how much fast memory is needed.
    Advise(Advise),
    /// Set the kernel's own tiering on this host, count what it does, and restore it.
    Run(requests::Args),
}

/// What was asked for.
///
/// # Errors
/// That of the verb; a simulation of a host, which is no model.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        What::Simulate(study) => complete(context, &model(context)?, &with_description(study)?),
        What::Population(study) => complete(context, &model(context)?, study),
        What::Advise(study) => {
            let chosen = model(context)?;
            complete(context, &chosen, &advise::with_profile(study, context)?)
        }
        What::Run(args) => run::run(args, context),
        What::Profile(args) => profile(args, context),
    }
}

/// Profiles what was named.
///
/// # Errors
/// Arguments of one source with another, or the source's own.
fn profile(args: &profile::Args, context: &Context) -> Result<()> {
    if let Some(file) = &args.trace {
        return profile_trace::run(args, file, context);
    }
    if let Some(scope) = &args.target {
        return profile_host::run(args, scope, context);
    }
    let chosen = machine::choose(&context.global.on)?;
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::request(
            "name what to profile: a model with --on, such as --on emr2s+cxl-a; processes with --target, such as \
             --target pid:4711; or a file with --trace",
        ));
    }
    complete(context, &chosen, &profiled(&args.study)?)
}

/// The profile with the description of its workload, where that is a program.
fn profiled(study: &ProfileModel) -> Result<ProfileModel> {
    let name = study.workload.as_deref();
    Ok(ProfileModel {
        described: name
            .map(|name| description(name, None))
            .transpose()?
            .flatten(),
        ..study.clone()
    })
}

/// The same with the description of its workload, where that is a program.
fn with_description(study: &Simulate) -> Result<Simulate> {
    Ok(Simulate {
        described: description(&study.workload, study.threads)?,
        ..study.clone()
    })
}

/// The description of a workload that is no shape.
fn description(name: &str, threads: Option<u32>) -> Result<Option<Workload>> {
    let described = name.strip_prefix("described:");
    if described.is_none() && shapes().any(|known| known == name) {
        return match threads {
            None => Ok(None),
            Some(_) => Err(Failure::request(format!(
                "`{name}` is a shape with its own threads; --threads is for described programs"
            ))),
        };
    }
    let library = Workloads::builtin();
    let mut names: Vec<&str> = library
        .list()
        .iter()
        .map(|known| known.name.as_str())
        .collect();
    shapes().for_each(|name| names.push(name));
    let is_file = name.ends_with(".toml") || name.contains('/');
    if described.is_none()
        && !is_file
        && library.get(name).is_none()
        && Hosted::named(name).is_none()
        && !GROUPS.iter().any(|(group, _, _)| *group == name)
    {
        let hint = match closest(name, names).as_slice() {
            [] => "`weir tier simulate --help` and `weir workload list` have them".to_owned(),
            close => format!("did you mean `{}`?", close.join("`, `")),
        };
        return Err(Failure::request(format!(
            "there is no workload `{name}`; {hint}"
        )));
    }
    find_for(described.unwrap_or(name), threads).map(Some)
}

fn model(context: &Context) -> Result<Chosen> {
    let chosen = machine::choose(&context.global.on)?;
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::Missing(anyhow::anyhow!(
            "pages are simulated on a model; name one with --on, such as --on emr2s+cxl-a"
        )));
    }
    Ok(chosen)
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    match &args.what {
        What::Simulate(study) => {
            driver::resume(context, run, None, |_, _, _| with_description(study))?.verdict()
        }
        What::Population(study) => {
            driver::resume(context, run, None, |_, _, _| Ok(study.clone()))?.verdict()
        }
        What::Advise(study) => {
            let study = advise::with_profile(study, context)?;
            driver::resume(context, run, None, |_, _, _| Ok(study.clone()))?.verdict()
        }
        What::Profile(args) if !args.is_of_host() => {
            driver::resume(context, run, None, |_, _, _| profiled(&args.study))?.verdict()
        }
        What::Profile(_) => Err(Failure::request(
            "a profile of processes or of a trace is made in one go; begin another",
        )),
        What::Run(_) => Err(Failure::request(
            "a run of this host's tiering has ended with its settings; begin another",
        )),
    }
}
