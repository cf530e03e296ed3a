//! The verbs, one file each: arguments with their help, and what the verb does.

pub mod accept;
pub mod bench;
pub mod calibrate;
pub mod completions;
pub mod counters;
pub mod design;
pub mod doctor;
pub mod explain;
pub mod fit;
pub mod interplay;
pub mod man;
pub mod memory_config;
mod moved;
pub mod namespace;
pub mod participants;
pub mod persist;
pub mod place;
pub mod plan;
pub mod platforms;
pub mod pool;
pub mod predict;
pub mod report;
pub mod reproduce;
pub mod runs;
pub mod steer;
pub mod tier;
pub mod topo;
pub mod tour;
pub mod tune;
pub mod workload;

use std::path::{Path, PathBuf};

use crate::context::Format;
use crate::documents::{CheckDocument, CheckedFile};
use crate::failure::{Failure, Result};
use crate::output::{print_as, to_csv, to_json};

/// Checks files that the user wrote; `name_in` reads one and returns the name of what it describes.
///
/// # Errors
/// A file has mistakes.
fn check_files(
    files: &[PathBuf],
    format: Format,
    name_in: &dyn Fn(&Path) -> Result<String>,
) -> Result<()> {
    let check = |file: &PathBuf| {
        let (name, mistakes) = match name_in(file) {
            Ok(name) => (Some(name), None),
            Err(failure) => (None, failure.message()),
        };
        CheckedFile {
            file: file.display().to_string(),
            name,
            mistakes,
        }
    };
    let files: Vec<CheckedFile> = files.iter().map(check).collect();
    let bad: Vec<String> = files.iter().filter_map(|f| f.mistakes.clone()).collect();
    let good = (files.iter())
        .filter_map(|f| Some(format!("{}: {} is in order\n", f.file, f.name.as_ref()?)));
    print_as(
        format,
        &match format {
            Format::Table => good.collect(),
            Format::Csv => to_csv(&files)?,
            Format::Json => to_json(&CheckDocument {
                schema: CheckDocument::SCHEMA.into(),
                weir: env!("CARGO_PKG_VERSION").into(),
                files,
            })?,
        },
    )?;
    match bad.is_empty() {
        true => Ok(()),
        false => Err(Failure::request(bad.join("\n\n"))),
    }
}
