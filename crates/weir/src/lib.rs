//! The `weir` command as a library: arguments, run store, tables, and the report.
//!
//! One module for each verb, in [`verbs`]; `main` only hands over the arguments. This is the one
//! crate that knows both kinds of machine, and it alone chooses which one an experiment meets.

pub mod cli;
pub mod context;
pub mod counting;
mod dispatch;
mod disturbance;
pub mod documents;
pub mod driver;
pub mod embed;
mod ending;
pub mod engine;
pub mod estimate;
pub mod evaluation;
pub mod failure;
mod figures;
pub mod files;
pub mod host;
pub mod insight;
pub mod interrupt;
pub mod keeping;
pub mod kinds;
pub mod machine;
pub mod named;
pub mod nodes;
pub mod output;
pub mod progress;
pub mod render;
pub mod report;
mod session;
pub mod shown;
mod source;
pub mod storage;
pub mod store;
pub mod stored;
pub mod studies;
pub mod summary;
pub mod sweep_file;
pub mod system;
pub mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use cli::{Cli, Verb};
use context::{Context, Global};
use failure::{Failure, Result};
use interrupt::Stop;
use session::say;

/// Runs the command with these arguments, the program's name first.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let cli = match Cli::read(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, mistakes to standard error; a closed one is no matter.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let typed = arguments
        .iter()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    match on_signals(cli.global, typed).and_then(|context| work(cli.verb, &context)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                say(&format!("weir: {message}"));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// What verbs are given by the command, which ends by signals.
fn on_signals(global: Global, typed: Vec<String>) -> Result<Context> {
    let stop = Stop::on_signals().map_err(|error| {
        Failure::Work(anyhow::Error::new(error).context("cannot listen for Ctrl-C"))
    })?;
    Ok(Context {
        part: global.part,
        global,
        typed,
        began: std::time::Instant::now(),
        stop,
    })
}

/// Does what was asked for: here, or by the workers of an engine.
fn work(verb: Verb, context: &Context) -> Result<()> {
    let global = &context.global;
    engine::check_head(global.head.as_deref())?;
    if global.engine.is_some() || global.part.is_some() {
        engine::check(&verb, global)?;
    }
    match global.engine {
        Some(kind) => engine::run(kind, context),
        None => dispatch::run(verb, context),
    }
}
