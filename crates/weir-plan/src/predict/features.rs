//! Counters of a program as columns: what the forest reads (Pond, section 5: top-down shares, misses, bandwidth and
//! parallelism).
//!
//! Every counter of a core is taken by cycle and by instruction, so that nothing depends on how long a program was counted.
//! Quotients that trees would need many splits for are columns of their own.

use weir_model::counters::{Counter, CounterSet};

use super::tree::MISSING;

/// The counters that are taken: all of them are of a core, and exist for a single program on a host as well.
const COUNTERS: [Counter; 24] = [
    Counter::StallsMemAny,
    Counter::StallsL1dMiss,
    Counter::StallsL2Miss,
    Counter::StallsL3Miss,
    Counter::CyclesL1dMiss,
    Counter::CyclesL2Miss,
    Counter::CyclesL3Miss,
    Counter::BoundOnStores,
    Counter::L1Hit,
    Counter::L1Miss,
    Counter::FbHit,
    Counter::L2Hit,
    Counter::L3Hit,
    Counter::L3Miss,
    Counter::OffcoreDemandDataRd,
    Counter::OffcoreOutstandingDemandDataRd,
    Counter::OffcoreCyclesDemandDataRd,
    Counter::OffcoreDataRd,
    Counter::OffcoreOutstandingDataRd,
    Counter::OffcoreDemandRfo,
    Counter::L1dPendMiss,
    Counter::HwpfL1d,
    Counter::HwpfL1dL3Hit,
    Counter::HwpfL2,
];

/// Quotients: their name, what is divided and by what.
const QUOTIENTS: [(&str, Counter, Counter); 5] = [
    (
        "cycles of a demand read",
        Counter::OffcoreOutstandingDemandDataRd,
        Counter::OffcoreDemandDataRd,
    ),
    (
        "demand reads at once",
        Counter::OffcoreOutstandingDemandDataRd,
        Counter::OffcoreCyclesDemandDataRd,
    ),
    (
        "cycles with a demand read, by read",
        Counter::OffcoreCyclesDemandDataRd,
        Counter::OffcoreDemandDataRd,
    ),
    (
        "stalled share of cycles with a miss",
        Counter::StallsL3Miss,
        Counter::CyclesL3Miss,
    ),
    (
        "lines found in flight, by miss",
        Counter::FbHit,
        Counter::L1Miss,
    ),
];

/// Names of the columns.
pub fn names() -> Vec<String> {
    let mut names = vec!["instructions/cycle".to_owned()];
    for counter in COUNTERS {
        names.push(format!("{}/cycle", counter.name()));
        names.push(format!("{}/instruction", counter.name()));
    }
    names.extend(QUOTIENTS.iter().map(|(name, ..)| (*name).to_owned()));
    names
}

/// The columns of a program that was counted on local memory; [`MISSING`] where counters are. `None` without cycles.
pub fn of(local: &CounterSet) -> Option<Vec<f64>> {
    let get = |counter| local.get(counter).ok().map(|value| value as f64);
    let quotient = |dividend: Option<f64>, divisor: Option<f64>| match (dividend, divisor) {
        (Some(dividend), Some(divisor)) if divisor > 0.0 => dividend / divisor,
        // Nothing of nothing, such as cycles of a read where no read left the core.
        (Some(0.0), Some(_)) => 0.0,
        _ => MISSING,
    };
    let cycles = Some(get(Counter::Cycles).filter(|cycles| *cycles > 0.0)?);
    let instructions = get(Counter::Instructions);
    let mut row = vec![quotient(instructions, cycles)];
    for counter in COUNTERS {
        let value = get(counter);
        row.push(quotient(value, cycles));
        row.push(quotient(value, instructions));
    }
    let of = |(_, dividend, divisor): &(&str, _, _)| quotient(get(*dividend), get(*divisor));
    row.extend(QUOTIENTS.iter().map(of));
    Some(row)
}

/// Share of cycles that a program is stalled on misses of the last-level cache: `DRAM-bound` of the top-down method.
pub fn dram_bound(local: &CounterSet) -> Option<f64> {
    share(local, &[Counter::StallsL3Miss])
}

/// Share of cycles that it is stalled on any memory, caches and full store buffers included: `memory-bound`.
pub fn memory_bound(local: &CounterSet) -> Option<f64> {
    let any = share(local, &[Counter::StallsMemAny, Counter::BoundOnStores]);
    // Older formulas lack stalls on L1.
    any.or_else(|| share(local, &[Counter::StallsL1dMiss, Counter::BoundOnStores]))
}

fn share(local: &CounterSet, parts: &[Counter]) -> Option<f64> {
    let get = |counter| local.get(counter).ok().map(|value| value as f64);
    let cycles = get(Counter::Cycles).filter(|cycles| *cycles > 0.0)?;
    let sum: Option<f64> = parts.iter().map(|counter| get(*counter)).sum();
    Some(sum? / cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_runs_twice_as_long_has_the_same_columns() {
        let mut once = CounterSet::default();
        let mut twice = CounterSet::default();
        for (at, counter) in [Counter::Cycles, Counter::Instructions]
            .into_iter()
            .chain(COUNTERS)
            .enumerate()
        {
            once.set(counter, 1000 + 10 * at as u64);
            twice.set(counter, 2000 + 20 * at as u64);
        }
        let row = of(&once).unwrap();
        assert_eq!(row, of(&twice).unwrap());
        assert_eq!(row.len(), names().len());
        assert!(row.iter().all(|value| *value > 0.0));
    }

    #[test]
    fn what_is_not_counted_is_missing_and_what_never_happened_is_zero() {
        let mut local = CounterSet::default();
        assert_eq!(of(&local), None);
        local.set(Counter::Cycles, 100);
        local.set(Counter::OffcoreOutstandingDemandDataRd, 0);
        local.set(Counter::OffcoreDemandDataRd, 0);
        let row = of(&local).unwrap();
        let at = |name: &str| row[names().iter().position(|known| known == name).unwrap()];
        assert_eq!(at("instructions/cycle"), MISSING);
        assert_eq!(at("cycles of a demand read"), 0.0);
        assert_eq!(at("demand reads at once"), MISSING);
        assert_eq!((dram_bound(&local), memory_bound(&local)), (None, None));
    }

    #[test]
    fn bounds_are_shares_of_cycles() {
        let mut local = CounterSet::default();
        local.set(Counter::Cycles, 200);
        local.set(Counter::StallsL3Miss, 50);
        local.set(Counter::StallsL1dMiss, 80);
        local.set(Counter::BoundOnStores, 10);
        assert_eq!(dram_bound(&local), Some(0.25));
        assert_eq!(memory_bound(&local), Some(0.45));
    }
}
