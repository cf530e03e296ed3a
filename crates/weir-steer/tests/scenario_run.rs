//! The summary of a scenario run: with the free controller both sides get what they get without control, a
//! dry run limits no tenant, and a stop request returns the results so far.

use weir_model::machine::Testbed;
use weir_model::platform::Library;
use weir_model::units::Nanos;
use weir_sim::{Sampling, SimTestbed};
use weir_steer::controllers::Isolation;
use weir_steer::registry::Policy;
use weir_steer::scenario::Scenario;
use weir_steer::scenario_run::{RunOptions, ScenarioRun, length, run_scenario};
use weir_steer::steered::{Actuators, Phase};
use weir_steer::{Controller, Limit};

const WINDOW: Nanos = Nanos(250e6);

fn bed() -> SimTestbed {
    let platform = Library::builtin().compose("miku-a").unwrap();
    let sampling = Sampling {
        warm_up: Nanos::from_micros(10.0),
        detail: Nanos::from_micros(10.0),
    };
    SimTestbed::new(&platform).unwrap().sampled(sampling)
}

/// Three seconds of both sides, then one of the restrained side alone.
fn phases(bed: &SimTestbed) -> Vec<Phase> {
    let topology = bed.open(1).unwrap().topology().clone();
    let both = Scenario::builtin("alternate100s-nt-st", &topology)
        .unwrap()
        .phases;
    let mut alone = both[0].clone();
    alone.participants.remove(0);
    [(both[0].clone(), 12.0), (alone, 4.0)]
        .into_iter()
        .map(|(phase, windows)| Phase {
            lasts: WINDOW * windows,
            ..phase
        })
        .collect()
}

fn played(controller: &mut dyn Controller, dry: bool, most: usize) -> ScenarioRun {
    let bed = bed();
    let options = RunOptions {
        window: WINDOW,
        quota_period: Nanos(1e8),
        seed: 1,
        actuators: Actuators::of_model(bed.open(1).unwrap().topology()),
        dry,
    };
    let mut go_on = |done: usize| done < most;
    run_scenario(&bed, &phases(&bed), controller, &options, &mut go_on).unwrap()
}

#[test]
fn without_control_both_have_what_they_have_without_control() {
    let played = played(Policy::free().as_mut(), false, usize::MAX);
    assert_eq!(played.windows.len(), 16);
    let first = &played.phases[0];
    for side in [&first.protected, &first.restrained] {
        let (free, had) = (side.free_gbps.unwrap(), side.gbps.unwrap());
        assert!((had.get() / free.get() - 1.0).abs() < 0.05, "{side:?}");
    }
    assert!(
        first.protected.settled_pct_of_alone.unwrap() < 60.0,
        "{first:?}"
    );
    assert_eq!(first.settle_s, Some(0.0));
    assert_eq!(played.phases[1].release_s, Some(0.0));
    assert!(played.phases[1].protected.tenants.is_empty());
}

#[test]
fn who_is_held_to_two_cores_gives_the_others_room_and_is_never_let_go() {
    let played = played(&mut Isolation { units: 2.0 }, false, usize::MAX);
    let first = &played.phases[0];
    let (fast, slow) = (&first.protected, &first.restrained);
    assert!(
        fast.settled_gbps.unwrap() > fast.free_gbps.unwrap() * 1.5,
        "{fast:?}"
    );
    assert!(
        slow.settled_gbps.unwrap() < slow.free_gbps.unwrap(),
        "{slow:?}"
    );
    assert_eq!(first.settle_s, Some(0.25), "the first window was free");
    assert!(played.windows[1..].iter().all(|w| w.quota_pct == 12.5));
    assert_eq!(played.phases[1].release_s, None);
    assert_eq!(played.summary.release_s, None);
}

#[test]
fn a_dry_run_holds_nobody_and_says_what_it_would_have_done() {
    let dry = played(&mut Isolation { units: 2.0 }, true, usize::MAX);
    let free = played(Policy::free().as_mut(), false, usize::MAX);
    assert_eq!(dry.phases, free.phases);
    for window in &dry.windows {
        assert_eq!(window.actions.len(), 1);
        let action = &window.actions[0];
        assert_eq!(action.applied, Limit::FREE);
        assert_eq!(action.requested.cores, Some(2));
        assert!(!action.refused.is_empty());
    }
}

#[test]
fn who_asks_to_end_gets_the_windows_that_passed() {
    let bed = bed();
    assert_eq!(length(&phases(&bed), WINDOW), 16 + 2 * 12);
    let played = played(Policy::free().as_mut(), false, 5);
    assert_eq!(played.windows.len(), 5);
    assert!(
        played.phases.is_empty(),
        "nothing to compare with was played"
    );
}
