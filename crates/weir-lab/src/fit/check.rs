//! Measured points next to those of the model.

use weir_model::access::{Dataflow, Pattern};
use weir_model::published::measured::Traffic;
use weir_model::topology::Topology;
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use super::evidence::{LoadedCurve, LoadedPoint};
use super::outcome::{ComparedPoint, Part};
use super::twin::Twin;
use super::{Fit, median};
use crate::loaded::{Mix, chase};
use crate::room::working_set;
use crate::{Lab, LabError, Load, PointSpec};

/// A curve is checked at this many of its points at most.
const MOST_POINTS: usize = 24;
/// Places on a piece of the model's curve at which its distance from a point is taken.
const PLACES: u32 = 256;

/// Traffic in GB/s that delays nothing.
const NO_LOAD: f64 = 1e-3;

/// What the traffic is called: `reads`, `3:1`, `nt_writes`, `2:1nt`.
pub fn mix_name(traffic: &Traffic) -> String {
    Mix::named(traffic.op, traffic.read_share())
}

/// Loading threads of a curve on a machine: as many as were measured, or all but the one that is timed.
pub fn threads(curve: &LoadedCurve, topology: &Topology) -> u32 {
    let most = (topology.cores.len() as u32).saturating_sub(1).max(1);
    curve.threads.map_or(most, |threads| threads.min(most))
}

/// The point of a model that has the load of a measured one; `None` where the machine has no such tier.
pub fn spec(curve: &LoadedCurve, point: &LoadedPoint, topology: &Topology) -> Option<PointSpec> {
    let tier = topology.tier(&curve.tier)?;
    let threads = threads(curve, topology);
    let set = working_set(topology, tier, threads);
    let Traffic { op, mix } = curve.traffic;
    let mut load = Load::new(&tier.name, op, Pattern::Sequential, threads, set);
    if let Some((lines, per)) = mix {
        load = load.reading(lines, per, &tier.name, Dataflow::Apart);
    }
    let is_top = curve.points.last().is_some_and(|last| last == point);
    let pause = point.pause.unwrap_or_else(|| match is_top {
        // Instruments log the most load without a delay.
        true => Nanos(0.0),
        false => {
            let line = LINE_BYTES as f64 * load.traffic_factor();
            let ns = f64::from(threads) * line / point.bandwidth.get();
            Nanos((ns * 100.0).round() / 100.0)
        }
    });
    Some(PointSpec::alone("fit", chase(topology, tier)).beside(load.pausing(pause)))
}

/// Every point of the evidence, and the model's under the same load.
///
/// # Errors
/// The files describe no machine, or the work was stopped.
pub fn compare(
    fit: &Fit,
    lab: &Lab<'_>,
    topology: &Topology,
    twin: &Twin,
) -> Result<Vec<ComparedPoint>, LabError> {
    let mut compared = Vec::new();
    let curves = &fit.evidence.curves;
    for curve in curves {
        if !lab.step(curves.len()) {
            return Err(LabError::Stopped);
        }
        let every = curve.points.len().div_ceil(MOST_POINTS).max(1);
        // The most load is always among them.
        let points = curve.points.iter().rev().step_by(every);
        let cases: Vec<(&LoadedPoint, PointSpec)> = points
            .filter_map(|point| Some((point, spec(curve, point, topology)?)))
            .collect();
        if cases.is_empty() {
            lab.warn(format!(
                "the model has no tier {}: its points are not checked",
                curve.tier
            ));
            continue;
        }
        let specs: Vec<PointSpec> = cases.iter().map(|(_, spec)| spec.clone()).collect();
        let answers = fit.ask(lab, twin, &specs)?;
        // From the least load on.
        let model: Vec<(f64, f64)> = answers.iter().rev().copied().flatten().collect();
        for ((point, _), answer) in cases.iter().zip(&answers) {
            let Some((gbps, ns)) = *answer else { continue };
            compared.push(ComparedPoint {
                tier: curve.tier.clone(),
                mix: mix_name(&curve.traffic),
                threads: threads(curve, topology),
                part: if point.used {
                    Part::Used
                } else {
                    Part::HeldOut
                },
                gbps: point.bandwidth,
                mean_ns: point.latency,
                model_gbps: GbPerSec(gbps),
                model_ns: Nanos(ns),
                latency_pct: (ns / point.latency.get() - 1.0) * 100.0,
                apart_pct: apart(point, &model) * 100.0,
            });
        }
    }
    Ok(compared)
}

/// How far a point is from a curve: the least, over the curve, of the larger part by which traffic or latency differ.
/// Below its least load a curve is flat.
fn apart(point: &LoadedPoint, curve: &[(f64, f64)]) -> f64 {
    let (gbps, ns) = (point.bandwidth.get().ln(), point.latency.get().ln());
    let far = |(x, y): (f64, f64)| (x - gbps).abs().max((y - ns).abs());
    let no_load = curve.first().map(|(_, n)| (NO_LOAD.ln(), n.ln()));
    let on_curve = curve.iter().map(|(g, n)| (g.ln(), n.ln()));
    let places: Vec<(f64, f64)> = no_load.into_iter().chain(on_curve).collect();
    let between = places.windows(2).flat_map(|pair| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        (0..=PLACES).map(move |n| {
            let share = f64::from(n) / f64::from(PLACES);
            (x0 + (x1 - x0) * share, y0 + (y1 - y0) * share)
        })
    });
    let least = between.chain(places.iter().copied()).map(far);
    least.fold(f64::INFINITY, f64::min).exp_m1()
}

/// Used points that distinguish parameters at little cost: of a curve the least load, the most, and two on the way.
pub fn telling(curve: &LoadedCurve) -> Vec<&LoadedPoint> {
    let used: Vec<&LoadedPoint> = curve.points.iter().filter(|p| p.used).collect();
    let Some(top) = used.last() else { return used };
    let near = |share: f64| {
        let wanted = top.bandwidth.get() * share;
        let apart = |p: &&&LoadedPoint| (p.bandwidth.get() - wanted).abs();
        used.iter()
            .min_by(|a, b| apart(a).total_cmp(&apart(b)))
            .copied()
    };
    let mut some: Vec<&LoadedPoint> = [near(0.3), near(0.7), near(0.88), Some(*top)]
        .into_iter()
        .flatten()
        .collect();
    some.dedup();
    some
}

/// How uncertain the latencies of some points are, as a share of them.
pub fn noise(points: &[&LoadedPoint]) -> f64 {
    let shares: Vec<f64> = (points.iter())
        .filter_map(|p| Some(p.half?.get() / p.latency.get()))
        .collect();
    median(&shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_curve_is_as_far_as_its_latency_and_a_steep_one_as_its_traffic() {
        let point = |gbps: f64, ns: f64| LoadedPoint {
            pause: None,
            bandwidth: GbPerSec(gbps),
            latency: Nanos(ns),
            half: None,
            used: false,
        };
        let curve = [(1.0, 100.0), (50.0, 100.0), (50.0, 1000.0)];
        assert!((apart(&point(20.0, 110.0), &curve) - 0.1).abs() < 0.005);
        assert!((apart(&point(52.5, 400.0), &curve) - 0.05).abs() < 0.005);
        assert!(apart(&point(50.0, 300.0), &curve) < 0.005);
        assert!(apart(&point(1.0, 1.0), &[]).is_infinite());
    }
}
