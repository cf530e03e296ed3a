//! The part of its limit that promotion gets in a second: rules without a machine.
//!
//! The kernel has one limit of promotion for all tenants, so a rule can only say how much of it is used. Three rules
//! each give a part, and the smallest one counts:
//!
//! - Alto (SupMario, arXiv 2409.14317, section 6.4): less as misses overlap more, since each of them then costs less.
//! - Steering: the part of their running that is left to the tenants of the slow tier. Pages that move take their traffic
//!   with them to the fast tier, which is protected, and a limited tenant must not get there what it is refused here.
//!   Tenants without a limit keep their part, as those that wait for latency and draw little.
//! - Latency (Colloid, SOSP 2024): nothing while a request for the fast tier takes as long as one for the slow tier.

use crate::units::{Cycles, Nanos};

/// Steps of Alto between its thresholds.
pub const ALTO_STEPS: u32 = 5;

/// The thresholds of Alto: cycles of the cores with a demand read outstanding, for each demand read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alto {
    /// Promotion is off below it.
    pub low: Cycles,
    /// Promotion has its whole limit above it.
    pub high: Cycles,
}

/// Thresholds by what a processor is called. The authors find them with the microbenchmarks that calibrate a machine,
/// and do not say how: 40 and 100 are the example of SupMario (section 6.4), of its Skylake machine; 25 and 95 are
/// stated of Sapphire Rapids by later descriptions of Alto, and are taken for Emerald Rapids too, which refreshes its
/// cores (assumed: 25 to 40 and 95 to 100).
const BY_PROCESSOR: [(&str, Cycles, Cycles); 3] = [
    ("skylake", Cycles(40.0), Cycles(100.0)),
    ("sapphire-rapids", Cycles(25.0), Cycles(95.0)),
    ("emerald-rapids", Cycles(25.0), Cycles(95.0)),
];

impl Default for Alto {
    /// Those of SupMario's Skylake machine.
    fn default() -> Self {
        Self::of("")
    }
}

impl Alto {
    /// Those of a processor, by its description; of one that is not known, Skylake's.
    pub fn of(processor: &str) -> Self {
        let mut all = BY_PROCESSOR.iter();
        let known = all.find(|(name, ..)| processor.contains(name));
        let (_, low, high) = *known.unwrap_or(&BY_PROCESSOR[0]);
        Self { low, high }
    }

    /// The part of its promotions that is permitted: nothing at the low threshold, all at the high one, in equal steps
    /// between. The paper gives the number of steps and no table.
    pub fn part(&self, amortised: Cycles) -> f64 {
        let along = (amortised.get() - self.low.get()) / (self.high.get() - self.low.get());
        let steps = f64::from(ALTO_STEPS);
        let step = (along * steps).ceil().clamp(0.0, steps);
        if step.is_nan() { 0.0 } else { step / steps }
    }
}

/// What was seen in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PromotionReadings {
    /// Cycles with a demand read outstanding, for each demand read; `None` if there was none, or it is not counted.
    pub amortised: Option<f64>,
    /// How long a request for the fast tier takes, if it is counted.
    pub fast: Option<Nanos>,
    /// How long one for the slow tier takes.
    pub slow: Option<Nanos>,
    /// The part of their running that is left to tenants of the slow tier that may be limited; 1 if none is limited.
    pub left: f64,
}

crate::named! {
    /// Why promotion gets a part of its limit.
    pub enum PromotionReason {
        /// No rule takes anything.
        Whole = "the whole limit",
        /// Alto.
        Alto = "misses overlap (Alto)",
        /// Steering.
        Steering = "tenants of the slow tier are limited",
        /// Latency.
        Latency = "the fast tier is as slow as the slow tier",
    }
}

/// The rules, and what they keep from one second to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct PromotionRule {
    alto: Option<Alto>,
    /// The part that Alto gave last: a second without a reading changes nothing.
    last: f64,
}

impl PromotionRule {
    /// The rules, with that of Alto or without it.
    pub fn new(alto: Option<Alto>) -> Self {
        Self { alto, last: 1.0 }
    }

    /// The part that promotion gets in the next second, from 0 to 1, and the rule that says so.
    pub fn part(&mut self, seen: &PromotionReadings) -> (f64, PromotionReason) {
        if let (Some(alto), Some(cycles)) = (&self.alto, seen.amortised) {
            self.last = alto.part(Cycles(cycles));
        }
        let is_slow = seen
            .fast
            .zip(seen.slow)
            .is_some_and(|(fast, slow)| fast >= slow);
        let mut least = (1.0, PromotionReason::Whole);
        for (part, why) in [
            (self.last, PromotionReason::Alto),
            (seen.left, PromotionReason::Steering),
            (if is_slow { 0.0 } else { 1.0 }, PromotionReason::Latency),
        ] {
            if part < least.0 {
                least = (part.max(0.0), why);
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: PromotionReadings = PromotionReadings {
        amortised: None,
        fast: Some(Nanos(110.0)),
        slow: Some(Nanos(260.0)),
        left: 1.0,
    };

    #[test]
    fn alto_has_five_steps_between_its_thresholds() {
        let alto = Alto::default();
        let table = [20.0, 40.0, 41.0, 52.0, 53.0, 70.0, 80.0, 95.0, 100.0, 140.0]
            .map(|n| alto.part(Cycles(n)));
        assert_eq!(table, [0.0, 0.0, 0.2, 0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0]);
        assert_eq!(alto.part(Cycles(f64::NAN)), 0.0);
    }

    #[test]
    fn a_second_without_a_reading_changes_nothing() {
        let mut rule = PromotionRule::new(Some(Alto::default()));
        assert_eq!(rule.part(&CALM), (1.0, PromotionReason::Whole));
        let amortised = Some(60.0);
        let overlapped = PromotionReadings { amortised, ..CALM };
        assert_eq!(rule.part(&overlapped), (0.4, PromotionReason::Alto));
        assert_eq!(rule.part(&CALM), (0.4, PromotionReason::Alto));
        // Without Alto its counter has no effect.
        let mut rule = PromotionRule::new(None);
        assert_eq!(rule.part(&overlapped), (1.0, PromotionReason::Whole));
    }

    #[test]
    fn a_limited_tenant_takes_its_part_away_and_others_keep_theirs() {
        let mut rule = PromotionRule::new(Some(Alto::default()));
        // Of eight cores a tenant that is limited keeps one of four, and one that is not limited its four.
        let left = 5.0 / 8.0;
        let limited = PromotionReadings { left, ..CALM };
        assert_eq!(rule.part(&limited), (left, PromotionReason::Steering));
        let amortised = Some(50.0);
        let both = PromotionReadings {
            amortised,
            ..limited
        };
        assert_eq!(rule.part(&both), (0.2, PromotionReason::Alto));
    }

    #[test]
    fn nothing_is_promoted_to_a_tier_that_is_as_slow() {
        let mut rule = PromotionRule::new(None);
        let slow = PromotionReadings {
            fast: Some(Nanos(260.0)),
            left: 0.5,
            ..CALM
        };
        assert_eq!(rule.part(&slow), (0.0, PromotionReason::Latency));
        let unknown = PromotionReadings { slow: None, ..slow };
        assert_eq!(rule.part(&unknown), (0.5, PromotionReason::Steering));
    }
}
