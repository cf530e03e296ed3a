//! What walks of page tables cost described programs.

use super::*;

/// What page walks that take a microsecond longer add to the time between visits, `distance` instructions apart.
fn walks(work: &Workload, distance: f64) -> Nanos {
    let cpi = |nested| {
        let mut platform = platform("emr2s");
        platform.host.tlb.nested.value = Nanos(nested);
        counts_on(&bed_of(&platform), work, "dram", true, 3000).cpi()
    };
    let clock = platform("emr2s").host.core.clock.get();
    Nanos((cpi(1000.0) - cpi(0.0)) * distance / clock)
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
