//! The tenants that run.

use crate::readings::{Readings, Role, TenantReadings};

/// Windows after which tenants that began or ended count: one that is idle for a window did not end.
const STAYS: u32 = 2;

/// The tenants that run, and those that ran.
#[derive(Debug, Clone, Default)]
pub struct RunningTenants {
    /// The tenants that ran since a limit did not help.
    met: Vec<bool>,
    /// The tenants that run.
    running: Vec<bool>,
    /// For how many windows others have run.
    differs: u32,
    are_others: bool,
}

impl RunningTenants {
    /// A window, in which tenants were limited or not. While `in_vain`, because a limit did not help, returns
    /// whether a tenant began that did not run then: for that one the limit may help.
    pub fn observe(&mut self, readings: &Readings, is_limited: bool, in_vain: bool) -> bool {
        let tenants = &readings.tenants;
        let runs = |t: &TenantReadings| t.role != Role::Bystander && t.busy;
        let are_same = tenants.iter().map(runs).eq(self.running.iter().copied());
        self.differs = if are_same { 0 } else { self.differs + 1 };
        if !is_limited || self.differs >= STAYS {
            self.running = tenants.iter().map(runs).collect();
            self.differs = 0;
            // A limit is compared with the last window without one, whose tenants are those of the limit.
            self.are_others = is_limited && !are_same;
        }
        if !in_vain {
            self.met.clear();
        }
        self.met.resize(tenants.len(), false);
        let mut is_new = false;
        for (met, tenant) in self.met.iter_mut().zip(tenants) {
            is_new |= tenant.busy && !*met;
            *met |= tenant.busy;
        }
        in_vain && is_new
    }

    /// Whether other tenants run than when this was last asked: what was too wide or too narrow for those before
    /// says nothing of these.
    pub fn are_others(&mut self) -> bool {
        std::mem::take(&mut self.are_others)
    }
}

#[cfg(test)]
mod tests {
    use weir_model::capability::Unavailable;
    use weir_model::counters::CounterSet;
    use weir_model::machine::Observation;
    use weir_model::units::Nanos;

    use super::*;

    fn window(busy: [bool; 2]) -> Readings {
        let tenants = busy.map(|busy| TenantReadings {
            role: Role::Restrained,
            cores: 1,
            busy,
            drew: Err(Unavailable::because("not counted")),
        });
        let seen = Observation::of(Nanos(1e9), Vec::new(), CounterSet::default());
        Readings::of(&seen, tenants.into())
    }

    #[test]
    fn a_tenant_that_begins_is_new_once() {
        let mut running = RunningTenants::default();
        assert!(!running.observe(&window([true, false]), true, false));
        assert!(!running.observe(&window([true, false]), true, true));
        assert!(running.observe(&window([true, true]), true, true));
        assert!(!running.observe(&window([true, false]), true, true));
        assert!(!running.observe(&window([true, true]), true, true));
    }

    #[test]
    fn one_idle_window_does_not_end_a_tenant() {
        let mut running = RunningTenants::default();
        let mut after = |busy| {
            running.observe(&window(busy), true, false);
            running.are_others()
        };
        let both = [true, true];
        assert!(!after(both) && after(both));
        assert!(!after([true, false]) && !after(both) && !after([true, false]));
        assert!(after([true, false]));
    }
}
