//! Hand-overs of a line: the nearest cores and the farthest.

use weir_model::document::{Experiment, Point};

use super::{ALIKE, Severity, Verdict};

/// Nearest, median and farthest pair.
pub(super) fn hand_overs(points: &[Point]) -> Option<Verdict> {
    let mut pairs: Vec<(f64, &Point)> = points
        .iter()
        .filter(|p| p.experiment == Experiment::Share && p.cores.len() == 2)
        .filter_map(|p| Some((p.ns?.mean.get(), p)))
        .collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (&(least, near), &(most, far)) = (pairs.first()?, pairs.last()?);
    let median = pairs.get(pairs.len() / 2)?.0;
    let cores = |p: &Point| {
        let cores: Vec<String> = p.cores.iter().map(u32::to_string).collect();
        cores.join(" and ")
    };
    let text = if most > least * (1.0 + ALIKE) {
        format!(
            "a line changes hands in {least:.0} ns between the nearest cores ({}), {median:.0} ns \
             in the median, {most:.0} ns between the farthest ({})",
            cores(near),
            cores(far)
        )
    } else {
        format!("a line changes hands in {median:.0} ns, whichever cores share it")
    };
    Some(Verdict::new(Severity::Note, "shared line", text))
}
