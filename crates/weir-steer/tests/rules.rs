//! Rules of Weir's controller, each on windows that show what it is for.

use crate::common;

use weir_model::units::GbPerSec;
use weir_steer::controllers::Weir;
use weir_steer::{Controller, Limit, Readings, Role, TenantReadings};

use common::{Flow, Fluid, given, readings};

/// A window without limits: requests for the slow tier fill the table, and those for DRAM wait.
const FREE: Flow = Flow {
    fast: 1.0,
    slow: 0.6,
    fast_entries: 400.0,
    slow_entries: 600.0,
    wait: 50.0,
};

/// The limits of all tenants after each window, of which `seen` makes the readings from its number and the limits in force.
fn play(
    weir: &mut Weir,
    windows: usize,
    seen: impl Fn(usize, &[Limit]) -> Readings,
) -> Vec<Vec<Limit>> {
    let mut limits = vec![Limit::FREE; 3];
    (0..windows)
        .map(|window| {
            limits = weir.observe(&seen(window, &limits)).limits;
            limits.clone()
        })
        .collect()
}

/// The cores' worth that the tenant on the slow tier was left after each window.
fn units(all: &[Vec<Limit>], cores: u32) -> Vec<f64> {
    all.iter().map(|limits| limits[1].units(cores)).collect()
}

fn window(flow: Flow) -> Readings {
    readings(&Fluid::miku(), flow.counters(0.0), true)
}

/// Whatever the limit, the slow tier loses half and the fast tier gains a little.
#[test]
fn a_limit_that_costs_more_than_it_brings_is_removed() {
    let fluid = Fluid::miku();
    let mut weir = given(&fluid, 8.0, fluid.slow.peak);
    let free = Flow {
        fast: 1.0,
        slow: 0.6,
        fast_entries: 400.0,
        slow_entries: 600.0,
        wait: 50.0,
    };
    let held = Flow {
        fast: 1.03,
        slow: 0.3,
        slow_entries: 75.0,
        wait: 0.0,
        ..free
    };
    let mut limit = Limit::FREE;
    let limits: Vec<bool> = (0..12)
        .map(|_| {
            let flow = if limit.is_free() { free } else { held };
            let seen = readings(&fluid, flow.counters(0.0), true);
            limit = weir.observe(&seen).limits[1];
            limit.is_free()
        })
        .collect();
    assert!(!limits[0] && limits[11], "{limits:?}");
}

#[test]
fn other_tenants_are_first_seen_without_limits() {
    let fluid = Fluid::miku();
    let mut weir = given(&fluid, 3.0, fluid.slow.peak);
    let mut limit = Limit::FREE;
    let mut free = Vec::new();
    for window in 0..24 {
        let mut seen = readings(&fluid, fluid.held(limit, true).counters(0.0), true);
        let another = seen.tenants[1].clone();
        seen.tenants.push(TenantReadings {
            role: Role::Protected,
            busy: window >= 12,
            ..another
        });
        limit = weir.observe(&seen).limits[1];
        if limit.is_free() {
            free.push(window);
        }
    }
    assert_eq!(free, [13], "the second window of the other tenant");
}

/// A queue that is a little too long, and shrinks by less than a bandwidth varies.
#[test]
fn a_queue_that_hardly_shrinks_does_not_drain() {
    let fluid = Fluid::miku();
    let residencies = [1040.0, 1005.0, 1003.0, 1001.5, 1001.0];
    let limits = play(&mut given(&fluid, 4.0, fluid.slow.peak), 6, |i, _| {
        let flow = |residency| Flow {
            slow_entries: FREE.slow * residency,
            wait: 0.0,
            ..FREE
        };
        window(if i == 0 {
            FREE
        } else {
            flow(residencies[i - 1])
        })
    });
    let units = units(&limits, fluid.slow_cores);
    assert_eq!(units[..3], [4.0; 3], "the requests from before drain");
    assert!(units[3] < 4.0, "{units:?}");
}

/// A narrower limit leaves the slow tier its bandwidth, of which the limited tenants have half, since the mix of those
/// that it leaves reads each line that it writes.
#[test]
fn a_tier_that_is_as_fast_for_half_of_the_work_lost_half() {
    let fluid = Fluid::miku();
    let limits = play(&mut given(&fluid, 8.0, fluid.slow.peak), 12, |_, limits| {
        let (fast, drew) = match limits[1].units(fluid.slow_cores) {
            _ if limits[1].is_free() => (1.0, 30.0),
            cores if cores >= 8.0 => (1.5, 30.0),
            _ => (1.56, 15.0),
        };
        let flow = Flow {
            fast,
            slow_entries: 300.0,
            fast_entries: 700.0,
            ..FREE
        };
        let mut seen = window(flow);
        seen.tenants[0].drew = Ok(GbPerSec(fast * 64.0));
        seen.tenants[1].drew = Ok(GbPerSec(drew));
        seen
    });
    let units = units(&limits, fluid.slow_cores);
    assert!(
        units[1] < 8.0 && units[3..].iter().all(|&u| u == 8.0),
        "{units:?}"
    );
}

/// Without limits the large tenant crowds the other one out, so that it seems small each time.
#[test]
fn a_tenant_that_took_what_a_limit_left_is_limited_at_once_the_next_time() {
    let fluid = Fluid::miku();
    let limits = play(&mut given(&fluid, 3.0, fluid.slow.peak), 20, |i, limits| {
        let is_free = limits[1].is_free();
        let flow = match is_free {
            true => FREE,
            false => Flow {
                fast: 2.0,
                slow_entries: 150.0,
                wait: 0.0,
                ..FREE
            },
        };
        let mut seen = window(flow);
        seen.tenants[0].drew = Ok(GbPerSec(64.0 * flow.fast));
        let drew = |drew| TenantReadings {
            drew: Ok(GbPerSec(drew)),
            ..seen.tenants[1].clone()
        };
        let (large, small) = (
            drew(if is_free { 37.0 } else { 20.0 }),
            drew(if is_free { 1.4 } else { 18.4 }),
        );
        let another = TenantReadings {
            role: Role::Protected,
            busy: i >= 10,
            ..drew(1.0)
        };
        seen.tenants = vec![seen.tenants[0].clone(), large, small, another];
        seen
    });
    let free = limits.iter().rposition(|l| l[1].is_free()).unwrap();
    assert!(free > 10 && free + 1 < limits.len(), "{limits:?}");
    assert!(
        limits[0][2].is_free() && !limits[1][2].is_free(),
        "{limits:?}"
    );
    assert!(!limits[free + 1][2].is_free(), "{limits:?}");
}
