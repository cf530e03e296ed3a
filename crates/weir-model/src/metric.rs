//! What a tenant gets done, in its own metric: requests a second and how long they take, instructions, or bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::{Counter, CounterSet};
use crate::latency::{LatencyHistogram, LatencySummary, QuantileInterval};
use crate::number::figure;
use crate::tenant::Work;
use crate::units::{Bytes, Nanos};
use crate::workload::Workload;

/// What a tenant gets done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnMetric {
    /// What is counted: requests, queries or tokens a second, instructions a second, or bytes a second.
    pub unit: String,
    /// How much of it.
    pub rate: f64,
    /// From the arrival of a request to its answer, if it answers some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<LatencySummary>,
    /// Where the p99 of that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<QuantileInterval>,
}

impl OwnMetric {
    /// A rate with the latencies of requests.
    pub fn of(unit: String, rate: f64, latency: &LatencyHistogram) -> Self {
        Self {
            unit,
            rate,
            ns: latency.summary(),
            p99: latency.quantile_interval(0.99),
        }
    }

    /// `39800 requests/s, p50 8.1 us, p99 13.2 us (12.9 to 13.6)`.
    pub fn words(&self) -> String {
        let us = |ns: Nanos| figure(ns.get() / 1e3);
        let mut text = format!("{} {}", figure(self.rate), self.unit);
        if let Some(ns) = self.ns {
            text.push_str(&format!(", p50 {} us", us(ns.p50)));
            if let Some(p99) = ns.p99 {
                text.push_str(&format!(", p99 {} us", us(p99)));
            }
            if let Some(p99) = self.p99 {
                text.push_str(&format!(" ({} to {})", us(p99.low), us(p99.high)));
            }
        }
        text
    }
}

impl Workload {
    /// Has requests arrive at this rate, whether or not earlier ones are answered.
    ///
    /// # Errors
    /// It answers no requests.
    pub fn at_rate(&mut self, per_second: f64) -> Result<(), String> {
        let Some(requests) = &mut self.requests else {
            return Err(format!(
                "`{}` answers no requests, so that it has no rate",
                self.name
            ));
        };
        requests.per_second = Some(per_second);
        requests.think = Nanos(0.0);
        Ok(())
    }

    /// What its work is counted in, and how many of that in a second one in a nanosecond is.
    pub fn unit(&self) -> (String, f64) {
        match &self.requests {
            Some(requests) => (format!("{}/s", plural(&requests.unit)), 1e9),
            None => ("G instructions/s".into(), 1.0),
        }
    }

    /// What it has done with this many instructions. A request that is under way counts as far as it has come.
    pub fn done(&self, instructions: f64) -> f64 {
        match &self.requests {
            Some(requests) => instructions / requests.instructions.max(1) as f64,
            None => instructions,
        }
    }
}

impl Work {
    /// As [`Workload::unit`], of any work.
    pub fn unit(&self) -> (String, f64) {
        match self {
            Work::Program(work) => work.unit(),
            Work::Command(_) => ("runs/h".into(), 3.6e12),
            Work::Stream(_) | Work::Scope(_) => ("GB/s".into(), 1.0),
        }
    }

    /// What it has done, by what was seen of it.
    pub fn done(&self, bytes: Bytes, counters: &CounterSet) -> f64 {
        match self {
            Work::Program(work) => {
                work.done(counters.get(Counter::Instructions).unwrap_or(0) as f64)
            }
            _ => bytes.get() as f64,
        }
    }
}

/// `requests`, `queries`.
fn plural(unit: &str) -> String {
    match unit.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{unit}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::Command;

    #[test]
    fn a_command_of_36_seconds_runs_a_hundred_times_in_an_hour() {
        let command = Command {
            program: "true".into(),
            arguments: Vec::new(),
        };
        let (unit, factor) = Work::Command(command).unit();
        assert_eq!((unit.as_str(), factor / 36e9), ("runs/h", 100.0));
    }
}
