//! What points mean, in words: verdicts, and the rules that hold of points whatever study they are of.
//!
//! A rule looks at points and at nothing else, so that stored results can be judged again.

pub(crate) mod medium;
pub(crate) mod trust;

use serde::{Deserialize, Serialize};
use weir_model::document::Point;
use weir_model::number;
use weir_model::tenant::Arrivals;

/// Two figures are alike if neither exceeds the other by more than this share.
pub(crate) const ALIKE: f64 = 0.10;

/// How much a verdict matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something learned about the machine.
    Note,
    /// A figure to trust less, or one that is missing.
    Doubt,
    /// A figure that cannot be right.
    Wrong,
}

/// One conclusion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: `cxl0 ld`, `dram latency`.
    pub about: String,
    /// The conclusion, in words and figures.
    pub text: String,
}

impl Verdict {
    /// A conclusion.
    pub fn new(severity: Severity, about: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            severity,
            about: about.into(),
            text: text.into(),
        }
    }
}

/// Whether the intervals of two figures leave no doubt which is the larger one. A figure without an interval is known
/// by chance only.
pub(crate) fn are_apart(a: &Point, b: &Point) -> bool {
    let known = |point: &Point| Some((figure(point)?.0, point.ci95?));
    match (known(a), known(b)) {
        (Some((a, of_a)), Some((b, of_b))) => (a - b).abs() > of_a + of_b,
        _ => false,
    }
}

/// A figure with its interval: `14.5 ±1.79`.
pub(crate) fn with_interval(point: &Point) -> String {
    let value = figure(point).map_or(0.0, |(value, _)| value);
    number::figure(value) + &number::interval(point.ci95)
}

/// The point with the largest bandwidth.
pub(crate) fn best<'p>(points: impl Iterator<Item = &'p Point>) -> Option<(f64, &'p Point)> {
    let figures = points.filter_map(|point| Some((point.gbps?.get(), point)));
    figures.reduce(|best, other| if other.0 > best.0 { other } else { best })
}

/// The main figure of a point and its unit.
fn figure(point: &Point) -> Option<(f64, &'static str)> {
    let bandwidth = point.gbps.map(|gbps| (gbps.get(), "GB/s"));
    bandwidth.or_else(|| point.ns.map(|ns| (ns.mean.get(), "ns")))
}

/// What names a point among others of its machine.
pub fn name(point: &Point) -> String {
    let Point {
        tier,
        op,
        pattern,
        threads,
        ..
    } = point;
    let plural = |n: u32| if n == 1 { "" } else { "s" };
    let from = match &point.source {
        Some(source) if source != tier => format!("{source} to "),
        _ => String::new(),
    };
    let what = match &point.kernel {
        Some(kernel) => format!("{kernel} ({op})"),
        None => format!("{op} {pattern}"),
    };
    let mut text = format!("{from}{tier} {what}");
    match (point.batch, point.block_bytes) {
        (Some(batch), Some(block)) => text += &format!(" {batch} x {block}"),
        (None, Some(block)) => text += &format!(" of {block}"),
        (Some(at_once), None) => text += &format!(" of {at_once}"),
        _ => {}
    }
    if let [one, other] = point.cores.as_slice() {
        return format!("{text} of cores {one} and {other}");
    }
    if *threads > 0 {
        text += &format!(", {threads} thread{}", plural(*threads));
    }
    if let Some(set) = point.wss_bytes {
        text += &format!(" x {set}");
    }
    if let Some(beside) = &point.beside {
        let (n, op, pause) = (beside.threads, beside.op, beside.pause_ns.get());
        text += &match n {
            // A file of another tool does not say how many.
            0 => format!(", with {op} threads"),
            n => format!(", with {n} {op} thread{}", plural(n)),
        };
        if pause > 0.0 {
            text += &match beside.arrivals {
                Arrivals::Closed => format!(" that pause {pause:.0} ns"),
                Arrivals::Open => format!(" with a line due every {pause:.0} ns"),
            };
        }
    }
    text
}
