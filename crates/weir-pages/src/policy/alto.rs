//! Alto (SupMario, arXiv 2409.14317, section 6.4; SoarAlto, OSDI 2025): promotion as fast as misses hurt.

use weir_model::tiering::promotion::alto_part;
use weir_model::units::Nanos;

use super::{Decision, Fault, HotCounters, Marks, Move, Placing, Policy, Scan, Seen};
use crate::tier::{Tier, Watermarks};

/// Any policy, of whose promotions only the first few of each group of ten pass. How many follows from amortised off-core
/// latency: none below a low threshold, all above a high one, in five steps between them.
pub struct Alto {
    inner: Box<dyn Policy>,
    /// Promotion is off below it. SupMario: 40 cycles, which are 18 ns at the 2.2 GHz of its Skylake machine.
    pub low: Nanos,
    /// Promotion is unlimited above it. SupMario: 100 cycles, 45 ns.
    pub high: Nanos,
    /// How many of ten candidates pass.
    pass: u32,
    /// Candidates so far, modulo ten.
    candidates: u32,
    since_s: f64,
    /// Wait for an access, and intervals, since the last decision.
    waited: f64,
    intervals: f64,
}

/// Candidates that are rationed together (section 6.4).
const GROUP: u32 = 10;
/// Counters are read once in a second.
const EVERY_S: f64 = 1.0;

impl Alto {
    /// On a policy, with the thresholds of the paper.
    pub fn on(inner: Box<dyn Policy>) -> Self {
        Self {
            inner,
            low: Nanos(18.0),
            high: Nanos(45.0),
            pass: GROUP,
            candidates: 0,
            since_s: 0.0,
            waited: 0.0,
            intervals: 0.0,
        }
    }

    /// How many of ten candidates pass at an amortised latency.
    pub fn allowed(&self, amortised: Nanos) -> u32 {
        let along = (amortised.get() - self.low.get()) / (self.high.get() - self.low.get());
        (alto_part(along) * f64::from(GROUP)) as u32
    }
}

impl Policy for Alto {
    fn place(&mut self, page: &Placing) -> Tier {
        self.inner.place(page)
    }

    fn scan(&self) -> Option<Scan> {
        self.inner.scan()
    }

    fn marks(&self, watermarks: &Watermarks) -> Marks {
        self.inner.marks(watermarks)
    }

    fn demotes(&self) -> bool {
        self.inner.demotes()
    }

    fn samples_demoted(&self) -> bool {
        self.inner.samples_demoted()
    }

    fn transactional(&self) -> bool {
        self.inner.transactional()
    }

    fn counters(&self) -> Option<HotCounters> {
        // Reports of a device have no group of candidates; so many of them are taken.
        let share = f64::from(self.pass) / f64::from(GROUP);
        self.inner.counters().map(|of| HotCounters {
            reports_per_s: of.reports_per_s * share,
            ..of
        })
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        match self.inner.fault(fault) {
            Decision::Promote => {
                let passes = self.candidates < self.pass;
                self.candidates = (self.candidates + 1) % GROUP;
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
        if self.since_s >= EVERY_S {
            self.pass = self.allowed(Nanos(self.waited / self.intervals));
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
        let alto = Alto::on(Box::new(Tpp::default()));
        let cycles = |n: f64| alto.allowed(Nanos(n / 100.0 * 45.0));
        let table = [20.0, 39.9, 45.0, 60.0, 70.0, 80.0, 95.0, 100.0, 140.0].map(cycles);
        assert_eq!(table, [0, 0, 2, 4, 6, 8, 10, 10, 10]);
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
