//! What designs are compared by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

weir_model::named! {
    /// A figure of a design. All are wanted low but speed and what neighbours get.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Objective {
        /// Instructions a second, of those of the first design that can be; the geometric mean of the workloads by weight.
        Speed = "speed",
        /// Bandwidth that the tenants that run with the workloads get, in GB/s; the mean over the workloads by weight.
        Neighbour = "neighbour",
        /// 99th percentile of the latency of loads from memory while the workloads run, in ns.
        P99 = "p99",
        /// Power of the server, in watts.
        Watts = "watts",
        /// Power times the square of cycles per instruction.
        Edp = "edp",
        /// Die area of the processor packages, in units of 1 MB of last-level cache.
        Area = "area",
        /// Pins of the packages for memory.
        Pins = "pins",
        /// Price of memory and cards, in USD.
        Dollars = "dollars",
    }
}

impl Objective {
    /// Its unit, as printed.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Speed => "x",
            Self::Neighbour => "GB/s",
            Self::P99 => "ns",
            Self::Watts => "W",
            Self::Edp => "W*CPI^2",
            Self::Area => "MB of LLC",
            Self::Pins => "pins",
            Self::Dollars => "USD",
        }
    }

    /// Its column in rows of designs.
    pub const fn column(self) -> &'static str {
        match self {
            Self::Neighbour => "neighbour_gbps",
            Self::P99 => "p99_ns",
            other => other.name(),
        }
    }

    /// Whether a larger figure is better.
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::Speed | Self::Neighbour)
    }

    /// A figure as a cost: less is better.
    pub fn cost(self, figure: f64) -> f64 {
        match self.more_is_better() {
            true => -figure,
            false => figure,
        }
    }
}

/// A bound of an objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// Of what.
    pub objective: Objective,
    /// The least that is allowed.
    pub least: Option<f64>,
    /// The most that is allowed.
    pub most: Option<f64>,
}

impl Constraint {
    /// By how much of the bound a figure is outside it; zero where it is allowed.
    pub fn violation(&self, figure: f64) -> f64 {
        let over = self.most.map_or(0.0, |most| figure - most);
        let under = self.least.map_or(0.0, |least| least - figure);
        let bound = match over > under {
            true => self.most,
            false => self.least,
        };
        let scale = bound.map_or(1.0, f64::abs).max(1e-9);
        over.max(under).max(0.0) / scale
    }

    /// In words: `watts at most 600 W`.
    pub fn words(&self) -> String {
        let unit = self.objective.unit();
        let side = |words: &str, bound: Option<f64>| bound.map(|b| format!("{words} {b} {unit}"));
        let sides = [side("at least", self.least), side("at most", self.most)];
        let sides: Vec<String> = sides.into_iter().flatten().collect();
        format!("{} {}", self.objective, sides.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_grows_with_the_distance_and_is_zero_inside() {
        let bound = Constraint {
            objective: Objective::Watts,
            least: Some(100.0),
            most: Some(200.0),
        };
        assert_eq!([100.0, 150.0, 200.0].map(|w| bound.violation(w)), [0.0; 3]);
        assert_eq!(bound.violation(300.0), 0.5);
        assert_eq!(bound.violation(50.0), 0.5);
        assert_eq!(bound.words(), "watts at least 100 W and at most 200 W");
    }
}
