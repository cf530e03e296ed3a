//! What CXL devices did whose DRAM is a cache of a slower medium.

use std::collections::BTreeMap;

use weir_model::document::{MediumUse, Point};
use weir_model::topology::{TierName, Topology};

use super::{Severity, Verdict};

const SECONDS_OF_YEAR: f64 = 365.25 * 86_400.0;

/// How long a medium lasts at the highest rate of programs that was seen, in words. Counters are those of all devices, so
/// nothing is said where several wear.
fn years_left(uses: &[&MediumUse], topology: &Topology) -> Option<String> {
    let mut left = topology.tiers.iter().filter_map(|tier| tier.programs_left);
    let (Some(programs), None) = (left.next(), left.next()) else {
        return None;
    };
    let rates = uses.iter().map(|used| used.programs_per_s);
    let rate = rates.reduce(f64::max).filter(|&rate| rate > 0.0)?;
    let years = programs as f64 / rate / SECONDS_OF_YEAR;
    Some(match years < 0.1 {
        true => format!("{:.1} days", years * 365.25),
        false => format!("{years:.1} years"),
    })
}

/// How often their DRAM had what was asked for, what garbage collection adds, and how long the medium lasts, over the points
/// of each tier.
pub(crate) fn use_of_media(points: &[Point], topology: &Topology) -> Vec<Verdict> {
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
        if let Some(years) = years_left(&uses, topology) {
            text += &format!("; at the highest rate its blocks are worn out in {years}");
        }
        let lost: u64 = uses.iter().map(|used| used.lost).sum();
        if lost > 0 {
            text += &format!("; {lost} pages were lost, since the worn-out medium takes no more");
        }
        let poisoned: u64 = uses.iter().map(|used| used.poisoned).sum();
        if poisoned == 0 && lost == 0 {
            return Verdict::new(Severity::Note, format!("{tier} medium"), text);
        }
        if poisoned > 0 {
            text += &format!(
                "; {poisoned} lines came with poison, of pages that the medium cannot read"
            );
        }
        Verdict::new(Severity::Doubt, format!("{tier} medium"), text)
    };
    by_tier.into_iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use weir_model::topology::{Tier, TierKind};
    use weir_model::units::Bytes;

    use super::*;

    fn used(programs_per_s: f64) -> MediumUse {
        MediumUse {
            hit_share: 1.0,
            reads: 0,
            programs: 1,
            programs_per_s,
            erases: 0,
            write_amplification: None,
            poisoned: 0,
            lost: 0,
        }
    }

    fn with(left: &[Option<u64>]) -> Topology {
        let tier = |(n, &programs_left): (usize, &Option<u64>)| Tier {
            name: TierName::cxl(n),
            kind: TierKind::Cxl,
            node: None,
            capacity: Bytes::gib(1),
            description: String::new(),
            limits: None,
            programs_left,
        };
        Topology {
            tiers: left.iter().enumerate().map(tier).collect(),
            ..Topology::default()
        }
    }

    #[test]
    fn a_medium_lasts_as_long_as_its_programs_at_the_highest_rate() {
        let uses = [used(500.0), used(1_000.0)];
        let uses: Vec<&MediumUse> = uses.iter().collect();
        let years = |left: &[Option<u64>]| years_left(&uses, &with(left));
        let two = (2_000.0 * SECONDS_OF_YEAR) as u64;
        assert_eq!(years(&[None, Some(two)]).as_deref(), Some("2.0 years"));
        assert_eq!(years(&[Some(two / 365)]).as_deref(), Some("2.0 days"));
        // Counters do not tell two devices apart.
        assert_eq!(years(&[Some(two), Some(two)]), None);
        assert_eq!(years(&[None]), None);
        assert_eq!(years_left(&[&used(0.0)], &with(&[Some(two)])), None);
    }
}
