//! Machines without a counted table: a controller that needs no readings still limits, and one that probes
//! the fast tier's latency limits by that.

use crate::common;

use proptest::prelude::*;
use weir_model::access::{Locality, Op, Pattern};
use weir_model::action::{Action, Applied};
use weir_model::capability::{Capability, Unavailable};
use weir_model::counters::CounterSet;
use weir_model::machine::{
    Goal, Identity, Machine, MachineError, Observation, Pacing, RunNotes, Testbed as _,
};
use weir_model::platform::Library;
use weir_model::tenant::Tenant;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_sim::{Sampling, SimTestbed};
use weir_steer::control_loop::{ControlLoop, Step};
use weir_steer::controller::Needs;
use weir_steer::controllers::{Latency, LatencyConfig};
use weir_steer::guard::{Bounds, Guarded};
use weir_steer::registry::Policy;
use weir_steer::steered::{Actuators, Phase, Steered, SteeredTenant};
use weir_steer::{Controller, Limit, Readings, Role};

use common::{Flow, Fluid, readings};

/// A window of a machine without counters; the probe is unchanged.
fn blind(fluid: &Fluid, fast_runs: bool, probe: Option<Nanos>) -> Readings {
    let mut readings = readings(fluid, CounterSet::default(), fast_runs);
    readings.probe = probe.ok_or_else(|| Unavailable::because("lost"));
    readings
}

fn latency() -> Guarded<Latency> {
    let config = LatencyConfig {
        rest: None,
        step: None,
    };
    Guarded::new(Latency::new(config), Bounds::default())
}

/// Several such windows.
fn run(
    controller: &mut dyn Controller,
    fluid: &Fluid,
    windows: usize,
    fast_runs: bool,
) -> Vec<(Limit, Flow)> {
    common::run(controller, fluid, windows, fast_runs, |flow| {
        blind(fluid, fast_runs, Some(Nanos(fluid.fast.rest + flow.wait)))
    })
}

#[test]
fn the_fast_tier_is_kept_fast_and_the_slow_one_is_not_stopped() {
    let fluid = Fluid::miku();
    let (fast, slow) = fluid.alone();
    let free = fluid.held(Limit::FREE, true);
    assert!(free.fast < 0.8 * fast, "without control it is harmed");
    let windows = run(&mut latency(), &fluid, 400, true);
    let last = &windows[200..];
    let mean = |of: fn(&Flow) -> f64| last.iter().map(|(_, f)| of(f)).sum::<f64>() / 200.0;
    assert!(mean(|f| f.fast) > 0.9 * fast, "{}", mean(|f| f.fast) / fast);
    assert!(mean(|f| f.slow) > 0.2 * slow, "{}", mean(|f| f.slow) / slow);
}

#[test]
fn who_is_not_to_blame_is_let_go() {
    // The protected tenant alone fills its tier: a limit of the other changes nothing.
    let fluid = Fluid {
        slow_mlp: 0.1,
        ..Fluid::miku()
    };
    let windows = run(&mut latency(), &fluid, 1000, true);
    let held = windows.iter().filter(|(limit, _)| !limit.is_free()).count();
    assert!((1..=10).contains(&held), "{held}: trials, and no more");
}

#[test]
fn everybody_is_let_go_once_nobody_is_to_be_protected() {
    let fluid = Fluid::miku();
    let mut controller = latency();
    run(&mut controller, &fluid, 20, true);
    let decision = controller.observe(&blind(&fluid, false, Some(Nanos(110.0))));
    assert!(decision.limits.iter().all(Limit::is_free));
}

#[test]
fn what_needs_nothing_holds_without_counters_for_as_long_as_it_is_asked() {
    let fluid = Fluid::miku();
    let mut isolation = Policy::isolation(2.0, Bounds::default());
    for _ in 0..100 {
        let decision = isolation.observe(&blind(&fluid, true, None));
        assert!((decision.limits[1].units(fluid.slow_cores) - 2.0).abs() < 1e-9);
    }
}

#[test]
fn policies_say_what_their_controllers_need() {
    let fluid = Fluid::miku();
    let seen = |needs: Needs, probe| needs.are_met_by(&blind(&fluid, true, probe));
    for policy in Policy::ALL {
        let known = common::calibration();
        let controller = policy.controller(&known, &Actuators::default(), Bounds::default());
        for probe in [None, Some(Nanos(100.0))] {
            assert_eq!(
                seen(policy.needs(), probe),
                seen(controller.needs(), probe),
                "{}",
                policy.name()
            );
        }
        // Two windows without readings, and a third: a controller that needs readings removes its limits.
        let mut controller = policy.controller(&known, &Actuators::default(), Bounds::default());
        let all: Vec<bool> = (0..3)
            .map(|_| controller.observe(&blind(&fluid, true, None)).limits[1].is_free())
            .collect();
        assert_eq!(all[2], policy != Policy::Isolation, "{}", policy.name());
    }
}

/// A model without its counters, on which a tenant chases pointers, as a host would time its own loads.
struct Blind(Box<dyn Machine>);

/// The position of that tenant.
const PROBE: usize = 1;

impl Machine for Blind {
    fn identity(&self) -> Identity {
        self.0.identity()
    }

    fn topology(&self) -> &Topology {
        self.0.topology()
    }

    fn capabilities(&self) -> &[Capability] {
        self.0.capabilities()
    }

    fn pacing(&self, goal: Goal) -> Pacing {
        self.0.pacing(goal)
    }

    fn start(&mut self, tenants: &[Tenant]) -> Result<(), MachineError> {
        self.0.start(tenants)
    }

    fn observe(&mut self, window: Nanos) -> Result<Observation, MachineError> {
        let seen = self.0.observe(window)?;
        let drew = seen.tenants[PROBE].bandwidth(seen.window);
        Ok(Observation {
            counters: CounterSet::default(),
            probe: Ok(Nanos(LINE_BYTES as f64 / drew.get())),
            ..seen
        })
    }

    fn act(&mut self, action: &Action) -> Result<Applied, MachineError> {
        self.0.act(action)
    }

    fn stop(&mut self) -> Result<RunNotes, MachineError> {
        self.0.stop()
    }
}

/// Bandwidth of DRAM and CXL of miku-a over the later windows, in GB/s, `op` on eight cores each.
fn on_miku(op: Op, policy: Policy, with_slow: bool) -> (f64, f64) {
    let platform = Library::builtin().compose("miku-a").unwrap();
    let bed = SimTestbed::new(&platform).unwrap();
    let bed = bed.sampled(Sampling::of(&platform));
    let participant = |name: &str, role, tier: TierName, op, pattern, cores| SteeredTenant {
        tenant: Tenant {
            name: name.into(),
            cores,
            ..Tenant::on_first_cores(op, pattern, &tier, 1, Bytes::mib(512))
        },
        role,
    };
    let cores = bed.open(1).unwrap().topology().cores.clone();
    let stream = Pattern::Sequential;
    let chase = Pattern::Chase {
        locality: Locality::TlbFriendly,
    };
    let dram = TierName::dram;
    let mut participants = vec![
        participant(
            "fast",
            Role::Protected,
            dram(),
            op,
            stream,
            cores[..8].to_vec(),
        ),
        participant(
            "probe",
            Role::Bystander,
            dram(),
            Op::Ld,
            chase,
            cores[8..9].to_vec(),
        ),
    ];
    if with_slow {
        let cores = cores[9..17].to_vec();
        participants.push(participant(
            "slow",
            Role::Restrained,
            TierName::cxl(0),
            op,
            stream,
            cores,
        ));
    }
    let phase = Phase {
        lasts: Nanos(1e12),
        participants,
    };
    let mut machine = Blind(bed.open(1).unwrap());
    let mut steered = Steered::new(&mut machine, vec![phase], Nanos(1e8));
    let mut controller = policy.controller(
        &common::calibration(),
        &Actuators::of_model(bed.open(1).unwrap().topology()),
        Bounds::default(),
    );
    // Without limits there is nothing to settle.
    let (windows, settling) = match policy {
        Policy::None => (8, 2),
        _ => (32, 12),
    };
    let steps = ControlLoop::new(&mut steered, controller.as_mut(), common::WINDOW).steps(windows);
    let last = &steps.unwrap()[settling..];
    let mean = |tenant| {
        let drew = last.iter().map(|step: &Step| step.drew(tenant).get());
        drew.sum::<f64>() / last.len() as f64
    };
    (mean(0), mean(2))
}

#[test]
fn on_a_model_loads_alone_keep_the_fast_tier_fast() {
    for op in [Op::Ld, Op::NtSt] {
        let alone = on_miku(op, Policy::None, false).0;
        let free = on_miku(op, Policy::None, true);
        let held = on_miku(op, Policy::Weir, true);
        println!("{op}: DRAM alone {alone:.1}, free {free:.1?}, held {held:.1?}");
        assert!(
            held.0 > 0.9 * alone,
            "{op}: {held:?} of {alone}, free {free:?}"
        );
        assert!(held.1 > 0.1 * free.1, "{op}: {held:?}, free {free:?}");
    }
}

proptest! {
    #[test]
    fn whatever_is_tried_nobody_is_stopped_and_silence_lets_go(
        probes in prop::collection::vec(prop::option::of(prop_oneof![
            any::<f64>(), 50.0..2000.0, Just(110.0)]), 1..200),
    ) {
        let fluid = Fluid::miku();
        let (mut first, mut second) = (latency(), latency());
        let mut silent = 0;
        for probe in probes {
            let window = blind(&fluid, true, probe.map(Nanos));
            let decision = first.observe(&window);
            prop_assert_eq!(&decision, &second.observe(&window));
            let units = decision.limits[1].units(fluid.slow_cores);
            prop_assert!(units >= 0.01 * f64::from(fluid.slow_cores) * 0.999, "{units}");
            let has_probe = probe.is_some_and(|p| p > 0.0 && p < 1e6);
            silent = if has_probe { 0 } else { silent + 1 };
            prop_assert!(silent < 3 || decision.limits[1].is_free(), "{decision:?}");
        }
    }
}
