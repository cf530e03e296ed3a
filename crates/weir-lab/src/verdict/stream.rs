//! STREAM: the best of each kernel.

use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;

use super::{Severity, Verdict};

/// The best of each kernel and store, in one line.
pub(super) fn kernels(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let mut best: Vec<(String, f64, &Point)> = Vec::new();
    for point in points {
        let (Some(kernel), Some(gbps)) = (&point.kernel, point.gbps) else {
            continue;
        };
        if point.experiment != Experiment::Stream || point.tier != *tier {
            continue;
        }
        let name = format!("{kernel} with {}", point.op);
        match best.iter_mut().find(|known| known.0 == name) {
            Some(known) if known.1 < gbps.get() => (known.1, known.2) = (gbps.get(), point),
            Some(_) => {}
            None => best.push((name, gbps.get(), point)),
        }
    }
    let parts: Vec<String> = best
        .iter()
        .map(|(name, gbps, point)| {
            let threads = point.threads;
            let plural = if threads == 1 { "" } else { "s" };
            format!("{name} {gbps:.1} GB/s ({threads} thread{plural})")
        })
        .collect();
    (!parts.is_empty()).then(|| {
        Verdict::new(
            Severity::Note,
            format!("{tier} STREAM"),
            format!("best {}", parts.join(", ")),
        )
    })
}
