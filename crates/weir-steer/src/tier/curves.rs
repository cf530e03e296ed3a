//! Latency of two tiers under load, from points of `weir bench loaded`.

use weir_lab::studies::loaded::{Loaded as Study, Mix};
use weir_lab::{Lab, LabError, PointStudy as _};
use weir_model::document::Point;
use weir_model::topology::TierName;
use weir_model::units::GbPerSec;
use weir_pages::TierCurve;
use weir_pages::policy::Thresholds;
use weir_pages::tier::{LoadCurve, Loaded};

/// What was calibrated for Alto on a machine of this processor and clock.
pub(super) fn thresholds(lab: &Lab<'_>) -> Thresholds {
    Thresholds::of(&lab.topology().processor, lab.topology().clock)
}

/// Measures a fast and a slow tier, as [`curves`] does.
///
/// # Errors
/// As there, or they are one tier, or the slow one is faster.
pub(super) fn curves_of_two(
    lab: &Lab<'_>,
    tiers: &[TierName; 2],
) -> Result<[TierCurve; 2], LabError> {
    let [fast, slow] = tiers;
    if fast == slow {
        return Err(LabError::same_tier(fast));
    }
    let curves = curves(lab, tiers)?;
    let idle = |curve: &TierCurve| curve.latency(GbPerSec(0.0), 1.0).get();
    LabError::unless_slower([fast, slow], curves.each_ref().map(idle))?;
    Ok(curves)
}

/// Measures the fast and the slow tier at two mixes: one write for each read, and reads alone.
///
/// # Errors
/// The machine lacks a tier, or gave no latency.
pub fn curves(lab: &Lab<'_>, tiers: &[TierName; 2]) -> Result<[TierCurve; 2], LabError> {
    for tier in tiers {
        if lab.topology().tier(tier).is_none() {
            return Err(LabError::unknown_tier(tier, lab.topology()));
        }
    }
    let study = Study {
        tiers: tiers.to_vec(),
        mixes: vec![
            Mix::Temporal {
                reads: 1,
                writes: 1,
            },
            Mix::Reads,
        ],
        quick: true,
        ..Study::default()
    };
    let done = lab.ask_all(&study.plan(lab.topology())?)?;
    let points: Vec<Point> = done.into_iter().map(|done| done.point).collect();
    let [fast, slow] = tiers.each_ref().map(|tier| of_tier(&points, tier));
    Ok([fast?, slow?])
}

fn of_tier(points: &[Point], tier: &TierName) -> Result<TierCurve, LabError> {
    let here = || points.iter().filter(|point| point.tier == *tier);
    let latency = |point: &Point| point.ns.as_ref().map(|ns| ns.mean);
    let lacks = || LabError::Lacks(format!("{tier} has no latency under load"));
    let idle = here()
        .find(|point| point.beside.is_none())
        .and_then(latency);
    let idle = Loaded {
        gbps: GbPerSec(0.0),
        latency: idle.ok_or_else(lacks)?,
    };
    let curve = |read_share: f64| {
        let mut loaded: Vec<Loaded> = here()
            .filter_map(|point| {
                let beside = point.beside.as_ref()?;
                let of_mix = (beside.read_share - read_share).abs() < 0.01;
                let gbps = beside.traffic_gbps.filter(|_| of_mix)?;
                let latency = latency(point)?;
                Some(Loaded { gbps, latency })
            })
            .collect();
        loaded.sort_by(|a, b| a.gbps.get().total_cmp(&b.gbps.get()));
        let mut points = vec![idle];
        for next in loaded {
            // Points near the limit scatter; a model of waiting never falls.
            let last = points[points.len() - 1];
            if next.gbps.get() > last.gbps.get() * 1.001 {
                let latency = next.latency.max(last.latency);
                points.push(Loaded { latency, ..next });
            }
        }
        LoadCurve { read_share, points }
    };
    let curves = vec![curve(0.5), curve(1.0)];
    match curves.iter().all(|curve| curve.points.len() > 1) {
        true => Ok(TierCurve { curves }),
        false => Err(lacks()),
    }
}
