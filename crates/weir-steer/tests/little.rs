//! Little's law at the table, as controllers read it.

use crate::common;

use proptest::prelude::*;
use weir_model::units::Nanos;
use weir_steer::Limit;

use common::{Fluid, readings};

proptest! {
    /// MIKU's Eq. 1, solved for the slow tier, against what the table counts by tier.
    #[test]
    fn the_mix_gives_the_residency_of_the_slow_tier(
        slow_cores in 1u32..32, slow_mlp in 4.0..64.0, fast_cores in 1u32..16, writes in 0.0..1.0
    ) {
        let fluid = Fluid { slow_cores, slow_mlp, fast_cores, ..Fluid::miku() };
        let flow = fluid.held(Limit::FREE, true);
        let share = flow.fast / (flow.fast + flow.slow);
        prop_assume!((0.1..0.95).contains(&share));
        let readings = readings(&fluid, flow.counters(writes), true);
        let truth = readings.slow_residency(Nanos(0.0)).unwrap().get();
        let fast = flow.fast_entries / flow.fast;
        let mixed = readings.slow_residency_of_mix(Nanos(fast)).unwrap().get();
        prop_assert!((mixed / truth - 1.0).abs() < 0.05, "{mixed} for {truth}");
    }
}

#[test]
fn next_to_nothing_on_the_slow_tier_says_nothing_about_it() {
    let fluid = Fluid {
        slow_mlp: 0.01,
        ..Fluid::miku()
    };
    let flow = fluid.held(Limit::FREE, true);
    let readings = readings(&fluid, flow.counters(0.0), true);
    assert!(readings.slow_residency_of_mix(Nanos(110.0)).is_err());
}
