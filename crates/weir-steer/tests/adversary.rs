//! Machines with false counters: whatever a controller reads, its decisions stay within bounds, and are the
//! same each time.

use crate::common;

use proptest::prelude::*;
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::units::{Gigahertz, Nanos};
use weir_steer::controller::Needs;
use weir_steer::controllers::{
    Allocation, AllocationConfig, Frequency, FrequencyConfig, Isolation, Miku, MikuConfig, Quota,
    QuotaConfig, Weir, WeirConfig,
};
use weir_steer::guard::{Bounds, Guarded};
use weir_steer::{Controller, Decision, Limit};

use common::{Fluid, readings};

/// How the counters of a window are changed.
#[derive(Debug, Clone)]
enum Fault {
    None,
    Lost,
    One(usize),
    Zero,
    Wrapped,
    Frozen,
    Factor(u64),
    Noise(Vec<u64>),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        2 => Just(Fault::None),
        1 => Just(Fault::Lost),
        1 => (0..Counter::ALL.len()).prop_map(Fault::One),
        1 => Just(Fault::Zero),
        1 => Just(Fault::Wrapped),
        1 => Just(Fault::Frozen),
        1 => (0u64..1_000_000).prop_map(Fault::Factor),
        1 => prop::collection::vec(any::<u64>(), 16).prop_map(Fault::Noise),
    ]
}

fn spoilt(true_counters: &CounterSet, before: &CounterSet, fault: &Fault) -> CounterSet {
    let mut set = CounterSet::default();
    for (i, (counter, value)) in true_counters.iter().enumerate() {
        match fault {
            Fault::None => set.set(counter, value),
            Fault::Lost => set.set_unavailable(counter, Unavailable::because("lost")),
            Fault::One(k) if Counter::ALL[*k] == counter => {
                set.set_unavailable(counter, Unavailable::because("lost"));
            }
            Fault::One(_) => set.set(counter, value),
            Fault::Zero => set.set(counter, 0),
            Fault::Wrapped => set.set(counter, u64::MAX - value),
            Fault::Frozen => set.set(counter, before.get(counter).unwrap_or(0)),
            Fault::Factor(f) => set.set(counter, value.saturating_mul(*f)),
            Fault::Noise(n) => set.set(counter, n[i % n.len()]),
        }
    }
    set
}

/// Every controller, within the usual bounds.
fn controllers() -> Vec<Box<dyn Controller>> {
    let (fast, slow) = (Nanos(110.0), Nanos(250.0));
    fn guarded<C: Controller + 'static>(controller: C) -> Box<dyn Controller> {
        Box::new(Guarded::new(controller, Bounds::default()))
    }
    let frequency = FrequencyConfig {
        undisturbed: fast,
        severe: 2.0,
        clocks: vec![Gigahertz(2.0), Gigahertz(1.2), Gigahertz(0.8)],
    };
    let allocation = AllocationConfig {
        fast,
        target: slow,
        step: 0.1,
        least: 0.1,
        settling: 4,
    };
    vec![
        guarded(Weir::new(WeirConfig::new(fast, Some(slow)))),
        guarded(Weir::new(WeirConfig::new(fast, None))),
        guarded(Miku::new(MikuConfig::with_residencies(fast, slow))),
        guarded(Quota::new(QuotaConfig::undisturbed(fast))),
        guarded(Frequency::new(frequency)),
        guarded(Allocation::new(allocation)),
        guarded(Isolation { units: 2.0 }),
    ]
}

fn within_bounds(fluid: &Fluid, decision: &Decision) -> bool {
    let [protected, held] = decision.limits[..] else {
        return false;
    };
    let floor = 0.01 * f64::from(fluid.slow_cores);
    protected.is_free()
        && held.units(fluid.slow_cores) >= floor.min(1.0) * 0.999
        && held
            .cores
            .is_none_or(|c| (1..=fluid.slow_cores).contains(&c))
        && held.allocation.get() >= 0.01
        && held.clock.is_none_or(|c| c.get() >= 0.8)
}

proptest! {
    #[test]
    fn whatever_is_counted_nobody_is_stopped(faults in prop::collection::vec(fault(), 1..40)) {
        let fluid = Fluid::miku();
        for (first, second) in controllers().iter_mut().zip(&mut controllers()) {
            let mut limit = Limit::FREE;
            let mut before = CounterSet::default();
            for fault in &faults {
                let counters = fluid.held(limit, true).counters(0.5);
                let shown = spoilt(&counters, &before, fault);
                let decision = first.observe(&readings(&fluid, shown.clone(), true));
                prop_assert!(within_bounds(&fluid, &decision), "{decision:?}");
                prop_assert_eq!(&decision, &second.observe(&readings(&fluid, shown, true)));
                limit = decision.limits[1];
                before = counters;
            }
        }
    }

    #[test]
    fn three_windows_of_silence_let_everybody_go_whom_sight_holds(windows in 1usize..12) {
        let fluid = Fluid::miku();
        for controller in &mut controllers() {
            let mut limit = Limit::FREE;
            for _ in 0..windows {
                let counters = fluid.held(limit, true).counters(0.5);
                limit = controller.observe(&readings(&fluid, counters, true)).limits[1];
            }
            for _ in 0..3 {
                limit = controller.observe(&readings(&fluid, CounterSet::default(), true)).limits[1];
            }
            let needs_none = controller.needs() == Needs::Nothing;
            prop_assert_eq!(limit.is_free(), !needs_none, "{:?}", limit);
        }
    }
}
