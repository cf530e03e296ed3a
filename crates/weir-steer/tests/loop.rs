//! The loop of the daemon: however it ends, all limits are removed.

#[path = "common/machine.rs"]
mod machine;

use std::panic::{AssertUnwindSafe, catch_unwind};

use machine::MadeUp;
use weir_model::access::{Op, Pattern};
use weir_model::action::Action;
use weir_model::counters::CounterSet;
use weir_model::machine::{Machine, MachineError, Observation, ProcessProgress, TenantProgress};
use weir_model::tenant::Tenant;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_steer::control_loop::ControlLoop;
use weir_steer::daemon::{Ended, Witness, steer};
use weir_steer::record::{TierNames, WindowRecord};
use weir_steer::steered::{Steered, SteeredTenant, TenantOf};
use weir_steer::{Controller, Decision, Limit, Readings, Role, Why};

const WINDOW: Nanos = Nanos(250e6);

/// Windows of these lengths, the last one first, until a stop is requested.
fn windows(
    mut lengths: Vec<Nanos>,
) -> MadeUp<impl FnMut(Nanos) -> Result<Observation, MachineError> + Send> {
    MadeUp::new(move |_| {
        let length = lengths.pop().ok_or(MachineError::Interrupted)?;
        let tenants = vec![TenantProgress::default()];
        Ok(Observation::of(length, tenants, CounterSet::default()))
    })
}

fn running(machine: &mut dyn Machine) -> Steered<'_> {
    let tier = TierName::cxl(0);
    let tenant = Tenant::on_first_cores(Op::Ld, Pattern::Sequential, &tier, 8, Bytes::mib(1));
    let role = Role::Restrained;
    Steered::running(machine, vec![SteeredTenant { tenant, role }], Nanos(1e8))
}

fn steered(machine: &mut dyn Machine, controller: Panics, seen: &mut All) -> Ended {
    let mut steered = running(machine);
    steer(&mut steered, Box::new(controller), WINDOW, &tiers(), seen)
}

/// Limits to one core, and panics after this many windows.
struct Panics(u32);

impl Controller for Panics {
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
struct All(Vec<WindowRecord>, Vec<String>);

impl Witness for All {
    fn saw(&mut self, window: WindowRecord, _: &[TenantOf]) {
        self.0.push(window);
    }

    fn found(&mut self, change: &str) {
        self.1.push(change.to_owned());
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
    let mut machine = windows(vec![WINDOW; 3]);
    let mut seen = All::default();
    let ended = steered(&mut machine, Panics(9), &mut seen);
    assert_eq!((ended.windows, ended.failure), (3, None));
    assert!(machine.cores.is_none() && machine.released > 0);
    assert!(!seen.0[2].tenants[0].held.is_free());
}

#[test]
fn a_machine_that_fails_is_reported_with_its_reason_and_finds_everybody_free() {
    let lost = || MachineError::Request("the machine is lost".into());
    let failing = || {
        let mut left = 3;
        MadeUp::new(move |length| {
            left -= 1;
            let tenants = vec![TenantProgress::default()];
            let seen = Observation::of(length, tenants, CounterSet::default());
            (left > 0).then_some(seen).ok_or_else(lost)
        })
    };
    let mut machine = failing();
    let ended = steered(&mut machine, Panics(9), &mut All::default());
    assert_eq!((ended.windows, ended.failure), (2, Some(lost())));
    assert!(machine.cores.is_none() && machine.released > 0);
    // The same of a run of so many windows.
    let mut machine = failing();
    let mut tenants = running(&mut machine);
    let mut controller = Panics(9);
    let run = ControlLoop::new(&mut tenants, &mut controller, WINDOW).steps(9);
    assert_eq!(run.err(), Some(lost()));
    assert!(machine.cores.is_none() && machine.released > 0);
}

#[test]
fn a_limit_that_went_is_reported_and_set_again() {
    let mut number = 0;
    let mut machine = MadeUp::new(move |_| {
        number += 1;
        let (tenant, cores) = ("t".to_owned(), None);
        let process = ProcessProgress {
            ran: Ok(WINDOW),
            traffic: Ok(Bytes(0)),
            cores: 8,
            busy: true,
            uses: Ok(Vec::new()),
            ended: None,
            limits: match number {
                3 => vec![Action::Cores { tenant, cores }],
                5 => return Err(MachineError::Interrupted),
                _ => Vec::new(),
            },
        };
        let progress = TenantProgress {
            process: Some(process),
            ..TenantProgress::default()
        };
        Ok(Observation::of(
            WINDOW,
            vec![progress],
            CounterSet::default(),
        ))
    });
    let mut seen = All::default();
    steered(&mut machine, Panics(9), &mut seen);
    let held = |w: &WindowRecord| w.tenants[0].held.cores;
    let held: Vec<_> = seen.0.iter().map(held).collect();
    assert_eq!(held, [None, Some(1), None, Some(1)]);
    assert_eq!(seen.0[2].actions[0].applied.cores, Some(1));
    assert!(
        seen.1[0].contains("was made again; now: free"),
        "{:?}",
        seen.1
    );
}

#[test]
fn a_panic_lets_everybody_go() {
    let mut machine = windows(vec![WINDOW; 9]);
    let mut seen = All::default();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        steered(&mut machine, Panics(2), &mut seen)
    }));
    assert!(panicked.is_err());
    assert_eq!(seen.0.len(), 2);
    assert!(machine.cores.is_none() && machine.released > 0);
}

#[test]
fn a_window_that_was_slept_through_lets_everybody_go() {
    let mut machine = windows(vec![WINDOW, WINDOW * 40.0, WINDOW]);
    let mut seen = All::default();
    steered(&mut machine, Panics(9), &mut seen);
    let held: Vec<bool> = (seen.0.iter())
        .map(|w| w.tenants[0].held.is_free())
        .collect();
    assert_eq!(held, [true, false, true], "free after the second window");
    let ends: Vec<f64> = seen.0.iter().map(|w| w.t_s).collect();
    assert_eq!(ends, [0.25, 10.25, 10.5]);
    assert!(seen.0[1].why.rule.contains("was stopped"));
}
