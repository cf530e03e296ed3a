//! `weir steer restore`: restores what a killed run left changed.

use std::path::PathBuf;

use weir_linux::Root;
use weir_linux::steer::{JournalError, Restored, restore};
use weir_steer::config::Config;

use super::config_file;
use crate::context::{Context, Format, say};
use crate::documents::RestoreDocument;
use crate::failure::{Failure, Result};
use crate::output::{print, to_json, wrap};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer restore
  weir steer restore --config /etc/weir/steer.toml

The journal has the earlier values, and nothing else is needed: a configuration
that cannot be read is a warning. A value that another program has changed in
the meantime is not restored, and this is reported.")]
pub struct Args {
    /// The configuration that names the journal, unless --journal does.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The journal's folder [default: /var/lib/weir/steer].
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
}

/// Restores everything that the journal names.
///
/// # Errors
/// Another process steers this host, the journal that was named does not exist or cannot be read, it is damaged, or the
/// kernel refused to restore something.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let folder = args.journal.clone().unwrap_or_else(|| folder(args));
    let is_named = args.journal.is_some() || args.config.is_some();
    let restored = match restore(&Root::live(), &folder) {
        Err(JournalError::NoJournal(why)) if !is_named => Restored {
            notes: vec![format!("{why}: no run has changed anything by that")],
            ..Restored::default()
        },
        restored => restored.map_err(|error| Failure::Work(error.into()))?,
    };
    let document = RestoreDocument {
        schema: RestoreDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        put_back: restored.put_back.clone(),
        not_put_back: restored.not.iter().map(ToString::to_string).collect(),
        notes: [&restored.notes[..], &restored.troubles].concat(),
    };
    print(&match context.global.format {
        Format::Json => to_json(&document)?,
        Format::Table | Format::Csv => table(&restored),
    })?;
    let refused = restored.not.iter().filter(|not| not.cause.is_refused());
    match refused.count() {
        0 if restored.is_whole() => Ok(()),
        0 => Err(Failure::work(restored.troubles.join("; "))),
        n => Err(Failure::work(format!(
            "{n} things could not be restored; the journal keeps them"
        ))),
    }
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
