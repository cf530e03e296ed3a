//! What the points mean, in words: every rule of the two experiments, in one file.
//!
//! A rule looks at points and at nothing else, so that stored results can be judged again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::{Experiment, Point};
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use crate::curve::Curve;
use crate::plan::caches_in_reach;

/// A figure is noisy if its interval's half-width exceeds this share of it.
const NOISY: f64 = 0.05;
/// A curve declines if it falls below its peak by more than this share.
const DECLINE: f64 = 0.10;
/// A cache shows as a step if latency grows by at least this factor across its size.
const STEP: f64 = 1.2;
/// Two figures are alike if neither exceeds the other by more than this share.
const ALIKE: f64 = 0.10;

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
    fn new(severity: Severity, about: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            severity,
            about: about.into(),
            text: text.into(),
        }
    }
}

/// Everything the rules conclude, what matters most first.
pub fn verdicts(topology: &Topology, points: &[Point]) -> Vec<Verdict> {
    let mut all = Vec::new();
    all.extend(points.iter().filter_map(beats_physics));
    all.extend(without_figure(points));
    all.extend(noisy(points));
    for tier in topology.tiers.iter().map(|t| &t.name) {
        all.extend(staircase(topology, points, tier));
        all.extend(page_walks(points, tier));
        all.extend(against_dram(points, tier));
        for prefetch in [true, false] {
            for op in Op::ALL {
                all.extend(thread_curve(points, tier, op, prefetch));
            }
            all.extend(stores(points, tier, prefetch));
        }
        all.extend(flushed_stores(points, tier));
    }
    // Stable, so that rules keep their order within a severity.
    all.sort_by_key(|verdict| std::cmp::Reverse(verdict.severity));
    all
}

/// The main figure of a point and its unit.
fn figure(point: &Point) -> Option<(f64, &'static str)> {
    let bandwidth = point.gbps.map(|gbps| (gbps.get(), "GB/s"));
    bandwidth.or_else(|| point.ns.map(|ns| (ns.mean.get(), "ns")))
}

fn name(point: &Point) -> String {
    let Point {
        tier,
        op,
        pattern,
        threads,
        ..
    } = point;
    let plural = if *threads == 1 { "" } else { "s" };
    let set = point
        .wss_bytes
        .map(|set| format!(" x {set}"))
        .unwrap_or_default();
    format!("{tier} {op} {pattern}, {threads} thread{plural}{set}")
}

fn beats_physics(point: &Point) -> Option<Verdict> {
    let theory = point.theory.as_ref().filter(|theory| theory.beaten)?;
    let (value, unit) = figure(point)?;
    Some(Verdict::new(
        Severity::Wrong,
        name(point),
        format!(
            "{value:.1} {unit} is better than the limit of {:.1} {unit} ({}): the figure or the \
             limit is wrong",
            theory.limit, theory.basis
        ),
    ))
}

fn without_figure(points: &[Point]) -> Vec<Verdict> {
    let mut by_reason: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
    for point in points {
        if let Some(reason) = &point.error {
            by_reason.entry(reason).or_default().push(point);
        }
    }
    let verdict = |(reason, points): (&str, Vec<&Point>)| {
        let first = points.first()?;
        let about = match points.len() {
            1 => name(first),
            several => format!("{several} points, the first {}", name(first)),
        };
        Some(Verdict::new(
            Severity::Doubt,
            about,
            format!("no figure: {reason}"),
        ))
    };
    by_reason.into_iter().filter_map(verdict).collect()
}

fn noisy(points: &[Point]) -> Option<Verdict> {
    let share = |point: &Point| Some(point.ci95? / figure(point)?.0);
    let noisy = points
        .iter()
        .filter_map(|p| Some((share(p)?, p)))
        .filter(|(s, _)| *s > NOISY);
    let noisy: Vec<(f64, &Point)> = noisy.collect();
    let (worst, point) = noisy
        .iter()
        .copied()
        .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    Some(Verdict::new(
        Severity::Doubt,
        "noise",
        format!(
            "{} of {} points are known to no better than +-{:.0} %; the worst, {}, to +-{:.0} %",
            noisy.len(),
            points.len(),
            NOISY * 100.0,
            name(point),
            worst * 100.0
        ),
    ))
}

/// Mean latency by working set, smallest first.
fn chase(points: &[Point], tier: &TierName, locality: Locality) -> Vec<(Bytes, f64)> {
    let pattern = Pattern::Chase { locality }.name();
    let mut steps: Vec<(Bytes, f64)> = points
        .iter()
        .filter(|p| p.experiment == Experiment::Latency)
        .filter(|p| p.tier == *tier && p.pattern == pattern)
        .filter_map(|p| Some((p.wss_bytes?, p.ns?.mean.get())))
        .collect();
    steps.sort_by_key(|step| step.0);
    steps
}

/// Plateaus at the caches, and whether each cache ends in a step.
fn staircase(topology: &Topology, points: &[Point], tier: &TierName) -> Vec<Verdict> {
    let mut steps = chase(points, tier, Locality::TlbFriendly);
    if steps.is_empty() {
        steps = chase(points, tier, Locality::Random);
    }
    let about = format!("{tier} latency");
    let mut plateaus = Vec::new();
    let mut found = Vec::new();
    let mut smaller = Bytes(0);
    for level in &topology.caches {
        // Half a cache fits it for certain; twice a cache does not.
        let inside = steps
            .iter()
            .rfind(|s| s.0.get() <= level.size.get() / 2 && s.0 > smaller);
        let beyond = steps
            .iter()
            .find(|s| s.0.get() >= level.size.get().saturating_mul(2));
        if let Some((_, ns)) = inside {
            plateaus.push(format!("{} {ns:.1} ns", level.name));
        }
        if let (Some((_, inside)), Some((size, beyond))) = (inside, beyond)
            && *beyond < inside * STEP
        {
            found.push(Verdict::new(
                Severity::Doubt,
                &about,
                format!(
                    "no step where {} ends: {inside:.1} ns within its {}, {beyond:.1} ns at {size}",
                    level.name, level.size
                ),
            ));
        }
        smaller = level.size;
    }
    let in_memory = caches_in_reach(topology, 1).get().saturating_mul(2);
    if let Some((size, ns)) = steps.last().filter(|s| s.0.get() >= in_memory) {
        plateaus.push(format!("memory {ns:.1} ns (at {size})"));
    }
    if !plateaus.is_empty() {
        found.insert(0, Verdict::new(Severity::Note, about, plateaus.join(", ")));
    }
    found
}

/// What leaving the reach of the TLB adds.
fn page_walks(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let friendly = chase(points, tier, Locality::TlbFriendly);
    let &(size, far) = chase(points, tier, Locality::Random).last()?;
    let &(_, near) = friendly.iter().find(|step| step.0 == size)?;
    (far > near * (1.0 + ALIKE)).then(|| {
        Verdict::new(
            Severity::Note,
            format!("{tier} latency"),
            format!(
                "page walks add {:.0} ns to a random access: {far:.1} ns instead of {near:.1} ns \
                 at {size}",
                far - near
            ),
        )
    })
}

/// Latency and load bandwidth as multiples of local DRAM's.
fn against_dram(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let dram = TierName::dram();
    if *tier == dram {
        return None;
    }
    let mut parts = Vec::new();
    for (locality, words) in [
        (Locality::TlbFriendly, "the latency"),
        (Locality::Random, "the latency at random"),
    ] {
        let near = chase(points, &dram, locality);
        let far = chase(points, tier, locality);
        let common = far.iter().rev().find_map(|&(size, ns)| {
            near.iter()
                .find(|step| step.0 == size)
                .map(|step| (step.1, ns))
        });
        if let Some((near, far)) = common {
            parts.push(format!(
                "{:.2}x {words} ({far:.0} / {near:.0} ns)",
                far / near
            ));
        }
    }
    let peak = |tier: &TierName| {
        let curves = [true, false].map(|prefetch| Curve::of(points, tier, Op::Ld, prefetch));
        curves.iter().find_map(Curve::peak)
    };
    if let (Some((_, near)), Some((_, far))) = (peak(&dram), peak(tier)) {
        parts.push(format!(
            "{:.2}x the load bandwidth ({far:.1} / {near:.1} GB/s)",
            far / near
        ));
    }
    let about = format!("{tier} against dram");
    (!parts.is_empty()).then(|| Verdict::new(Severity::Note, about, parts.join(", ")))
}

/// Peak, knee, and what happens past them.
fn thread_curve(points: &[Point], tier: &TierName, op: Op, prefetch: bool) -> Option<Verdict> {
    let curve = Curve::of(points, tier, op, prefetch);
    let (&[first, .., last], Some((at, peak)), Some(knee)) =
        (curve.points(), curve.peak(), curve.knee())
    else {
        return None;
    };
    let interval = |threads| {
        let sequential = points
            .iter()
            .filter(|p| p.experiment == Experiment::Bandwidth);
        let mut of_curve =
            sequential.filter(|p| (&p.tier, p.op, p.prefetch) == (tier, op, prefetch));
        of_curve
            .find(|p| p.threads == threads)
            .and_then(|p| p.ci95)
            .unwrap_or(0.0)
    };
    let plural = if knee == 1 { "" } else { "s" };
    let tried = format!("{} to {} tried", first.0, last.0);
    let mut text = format!("peak {peak:.1} GB/s, reached with {knee} thread{plural} ({tried})");
    match curve.low_beyond_peak() {
        // A fall within the noise of its two ends is none.
        Some((threads, low))
            if low < peak * (1.0 - DECLINE) && peak - low > interval(at) + interval(threads) =>
        {
            let left = curve.last_at_peak().unwrap_or(knee);
            let loss = (1.0 - low / peak) * 100.0;
            let fewer = if left == 1 { "" } else { " or fewer" };
            text += &format!(
                "; declines past {left}, to {low:.1} GB/s at {threads} (-{loss:.0} %): keep to \
                 {left}{fewer}"
            );
        }
        _ if knee == last.0 && knee > first.0 => {
            text += ": still rising, so that the tier may give more than these cores ask for";
        }
        _ => {}
    }
    Some(Verdict::new(Severity::Note, format!("{tier} {op}"), text))
}

/// Ordinary against non-temporal stores, where they stream.
fn stores(points: &[Point], tier: &TierName, prefetch: bool) -> Option<Verdict> {
    let peak = |op| {
        Curve::of(points, tier, op, prefetch)
            .peak()
            .map(|(_, gbps)| gbps)
    };
    let (ordinary, posted) = (peak(Op::St)?, peak(Op::NtSt)?);
    let ratio = posted / ordinary;
    let text = if ratio > 1.0 + ALIKE {
        format!(
            "non-temporal stores move {ratio:.1}x what ordinary ones do ({posted:.1} / \
             {ordinary:.1} GB/s), which read every line first: move data here with nt_st"
        )
    } else if ratio < 1.0 - ALIKE {
        format!(
            "ordinary stores move {:.1}x what non-temporal ones do ({ordinary:.1} / {posted:.1} \
             GB/s)",
            1.0 / ratio
        )
    } else {
        format!("ordinary and non-temporal stores are alike ({ordinary:.1} / {posted:.1} GB/s)")
    };
    Some(Verdict::new(Severity::Note, format!("{tier} stores"), text))
}

/// The same two where one line is written and waited for.
fn flushed_stores(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let mean = |op| {
        let is =
            |p: &&Point| p.tier == *tier && p.op == op && p.pattern == Pattern::FlushedLine.name();
        points
            .iter()
            .find(is)
            .and_then(|p| p.ns)
            .map(|ns| ns.mean.get())
    };
    let (written_back, posted) = (mean(Op::StClwb)?, mean(Op::NtSt)?);
    Some(Verdict::new(
        Severity::Note,
        format!("{tier} latency"),
        format!(
            "a store with clwb takes {:.1}x a fenced non-temporal store ({written_back:.0} / \
             {posted:.0} ns)",
            written_back / posted
        ),
    ))
}
