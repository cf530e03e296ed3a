//! What walks of page tables cost described programs.

use super::*;

/// The time between visits, `distance` instructions apart, in a virtual machine whose hypervisor's tables add this to a walk.
fn visited(work: &Workload, distance: f64, nested: f64) -> f64 {
    let mut platform = platform("emr2s");
    platform.host.tlb.nested.value = Nanos(nested);
    let cpi = counts_on(&bed_of(&platform), work, "dram", true, 3000).cpi();
    cpi * distance / platform.host.core.clock.get()
}

/// What page walks that take a microsecond longer add to the time between visits.
fn walks(work: &Workload, distance: f64) -> Nanos {
    Nanos(visited(work, distance, 1000.0) - visited(work, distance, 0.001))
}

#[test]
fn entries_of_a_hypervisors_tables_come_through_the_caches() {
    let distance = 2000.0;
    let added = |bytes| {
        let mut work = scattered(distance);
        work.phases[0].regions[0].bytes = bytes;
        visited(&work, distance, 0.001) - visited(&work, distance, 0.0)
    };
    // L2 has most tables of so little memory, and no cache all of so much.
    let (near, far) = (added(Bytes::mib(256)), added(Bytes::gib(120)));
    assert!((1.0..20.0).contains(&near), "{near} ns");
    assert!((50.0..100.0).contains(&far), "{far} ns");
}

#[test]
fn page_tables_are_in_the_caches_when_a_run_begins() {
    let work = changed("chase", |region| region.bytes = Bytes::mib(256));
    let cpi = |lines| counts_of(MACHINE, &work, "dram", false, lines).cpi();
    let (first, all) = (cpi(1000), cpi(40_000));
    assert!((first / all - 1.0).abs() < 0.02, "{first} {all}");
}

#[test]
fn stores_retire_when_their_pages_are_found() {
    let distance = 2000.0;
    let loads = scattered(distance);
    let mut stores = loads.clone();
    stores.phases[0].regions[0].stores = 1.0;
    // A walk looks up two pages of the hypervisor's.
    let (loads, stores) = (
        walks(&loads, distance).get(),
        walks(&stores, distance).get(),
    );
    assert!((1900.0..2100.0).contains(&loads), "{loads} ns");
    assert!(
        (loads - stores).abs() < 0.1 * loads,
        "{stores} ns in place of {loads}"
    );
}

#[test]
fn regions_share_the_entries_of_the_tlbs() {
    let distance = 2000.0;
    let mut one = scattered(distance);
    // Six of the eight MiB that the TLBs reach.
    one.phases[0].regions[0].bytes = Bytes::mib(6);
    let mut two = one.clone();
    let mut second = two.phases[0].regions[0].clone();
    second.name = "second".into();
    two.phases[0].regions.push(second);
    assert!(walks(&one, distance).get() < 20.0);
    // Of twelve MiB, a third is not covered.
    let third = walks(&two, distance).get();
    assert!((450.0..750.0).contains(&third), "{third} ns");
}
