//! What a program does in each of its regions: laws that hold for every program.

use std::collections::BTreeMap;

use crate::common::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_model::counters::Counter;
use weir_model::machine::{Machine, TenantProgress};
use weir_model::region::RegionUse;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::{Order, Phase, Region, Workload, Workloads, population};
use weir_sim::SimMachine;

const MACHINE: &str = "emr2s+cxl-a";
const WINDOW: Nanos = Nanos(300_000.0);

/// A window of a program, with some regions on the card.
fn seen(work: &Workload, far: &[&str]) -> (TenantProgress, [u64; 2]) {
    let on = |tier: &str| Placement::Bind(TierName::named(tier));
    let mut tenant = Tenant::running(work.clone(), (0..work.threads).collect(), on("dram"));
    tenant.placements = far
        .iter()
        .map(|r| ((*r).to_owned(), on("cxl0")))
        .collect::<BTreeMap<_, _>>();
    let mut machine = SimMachine::new(&bed(MACHINE), 3);
    machine.start(&[tenant]).unwrap();
    machine.observe(Nanos(100_000.0)).unwrap();
    let mut seen = machine.observe(WINDOW).unwrap();
    let lines =
        |[a, b]: [Counter; 2]| seen.counters.get(a).unwrap() + seen.counters.get(b).unwrap();
    let crossed = [
        lines([Counter::CasRd, Counter::CasWr]),
        lines([Counter::CxlRxMemData, Counter::CxlTxMemData]),
    ];
    (seen.tenants.remove(0), crossed)
}

/// Two regions of one size: a chain of dependent loads, and an array that is read in order.
fn chain_and_array() -> Workload {
    let library = Workloads::builtin();
    let chase = library.get("chase").unwrap().clone();
    let region = chase.phases[0].regions[0].clone();
    let of = |name: &str, order, dependent| Region {
        name: name.into(),
        bytes: Bytes::gib(2),
        order,
        share: 0.5,
        dependent,
        ..region.clone()
    };
    Workload {
        threads: 1,
        phases: vec![Phase {
            regions: vec![
                of("chain", Order::Chase, 1.0),
                of("array", Order::Sequential, 0.0),
            ],
            ..chase.phases[0].clone()
        }],
        ..chase
    }
}

fn of<'a>(seen: &'a TenantProgress, region: &str) -> &'a RegionUse {
    seen.uses.iter().find(|own| own.region == region).unwrap()
}

#[test]
fn the_core_waits_for_a_chain_and_not_for_an_array_beside_it() {
    let (seen, _) = seen(&chain_and_array(), &[]);
    let (chain, array) = (of(&seen, "chain"), of(&seen, "array"));
    assert!(chain.waited.get() > 0.5 * WINDOW.get(), "{chain:?}");
    assert!(array.waited.get() < 0.2 * chain.waited.get(), "{array:?}");
    // Each line of the chain stalls the core once; both are touched as often.
    let per_line = chain.waits as f64 / chain.read as f64;
    assert!((0.8..=1.05).contains(&per_line), "{per_line}");
    assert!(
        (array.read as f64 / chain.read as f64 - 1.0).abs() < 0.2,
        "{array:?} {chain:?}"
    );
    assert_eq!(chain.written + array.written, 0);
}

#[test]
fn slower_memory_of_one_region_is_waited_for_there() {
    let work = chain_and_array();
    let (near, _) = seen(&work, &[]);
    let (far, _) = seen(&work, &["chain"]);
    // The same lines, each as much later as the card is slower.
    let a_line = |seen: &TenantProgress| {
        let chain = of(seen, "chain");
        chain.waited.get() / chain.read as f64
    };
    let longer = a_line(&far) - a_line(&near);
    assert!((80.0..250.0).contains(&longer), "{longer} ns");
}

/// Elements of a vector of rows miss together, so that their waits overlap. They are as many as without batches.
#[test]
fn what_misses_in_batches_waits_less_and_reads_as_much() {
    let library = Workloads::builtin();
    let olap = library.get("column-olap").unwrap();
    let with = |batch: u32| {
        let phase = &olap.phases[0];
        let regions = phase.regions.iter().map(|region| Region {
            batch: if region.name == "hash tables" {
                batch
            } else {
                1
            },
            ..region.clone()
        });
        let work = Workload {
            threads: 1,
            phases: vec![Phase {
                regions: regions.collect(),
                ..phase.clone()
            }],
            ..olap.clone()
        };
        let (seen, _) = seen(&work, &["hash tables"]);
        let tables = of(&seen, "hash tables");
        let instructions = seen.counters.get(Counter::Instructions).unwrap() as f64;
        let read = tables.read as f64;
        (read / instructions, tables.waited.get() / read)
    };
    let (alone, together) = (with(1), with(64));
    assert!(
        (together.0 / alone.0 - 1.0).abs() < 0.15,
        "{alone:?} {together:?}"
    );
    assert!(together.1 < 0.5 * alone.1, "{alone:?} {together:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, rng_seed: RngSeed::Fixed(19), ..ProptestConfig::default() })]

    #[test]
    fn what_regions_read_and_write_is_what_crosses_the_memory_interface(seed in 0u64..1000) {
        let work = &population(seed, 1)[0];
        let work = work.phase_alone(0).unwrap();
        let far: Vec<&str> = work.memory().iter().map(|(name, _)| *name).step_by(2).collect();
        let (seen, [dram, cxl]) = seen(&work, &far);
        let lines = |on_far: bool| -> u64 {
            let own = seen.uses.iter().filter(|own| far.contains(&own.region.as_str()) == on_far);
            own.map(|own| own.read + own.written).sum()
        };
        // A line may be on its way when the window ends, and few lines say little.
        for (ours, counted) in [(lines(false), dram), (lines(true), cxl)] {
            let off = ours.abs_diff(counted) as f64;
            prop_assert!(off < 0.05 * counted as f64 + 600.0, "{ours} of {counted}, {}", work.name);
        }
        let waited: Nanos = seen.uses.iter().map(|own| own.waited).sum();
        prop_assert!(waited.get() <= WINDOW.get() * f64::from(work.threads) * 1.01);
        for own in &seen.uses {
            prop_assert!(own.waits == 0 || own.waited > Nanos(0.0));
        }
    }
}
