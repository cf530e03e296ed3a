//! Every scenario runs on models, and does what its summary says.

use weir_model::machine::Testbed;
use weir_model::platform::Library;
use weir_model::units::Nanos;
use weir_sim::{Sampling, SimTestbed};
use weir_steer::control_loop::run_phases;
use weir_steer::controllers::Isolation;
use weir_steer::scenario::{Scenario, ScenarioError};
use weir_steer::steered::Phase;
use weir_steer::{Limit, Role};

/// A quarter of a second, as on a server.
const WINDOW: Nanos = Nanos(250e6);

#[test]
fn every_scenario_runs_on_a_model() {
    let sampling = Sampling {
        warm_up: Nanos::from_micros(1.0),
        detail: Nanos::from_micros(2.0),
    };
    let platform = Library::builtin().compose("miku-a").unwrap();
    let bed = SimTestbed::new(&platform).unwrap().sampled(sampling);
    for (name, _) in Scenario::list() {
        let scenario = Scenario::builtin(name, &platform.topology()).unwrap();
        let short = |phase: &Phase| Phase {
            lasts: WINDOW * 2.0,
            ..phase.clone()
        };
        let phases: Vec<Phase> = scenario.phases.iter().map(short).collect();
        let mut machine = bed.open(1).unwrap();
        let mut held = Isolation { units: 2.0 };
        let steps = run_phases(&mut *machine, &mut held, &phases, WINDOW, Nanos(1e8)).unwrap();
        assert_eq!(steps.len(), 2 * phases.len(), "{name}");
        for step in &steps {
            let tenants = step.readings.tenants.iter().enumerate();
            assert!(
                tenants
                    .filter(|(_, t)| t.busy)
                    .all(|(i, _)| step.drew(i).get() > 0.0),
                "{name}"
            );
        }
        let is_held =
            |step: &weir_steer::control_loop::Step| step.held.iter().any(|h| *h != Limit::FREE);
        assert!(steps.iter().any(is_held), "{name}");
    }
}

#[test]
fn a_tenant_may_be_limited_in_every_phase_and_no_core_is_wanted_twice() {
    for on in ["miku-a", "miku-b", "memo", "emr2s+cxl-a"] {
        let topology = Library::builtin().compose(on).unwrap().topology();
        for (name, _) in Scenario::list() {
            for phase in Scenario::builtin(name, &topology).unwrap().phases {
                let participants = &phase.participants;
                assert!(
                    participants.iter().any(|p| p.role == Role::Restrained),
                    "{name}"
                );
                let mut cores: Vec<u32> = (participants.iter())
                    .flat_map(|p| p.tenant.cores.clone())
                    .collect();
                let wanted = cores.len();
                cores.sort_unstable();
                cores.dedup();
                assert_eq!(cores.len(), wanted, "{name} on {on}");
            }
        }
    }
}

#[test]
fn what_cannot_be_played_is_refused() {
    let with = Library::builtin().compose("miku-a").unwrap().topology();
    let without = Library::builtin().compose("skx2s").unwrap().topology();
    let unknown = Scenario::builtin("tetris", &with).unwrap_err();
    assert!(unknown.to_string().contains("alternate100s"), "{unknown}");
    let refused = Scenario::builtin("llm-decode", &without).unwrap_err();
    assert_eq!(refused, ScenarioError::NoSlowTier);
}
