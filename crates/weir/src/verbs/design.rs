//! `weir design`: a space of servers, and the designs in it that no other dominates.

use weir_design::outcome::Designs;
use weir_design::space::{Models, Space};
use weir_design::study::DesignStudy;
use weir_lab::Study as _;
use weir_model::toml::MOST_BYTES;

use crate::context::Context;
use crate::driver::{self, Done, Job};
use crate::failure::{Failure, Result};
use crate::files;
use crate::machine::{self, Chosen};
use crate::named;
use crate::shown::show;
use crate::store::{RunId, StoredRun};

/// The models of designs: the platforms and workloads that every command finds.
pub const MODELS: Models = Models {
    compose: |on| {
        (machine::compose_named(on, "the machine of a design").map(|(_, platform)| platform))
            .map_err(words)
    },
    open: |on| machine::simulate(on).map_err(words),
    sampled: |on| (machine::choose_sampled(on, None).map(|chosen| chosen.testbed)).map_err(words),
    workload: |name| named::find_for(name, None).map_err(words),
    largest_region: named::largest_region,
};

fn words(failure: Failure) -> String {
    failure.message().unwrap_or_default()
}

/// Searches the space, keeps and prints what was found.
///
/// # Errors
/// The file cannot be read or has mistakes, the work was stopped before its end, or no design can be measured.
pub fn run(args: &DesignStudy, context: &Context) -> Result<()> {
    let (study, named) = with_space(args)?;
    let chosen = Chosen {
        named,
        ..Chosen::of_models()
    };
    let done = Job::once(context, &chosen, DesignStudy::VERB).run(&study)?;
    show(context, &done.document, Some(done.run))?;
    verdict(done)
}

/// Whether the search has ended, and found a design that can be measured.
fn verdict(done: Done<Designs>) -> Result<()> {
    let none = done.document.output.why_none();
    done.verdict()?;
    none.map_or(Ok(()), |why| Err(Failure::work(why)))
}

/// Tries what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the file is another one than that of the run.
pub fn resume(args: &DesignStudy, context: &Context, run: RunId) -> Result<()> {
    let (study, named) = with_space(args)?;
    let again = |stored: &StoredRun, _: &Chosen, _| match stored.summary.machine == named {
        true => Ok(study),
        false => Err(Failure::request(format!(
            "{} has changed since run {run} began: its designs would not belong together; start it again",
            args.file.display()
        ))),
    };
    verdict(driver::resume(context, run, None, again)?)
}

/// The study with its space, and the name under which the store has its runs: that of the file, and a hash of its text.
fn with_space(args: &DesignStudy) -> Result<(DesignStudy, String)> {
    let text = files::text(&args.file, "design space", MOST_BYTES)?;
    let file = args.file.display().to_string();
    let space = Space::read(&file, &text, &MODELS);
    let space = space.map_err(|mistakes| Failure::request(mistakes.to_string()))?;
    // FNV-1a (Fowler, Noll, Vo), 32 bits.
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let stem = args.file.file_stem().unwrap_or_default();
    let named = format!("{} {hash:08x}", stem.to_string_lossy());
    let study = DesignStudy {
        space: Some((space, MODELS)),
        ..args.clone()
    };
    Ok((study, named))
}
