//! Whether the prefetchers still come in time (SupMario §4.2).
//!
//! On a slower tier the L2 prefetcher comes late. Lines that it no longer brings, the L1 prefetcher
//! fetches itself; more loads then find their line in flight in a fill buffer, and wait there.

use weir_model::counters::Counter;
use weir_model::insight::PrefetchForm;

use crate::Run;

/// What the prefetchers did. A quantity is `None` where its counters are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Health {
    /// Lines that the L1 prefetchers fetched beyond the last-level cache, for 1000 instructions.
    pub l1_misses_pki: Option<f64>,
    /// Lines that the L2 prefetchers fetched beyond the last-level cache, for 1000 instructions.
    pub l2_misses_pki: Option<f64>,
    /// Loads that found their line in flight, of those that did not hit L1: FB_HIT / (FB_HIT + L1_MISS).
    pub fill_buffer_hits: Option<f64>,
    /// Share of prefetched lines that come from beyond the last-level cache.
    pub from_memory: Option<f64>,
    /// Share of prefetches that are the L1 prefetchers'.
    pub by_l1: Option<f64>,
}

impl Health {
    /// Reads it from the counters that the processor family has.
    pub fn of(run: &Run<'_>, form: PrefetchForm) -> Self {
        let from_memory = from_memory(run, form);
        let per_kilo =
            |lines: Option<f64>| Some(lines? * from_memory? * 1e3 / run.instructions().ok()?);
        let (l1, l2) = (
            run.count(Counter::HwpfL1d).ok(),
            run.count(Counter::HwpfL2).ok(),
        );
        Self {
            l1_misses_pki: per_kilo(l1),
            // Skylake's share is of the L1 prefetchers alone.
            l2_misses_pki: match form {
                PrefetchForm::SapphireRapids => per_kilo(l2),
                PrefetchForm::Skylake => None,
            },
            fill_buffer_hits: fill_buffer_hits(run),
            from_memory,
            by_l1: by_l1(run),
        }
    }
}

/// P6 / (P5 + P6); zero if every load hits L1.
pub(crate) fn fill_buffer_hits(run: &Run<'_>) -> Option<f64> {
    let hits = run.count(Counter::FbHit).ok()?;
    Some(part(hits, hits + run.count(Counter::L1Miss).ok()?))
}

/// P15 / (P15 + P16); zero if nothing is prefetched.
pub(crate) fn by_l1(run: &Run<'_>) -> Option<f64> {
    let l1 = run.count(Counter::HwpfL1d).ok()?;
    Some(part(l1, l1 + run.count(Counter::HwpfL2).ok()?))
}

/// P13 / P14, or (P8 - P9) / P8 on Skylake; zero if nothing is prefetched.
pub(crate) fn from_memory(run: &Run<'_>, form: PrefetchForm) -> Option<f64> {
    match form {
        PrefetchForm::SapphireRapids => Some(part(
            run.count(Counter::TorInsertsIaMissDrdPref).ok()?,
            run.count(Counter::TorInsertsIaDrdPref).ok()?,
        )),
        PrefetchForm::Skylake => {
            let all = run.count(Counter::HwpfL1d).ok()?;
            Some(part(all - run.count(Counter::HwpfL1dL3Hit).ok()?, all))
        }
    }
}

fn part(of: f64, all: f64) -> f64 {
    if all > 0.0 {
        (of / all).clamp(0.0, 1.0)
    } else {
        0.0
    }
}
