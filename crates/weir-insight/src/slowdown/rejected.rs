//! Predictors of one quantity, which the paper weighs and rejects (SupMario §5.1), so that a user sees why.

use weir_model::counters::Counter;
use weir_model::insight::{Line, Rejected};
use weir_model::units::LINE_BYTES;

use crate::{Run, least_squares};

/// What a predictor looks at; `None` where its counters are missing.
pub fn quantity(of: Rejected, run: &Run<'_>) -> Option<f64> {
    match of {
        Rejected::LlcMpki => {
            Some(run.count(Counter::L3Miss).ok()? * 1e3 / run.instructions().ok()?)
        }
        Rejected::ReadBandwidth => {
            let lines = [
                Counter::CasRd,
                Counter::TorInsertsIaMiss,
                Counter::OffcoreDataRd,
            ];
            let lines = lines.into_iter().find_map(|c| run.count(c).ok())?;
            Some(lines * LINE_BYTES as f64 / run.cycles().get())
        }
        Rejected::DramBound => run.share(Counter::StallsL3Miss).ok(),
    }
}

/// The slowdown that a line says, as a share.
pub fn slowdown(line: &Line, run: &Run<'_>) -> Option<f64> {
    Some(line.slope * quantity(line.of, run)? + line.intercept)
}

/// The line closest to measured slowdowns. `None` where the quantity is missing or does not vary.
pub fn fit<'a>(of: Rejected, runs: impl IntoIterator<Item = (&'a Run<'a>, f64)>) -> Option<Line> {
    let points: Option<Vec<(f64, f64)>> = (runs.into_iter())
        .map(|(run, slowdown)| Some((quantity(of, run)?, slowdown)))
        .collect();
    let (rows, wanted): (Vec<[f64; 2]>, Vec<f64>) =
        points?.into_iter().map(|(x, s)| ([x, 1.0], s)).unzip();
    let [slope, intercept] = least_squares::solve(&rows, &wanted)?;
    Some(Line {
        of,
        slope,
        intercept,
    })
}
