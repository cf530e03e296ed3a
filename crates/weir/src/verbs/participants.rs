//! Tenants by the names that users write: streams, described programs, and commands of this host.

use weir_lab::interplay::{CoRunners, Participant, PlacedName, What, tier_ops};
use weir_linux::application::program::ready;
use weir_linux::tracer::Tracer;
use weir_model::machine::MachineKind;
use weir_model::tenant::{Command, Placement};
use weir_model::topology::TierName;
use weir_model::units::Bytes;
use weir_model::workload::GROUPS;

use super::workload::application::failure;
use super::workload::record::is_script;
use super::workload::size::size as fitting;
use crate::context::Context;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::machine::Chosen;
use crate::named::{find, real_program};
use crate::nodes::{all_here, here};

/// The tenants that names stand for, on a machine. `commands` are those that a name with `!` may mean.
///
/// # Errors
/// There is no such workload, file, command or tier.
pub fn participants(
    named: &[CoRunners],
    chosen: &Chosen,
    commands: &[(String, Command)],
) -> Result<Vec<Participant>> {
    let mut all = Vec::new();
    for side in &members(named) {
        match side {
            CoRunners::Program(placed) if placed.program.starts_with('!') => {
                let name = placed.program.trim_start_matches('!');
                let found = commands.iter().find(|(known, _)| known == name);
                let (_, command) = found.ok_or_else(|| {
                    Failure::request(format!(
                        "`{placed}`: there is no command `{name}`; give it with --command {name}='…'"
                    ))
                })?;
                if chosen.identity.kind == MachineKind::Host {
                    // Before another one runs.
                    is_script(&command.program, Tracer::Lackey)?;
                }
                all.push(Participant::command(placed, command.clone()));
            }
            CoRunners::Program(placed) if chosen.identity.kind == MachineKind::Host => {
                all.push(match real_program(&placed.program)? {
                    Some(program) => Participant::application(placed, program),
                    None => Participant::program(placed, find(&placed.program)?),
                });
            }
            CoRunners::Program(placed) => {
                all.push(Participant::program(placed, find(&placed.program)?));
            }
            stream => {
                let streams = tier_ops(&chosen.topology, std::slice::from_ref(stream))
                    .map_err(|error| driver::refusal(error, chosen))?;
                all.extend(streams.into_iter().map(Participant::stream));
            }
        }
    }
    Ok(all)
}

/// The same, with the members of a group in its place.
fn members(named: &[CoRunners]) -> Vec<CoRunners> {
    let mut all = Vec::new();
    for side in named {
        let group = match side {
            CoRunners::Program(placed) => GROUPS
                .iter()
                .find(|(name, _, _)| *name == placed.program)
                .map(|(_, _, names)| (&placed.tiers, names)),
            _ => None,
        };
        match group {
            Some((tiers, names)) => all.extend(names.iter().map(|name| {
                CoRunners::Program(PlacedName {
                    tiers: tiers.clone(),
                    program: (*name).to_owned(),
                })
            })),
            None => all.push(side.clone()),
        }
    }
    all
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

/// Makes applications of this host ready to be tenants: what they need is installed, their data fit into memory, of which
/// each of several that run at once has a quarter at most, and one alone half, and they are on tiers of this host. Returns what is worth knowing of their sizes.
///
/// # Errors
/// One is not installed, with the line that installs it; it does not fit; or its tier is not here.
pub fn prepare(
    participants: &mut [Participant],
    (size, at_once): (Option<Bytes>, usize),
    chosen: &Chosen,
    context: &Context,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for participant in participants {
        let What::Application(program, tiers) = &mut participant.what else {
            continue;
        };
        ready(program).map_err(failure)?;
        let host = here(context)?;
        let names: Vec<TierName> = tiers.iter().map(|(tier, _)| tier.clone()).collect();
        all_here(&host, &chosen.topology, &names)?;
        let placements: Vec<Placement> = names.into_iter().map(Placement::Bind).collect();
        let part = if at_once > 1 { 4 } else { 2 };
        let (bytes, reduced) =
            fitting(size, program, &host, &chosen.topology, (&placements, part))?;
        program.bytes = bytes;
        notes.extend(reduced.map(|text| format!("{}: {text}", participant.name)));
    }
    Ok(notes)
}
