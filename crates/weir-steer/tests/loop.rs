//! The loop of the daemon: however it ends, the plant is released.

use std::panic::{AssertUnwindSafe, catch_unwind};

use weir_model::capability::Unavailable;
use weir_model::units::Nanos;
use weir_steer::daemon::{Witness, steer};
use weir_steer::plant::{Actuators, AppliedLimit, NotPutBack, TenantOf};
use weir_steer::record::{TierNames, WindowRecord};
use weir_steer::{
    Controller, Decision, Limit, Plant, PlantError, Readings, Role, TenantReadings, Why,
};

const WINDOW: Nanos = Nanos(250e6);

/// A plant of one tenant, which records the limit in force.
struct Remembering {
    tenants: Vec<TenantOf>,
    held: Limit,
    lengths: Vec<Nanos>,
    released: u32,
}

impl Remembering {
    fn new(lengths: Vec<Nanos>) -> Self {
        Self {
            tenants: vec![TenantOf {
                name: "slow".into(),
                role: Role::Restrained,
                cores: 8,
                actuators: Actuators::default(),
            }],
            held: Limit::FREE,
            lengths,
            released: 0,
        }
    }
}

impl Plant for Remembering {
    fn tenants(&self) -> &[TenantOf] {
        &self.tenants
    }

    fn observe(&mut self, _: Nanos) -> Result<Readings, PlantError> {
        let none = || Unavailable::because("not counted");
        let Some(length) = self.lengths.pop() else {
            return Err(PlantError::Interrupted);
        };
        Ok(Readings {
            length,
            table: Err(none()),
            fast_table: Err(none()),
            slow_table: Err(none()),
            ingress: Err(none()),
            fast: Err(none()),
            slow: Err(none()),
            probe: Err(none()),
            tenants: vec![TenantReadings {
                role: Role::Restrained,
                cores: 8,
                busy: true,
                drew: Err(none()),
            }],
        })
    }

    fn apply(&mut self, limits: &[Limit]) -> Vec<AppliedLimit> {
        self.held = limits[0];
        vec![AppliedLimit {
            requested: limits[0],
            applied: limits[0],
            refused: Vec::new(),
        }]
    }

    fn release(&mut self) -> Vec<NotPutBack> {
        self.held = Limit::FREE;
        self.released += 1;
        Vec::new()
    }
}

/// Limits to one core, and panics after this many windows.
struct Panics(u32);

impl Controller for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }

    fn observe(&mut self, _: &Readings) -> Decision {
        assert!(self.0 > 0, "this is what the test is about");
        self.0 -= 1;
        let held = Limit {
            cores: Some(1),
            ..Limit::FREE
        };
        Decision {
            limits: vec![held],
            why: Why::rule("always"),
        }
    }
}

#[derive(Default)]
struct All(Vec<WindowRecord>);

impl Witness for All {
    fn saw(&mut self, window: WindowRecord, _: &[TenantOf]) {
        self.0.push(window);
    }

    fn go_on(&mut self) -> bool {
        true
    }
}

fn tiers() -> TierNames {
    TierNames {
        fast: "dram".into(),
        slow: "cxl0".into(),
    }
}

#[test]
fn who_asks_to_end_finds_everybody_free() {
    let mut plant = Remembering::new(vec![WINDOW; 3]);
    let mut seen = All::default();
    let ended = steer(&mut plant, Box::new(Panics(9)), WINDOW, &tiers(), &mut seen);
    assert_eq!((ended.windows, ended.failure), (3, None));
    assert!(plant.held.is_free() && plant.released > 0);
    assert!(!seen.0[2].tenants[0].held.is_free());
}

#[test]
fn a_panic_lets_everybody_go() {
    let mut plant = Remembering::new(vec![WINDOW; 9]);
    let mut seen = All::default();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        steer(&mut plant, Box::new(Panics(2)), WINDOW, &tiers(), &mut seen)
    }));
    assert!(panicked.is_err());
    assert_eq!(seen.0.len(), 2);
    assert!(plant.held.is_free() && plant.released > 0);
}

#[test]
fn a_window_that_was_slept_through_lets_everybody_go() {
    // The last one is seen first.
    let mut plant = Remembering::new(vec![WINDOW, WINDOW * 40.0, WINDOW]);
    let mut seen = All::default();
    steer(&mut plant, Box::new(Panics(9)), WINDOW, &tiers(), &mut seen);
    let held: Vec<bool> = (seen.0.iter())
        .map(|w| w.tenants[0].held.is_free())
        .collect();
    assert_eq!(held, [true, false, true], "free after the second window");
    assert!(seen.0[1].why.rule.contains("was stopped"));
}
