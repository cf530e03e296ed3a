//! What `weir bench` is asked for: an experiment of [`POINT_STUDIES`] with its arguments, or a file of sweeps.

use std::fmt;
use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{ArgMatches, Args as _, Command, FromArgMatches, Subcommand};
use weir_lab::stream::Stream;
use weir_lab::studies::{Entry, POINT_STUDIES};
use weir_lab::study::measure;
use weir_lab::{AnyStudy, Lab, LabError, PointStudy, Points, Study};
use weir_model::machine::MachineKind;

use super::dax::DaxArgs;
use crate::context::Context;
use crate::driver::Job;
use crate::machine::Chosen;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench all --quick
  weir bench latency --quick
  weir bench bandwidth --on emr2s+cxl-a --op ld,nt_st --threads 1..32
  weir bench --file sweep.toml")]
pub struct Args {
    /// Sweeps by name from a file, in place of an experiment (docs/sweeps.md).
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Measure only what an earlier run of the file lacks: this one, or the newest.
    #[arg(long, value_name = "RUN", num_args = 0..=1, requires = "file")]
    pub(super) resume: Option<Option<String>>,
    /// Start a sweep of very many figures without a question.
    #[arg(long, global = true)]
    yes: bool,
    /// How often each figure is measured, others in between [default: 5 on a
    /// real machine, 1 on a model].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    #[command(subcommand)]
    pub(super) what: Option<Picked>,
}

/// The study that was named, with its arguments.
pub struct Picked {
    pub(super) study: Box<dyn AnyStudy>,
    /// STREAM in a file.
    pub(super) dax: Option<(DaxArgs, Stream)>,
}

impl fmt::Debug for Picked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.study.verb())
    }
}

/// The command of a study, with what Weir adds to it.
fn command_of(entry: &Entry) -> Command {
    let command = (entry.command)();
    match command.get_name() == Stream::NAME {
        true => {
            // What is added has words of its own, which are not those of the command.
            let about = Resettable::from(command.get_about().cloned());
            let long = Resettable::from(command.get_long_about().cloned());
            (DaxArgs::augment_args(command).about(about)).long_about(long)
        }
        false => command,
    }
}

impl Study for Picked {
    const VERB: &'static str = "bench";
    type Output = Points;

    fn run(&self, lab: &Lab<'_>) -> std::result::Result<Points, LabError> {
        measure(self.study.as_ref(), lab)
    }
}

impl FromArgMatches for Picked {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let (name, own) = matches.subcommand().unwrap_or(("", matches));
        let mut known = POINT_STUDIES.iter();
        match known.find(|entry| (entry.command)().get_name() == name) {
            Some(entry) => {
                let dax = match name == Stream::NAME {
                    true => Some((
                        DaxArgs::from_arg_matches(own)?,
                        Stream::from_arg_matches(own)?,
                    )),
                    false => None,
                };
                let study = (entry.parse)(own)?;
                Ok(Self { study, dax })
            }
            None => Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand)),
        }
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Picked {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(POINT_STUDIES.iter().map(command_of))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        POINT_STUDIES
            .iter()
            .any(|entry| (entry.command)().get_name() == name)
    }
}

/// Repetitions on a real machine: enough to see that they disagree.
const ROUNDS_ON_HOST: u32 = 5;

impl Args {
    /// A study with these arguments on a machine.
    pub(super) fn job<'a>(
        &self,
        context: &'a Context,
        chosen: &'a Chosen,
        verb: &'a str,
    ) -> Job<'a> {
        let usual = match chosen.identity.kind {
            MachineKind::Host => ROUNDS_ON_HOST,
            // A model repeats itself.
            MachineKind::Sim => 1,
        };
        Job {
            context,
            chosen,
            verb,
            rounds: self.repeat.unwrap_or(usual),
            yes: self.yes,
            warnings: Vec::new(),
        }
    }
}
