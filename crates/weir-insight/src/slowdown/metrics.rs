//! What the slowdown model reads from a local run: M_DRAM, M_cache and M_store (SupMario §5.3 to 5.5).

use weir_model::counters::Counter;
use weir_model::insight::{Constants, PrefetchForm};
use weir_model::units::Cycles;

use crate::{InsightError, Run, prefetch};

/// The metrics of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metrics {
    /// Share of cycles stalled on demand loads that missed the last-level cache (P4 / P1).
    pub miss_stalls: f64,
    /// Amortised offcore latency (P12 / P11); `None` where no demand read left the core.
    pub aol: Option<Cycles>,
    /// M_cache: stalls of the level that the prefetchers feed, times the share of loads that find their
    /// line in flight, times the share of prefetches that the L1 prefetcher brings from memory.
    pub cache: f64,
    /// M_store: share of cycles with a full store buffer (P7 / P1).
    pub store: f64,
}

impl Metrics {
    /// Reads them from the counters that the processor family has.
    ///
    /// # Errors
    /// Counters are missing: all of them are named, each with its reason.
    pub fn of(run: &Run<'_>, form: PrefetchForm) -> Result<Self, InsightError> {
        let missing: Vec<(Counter, String)> = (needed(form).iter())
            .filter_map(|&counter| Some((counter, run.count(counter).err()?.reason)))
            .collect();
        let lacking = |counters| InsightError::Missing {
            what: format!("the slowdown model of {form}"),
            counters,
        };
        if !missing.is_empty() {
            return Err(lacking(missing));
        }
        let all = || {
            Some(Self {
                miss_stalls: run.share(Counter::StallsL3Miss).ok()?,
                aol: run.aol().ok()?,
                cache: cache(run, form)?,
                store: run.share(Counter::BoundOnStores).ok()?,
            })
        };
        all().ok_or_else(|| lacking(Vec::new()))
    }

    /// M_DRAM: stalled cycles, discounted where misses overlap. `p / AOL + q` is what 1 / K is, so that a
    /// large AOL, one miss at a time, gives 1 / q.
    pub fn dram(&self, constants: &Constants) -> f64 {
        self.miss_stalls * self.overlap(constants)
    }

    /// K(AOL); without any demand read there is nothing that it could scale.
    pub fn overlap(&self, constants: &Constants) -> f64 {
        let of = |aol: Cycles| 1.0 / (constants.p / aol + constants.q);
        self.aol.map_or(0.0, of)
    }
}

/// The counters of the model: eleven on Skylake, twelve on Sapphire Rapids.
pub fn needed(form: PrefetchForm) -> &'static [Counter] {
    match form {
        PrefetchForm::Skylake => &[
            Counter::Cycles,
            Counter::StallsL1dMiss,
            Counter::StallsL2Miss,
            Counter::StallsL3Miss,
            Counter::L1Miss,
            Counter::FbHit,
            Counter::BoundOnStores,
            Counter::HwpfL1d,
            Counter::HwpfL1dL3Hit,
            Counter::OffcoreDemandDataRd,
            Counter::OffcoreCyclesDemandDataRd,
        ],
        PrefetchForm::SapphireRapids => &[
            Counter::Cycles,
            Counter::StallsL2Miss,
            Counter::StallsL3Miss,
            Counter::L1Miss,
            Counter::FbHit,
            Counter::BoundOnStores,
            Counter::HwpfL1d,
            Counter::HwpfL2,
            Counter::TorInsertsIaDrdPref,
            Counter::TorInsertsIaMissDrdPref,
            Counter::OffcoreDemandDataRd,
            Counter::OffcoreCyclesDemandDataRd,
        ],
    }
}

fn cache(run: &Run<'_>, form: PrefetchForm) -> Option<f64> {
    let stalls = |outer, inner| Some((run.share(outer).ok()? - run.share(inner).ok()?).max(0.0));
    let (level, by_l1) = match form {
        PrefetchForm::Skylake => (stalls(Counter::StallsL1dMiss, Counter::StallsL2Miss)?, 1.0),
        PrefetchForm::SapphireRapids => (
            stalls(Counter::StallsL2Miss, Counter::StallsL3Miss)?,
            prefetch::by_l1(run)?,
        ),
    };
    Some(level * prefetch::fill_buffer_hits(run)? * prefetch::from_memory(run, form)? * by_l1)
}

/// Which counters are missing, each with its reason.
pub(super) fn lacking(missing: &[(Counter, String)]) -> String {
    let each = missing
        .iter()
        .map(|(counter, why)| format!("`{counter}`: {why}"));
    each.collect::<Vec<_>>().join("; ")
}

/// Store, cache and DRAM as published.
pub(super) fn parts(metrics: &Metrics, constants: &Constants) -> [f64; 3] {
    [
        constants.k3 * metrics.store,
        constants.k2 * metrics.cache,
        constants.k1 * metrics.dram(constants),
    ]
}
