//! `weir completions`: a script by which a shell completes the arguments.

use clap_complete::Shell;

use crate::failure::Result;
use crate::output::print;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir completions bash > ~/.local/share/bash-completion/completions/weir")]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for the command.
///
/// # Errors
/// Standard output cannot be written to.
pub fn run(args: &Args, mut command: clap::Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "weir", &mut script);
    print(&String::from_utf8_lossy(&script))
}
