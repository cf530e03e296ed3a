//! Windows of which only parts were simulated, and how sure their figures are.

use crate::counters::{Counter, CounterSet};
use crate::units::Nanos;

/// The parts of a window that were simulated, and the sampling error of each figure: half of its 95 % interval, as a
/// share of the figure. A figure of zero, and one of a single part, has no known error.
///
/// The method is systematic sampling: Wunderlich et al., SMARTS, ISCA 2003.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// How many parts were simulated and counted.
    pub parts: u32,
    /// Their length, all together.
    pub simulated: Nanos,
    /// The error of each tenant's bytes.
    pub tenants: Vec<Option<f64>>,
    /// The error of the bytes to and from each of [`TRAFFIC`].
    pub traffic: [Option<f64>; 2],
    /// Whether an error was asked for and a figure of at least a hundredth of all bytes has a larger one.
    pub missed: bool,
}

/// Counters of the lines to and from DRAM of this socket, and CXL.
pub const TRAFFIC: [[Counter; 2]; 2] = [
    [Counter::CasRd, Counter::CasWr],
    [Counter::CxlRxMemData, Counter::CxlTxMemData],
];

/// Lines to and from DRAM of this socket and CXL; zero if they were not counted.
pub fn traffic(counters: &CounterSet) -> [u64; 2] {
    TRAFFIC.map(|pair| {
        pair.map(|counter| counters.get(counter).unwrap_or(0))
            .iter()
            .sum()
    })
}

impl Sampled {
    /// The largest known error of a figure.
    pub fn largest(&self) -> Option<f64> {
        let all = self.tenants.iter().chain(&self.traffic).flatten();
        all.copied().reduce(f64::max)
    }
}

/// The relative error of the sum of two independent figures, each with its own. A figure without one is exact.
pub fn of_sum(one: (f64, Option<f64>), other: (f64, Option<f64>)) -> Option<f64> {
    if one.1.is_none() && other.1.is_none() {
        return None;
    }
    let part = |(figure, error): (f64, Option<f64>)| figure * error.unwrap_or(0.0);
    let sum = one.0 + other.0;
    (sum > 0.0).then(|| part(one).hypot(part(other)) / sum)
}
