//! What CXL devices did whose DRAM is a cache of a slower medium.

use std::collections::BTreeMap;

use weir_model::document::{MediumUse, Point};
use weir_model::topology::TierName;

use super::{Severity, Verdict};

/// How often their DRAM had what was asked for, and what garbage collection adds, over the points of each tier.
pub(super) fn use_of_media(points: &[Point]) -> Vec<Verdict> {
    let mut by_tier: BTreeMap<&TierName, Vec<&MediumUse>> = BTreeMap::new();
    for point in points {
        if let Some(used) = &point.medium {
            by_tier.entry(&point.tier).or_default().push(used);
        }
    }
    let verdict = |(tier, uses): (&TierName, Vec<&MediumUse>)| {
        let hits = || uses.iter().map(|used| used.hit_share * 100.0);
        let (least, most) = hits().fold((100.0_f64, 0.0_f64), |(least, most), hits| {
            (least.min(hits), most.max(hits))
        });
        let mut text = match most - least < 1.0 {
            true => format!("{most:.0} % of lines found their page in the device's DRAM"),
            false => {
                format!("{least:.0} to {most:.0} % of lines found their page in the device's DRAM")
            }
        };
        let amplified = uses.iter().filter_map(|used| used.write_amplification);
        if let Some(most) = amplified.reduce(f64::max) {
            text +=
                &format!("; up to {most:.1} pages were programmed for each that left it written");
        }
        let poisoned: u64 = uses.iter().map(|used| used.poisoned).sum();
        if poisoned == 0 {
            return Verdict::new(Severity::Note, format!("{tier} medium"), text);
        }
        text +=
            &format!("; {poisoned} lines came with poison, of pages that the medium cannot read");
        Verdict::new(Severity::Doubt, format!("{tier} medium"), text)
    };
    by_tier.into_iter().map(verdict).collect()
}
