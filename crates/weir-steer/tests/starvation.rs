//! Ten thousand seconds of tenants that come, change and go: everybody keeps a floor.

mod common;

use proptest::prelude::*;
use weir_model::units::Nanos;
use weir_steer::controllers::{Weir, WeirConfig};
use weir_steer::guard::{Bounds, Guarded};
use weir_steer::{Controller, Hold};

use common::{Fluid, sight};

/// Seconds in windows of a quarter.
const WINDOWS: usize = 40_000;
/// What [`Bounds::default`] leaves a tenant of its cores.
const FLOOR: f64 = 0.01;

/// What a server does for a while.
fn moods() -> impl Strategy<Value = Vec<(usize, bool, u32, f64, f64)>> {
    let mood = (1usize..400, any::<bool>(), 1u32..32, 0.5..96.0, 0.0..1.0);
    prop::collection::vec(mood, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn every_tenant_keeps_its_floor(moods in moods(), calibrated in any::<bool>()) {
        let base = Fluid::miku();
        let slow = calibrated.then_some(Nanos(base.slow.rest));
        let mut weir = Guarded::new(
            Weir::new(WeirConfig::new(Nanos(base.fast.rest), slow)),
            Bounds::default(),
        );
        let mut hold = Hold::FREE;
        let (mut windows, mut got, mut wanted) = (0, 0.0, 0.0);
        for &(lasts, fast_runs, slow_cores, slow_mlp, writes) in moods.iter().cycle() {
            let fluid = Fluid { slow_cores, slow_mlp, ..base };
            for _ in 0..lasts {
                let flow = fluid.held(hold, fast_runs);
                let decision = weir.observe(&sight(&fluid, flow.counters(writes), fast_runs));
                hold = decision.holds[1];
                let units = hold.units(slow_cores);
                prop_assert!(units >= FLOOR * f64::from(slow_cores), "{hold:?}");
                got += flow.slow;
                wanted += fluid.alone().1;
                windows += 1;
            }
            if windows > WINDOWS {
                break;
            }
        }
        // A floor of running is worth as much of what it gets alone, and far more is the rule.
        prop_assert!(got >= FLOOR * wanted, "{got} of {wanted}");
    }
}
