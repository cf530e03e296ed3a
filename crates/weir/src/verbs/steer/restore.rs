//! `weir steer restore`: restores what a killed run left changed.

use std::path::PathBuf;

use weir_linux::Root;
use weir_linux::steer::restore;

use super::config_file;
use crate::context::{Context, Format};
use crate::documents::RestoreDocument;
use crate::failure::{Failure, Result};
use crate::output::{print, to_json, wrap};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer restore
  weir steer restore --config /etc/weir/steer.toml

The journal has the earlier values. A value that another program has changed
in the meantime is not restored, and this is reported.")]
pub struct Args {
    /// The configuration that names the journal.
    #[arg(long, value_name = "FILE", conflicts_with = "journal")]
    config: Option<PathBuf>,
    /// The journal's folder [default: /var/lib/weir/steer].
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
}

/// Restores everything that the journal names.
///
/// # Errors
/// Another process steers this host, the journal cannot be read, or the kernel refused to restore something.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let folder = match (&args.config, &args.journal) {
        (Some(config), _) => config_file::read(config)?.journal,
        (None, Some(folder)) => folder.clone(),
        (None, None) => weir_steer::config::Config::default().journal,
    };
    let restored = match folder.exists() {
        true => restore(&Root::live(), &folder).map_err(|error| Failure::Work(error.into()))?,
        false => weir_linux::steer::Restored::default(),
    };
    let document = RestoreDocument {
        schema: RestoreDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        put_back: restored.put_back.clone(),
        not_put_back: restored.not.iter().map(ToString::to_string).collect(),
        notes: restored.notes.clone(),
    };
    print(&match context.global.format {
        Format::Json => to_json(&document)?,
        Format::Table | Format::Csv => table(&document),
    })?;
    let refused = restored.not.iter().filter(|not| not.cause.is_refused());
    match refused.count() {
        0 => Ok(()),
        n => Err(Failure::work(format!(
            "{n} things could not be restored; the journal keeps them"
        ))),
    }
}

fn table(document: &RestoreDocument) -> String {
    let mut text = String::new();
    for path in &document.put_back {
        text += &wrap(&format!("restored: {path}"), "", "  ");
    }
    for not in document.not_put_back.iter().chain(&document.notes) {
        text += &wrap(not, "", "  ");
    }
    if text.is_empty() {
        text.push_str("nothing was left changed\n");
    }
    text
}
