//! Colloid (Vuppalapati and Agarwal, SOSP 2024): hot pages go to the tier that answers sooner at the time.

use weir_model::units::Nanos;

use super::{Decision, Fault, Marks, Policy, Scan, Seen, Tpp};
use crate::tier::{Tier, Watermarks};

/// TPP's demotion and hint faults, with Colloid's rule of which pages move: while the fast tier answers sooner, pages of
/// the slow one are promoted, otherwise hot pages of the fast one are demoted, until the latencies are equal. How
/// much access moves in a quantum is half the distance to a bound, which follows the point of equal latencies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Colloid {
    tpp: Tpp,
    /// The share of accesses at which the fast tier answered sooner, and at which it answered later, as last known.
    low: f64,
    high: Option<f64>,
    /// Share of accesses that may yet move in this quantum, to the fast tier if positive.
    left: f64,
    quantum: Quantum,
    /// Accesses of all pages in a second.
    per_s: f64,
}

/// Sums over a quantum.
#[derive(Debug, Clone, Copy, Default)]
struct Quantum {
    seconds: f64,
    latency: [f64; 2],
    accesses: [f64; 2],
}

/// Latencies that differ by less are equal (the authors' code: 5 %).
const EQUAL: f64 = 0.05;
/// Bounds that are closer than this are set back (the authors' code: 1 %).
const CLOSE: f64 = 0.01;
/// A quantum (the authors' code: 500 ms).
const EVERY_S: f64 = 0.5;

impl Colloid {
    fn decide(&mut self, latency: [Nanos; 2], local: f64) {
        let [fast, slow] = latency.map(Nanos::get);
        let high = self.high.unwrap_or(1.0);
        if (fast - slow).abs() < EQUAL * fast {
            self.left = 0.0;
            return;
        }
        if fast < slow {
            self.low = local;
            // The point of equal latencies has moved beyond a bound that is passed.
            self.high = Some(if high - local < CLOSE { 1.0 } else { high });
        } else {
            self.high = Some(local);
            self.low = if local - self.low < CLOSE {
                0.0
            } else {
                self.low
            };
        }
        let aim = (self.low + self.high.unwrap_or(1.0)) / 2.0;
        self.left = aim - local;
    }
}

impl Policy for Colloid {
    fn scan(&self) -> Option<Scan> {
        // Pages of the fast tier are sampled while they are to leave it.
        Some(Scan {
            toptier: self.left < 0.0,
            ..Scan::LINUX
        })
    }

    fn marks(&self, marks: &Watermarks) -> Marks {
        self.tpp.marks(marks)
    }

    fn demotes(&self) -> bool {
        true
    }

    fn samples_demoted(&self) -> bool {
        true
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        // The time to the fault says how often the page is accessed.
        let share = 1.0 / fault.latency_s.max(1e-6) / self.per_s.max(1.0);
        match fault.tier {
            Tier::Slow if self.left >= share => {
                let decision = self.tpp.fault(fault);
                if decision == Decision::Promote {
                    self.left -= share;
                }
                decision
            }
            Tier::Fast if -self.left >= share => {
                self.left += share;
                Decision::Demote
            }
            _ => Decision::Keep,
        }
    }

    fn observe(&mut self, seen: &Seen<'_>) {
        let q = &mut self.quantum;
        q.seconds += seen.interval_s;
        for t in 0..2 {
            let of: f64 = seen.regions.iter().map(|r| r.per_s[t]).sum();
            q.latency[t] += seen.latency[t].get() * seen.interval_s;
            q.accesses[t] += of * seen.interval_s;
        }
        if q.seconds < EVERY_S {
            return;
        }
        let q = std::mem::take(q);
        let all = q.accesses[0] + q.accesses[1];
        self.per_s = all / q.seconds;
        self.decide(
            q.latency.map(|ns| Nanos(ns / q.seconds)),
            q.accesses[0] / all.max(1.0),
        );
    }
}
