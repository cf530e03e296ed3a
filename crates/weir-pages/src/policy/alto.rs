//! Alto (SupMario, arXiv 2409.14317, section 6.4; SoarAlto, OSDI 2025): promotion as fast as misses hurt.

use weir_model::tiering::promotion::{self, ALTO_STEPS};
use weir_model::units::{Cycles, Gigahertz, Nanos};

use super::{Decision, Fault, HotCounters, Marks, Move, Placing, Policy, Scan, Seen};
use crate::tier::{Tier, Watermarks};

/// Any policy, of whose promotions only the first few of each group of ten pass. How many follows from amortised
/// off-core latency: none below a low threshold, all above a high one, in five steps between them.
pub struct Alto {
    inner: Box<dyn Policy>,
    /// How many of ten candidates pass.
    pass: u32,
    /// Candidates so far, modulo ten.
    candidates: u32,
    since_s: f64,
    /// Wait for an access, and intervals, since the last decision.
    waited: f64,
    intervals: f64,
}

/// Amortised off-core latencies between which Alto rations promotion, in cycles of the cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// In cycles.
    pub alto: promotion::Alto,
    /// The clock of the cores.
    pub clock: Gigahertz,
}

/// The clock where none is known: the base clock of the Skylake machine's Xeon Silver 4114.
const CLOCK: Gigahertz = Gigahertz(2.2);
impl Thresholds {
    /// Those of a processor, by its description.
    pub fn of(processor: &str, clock: Option<Gigahertz>) -> Self {
        Self {
            alto: promotion::Alto::of(processor),
            clock: clock.unwrap_or(CLOCK),
        }
    }

    /// How many of ten candidates pass at an amortised latency.
    pub fn allowed(&self, amortised: Nanos) -> u32 {
        let cycles = Cycles(amortised.get() * self.clock.get());
        (self.alto.part(cycles) * f64::from(Alto::GROUP)) as u32
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::of("", None)
    }
}

impl Alto {
    /// Candidates that are rationed together (section 6.4).
    pub const GROUP: u32 = 10;
    /// Steps between the thresholds (section 6.4).
    pub const STEPS: u32 = ALTO_STEPS;
    /// Counters are read once in this many seconds (section 6.4).
    pub const EVERY_S: f64 = 1.0;

    /// On a policy.
    pub fn on(inner: Box<dyn Policy>) -> Self {
        Self {
            inner,
            pass: Self::GROUP,
            candidates: 0,
            since_s: 0.0,
            waited: 0.0,
            intervals: 0.0,
        }
    }
}

impl Policy for Alto {
    left_to_inner!();

    fn counters(&self) -> Option<HotCounters> {
        // Reports of a device have no group of candidates; this many of them are taken.
        let share = f64::from(self.pass) / f64::from(Self::GROUP);
        self.inner.counters().map(|of| HotCounters {
            reports_per_s: of.reports_per_s * share,
            ..of
        })
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        match self.inner.fault(fault) {
            Decision::Promote => {
                let passes = self.candidates < self.pass;
                self.candidates = (self.candidates + 1) % Self::GROUP;
                match passes {
                    true => Decision::Promote,
                    false => Decision::Limited,
                }
            }
            other => other,
        }
    }

    fn observe(&mut self, seen: &Seen<'_>) {
        self.inner.observe(seen);
        self.since_s += seen.interval_s;
        self.waited += seen.wait.get();
        self.intervals += 1.0;
        if self.since_s >= Self::EVERY_S {
            self.pass = seen.thresholds.allowed(Nanos(self.waited / self.intervals));
            (self.since_s, self.waited, self.intervals) = (0.0, 0.0, 0.0);
        }
    }

    fn moves(&mut self) -> Vec<Move> {
        self.inner.moves()
    }

    fn reclaims(&mut self) -> u64 {
        self.inner.reclaims()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Tpp;

    #[test]
    fn the_rate_has_five_steps_between_the_thresholds() {
        let thresholds = Thresholds::default();
        let cycles = |n: f64| thresholds.allowed(thresholds.clock.time(Cycles(n)));
        let table = [20.0, 39.9, 45.0, 60.0, 70.0, 80.0, 95.0, 100.0, 140.0].map(cycles);
        assert_eq!(table, [0, 0, 2, 4, 6, 8, 10, 10, 10]);
    }

    #[test]
    fn thresholds_are_in_cycles_of_the_machine_s_own_clock() {
        let of = |clock| Thresholds::of("emerald-rapids, 32 cores", Some(Gigahertz(clock)));
        assert_eq!(of(2.1).alto.low, Cycles(25.0));
        // 20 ns are 20 cycles at 1 GHz, and 60 at 3 GHz: the third step of 14 cycles.
        assert_eq!(of(1.0).allowed(Nanos(20.0)), 0);
        assert_eq!(of(3.0).allowed(Nanos(20.0)), 6);
    }

    #[test]
    fn the_first_of_each_ten_candidates_pass() {
        let mut alto = Alto::on(Box::new(Tpp::default()));
        alto.pass = 4;
        let fault = Fault {
            region: 0,
            tier: Tier::Slow,
            kind: crate::workload::PageKind::Anon,
            base_pages: 1,
            active: true,
            demoted: false,
            latency_s: 0.1,
        };
        let passed = (0..30).filter(|_| alto.fault(&fault) == Decision::Promote);
        assert_eq!(passed.count(), 12);
    }
}
