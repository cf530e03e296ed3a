//! Ten thousand seconds of tenants that start, change and end: every tenant keeps a floor.

use crate::common;

use proptest::prelude::*;
use weir_model::capability::Unavailable;
use weir_model::machine::{Observation, TenantProgress};
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};
use weir_steer::controllers::{Weir, WeirConfig};
use weir_steer::guard::{Bounds, Guarded};
use weir_steer::{Controller, Limit, Readings, Role, TenantReadings};

use common::{Fluid, WINDOW, readings};

/// Seconds in windows of a quarter.
const WINDOWS: usize = 40_000;
/// What [`Bounds::default`] leaves a tenant of its cores.
const FLOOR: f64 = 0.01;

/// The behaviour of a server for a while.
fn moods() -> impl Strategy<Value = Vec<(usize, bool, u32, f64, f64)>> {
    let mood = (1usize..400, any::<bool>(), 1u32..32, 0.5..96.0, 0.0..1.0);
    prop::collection::vec(mood, 1..40)
}

/// A tenant that may be limited: its cores, the requests that each keeps outstanding, and the windows for
/// which it first has something to run and then nothing.
#[derive(Debug, Clone, Copy)]
struct Part {
    cores: u32,
    mlp: f64,
    busy: usize,
    idle: usize,
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (1u32..12, 0.2..96.0, 1usize..600, 0usize..300);
    let part = part.prop_map(|(cores, mlp, busy, idle)| Part {
        cores,
        mlp,
        busy,
        idle,
    });
    prop::collection::vec(part, 2..6)
}

/// Several tenants on one server: each has the part of the slow tier which is its part of the outstanding
/// requests.
struct Several {
    parts: Vec<Part>,
    server: Fluid,
}

impl Several {
    fn is_busy(&self, i: usize, window: usize) -> bool {
        window % (self.parts[i].busy + self.parts[i].idle) < self.parts[i].busy
    }

    /// The bandwidth of each tenant in a window under these limits, and the controller's readings.
    fn window(
        &self,
        window: usize,
        limits: &[Limit],
        drawn_is_known: bool,
    ) -> (Vec<f64>, Readings) {
        let under_way: Vec<f64> = (self.parts.iter().zip(limits).enumerate())
            .map(|(i, (part, limit))| match self.is_busy(i, window) {
                true => limit.units(part.cores) * part.mlp,
                false => 0.0,
            })
            .collect();
        let all: f64 = under_way.iter().sum();
        let flow = self.server.flow(f64::from(self.server.fast_cores), all);
        let drew: Vec<f64> = (under_way.iter())
            .map(|n| flow.slow * n / all.max(f64::MIN_POSITIVE))
            .collect();
        let progress = vec![TenantProgress::default(); self.parts.len() + 1];
        let observation = Observation::of(WINDOW, progress, flow.counters(0.0));
        let mut tenants = vec![TenantReadings {
            role: Role::Protected,
            cores: self.server.fast_cores,
            busy: true,
            drew: Ok(GbPerSec(flow.fast * LINE_BYTES as f64)),
        }];
        for (i, part) in self.parts.iter().enumerate() {
            tenants.push(TenantReadings {
                role: Role::Restrained,
                cores: part.cores,
                busy: self.is_busy(i, window),
                drew: match drawn_is_known {
                    true => Ok(GbPerSec(drew[i] * LINE_BYTES as f64)),
                    false => Err(Unavailable::because("not counted")),
                },
            });
        }
        (drew, Readings::of(&observation, tenants))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn each_of_several_tenants_keeps_its_floor(
        parts in parts(),
        calibrated in any::<bool>(),
        drawn_is_known in any::<bool>(),
    ) {
        let base = Fluid::miku();
        let slow = calibrated.then_some(Nanos(base.slow.rest));
        let bounds = Bounds::default();
        let mut weir = Guarded::new(Weir::new(WeirConfig::new(Nanos(base.fast.rest), slow)), bounds);
        let several = Several {
            // Only the number of outstanding requests matters, not the cores that sent them.
            server: Fluid { slow_cores: 1, slow_mlp: 1.0, ..base },
            parts,
        };
        let all = several.parts.len();
        let mut limits = vec![Limit::FREE; all];
        let (mut got, mut fair) = (vec![0.0; all], vec![0.0; all]);
        for window in 0..WINDOWS {
            let (drew, readings) = several.window(window, &limits, drawn_is_known);
            limits = weir.observe(&readings).limits[1..].to_vec();
            for (i, part) in several.parts.iter().enumerate() {
                let units = limits[i].units(part.cores);
                prop_assert!(units >= FLOOR * f64::from(part.cores) * 0.999, "{i}: {:?}", limits[i]);
                if several.is_busy(i, window) {
                    got[i] += drew[i];
                    let alone = several.server.flow(0.0, f64::from(part.cores) * part.mlp);
                    fair[i] += alone.slow / all as f64;
                }
            }
        }
        for i in 0..all {
            prop_assert!(got[i] >= FLOOR * fair[i], "{i}: {} of {}", got[i], fair[i]);
        }
    }
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
        let mut limit = Limit::FREE;
        let (mut windows, mut got, mut wanted) = (0, 0.0, 0.0);
        for &(lasts, fast_runs, slow_cores, slow_mlp, writes) in moods.iter().cycle() {
            let fluid = Fluid { slow_cores, slow_mlp, ..base };
            for _ in 0..lasts {
                let flow = fluid.held(limit, fast_runs);
                let decision = weir.observe(&readings(&fluid, flow.counters(writes), fast_runs));
                limit = decision.limits[1];
                let units = limit.units(slow_cores);
                prop_assert!(units >= FLOOR * f64::from(slow_cores), "{limit:?}");
                got += flow.slow;
                wanted += fluid.alone().1;
                windows += 1;
            }
            if windows > WINDOWS {
                break;
            }
        }
        // A floor of running gives at least the same share of its bandwidth alone, and usually far more.
        prop_assert!(got >= FLOOR * wanted, "{got} of {wanted}");
    }
}
