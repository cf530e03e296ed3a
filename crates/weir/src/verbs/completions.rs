//! `weir completions`: a script by which a shell completes the arguments.

use clap::{Arg, Command, ValueHint};
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
pub fn run(args: &Args, command: &Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut offered(command), "weir", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// The command without what its help hides. Names of files are offered only for values that may be one.
fn offered(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let commands = command.get_subcommands().filter(|c| !c.is_hide_set());
    let aliases = command.get_visible_aliases().map(str::to_owned);
    let offered = Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .visible_aliases(aliases.collect::<Vec<_>>())
        .args(arguments.map(|arg| {
            let unknown = arg.get_value_hint() == ValueHint::Unknown;
            match unknown && arg.get_action().takes_values() && !may_be_file(arg) {
                true => arg.clone().value_hint(ValueHint::Other),
                false => arg.clone(),
            }
        }))
        .subcommands(commands.map(self::offered));
    match command.get_version() {
        Some(version) => offered.version(version.to_owned()),
        None => offered,
    }
}

/// Whether the placeholder of a value stands for files, devices, groups, programs, or descriptions by name or file.
fn may_be_file(arg: &Arg) -> bool {
    const FILES: [&str; 13] = [
        "FILE", "PATH", "FOLDER", "STORE", "POOL", "MACHINE", "PLATFORM", "CMD", "COMMAND",
        "PROGRAM", "SCOPE", "GROUP", "DEVICE",
    ];
    let names = arg.get_value_names().unwrap_or_default();
    names
        .iter()
        .any(|name| FILES.iter().any(|file| name.contains(file)))
}
