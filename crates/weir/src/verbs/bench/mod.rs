//! `weir bench`: characterises a machine. Its experiments are [`weir_lab::studies::POINT_STUDIES`].

pub mod dax;
mod file;
mod options;

use weir_model::document::Point;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::machine;
use crate::shown::show;

use file::Earlier;

pub use file::documents_csv;
pub use options::Args;

/// What is said of figures that are less exact than was asked for.
fn inexact(points: &[Point], error: f64) -> Option<String> {
    let reached = points.iter().filter_map(|point| {
        let figure = match (point.gbps, &point.ns) {
            (Some(gbps), _) => gbps.get(),
            (None, Some(ns)) => ns.mean.get(),
            (None, None) => return None,
        };
        Some(point.ci95? / figure)
    });
    let missed: Vec<f64> = reached.filter(|&reached| reached > error).collect();
    let largest = missed.iter().copied().reduce(f64::max)?;
    Some(format!(
        "{} of {} figures did not reach an error of {:.3} %; the largest is {:.3} %",
        missed.len(),
        points.len(),
        error * 100.0,
        largest * 100.0
    ))
}

/// Measures, keeps and prints.
///
/// # Errors
/// The request fits no machine, a figure could not be taken or kept, or the sweep was stopped.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match (&args.what, &args.file) {
        (Some(study), None) => {
            if let Some((dax, stream)) = &study.dax
                && let Some(path) = &dax.dax
            {
                return dax::run(dax, path, stream, context);
            }
            let chosen = machine::choose_within(&context.global.on, context.global.error)?;
            let done = args.job(context, &chosen, study.study.verb()).run(study)?;
            show(context, &done.document, done.kept_in())?;
            let inexact = (context.global.error)
                .and_then(|error| inexact(&done.document.output.points, error));
            done.verdict()?;
            inexact.map_or(Ok(()), |text| Err(Failure::work(text)))
        }
        (None, Some(_)) if context.global.error.is_some() => Err(Failure::request(
            "--error is of one experiment; a file of sweeps says itself what is measured",
        )),
        (None, Some(path)) => {
            let earlier = match &args.resume {
                None => Earlier::Leave,
                Some(run) => Earlier::Resume(run.as_deref()),
            };
            file::run(path, earlier, args, context)
        }
        (Some(_), Some(_)) => Err(Failure::request(
            "--file names its experiments itself; leave the experiment or the file out",
        )),
        (None, None) => Err(Failure::request(
            "name an experiment, such as `weir bench latency`, or a file of sweeps with --file; see `weir bench --help`",
        )),
    }
}
