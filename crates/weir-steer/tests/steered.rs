//! Tenants of a model: phases start and end, limits stay, and the reported limits are those in force.

use weir_model::access::{Op, Pattern};
use weir_model::machine::Testbed;
use weir_model::platform::Library;
use weir_model::tenant::Tenant;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_sim::{Sampling, SimTestbed};
use weir_steer::steered::{Phase, Released, Steered, SteeredTenant};
use weir_steer::{Limit, Role, Share};

const WINDOW: Nanos = Nanos(250e6);

fn participant(name: &str, tier: &str, first: u32, role: Role) -> SteeredTenant {
    let tier = TierName::named(tier);
    let mut tenant = Tenant::on_first_cores(Op::Ld, Pattern::Sequential, &tier, 4, Bytes::mib(64));
    tenant.name = name.to_owned();
    tenant.cores = (first..first + 4).collect();
    SteeredTenant { tenant, role }
}

fn phases() -> Vec<Phase> {
    let fast = participant("fast", "dram", 0, Role::Protected);
    let slow = participant("slow", "cxl0", 4, Role::Restrained);
    let both = vec![fast.clone(), slow.clone()];
    [both, vec![fast], Vec::new(), vec![slow]]
        .into_iter()
        .map(|participants| Phase {
            lasts: WINDOW,
            participants,
        })
        .collect()
}

fn testbed() -> SimTestbed {
    let platform = Library::builtin().compose("miku-a").unwrap();
    SimTestbed::new(&platform)
        .unwrap()
        .sampled(Sampling::default())
}

#[test]
fn tenants_keep_their_position_and_their_limit_when_they_pause() {
    let mut machine = testbed().open(1).unwrap();
    let mut steered = Steered::new(machine.as_mut(), phases(), Nanos(100e6));
    let names: Vec<_> = steered.tenants().iter().map(|t| t.name.clone()).collect();
    assert_eq!(names, ["fast", "slow"]);

    let free = steered.observe(WINDOW).unwrap().0;
    let held = Limit {
        cores: Some(1),
        time: Share::of(0.5),
        ..Limit::FREE
    };
    let applied = steered.apply(&[Limit::FREE, held]);
    assert_eq!(applied[1].applied, held, "{applied:?}");

    let busy = |steered: &mut Steered<'_>| -> Vec<bool> {
        let readings = steered.observe(WINDOW).unwrap().0;
        readings.tenants.iter().map(|t| t.busy).collect()
    };
    assert_eq!(busy(&mut steered), [true, false]);
    assert_eq!(busy(&mut steered), [false, false]);
    let last = steered.observe(WINDOW).unwrap().0;
    let drew =
        |i: usize, readings: &weir_steer::Readings| readings.tenants[i].drew.clone().unwrap().get();
    assert!(
        drew(1, &last) < 0.3 * drew(1, &free),
        "limited when it came back"
    );
    assert_eq!(steered.now(), WINDOW * 4.0);

    steered.apply(&[]);
    let free_again = steered.observe(WINDOW).unwrap().0;
    assert!(
        drew(1, &free_again) > 0.9 * drew(1, &free),
        "the last phase goes on"
    );
    assert_eq!(steered.release(), Released::default());
    assert_eq!(steered.release(), Released::default(), "twice is no error");
}

#[test]
fn what_the_machine_refuses_is_reported_and_not_in_force() {
    let mut machine = testbed().open(1).unwrap();
    let mut steered = Steered::new(machine.as_mut(), phases(), Nanos(100e6));
    steered.observe(WINDOW).unwrap();
    let none = Limit {
        cores: Some(0),
        ..Limit::FREE
    };
    let applied = steered.apply(&[Limit::FREE, none]);
    assert_ne!(applied[1].applied.cores, Some(0), "{applied:?}");
    let one = Limit {
        cores: Some(1),
        ..Limit::FREE
    };
    steered.apply(&[Limit::FREE, one]);
    assert_eq!(steered.held(), [Limit::FREE, one]);
    steered.release();
    assert_eq!(steered.held(), [Limit::FREE; 2]);
}
