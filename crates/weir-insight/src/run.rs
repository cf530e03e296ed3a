//! Counters of one run, found to be possible before anything is made of them.

use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::Stalls;
use weir_model::units::Cycles;

use crate::InsightError;

/// Counts that ought to be ordered may be out of order by this share of the cycles: counters that take
/// turns on one register (multiplexing) are each extrapolated.
const MULTIPLEXING: f64 = 0.03;

/// Cycles with something in them, of which there cannot be more than cycles.
const PARTS_OF_CYCLES: [Counter; 9] = [
    Counter::StallsMemAny,
    Counter::StallsL1dMiss,
    Counter::StallsL2Miss,
    Counter::StallsL3Miss,
    Counter::CyclesL1dMiss,
    Counter::CyclesL2Miss,
    Counter::CyclesL3Miss,
    Counter::BoundOnStores,
    Counter::OffcoreCyclesDemandDataRd,
];

/// Each counts a part of what the one before it counts.
const NESTED: [&[Counter]; 4] = [
    &[
        Counter::StallsMemAny,
        Counter::StallsL1dMiss,
        Counter::StallsL2Miss,
        Counter::StallsL3Miss,
    ],
    &[
        Counter::CyclesL1dMiss,
        Counter::CyclesL2Miss,
        Counter::CyclesL3Miss,
        Counter::StallsL3Miss,
    ],
    &[Counter::CyclesL1dMiss, Counter::StallsL1dMiss],
    &[Counter::CyclesL2Miss, Counter::StallsL2Miss],
];

/// Core counters of one run.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    counters: &'a CounterSet,
    cycles: f64,
}

impl<'a> Run<'a> {
    /// Takes counters for those of a run, if they can be.
    ///
    /// # Errors
    /// Cycles are missing or zero, or a counter contradicts another: more stalled cycles than cycles, an
    /// inner level stalled for longer than an outer one, requests and their cycles swapped.
    pub fn of(counters: &'a CounterSet) -> Result<Self, InsightError> {
        let cycles = counters
            .get(Counter::Cycles)
            .map_err(|why| InsightError::Missing {
                what: "any share of cycles".into(),
                counters: vec![(Counter::Cycles, why.reason)],
            })?;
        if cycles == 0 {
            return Err(InsightError::NothingRan);
        }
        let run = Self {
            counters,
            cycles: cycles as f64,
        };
        run.check()?;
        Ok(run)
    }

    fn check(&self) -> Result<(), InsightError> {
        let slack = MULTIPLEXING * self.cycles;
        for counter in PARTS_OF_CYCLES {
            if let Ok(value) = self.counters.get(counter)
                && value as f64 > self.cycles + slack
            {
                let why = format!(
                    "more than the {} cycles it is a part of: counted elsewhere, or wrapped around",
                    self.cycles
                );
                return Err(impossible(counter, value, why));
            }
        }
        for nested in NESTED {
            let known: Vec<(Counter, u64)> = (nested.iter())
                .filter_map(|&counter| Some((counter, self.counters.get(counter).ok()?)))
                .collect();
            for outer_and_inner in known.windows(2) {
                let [(outer, most), (inner, value)] = [outer_and_inner[0], outer_and_inner[1]];
                if value as f64 > most as f64 + slack {
                    let why = format!(
                        "more than the {most} of `{outer}`, of which it is a part: swapped?"
                    );
                    return Err(impossible(inner, value, why));
                }
            }
        }
        self.check_offcore()
    }

    /// A core has tens of reads under way at most, and none comes back within a cycle or two.
    fn check_offcore(&self) -> Result<(), InsightError> {
        let get = |counter| self.counters.get(counter);
        let Ok(cycles) = get(Counter::OffcoreCyclesDemandDataRd) else {
            return Ok(());
        };
        if let Ok(requests) = get(Counter::OffcoreDemandDataRd)
            && requests > cycles
        {
            let why = format!(
                "fewer than the {requests} reads of `{}` that were under way in them: swapped?",
                Counter::OffcoreDemandDataRd
            );
            return Err(impossible(Counter::OffcoreCyclesDemandDataRd, cycles, why));
        }
        if let Ok(occupancy) = get(Counter::OffcoreOutstandingDemandDataRd)
            && (occupancy as f64) < cycles as f64 - MULTIPLEXING * self.cycles
        {
            let why = format!(
                "less than one in each of the {cycles} cycles of `{}`: swapped?",
                Counter::OffcoreCyclesDemandDataRd
            );
            let counter = Counter::OffcoreOutstandingDemandDataRd;
            return Err(impossible(counter, occupancy, why));
        }
        Ok(())
    }

    /// Cycles of the core.
    pub fn cycles(&self) -> Cycles {
        Cycles(self.cycles)
    }

    /// A counter's value.
    ///
    /// # Errors
    /// Why there is none.
    pub fn count(&self, counter: Counter) -> Result<f64, Unavailable> {
        self.counters.get(counter).map(|value| value as f64)
    }

    /// A counter of cycles, as a share of all.
    ///
    /// # Errors
    /// Why there is none.
    pub fn share(&self, counter: Counter) -> Result<f64, Unavailable> {
        Ok(self.count(counter)? / self.cycles)
    }

    /// Cycles lost by cause, as shares of all.
    pub fn stalls(&self) -> Stalls {
        Stalls::of(self.counters).over(self.cycles)
    }

    /// Retired instructions.
    ///
    /// # Errors
    /// They were not counted, or there were none.
    pub fn instructions(&self) -> Result<f64, Unavailable> {
        match self.count(Counter::Instructions)? {
            0.0 => Err(Unavailable::because(format!(
                "`{}` is zero",
                Counter::Instructions
            ))),
            n => Ok(n),
        }
    }

    /// Amortised offcore latency: cycles with a demand read under way, for each read. It is the mean
    /// latency divided by how many are under way at once (SupMario §5.3, P12 / P11). `None` where no
    /// demand read left the core.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn aol(&self) -> Result<Option<Cycles>, Unavailable> {
        self.mean(
            Counter::OffcoreCyclesDemandDataRd,
            Counter::OffcoreDemandDataRd,
        )
    }

    /// Mean latency of reads that left the core, prefetches among them; of demand reads alone where
    /// those are all that was counted. `None` where none left.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn offcore_latency(&self) -> Result<Option<Cycles>, Unavailable> {
        self.mean(Counter::OffcoreOutstandingDataRd, Counter::OffcoreDataRd)
            .or_else(|_| {
                self.mean(
                    Counter::OffcoreOutstandingDemandDataRd,
                    Counter::OffcoreDemandDataRd,
                )
            })
    }

    /// Mean latency of demand reads that missed the last-level cache; of all reads where those are not counted
    /// apart. A chase over many pages also reads page tables, which that cache has. `None` where none left.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn miss_latency(&self) -> Result<Option<Cycles>, Unavailable> {
        self.mean(
            Counter::OffcoreOutstandingL3MissDemandDataRd,
            Counter::OffcoreL3MissDemandDataRd,
        )
        .or_else(|_| self.offcore_latency())
    }

    /// Demand reads under way at once, in cycles with any.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn mlp(&self) -> Result<Option<f64>, Unavailable> {
        let mlp = self.mean(
            Counter::OffcoreOutstandingDemandDataRd,
            Counter::OffcoreCyclesDemandDataRd,
        )?;
        Ok(mlp.map(Cycles::get))
    }

    /// Occupancy for each of the requests; `None` if there are none.
    pub(crate) fn mean(
        &self,
        occupancy: Counter,
        requests: Counter,
    ) -> Result<Option<Cycles>, Unavailable> {
        let (occupancy, requests) = (self.count(occupancy)?, self.count(requests)?);
        Ok((requests > 0.0).then(|| Cycles(occupancy / requests)))
    }
}

fn impossible(counter: Counter, value: u64, why: String) -> InsightError {
    InsightError::Impossible {
        counter,
        value,
        why,
    }
}
