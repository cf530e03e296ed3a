//! `weir counters`: counts a command here, shows how to count it elsewhere, and shows counts.

mod list;
mod record;
mod show;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Result;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir counters record -o local.json -- ./service --once
  weir counters list --cpu spr                 the perf command for elsewhere
  weir counters show there.csv --cpu spr

docs/counters.md says what is counted on which processor, and what cannot be.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Count a command on this host, from its first instruction, with all its children.
    #[command(after_help = "\
Examples:
  weir counters record -- ./service --once
  weir counters record -I 1000 -o local.json -- make -j8
  weir counters record --counters cycles,page-faults -- sort big.txt
  weir counters record --pid 4242 -- sleep 10
  weir counters record --all --uncore -- sleep 10

The command keeps its own input, output and errors; results go to the file of
-o, or else to standard output after the command's. The exit code is the
command's; 128 and the signal's number if one ended it.")]
    Record(record::Args),
    /// List the counters of a microarchitecture, and the perf commands for them.
    #[command(after_help = "\
Examples:
  weir counters list
  weir counters list --cpu emr --uncore
  weir counters list --cpu zen4 --format json")]
    List(list::Args),
    /// Show a file of counters: of weir, or of perf stat (text, -x, or -j).
    #[command(after_help = "\
Examples:
  weir counters show local.json
  weir counters show there.csv --cpu spr
  perf stat -x, -e cycles true 2>&1 | weir counters show -")]
    Show(show::Args),
}

/// Counts, lists or shows.
///
/// # Errors
/// A file cannot be read, a name is not known, or a command cannot be started.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        What::Record(args) => record::run(args, context),
        What::List(args) => list::run(args, context),
        What::Show(args) => show::run(args, context),
    }
}
