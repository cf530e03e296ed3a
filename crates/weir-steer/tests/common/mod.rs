//! A server as a closed network: cores that keep a number of requests outstanding, a Table of Requests with a
//! number of entries and one queue before it, and two tiers, each with a service rate (MIKU section 2, as far
//! as it says). A controller knows only its counters.

#![allow(dead_code, reason = "each test file uses its part")]

use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::{Observation, TenantProgress};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};
use weir_steer::calibrate::Calibration;
use weir_steer::controllers::{Weir, WeirConfig};
use weir_steer::knee::Knee;
use weir_steer::limit::Grain;
use weir_steer::{Controller, Limit, Readings, Role, TenantReadings};

/// A quarter of a second, as on a server.
pub const WINDOW: Nanos = Nanos(250e6);
/// The uncore's clock.
const GHZ: f64 = 2.0;

/// A tier: residency at rest in nanoseconds, and lines that it serves a nanosecond.
#[derive(Debug, Clone, Copy)]
pub struct Tier {
    pub rest: f64,
    pub peak: f64,
}

/// The server's parameters.
#[derive(Debug, Clone, Copy)]
pub struct Fluid {
    pub entries: f64,
    pub fast: Tier,
    pub slow: Tier,
    /// Cores of the tenant on DRAM, and the requests that each keeps outstanding.
    pub fast_cores: u32,
    pub fast_mlp: f64,
    /// Cores of the tenant on the slow tier, and the requests that each keeps outstanding.
    pub slow_cores: u32,
    pub slow_mlp: f64,
}

/// The state of the server: lines a nanosecond and entries of either tier, and the wait before the table.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    pub fast: f64,
    pub slow: f64,
    pub fast_entries: f64,
    pub slow_entries: f64,
    pub wait: f64,
}

impl Fluid {
    /// MIKU's platform A in round numbers: sixteen threads of loads and sixteen of non-temporal stores.
    pub fn miku() -> Self {
        Self {
            entries: 1024.0,
            fast: Tier {
                rest: 110.0,
                peak: 3.4,
            },
            slow: Tier {
                rest: 250.0,
                peak: 0.6,
            },
            fast_cores: 16,
            fast_mlp: 24.0,
            slow_cores: 16,
            slow_mlp: 80.0,
        }
    }

    /// All outstanding requests, with `slow` running cores of the tenant on the slow tier.
    pub fn flow(&self, fast_cores: f64, slow_cores: f64) -> Flow {
        let (f, s) = (fast_cores * self.fast_mlp, slow_cores * self.slow_mlp);
        // Lines a nanosecond of a tier with `n` requests that wait `w` before the table.
        let rate = |n: f64, w: f64, tier: Tier| (n / (w + tier.rest)).min(tier.peak);
        let in_table = |w: f64| {
            let (x, y) = (rate(f, w, self.fast), rate(s, w, self.slow));
            (f - x * w, s - y * w)
        };
        let (mut low, mut high) = (0.0, 1e7);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            let (a, b) = in_table(middle);
            if a + b > self.entries {
                low = middle;
            } else {
                high = middle;
            }
        }
        let wait = if f + s > self.entries { high } else { 0.0 };
        let (fast_entries, slow_entries) = in_table(wait);
        Flow {
            fast: rate(f, wait, self.fast),
            slow: rate(s, wait, self.slow),
            fast_entries,
            slow_entries,
            wait,
        }
    }

    /// The server with a limited tenant on the slow tier, averaged over its running and its pausing.
    pub fn held(&self, limit: Limit, fast_runs: bool) -> Flow {
        let fast_cores = if fast_runs {
            f64::from(self.fast_cores)
        } else {
            0.0
        };
        let cores = f64::from(limit.cores.unwrap_or(self.slow_cores).min(self.slow_cores));
        let on = self.flow(fast_cores, cores);
        let off = self.flow(fast_cores, 0.0);
        let time = limit.time.get();
        let mix = |a: f64, b: f64| time * a + (1.0 - time) * b;
        let requests = mix(on.fast + on.slow, off.fast + off.slow);
        let waited = mix((on.fast + on.slow) * on.wait, 0.0);
        Flow {
            fast: mix(on.fast, off.fast),
            slow: mix(on.slow, off.slow),
            fast_entries: mix(on.fast_entries, off.fast_entries),
            slow_entries: mix(on.slow_entries, off.slow_entries),
            wait: if requests > 0.0 {
                waited / requests
            } else {
                0.0
            },
        }
    }

    /// Lines a nanosecond of either tenant alone.
    pub fn alone(&self) -> (f64, f64) {
        let fast = self.flow(f64::from(self.fast_cores), 0.0).fast;
        let slow = self.flow(0.0, f64::from(self.slow_cores)).slow;
        (fast, slow)
    }
}

impl Flow {
    /// The counters of a window; `writes` is the share of the slow tier's lines that are written.
    pub fn counters(&self, writes: f64) -> CounterSet {
        let ns = WINDOW.get();
        let mut set = CounterSet::default();
        let mut put = |counter, value: f64| set.set(counter, value.max(0.0) as u64);
        let cycles = ns * GHZ;
        put(Counter::ChaClockticks, cycles);
        put(Counter::TorInsertsIa, (self.fast + self.slow) * ns);
        put(
            Counter::TorOccupancyIa,
            (self.fast_entries + self.slow_entries) * cycles,
        );
        put(Counter::TorInsertsIaMissDdr, self.fast * ns);
        put(Counter::TorOccupancyIaMissDdr, self.fast_entries * cycles);
        put(Counter::TorInsertsIaMissCxl, self.slow * ns);
        put(Counter::TorOccupancyIaMissCxl, self.slow_entries * cycles);
        put(Counter::IrqInserts, (self.fast + self.slow) * ns);
        put(
            Counter::IrqOccupancy,
            (self.fast + self.slow) * self.wait * cycles,
        );
        put(Counter::CasRd, self.fast * ns);
        put(Counter::CasWr, 0.0);
        put(Counter::CxlRxMemData, self.slow * ns * (1.0 - writes));
        put(Counter::CxlTxMemData, self.slow * ns * writes);
        set
    }
}

/// A window of these counters, with a tenant to protect and one to restrain.
pub fn readings(fluid: &Fluid, counters: CounterSet, fast_runs: bool) -> Readings {
    let observation = Observation::of(WINDOW, vec![TenantProgress::default(); 2], counters);
    let tenant = |role, cores, busy| TenantReadings {
        role,
        cores,
        busy,
        drew: Err(Unavailable::because("not counted")),
    };
    let tenants = vec![
        tenant(Role::Protected, fluid.fast_cores, fast_runs),
        tenant(Role::Restrained, fluid.slow_cores, true),
    ];
    Readings::of(&observation, tenants)
}

/// The controller with a knee of this many cores at this many lines a nanosecond, whatever the tenants' is.
pub fn given(fluid: &Fluid, units: f64, lines: f64) -> Weir {
    let knee = Knee {
        writes: 0.0,
        rest: Nanos(fluid.slow.rest),
        residency: Nanos(fluid.slow.rest),
        gives: GbPerSec(lines * LINE_BYTES as f64),
        units,
        much: None,
        grain: Grain::Time,
    };
    Weir::new(WeirConfig {
        knees: vec![knee],
        ..WeirConfig::new(Nanos(fluid.fast.rest), None)
    })
}

/// Several windows: the limits, and the state of the server under them, which the controller reads through
/// `seen`.
pub fn run(
    controller: &mut dyn Controller,
    fluid: &Fluid,
    windows: usize,
    fast_runs: bool,
    seen: impl Fn(&Flow) -> Readings,
) -> Vec<(Limit, Flow)> {
    let mut limit = Limit::FREE;
    (0..windows)
        .map(|_| {
            let flow = fluid.held(limit, fast_runs);
            let before = limit;
            limit = controller.observe(&seen(&flow)).limits[1];
            (before, flow)
        })
        .collect()
}

/// Bytes of this many lines.
pub fn bytes(lines: f64) -> Bytes {
    Bytes((lines * LINE_BYTES as f64) as u64)
}

/// Residencies of [`Fluid::miku`], without knees.
pub fn calibration() -> Calibration {
    let fluid = Fluid::miku();
    Calibration {
        fast: Nanos(fluid.fast.rest),
        fast_loaded: Nanos(fluid.fast.rest),
        slow: Some(Nanos(fluid.slow.rest)),
        slow_read: Nanos(fluid.slow.rest),
        slow_write: Nanos(2.0 * fluid.slow.rest),
        knees: Vec::new(),
    }
}
