//! Controllers on a server whose law is known: where they settle, how soon, and that they remove their
//! limits.

use crate::common;

use proptest::prelude::*;
use weir_model::units::{Gigahertz, Nanos};
use weir_steer::controllers::{
    Allocation, AllocationConfig, Frequency, FrequencyConfig, Miku, MikuConfig, Quota, QuotaConfig,
    Weir, WeirConfig,
};
use weir_steer::guard::{Bounds, Guarded, Keep};
use weir_steer::{Controller, Limit};

use common::{Flow, Fluid, Tier, given, readings};

/// Several windows of a server with counters.
fn run(
    controller: &mut dyn Controller,
    fluid: &Fluid,
    windows: usize,
    fast_runs: bool,
) -> Vec<(Limit, Flow)> {
    common::run(controller, fluid, windows, fast_runs, |flow| {
        readings(fluid, flow.counters(0.0), fast_runs)
    })
}

fn weir(fluid: &Fluid, calibrated: bool) -> Guarded<Weir> {
    let slow = calibrated.then_some(Nanos(fluid.slow.rest));
    let config = WeirConfig::new(Nanos(fluid.fast.rest), slow);
    Guarded::new(Weir::new(config), Bounds::default())
}

/// A server on which the slow tenant fills the table.
fn congested() -> impl Strategy<Value = Fluid> {
    let tiers = (80.0..130.0, 1.5..4.0, 180.0..500.0, 0.15..0.9);
    let cores = (4u32..32, 8.0..48.0, 8u32..32, 10.0..90.0);
    (600.0..2400.0, tiers, cores)
        .prop_map(|(entries, t, c)| Fluid {
            entries,
            fast: Tier {
                rest: t.0,
                peak: t.1,
            },
            slow: Tier {
                rest: t.2,
                peak: t.3,
            },
            fast_cores: c.0,
            fast_mlp: c.1,
            slow_cores: c.2,
            slow_mlp: c.3,
        })
        .prop_filter(
            "the fast tenant alone fits into the table, besides what the device needs",
            |f| {
                let product = f.slow.rest * f.slow.peak;
                let fast = f64::from(f.fast_cores) * f.fast_mlp;
                // Space for twice the device's product, in whole cores.
                fast + 2.0 * product + 2.0 * f.slow_mlp < 0.9 * f.entries
            },
        )
}

proptest! {
    #[test]
    fn weir_keeps_both_tiers_busy(fluid in congested()) {
        let (fast, slow) = fluid.alone();
        for calibrated in [true, false] {
            let windows = run(&mut weir(&fluid, calibrated), &fluid, 24, true);
            let (limit, last) = windows[windows.len() - 1];
            // Without a limit nothing may be missing of what is to be kept; then none need be set.
            let least = if limit.is_free() { Keep::default().fast.get() } else { 0.97 };
            prop_assert!(last.fast >= least * fast, "{calibrated} {limit:?} {last:?}");
            prop_assert!(last.slow >= 0.95 * slow, "{calibrated} {limit:?} {last:?} of {slow}");
        }
    }

    #[test]
    fn weir_settles_in_three_windows_once_it_knows_the_device(fluid in congested()) {
        let windows = run(&mut weir(&fluid, true), &fluid, 24, true);
        let settled = &windows[windows.len() - 1].0;
        for (k, (limit, _)) in windows.iter().enumerate().skip(4) {
            prop_assert_eq!(limit, settled, "window {}", k);
        }
    }

    #[test]
    fn weir_lets_go_when_nobody_is_left_to_protect(fluid in congested()) {
        let mut weir = weir(&fluid, true);
        run(&mut weir, &fluid, 8, true);
        let after = run(&mut weir, &fluid, 3, false);
        prop_assert!(after[2].0.is_free());
    }

    #[test]
    fn weir_restrains_nobody_who_fills_no_table(fluid in congested(), cores in 1u32..3) {
        let few = Fluid { slow_cores: cores, ..fluid };
        let fits = f64::from(few.slow_cores) * few.slow_mlp + f64::from(few.fast_cores) * few.fast_mlp;
        prop_assume!(fits < few.entries);
        let windows = run(&mut weir(&few, true), &few, 8, true);
        prop_assert!(windows.iter().all(|(limit, _)| limit.is_free()));
    }
}

/// With less of its time the core would fill the device's queue as far, and less often.
#[test]
fn a_core_that_fills_the_device_alone_keeps_its_time() {
    let mut fluid = Fluid::miku();
    fluid.entries = 600.0;
    fluid.fast = Tier {
        rest: 80.0,
        peak: 1.5,
    };
    fluid.slow = Tier {
        rest: 180.0,
        peak: 0.15,
    };
    (fluid.fast_cores, fluid.fast_mlp) = (4, 8.0);
    (fluid.slow_cores, fluid.slow_mlp) = (8, 89.8);
    let (fast, slow) = fluid.alone();
    for calibrated in [true, false] {
        let (limit, last) = run(&mut weir(&fluid, calibrated), &fluid, 24, true)[23];
        assert!(last.fast >= 0.97 * fast, "{calibrated} {limit:?} {last:?}");
        assert!(last.slow >= 0.95 * slow, "{calibrated} {limit:?} {last:?}");
    }
}

/// A knee that does not empty the table, or that all cores do not reach, is a first guess.
#[test]
fn a_knee_that_does_not_bind_is_not_the_end() {
    let fluid = Fluid::miku();
    let (fast, slow) = fluid.alone();
    for units in [12.0, 40.0] {
        let windows = run(&mut given(&fluid, units, fluid.slow.peak), &fluid, 24, true);
        let (limit, last) = windows[23];
        assert!(last.fast >= 0.97 * fast, "{units}: {limit:?} {last:?}");
        assert!(last.slow >= 0.95 * slow, "{units}: {limit:?} {last:?}");
    }
}

/// The device has no queue, and still its requests need the entries of others.
#[test]
fn a_full_table_is_shared_by_what_both_tiers_gain() {
    let mut fluid = Fluid::miku();
    fluid.entries = 300.0;
    (fluid.fast_cores, fluid.slow.peak, fluid.slow_mlp) = (8, 3.0, 25.0);
    let windows = run(&mut given(&fluid, 14.0, 0.9), &fluid, 24, true);
    let ((_, free), (limit, last)) = (windows[0], windows[23]);
    assert!(last.fast > 2.0 * free.fast, "{limit:?} {last:?}");
    assert!(
        last.fast * last.slow > 1.1 * free.fast * free.slow,
        "{limit:?} {last:?}"
    );
}

#[test]
fn miku_jumps_to_the_narrowest_level_and_climbs_back() {
    let fluid = Fluid::miku();
    let config = MikuConfig::with_residencies(Nanos(fluid.fast.rest), Nanos(1.3 * fluid.slow.rest));
    let mut miku = Miku::new(config);
    let mut limit = Limit::FREE;
    let mut levels = Vec::new();
    for _ in 0..16 {
        let flow = fluid.held(limit, true);
        let decision = miku.observe(&readings(&fluid, flow.counters(0.0), true));
        levels.push(decision.why.level);
        limit = decision.limits[1];
    }
    assert_eq!(levels[0], 3, "{levels:?}");
    assert!(levels.contains(&2), "{levels:?}");
    // A level that brought backlog is remembered, and not tried again at once (section 4.3: 6 to 7 s, in
    // windows of one).
    assert!(levels[7..].iter().all(|&l| l == levels[7]), "{levels:?}");
    let (fast, _) = fluid.alone();
    assert!(fluid.held(limit, true).fast > 0.95 * fast, "{levels:?}");
}

#[test]
fn a_quota_gives_the_fast_tier_back_what_it_takes_from_the_slow_one() {
    let fluid = Fluid::miku();
    let mut quota = Quota::new(QuotaConfig::undisturbed(Nanos(fluid.fast.rest)));
    let windows = run(&mut quota, &fluid, 20, true);
    let (fast, slow) = fluid.alone();
    let (_, last) = windows[19];
    assert!(last.fast > 0.8 * fast && last.slow < 0.3 * slow, "{last:?}");
    let (_, weir) = run(&mut weir(&fluid, true), &fluid, 20, true)[19];
    assert!(weir.fast >= last.fast && weir.slow > 3.0 * last.slow);
}

/// The limits after windows in which requests stayed this long in the table, with this share of writes to the slow tier.
fn limits(controller: &mut dyn Controller, windows: &[(f64, f64)]) -> Vec<Limit> {
    let fluid = Fluid::miku();
    let flow = fluid.held(Limit::FREE, true);
    let window = |&(stay, writes): &(f64, f64)| {
        let mut seen = readings(&fluid, flow.counters(writes), true);
        for table in [&mut seen.table, &mut seen.slow_table] {
            table.as_mut().unwrap().mean = Nanos(stay);
        }
        controller.observe(&seen).limits[1]
    };
    windows.iter().map(window).collect()
}

#[test]
fn a_quota_never_falls_below_its_least() {
    let mut quota = Quota::new(QuotaConfig::undisturbed(Nanos(110.0)));
    let severe = limits(&mut quota, &[(500.0, 0.0); 12]);
    assert_eq!(severe[11].time.get(), 1.0 / 16.0);
    assert_eq!(limits(&mut quota, &[(200.0, 0.0)])[0].time.get(), 0.1125);
}

#[test]
fn a_clock_rises_by_a_step_as_soon_as_it_may() {
    let mut frequency = Frequency::new(FrequencyConfig {
        undisturbed: Nanos(110.0),
        severe: 2.0,
        clocks: [2.0, 1.2, 0.8].map(Gigahertz).into(),
    });
    let windows = [[500.0; 6].as_slice(), &[200.0; 3]].concat();
    let windows: Vec<(f64, f64)> = windows.into_iter().map(|stay| (stay, 0.0)).collect();
    let clocks = limits(&mut frequency, &windows);
    let clocks: Vec<Option<f64>> = clocks.iter().map(|l| l.clock.map(Gigahertz::get)).collect();
    let (slow, slowest) = (Some(1.2), Some(0.8));
    let severe = [slow, slowest, slowest, slowest, slowest, slowest];
    assert_eq!(clocks, [severe.as_slice(), &[slow, None, None]].concat());
}

#[test]
fn an_allocation_waits_for_its_effect_and_keeps_what_is_about_right() {
    let mut allocation = Allocation::new(AllocationConfig {
        fast: Nanos(110.0),
        target: Nanos(250.0),
        step: 0.1,
        least: 0.1,
        settling: 2,
    });
    let mut steps = |stays: &[f64]| -> Vec<f64> {
        let windows: Vec<(f64, f64)> = stays.iter().map(|stay| (*stay, 0.0)).collect();
        let found = limits(&mut allocation, &windows).into_iter();
        found
            .map(|limit| (limit.allocation.get() * 10.0).round())
            .collect()
    };
    assert_eq!(steps(&[300.0; 4]), [9.0, 9.0, 9.0, 8.0]);
    assert_eq!(steps(&[225.0; 6]), [8.0; 6]);
    assert_eq!(steps(&[190.0; 4]), [9.0, 9.0, 9.0, 10.0]);
}

#[test]
fn miku_lets_writes_stay_twice_as_long_and_climbs_with_headroom_alone() {
    let config = MikuConfig::with_residencies(Nanos(110.0), Nanos(250.0));
    let cores = |windows: &[(f64, f64)]| {
        let found = limits(&mut Miku::new(config.clone()), windows);
        found.last().unwrap().cores
    };
    // Half of the lines are written: the target is 375 ns.
    assert_eq!(cores(&[(350.0, 0.5)]), None);
    assert_eq!(cores(&[(350.0, 0.0)]), Some(1));
    let after = |stay| cores(&[[(350.0, 0.0)].as_slice(), &[(stay, 0.0); 6]].concat());
    assert_eq!(after(240.0), Some(1));
    assert_ne!(after(200.0), Some(1));
}
