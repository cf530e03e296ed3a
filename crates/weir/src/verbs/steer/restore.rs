//! `weir steer restore`: restores what a killed run left changed.

use std::path::{Path, PathBuf};

use weir_linux::Root;
use weir_linux::steer::{Extent, JournalError, RUN_JOURNAL, Restored, restore};
use weir_steer::config::Config;

use super::config_file;
use crate::context::{Context, Format};
use crate::documents::RestoreDocument;
use crate::failure::{Failure, Result};
use crate::output::{print_as, to_json, wrap};
use crate::session::say;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer restore
  weir steer restore --config /etc/weir/steer.toml

The journals have the earlier values, and nothing else is needed: a
configuration that cannot be read is a warning. A value that another program
has changed in the meantime is not restored, and this is reported. Without
--journal, prefetchers and resctrl groups of a measurement are restored too, by
the journal in /run/weir/bench; a measurement that still runs keeps them.")]
pub struct Args {
    /// The configuration that names the journal, unless --journal does.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder of the only journal [default: /var/lib/weir/steer and /run/weir/bench].
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
}

/// Restores everything that the journals name.
///
/// # Errors
/// Another process steers this host, the journal that was named does not exist or cannot be read, one is damaged, or the
/// kernel refused to restore something.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let (restored, failed) = match &args.journal {
        Some(folder) => parts(of(folder)),
        None => {
            let (first, failed) = parts(of_host(args));
            let (second, of_run_failed) = parts(of_run());
            (with(first, second), failed.or(of_run_failed))
        }
    };
    let says_nothing = restored == Restored::default();
    if failed.is_none() || !says_nothing {
        show(&restored, context)?;
    }
    if let Some(failed) = failed {
        return Err(Failure::Work(failed.into()));
    }
    let refused = restored.not.iter().filter(|not| not.cause.is_refused());
    match refused.count() {
        0 if restored.is_whole() => Ok(()),
        0 => Err(Failure::work(restored.troubles.join("; "))),
        n => Err(Failure::work(format!(
            "{n} things could not be restored; the journal keeps them"
        ))),
    }
}

fn show(restored: &Restored, context: &Context) -> Result<()> {
    let document = RestoreDocument {
        schema: RestoreDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        put_back: restored.put_back.clone(),
        not_put_back: restored.not.iter().map(ToString::to_string).collect(),
        notes: [&restored.notes[..], &restored.troubles].concat(),
    };
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Json => to_json(&document)?,
            Format::Table | Format::Csv => table(restored),
        },
    )
}

/// The journal of a folder.
fn of(folder: &Path) -> std::result::Result<Restored, JournalError> {
    let extent = match folder == Path::new(RUN_JOURNAL) {
        true => Extent::Run,
        false => Extent::Host,
    };
    restore(&Root::live(), folder, extent)
}

/// The journal of what is steered.
fn of_host(args: &Args) -> std::result::Result<Restored, JournalError> {
    match of(&folder(args)) {
        Err(JournalError::NoJournal(why)) if args.config.is_none() => Ok(Restored {
            notes: vec![format!("{why}: no run has changed anything by that")],
            ..Restored::default()
        }),
        restored => restored,
    }
}

/// The journal of measurements. Most hosts have none.
fn of_run() -> std::result::Result<Restored, JournalError> {
    match of(Path::new(RUN_JOURNAL)) {
        Err(JournalError::NoJournal(_)) => Ok(Restored::default()),
        Err(JournalError::Kept(why)) => Ok(Restored {
            notes: vec![format!("what a measurement changed is not restored: {why}")],
            ..Restored::default()
        }),
        restored => restored,
    }
}

fn parts<E>(restored: std::result::Result<Restored, E>) -> (Restored, Option<E>) {
    match restored {
        Ok(restored) => (restored, None),
        Err(error) => (Restored::default(), Some(error)),
    }
}

fn with(mut first: Restored, second: Restored) -> Restored {
    first.put_back.extend(second.put_back);
    first.not.extend(second.not);
    first.notes.extend(second.notes);
    first.troubles.extend(second.troubles);
    first
}

/// The folder of the journal by the configuration, or the default.
fn folder(args: &Args) -> PathBuf {
    let default = Config::default().journal;
    let Some(config) = &args.config else {
        return default;
    };
    match config_file::names_journal(config) {
        Ok(folder) => folder,
        Err(failure) => {
            say(&format!(
                "weir: warning: {}; the journal in {} is used, name another with --journal",
                failure.message().unwrap_or_default(),
                default.display()
            ));
            default
        }
    }
}

fn table(restored: &Restored) -> String {
    let lines = restored.done().chain(restored.remarks());
    let text: String = lines.map(|line| wrap(&line, "", "  ")).collect();
    match text.is_empty() {
        true => "nothing was left changed\n".to_owned(),
        false => text,
    }
}
