//! Two threads on one core.

use crate::common::*;
use weir_model::access::Op;
use weir_model::machine::Machine;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::Bytes;
use weir_model::workload::Workloads;
use weir_sim::SimMachine;

const MACHINE: &str = "emr2s+cxl-a";

fn second(tenant: Tenant) -> Tenant {
    Tenant {
        name: format!("second {}", tenant.name),
        second_threads: true,
        ..tenant
    }
}

fn program(name: &str, cores: std::ops::Range<u32>) -> Tenant {
    let work = Workloads::builtin().get(name).unwrap().clone();
    let placement = Placement::Bind(TierName::dram());
    Tenant::running(work, cores.collect(), placement)
}

/// What both read on one core, and each alone.
fn both(first: &Tenant, other: &Tenant) -> [f64; 4] {
    let bed = bed(MACHINE);
    let other = second(other.clone());
    let seen = steady(&bed, &[first.clone(), other.clone()]);
    [
        seen.gbps(0),
        seen.gbps(1),
        gbps(&bed, first.clone()),
        gbps(&bed, other),
    ]
}

#[test]
fn a_second_thread_alone_has_the_whole_core() {
    let bed = bed(MACHINE);
    for tenant in [
        stream(Op::Ld, "dram", 0..2),
        plain_stream(Op::Ld, "cxl0", 0..1),
        program("mcf-like", 0..1),
    ] {
        let (first, other) = (gbps(&bed, tenant.clone()), gbps(&bed, second(tenant)));
        assert_eq!(first, other);
    }
}

#[test]
fn streams_of_a_core_have_its_buffers_together() {
    for tenant in [
        plain_stream(Op::Ld, "dram", 0..1),
        plain_stream(Op::Ld, "cxl0", 0..1),
        stream(Op::St, "cxl0", 0..1),
    ] {
        let [first, other, alone, _] = both(&tenant, &tenant);
        assert_near(&format!("{} halves", tenant.name), first, other, 0.02);
        assert_near(&tenant.name, first + other, alone, 0.05);
    }
}

#[test]
fn a_thread_that_waits_for_a_slow_tier_has_most_buffers_of_its_core() {
    let [near, far] = ["dram", "cxl0"].map(|tier| plain_stream(Op::Ld, tier, 0..1));
    let [beside, slow, alone, slow_alone] = both(&near, &far);
    // Both take turns at free buffers, so that both read as much, which is less than half of what the fast one could.
    assert_near("turns", beside, slow, 0.1);
    assert!(beside < 0.45 * alone, "{beside} of {alone}");
    assert!(slow < slow_alone, "{slow} of {slow_alone}");
    // On a core of its own it costs nothing.
    let apart = plain_stream(Op::Ld, "cxl0", 1..2);
    let apart = steady(&bed(MACHINE), &[near, apart]).gbps(0);
    assert_near("apart", apart, alone, 0.02);
}

#[test]
fn threads_that_have_one_line_under_way_do_not_slow_each_other() {
    let chase = chase("dram", 0..1, Bytes::mib(256));
    let [first, other, alone, _] = both(&chase, &chase);
    assert_near("first", first, alone, 0.03);
    assert_near("second", other, alone, 0.03);
}

#[test]
fn programs_on_one_core_are_slower_than_alone_and_do_more_together() {
    let [first, other, alone, _] = both(&program("mcf-like", 0..1), &program("mcf-like", 0..1));
    for half in [first, other] {
        assert!(half < 0.98 * alone, "{half} of {alone}");
    }
    assert!(
        first + other > 1.1 * alone,
        "{first} and {other} of {alone}"
    );
}

#[test]
fn a_core_has_two_threads_and_no_third() {
    let tenant = stream(Op::Ld, "dram", 0..1);
    let third = Tenant {
        name: "third".into(),
        ..second(tenant.clone())
    };
    let mut machine = SimMachine::new(&bed(MACHINE), 1);
    let error = machine
        .start(&[tenant.clone(), second(tenant), third])
        .unwrap_err();
    let wanted = "tenants `second ld@dram` and `third` both ask for core 0";
    assert!(error.to_string().contains(wanted), "{error}");
}
