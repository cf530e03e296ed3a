//! Workloads by their names, or by their files.

use std::path::Path;

use weir_model::machine::MachineError;
use weir_model::toml::MOST_BYTES;
use weir_model::workload::{GROUPS, Hosted, RealProgram, Workload, Workloads};

use crate::failure::{Failure, Result};
use crate::files;

/// The workload of a name or a file.
///
/// # Errors
/// It is neither, or the file has mistakes.
pub fn find(named: &str) -> Result<Workload> {
    let library = Workloads::builtin();
    if let Some(workload) = library.get(named) {
        return Ok(workload.clone());
    }
    if named.ends_with(".toml") || named.contains('/') {
        return read(Path::new(named));
    }
    if let Some(hosted) = Hosted::named(named) {
        return Err(Failure::request(format!(
            "`{}` has no description, so that no model runs it; `weir workload run` does on a host",
            hosted.name
        )));
    }
    if let Some((_, _, members)) = GROUPS.iter().find(|(name, _, _)| *name == named) {
        return Err(Failure::request(format!(
            "`{named}` is a group of workloads; name one of its members: `{}`",
            members.join("`, `")
        )));
    }
    let mut close = library.close_to(named);
    close.extend(Hosted::close_to(named));
    let hint = if close.is_empty() {
        "`weir workload list` has them".to_owned()
    } else {
        format!("did you mean `{}`?", close.join("`, `"))
    };
    Err(Failure::request(format!(
        "there is no workload `{named}`; {hint}"
    )))
}

/// The same with this number of threads, if given.
///
/// # Errors
/// As [`find`].
pub fn find_for(named: &str, threads: Option<u32>) -> Result<Workload> {
    let mut workload = find(named)?;
    if let Some(threads) = threads {
        workload.threads = threads;
    }
    Ok(workload)
}

/// A failure of a workload that was named so: where its file has more memory than a tier, at the largest region.
pub fn at_region(failure: Failure, named: &str) -> Failure {
    let Failure::Request(error) = &failure else {
        return failure;
    };
    match error.downcast_ref() {
        Some(MachineError::NoMemory { .. }) => match largest_region(named) {
            Some(place) => failure.of(&place),
            None => failure,
        },
        _ => failure,
    }
}

/// A failure of programs that run on a model, which may have more memory: at the largest of them.
pub fn with_room<'n>(failure: Failure, named: impl IntoIterator<Item = &'n str>) -> Failure {
    let lacks = match &failure {
        Failure::Request(error) => {
            matches!(error.downcast_ref(), Some(MachineError::NoMemory { .. }))
        }
        _ => false,
    };
    if !lacks {
        return failure;
    }
    let largest = |named: &&str| {
        let workload = find(named).ok()?;
        let regions = workload.phases.iter().flat_map(|phase| &phase.regions);
        regions.map(|region| region.bytes).max()
    };
    let largest = named.into_iter().max_by_key(largest).unwrap_or_default();
    Failure::request(format!(
        "{}; or name a model with more memory: `--on emr2s,dram.capacity=210GiB+cxl-a,capacity=210GiB`",
        at_region(failure, largest).message().unwrap_or_default()
    ))
}

/// The largest region of a file, with its line, in words.
pub fn largest_region(named: &str) -> Option<String> {
    if Workloads::builtin().get(named).is_some() {
        return None;
    }
    let text = files::text(Path::new(named), "description", MOST_BYTES).ok()?;
    let workload = Workloads::check(named, &text).ok()?;
    let regions = workload.phases.iter().flat_map(|phase| &phase.regions);
    let largest = regions.max_by_key(|region| region.bytes.get())?;
    let name = format!("\"{}\"", largest.name);
    let line = (text.lines()).position(|line| line.contains("name") && line.contains(&name))?;
    Some(format!(
        "{named}:{}: `bytes` of the region `{}` is {}",
        line + 1,
        largest.name,
        largest.bytes
    ))
}

/// The workload of a file.
pub fn read(file: &Path) -> Result<Workload> {
    let text = files::text(file, "description", MOST_BYTES)?;
    let name = file.display().to_string();
    Workloads::check(&name, &text).map_err(|mistakes| Failure::request(mistakes.to_string()))
}

/// What a host runs for a name or a file.
pub fn real_program(named: &str) -> Result<Option<RealProgram>> {
    Ok(match Hosted::named(named) {
        Some(hosted) => Some(hosted.real()),
        None => find(named)?.real(),
    })
}
