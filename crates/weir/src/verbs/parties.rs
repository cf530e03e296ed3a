//! Tenants by the names that users write: streams, described programs, and commands of this host.

use weir_lab::interplay::{CoRunners, Party, tier_ops};
use weir_model::tenant::Command;

use super::workload::find;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::machine::Chosen;

/// The tenants that names stand for, on a machine. `commands` are those that a name with `!` may mean.
///
/// # Errors
/// There is no such workload, file, command or tier.
pub fn parties(
    named: &[CoRunners],
    chosen: &Chosen,
    commands: &[(String, Command)],
) -> Result<Vec<Party>> {
    let mut all = Vec::new();
    for side in named {
        match side {
            CoRunners::Program(placed) if placed.program.starts_with('!') => {
                let name = placed.program.trim_start_matches('!');
                let found = commands.iter().find(|(known, _)| known == name);
                let (_, command) = found.ok_or_else(|| {
                    Failure::request(format!(
                        "`{placed}`: there is no command `{name}`; give it with --command {name}='…'"
                    ))
                })?;
                all.push(Party::command(placed, command.clone()));
            }
            CoRunners::Program(placed) => {
                all.push(Party::program(placed, find(&placed.program)?));
            }
            stream => {
                let streams = tier_ops(&chosen.topology, std::slice::from_ref(stream))
                    .map_err(|error| driver::refusal(error, chosen))?;
                all.extend(streams.into_iter().map(Party::stream));
            }
        }
    }
    Ok(all)
}

/// Reads `NAME=COMMAND LINE`; words are apart by spaces, and quotes keep them together as in a shell.
pub fn named_command(text: &str) -> std::result::Result<(String, Command), String> {
    let (name, line) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("`{text}` is not NAME=COMMAND LINE"))?;
    let words = shell_words::split(line).map_err(|error| format!("`{line}`: {error}"))?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(format!("`{name}` has no command"));
    };
    let command = Command {
        program: program.clone(),
        arguments: arguments.to_vec(),
    };
    Ok((name.to_owned(), command))
}
