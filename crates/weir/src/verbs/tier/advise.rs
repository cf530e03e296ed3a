//! `weir tier advise`: finds the profile, a stored run or a file, for the study.

use std::path::Path;

use weir_lab::{Outcome as _, Study as _};
use weir_model::document::Document;
use weir_steer::tier::advise::Advise;
use weir_steer::tier::profile::{Profile, ProfileModel};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::files;
use crate::shown::document;
use crate::store::Store;
use crate::stored::load;

/// The largest profile that is read.
const MOST: usize = 64 << 20;

/// The study with its profile.
///
/// # Errors
/// There is no such run or file, or it is no profile.
pub(super) fn with_profile(study: &Advise, context: &Context) -> Result<Advise> {
    let source = Path::new(&study.source);
    // A pipe is a file, too.
    let profile = match source.exists() && !source.is_dir() {
        true => of_file(source)?,
        false if study.source.ends_with(".json") || study.source.contains('/') => {
            return Err(Failure::request(format!(
                "there is no file {}",
                source.display()
            )));
        }
        false => of_run(&study.source, context)?,
    };
    Ok(Advise {
        profile: Some(Box::new(profile)),
        ..study.clone()
    })
}

fn of_file(file: &Path) -> Result<Profile> {
    let text = files::text(file, "profile", MOST)?;
    let no_profile = |why: String| {
        Failure::request(format!(
            "{} is no profile that `weir tier profile --format json` wrote: {why}",
            file.display()
        ))
    };
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| no_profile(error.to_string()))?;
    let schema = value.get("schema").and_then(|schema| schema.as_str());
    if schema != Some(Profile::SCHEMA) {
        let found = schema.unwrap_or("none");
        return Err(no_profile(format!(
            "its schema is {found}, not {}",
            Profile::SCHEMA
        )));
    }
    let document: Document<Profile> =
        serde_json::from_value(value).map_err(|error| no_profile(error.to_string()))?;
    Ok(document.output)
}

fn of_run(name: &str, context: &Context) -> Result<Profile> {
    let path = context.store_path()?;
    let store = Store::open_existing(&path)?;
    let run = load(store.as_ref(), &path, name)?;
    if run.summary.verb != ProfileModel::VERB {
        return Err(Failure::request(format!(
            "run {} is of `weir {}`, not of `weir {}`",
            run.summary.id,
            run.summary.verb,
            ProfileModel::VERB
        )));
    }
    Ok(document::<Profile>(&run)?.output)
}
