//! The commands with their options and their help, from which the package makes functions, docstrings and stubs.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};
use pyo3::prelude::*;
use serde_json::{Value, json};
use weir::embed;

/// The tree of commands, as JSON.
#[pyfunction]
pub fn commands() -> String {
    command(&embed::commands(), "", &[]).to_string()
}

fn text(styled: Option<&StyledStr>) -> String {
    styled.map_or_else(String::new, ToString::to_string)
}

/// A command; `path` are the words before its name, and `inherited` the options of commands above it, which it also takes.
fn command(of: &Command, path: &str, inherited: &[Value]) -> Value {
    // The program's own name is no word.
    let path = match path.is_empty() && of.get_name() == "weir" {
        true => String::new(),
        false => format!("{path} {}", of.get_name()).trim().to_owned(),
    };
    let known: Vec<&str> = inherited.iter().filter_map(|o| o["id"].as_str()).collect();
    let shown = |arg: &&Arg| {
        !matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpLong | ArgAction::HelpShort | ArgAction::Version
        ) && !known.contains(&arg.get_id().as_str())
    };
    let own: Vec<(bool, Value)> = (of.get_arguments().filter(shown))
        .map(|arg| (arg.is_global_set(), argument(arg)))
        .collect();
    let global = own.iter().filter(|(global, _)| *global);
    let below: Vec<Value> = (global.map(|(_, arg)| arg))
        .chain(inherited)
        .cloned()
        .collect();
    let subcommands = of.get_subcommands().filter(|sub| sub.get_name() != "help");
    json!({
        "name": of.get_name(),
        "about": text(of.get_about()),
        "after": text(of.get_after_help()),
        "hidden": of.is_hide_set(),
        "kept": embed::is_kept(&path),
        "alone": !of.is_subcommand_required_set(),
        "arguments": own.iter().map(|(_, arg)| arg).chain(inherited).collect::<Vec<_>>(),
        "commands": subcommands.map(|sub| command(sub, &path, &below)).collect::<Vec<_>>(),
    })
}

fn argument(arg: &Arg) -> Value {
    let takes = arg.get_num_args().unwrap_or_else(|| 1.into());
    // Where a default is hidden, the help says it in words.
    let defaults = match arg.is_hide_default_value_set() {
        true => &[],
        false => arg.get_default_values(),
    };
    json!({
        "id": arg.get_id().as_str(),
        "long": arg.get_long(),
        "short": arg.get_short(),
        "positional": arg.is_positional(),
        // After `--`.
        "last": arg.is_last_set(),
        "flag": !arg.get_action().takes_values(),
        "many": matches!(arg.get_action(), ArgAction::Append) || takes.max_values() > 1,
        "optional_value": takes.min_values() == 0,
        // Values in one word, or each in its own.
        "delimiter": arg.get_value_delimiter(),
        "together": takes.max_values() > 1,
        "required": arg.is_required_set(),
        "value": (arg.get_value_names().unwrap_or_default()).join(" "),
        "default": (defaults.iter()).map(|value| value.to_string_lossy()).collect::<Vec<_>>(),
        "choices": (arg.get_possible_values().iter())
            .filter(|value| !value.is_hide_set())
            .map(|value| value.get_name().to_owned())
            .collect::<Vec<_>>(),
        "help": text(arg.get_help()),
        "hidden": arg.is_hide_set(),
    })
}
