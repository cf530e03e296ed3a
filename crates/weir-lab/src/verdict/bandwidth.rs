//! Curves over threads, and stores against each other.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;

use super::{ALIKE, Severity, Verdict};
use crate::curve::Curve;

/// A curve declines if it falls below its peak by more than this share.
const DECLINE: f64 = 0.10;

/// Peak, knee, and what happens past them.
pub(super) fn thread_curve(
    points: &[Point],
    tier: &TierName,
    op: Op,
    prefetch: bool,
) -> Option<Verdict> {
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
pub(super) fn stores(points: &[Point], tier: &TierName, prefetch: bool) -> Option<Verdict> {
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
