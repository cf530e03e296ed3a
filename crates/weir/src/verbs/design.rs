//! `weir design`: a space of servers, and the designs in it that no other dominates.

use std::path::Path;

use weir_design::space::{Models, Space};
use weir_design::study::DesignStudy;
use weir_model::toml::MOST_BYTES;

use super::workload;
use crate::context::Context;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::files;
use crate::machine::{self, Chosen};
use crate::store::RunId;
use crate::studies::complete;

const MODELS: Models = Models {
    compose: |on| machine::compose(on).map_err(words),
    open: |on| machine::simulate(on).map_err(words),
    workload: |name| workload::find_for(name, None).map_err(words),
};

fn words(failure: Failure) -> String {
    failure.message().unwrap_or_default()
}

/// Searches the space, keeps and prints what was found.
///
/// # Errors
/// The file cannot be read or has mistakes, or the work was stopped before its end.
pub fn run(args: &DesignStudy, context: &Context) -> Result<()> {
    complete(context, &Chosen::of_models(), &with_space(args)?)
}

/// Tries what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them.
pub fn resume(args: &DesignStudy, context: &Context, run: RunId) -> Result<()> {
    let study = with_space(args)?;
    driver::resume(context, run, None, |_, _, _| Ok(study))?.verdict()
}

fn with_space(args: &DesignStudy) -> Result<DesignStudy> {
    Ok(DesignStudy {
        space: Some((space(&args.file)?, MODELS)),
        ..args.clone()
    })
}

fn space(file: &Path) -> Result<Space> {
    let text = files::text(file, "design space", MOST_BYTES)?;
    let name = file.display().to_string();
    Space::read(&name, &text, &MODELS).map_err(|mistakes| Failure::request(mistakes.to_string()))
}
