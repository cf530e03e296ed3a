//! `weir platforms`: machines as files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use weir_model::platform::{Definition, Library, ParameterRow};

use crate::context::{Context, Format};
use crate::documents::{PlatformDocument, PlatformLine, PlatformsDocument};
use crate::failure::Result;
use crate::machine;
use crate::output::{Column, Table, print_text, to_csv, to_json};
use crate::verbs::{check_files, fit, memory_config};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir platforms list
  weir platforms show emr2s+cxl-a
  weir platforms check my-device.toml
  weir platforms fit last -o my-server.toml
  weir platforms import ramulator.yaml --base skx2s -o ours.toml")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List servers and devices that have a platform file.
    #[command(after_help = "Example:\n  weir platforms list --format json")]
    List,
    /// Show every number of a machine and its source.
    #[command(after_help = "Example:\n  weir platforms show emr2s+2xcxl-a")]
    Show {
        /// A platform expression; parts may be paths of TOML files.
        platform: String,
    },
    /// Check platform files for mistakes.
    #[command(after_help = "Example:\n  weir platforms check my-device.toml")]
    Check {
        /// TOML files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Make the file of a machine from what was measured on it.
    Fit(Box<fit::Args>),
    /// Make a file with the memory of a configuration of Ramulator 2 or gem5.
    Import(memory_config::Args),
}

/// Lists, shows, checks or fits.
///
/// # Errors
/// An expression names no machine, a file has mistakes, or figures give no machine.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        What::List => list(context.global.format),
        What::Show { platform } => show(platform, context.global.format),
        What::Check { files } => check_files(files, context.global.format, &name_in),
        What::Fit(args) => fit::run(args, context),
        What::Import(args) => memory_config::run(args, context),
    }
}

fn list(format: Format) -> Result<()> {
    let library = Library::builtin();
    let line = |definition: &Definition| PlatformLine {
        name: definition.name().into(),
        kind: match definition {
            Definition::Host(_) => "host".into(),
            Definition::Device(_) => "cxl".into(),
            Definition::Storage(_) => "ssd".into(),
        },
        summary: definition.summary().into(),
    };
    let platforms: Vec<PlatformLine> = library.list().into_iter().map(line).collect();
    print_text(&match format {
        Format::Json => to_json(&PlatformsDocument {
            schema: PlatformsDocument::SCHEMA.into(),
            weir: env!("CARGO_PKG_VERSION").into(),
            platforms,
        })?,
        Format::Csv => to_csv(platforms)?,
        Format::Table => {
            let mut table = Table::new(&[
                Column::words("name"),
                Column::words("kind"),
                Column::words("what"),
            ]);
            for line in platforms {
                table.row([line.name, line.kind, line.summary]);
            }
            table.to_string()
        }
    })
}

fn show(platform: &str, format: Format) -> Result<()> {
    // A device alone is not a machine, but has numbers to show.
    let parameters = match machine::definition(platform)? {
        Some(device @ (Definition::Device(_) | Definition::Storage(_))) => device.parameters(),
        _ => machine::compose_named(platform, "platforms show")?
            .1
            .describe(),
    };
    print_text(&match format {
        Format::Json => to_json(&PlatformDocument {
            schema: PlatformDocument::SCHEMA.into(),
            weir: env!("CARGO_PKG_VERSION").into(),
            name: platform.into(),
            parameters,
        })?,
        Format::Csv => to_csv(parameters.iter().map(ParameterCsvRow::from))?,
        Format::Table => tables(&parameters),
    })
}

/// A parameter as one row of CSV.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ParameterCsvRow<'a> {
    part: &'a str,
    key: &'a str,
    value: &'a str,
    meaning: &'a str,
    assumed: bool,
    provenance: String,
}

impl<'a> From<&'a ParameterRow> for ParameterCsvRow<'a> {
    fn from(row: &'a ParameterRow) -> Self {
        Self {
            part: &row.part,
            key: &row.key,
            value: &row.value,
            meaning: &row.meaning,
            assumed: row.is_assumed(),
            provenance: row.provenance.to_string(),
        }
    }
}

/// One table for each part of the machine.
fn tables(parameters: &[ParameterRow]) -> String {
    let mut text = String::new();
    for part in parameters.chunk_by(|a, b| a.part == b.part) {
        let mut table = Table::new(&[
            Column::words("parameter"),
            Column::words("value"),
            Column::words("where it comes from"),
        ]);
        for row in part {
            table.row([
                row.key.clone(),
                row.value.clone(),
                row.provenance.to_string(),
            ]);
        }
        let name = part.first().map_or("", |row| row.part.as_str());
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{gap}{name}\n{table}");
    }
    let assumed = parameters.iter().filter(|row| row.is_assumed()).count();
    let _ = writeln!(
        text,
        "\n{assumed} of {} values are assumed",
        parameters.len()
    );
    text
}

fn name_in(file: &Path) -> Result<String> {
    let text = machine::read_platform_file(file)?;
    machine::check_file(&file.display().to_string(), &text)
}
