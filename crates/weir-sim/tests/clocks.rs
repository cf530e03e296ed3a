//! Laws of an uncore clock that is set, and of the DRAM of other sub-NUMA clusters.

use crate::common::*;
use weir_model::access::Op;
use weir_model::platform::{Library, Platform};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::Bytes;
use weir_sim::SimTestbed;

fn changed(expression: &str) -> Platform {
    let mut library = Library::builtin();
    let plain = library.change(expression).unwrap_or_else(|e| panic!("{e}"));
    library.compose(&plain).unwrap()
}

fn ns(bed: &SimTestbed, tier: &str, core: u32, size: Bytes) -> f64 {
    run(bed, &[chase(tier, core..core + 1, size)], 5.0, 1000.0, 1).ns(0)
}

#[test]
fn a_faster_uncore_never_lengthens_a_load_and_a_slower_one_never_shortens_it() {
    for platform in ["emr2s", "skx2s"] {
        for (tier, size) in [
            ("dram", Bytes::mib(8)),
            ("dram", Bytes::mib(256)),
            ("cxl0", Bytes::mib(256)),
        ] {
            let mut before = f64::INFINITY;
            let mut all = Vec::new();
            for clock in ["1.0", "1.4", "1.8", "2.2", "2.6", "3.0"] {
                let bed = bed_of(&changed(&format!(
                    "{platform},uncore.clock={clock} GHz+cxl-a"
                )));
                let now = ns(&bed, tier, 0, size);
                assert!(
                    now < before,
                    "{platform} {tier} {size} at {clock} GHz: {now:.2} of {before:.2} ns"
                );
                before = now;
                all.push(now);
            }
            // Half of a load from DRAM or a card and more is not the mesh's.
            let most = all[0] / all[5];
            assert!(
                (1.05..3.0).contains(&most),
                "{platform} {tier} {size}: {all:.0?}"
            );
        }
    }
}

#[test]
fn the_clock_of_the_file_changes_nothing() {
    let same = changed("emr2s,uncore.clock=2.5 GHz");
    let [set, file] =
        [same, platform("emr2s")].map(|p| ns(&bed_of(&p), "dram", 0, Bytes::mib(256)));
    assert_eq!(set.to_bits(), file.to_bits());
}

const CLUSTERS: &str = "micro23-snc4,uncore.cluster_tiers=4";

#[test]
fn the_dram_of_another_cluster_is_farther_and_has_its_own_channels() {
    let bed = bed_of(&changed(CLUSTERS));
    let own = ns(&bed, "dram", 0, Bytes::mib(256));
    let alone = ns(
        &bed_of(&platform("micro23-snc4")),
        "dram",
        0,
        Bytes::mib(256),
    );
    assert!(
        (own / alone - 1.0).abs() < 0.02,
        "{own:.2} and {alone:.2} ns"
    );
    for far in ["dram1", "dram2", "dram3"] {
        let ns = ns(&bed, far, 0, Bytes::mib(256));
        assert!(
            ns > own + 2.0 && ns < 1.3 * own,
            "{far}: {ns:.1} against {own:.1} ns"
        );
    }
    // Cluster 3 has cores 24 to 31: for them it is the other way round.
    assert!(ns(&bed, "dram3", 31, Bytes::mib(256)) < ns(&bed, "dram", 31, Bytes::mib(256)));

    let one = gbps(&bed, stream(Op::Ld, "dram", 0..8));
    let named = |tier: &str, cores| Tenant {
        name: tier.into(),
        ..stream(Op::Ld, tier, cores)
    };
    let both = steady(&bed, &[named("dram", 0..8), named("dram1", 8..16)]);
    for tenant in 0..2 {
        let share = both.gbps(tenant) / one;
        assert!((0.95..1.05).contains(&share), "{share:.2} of {one:.1} GB/s");
    }
    let shared = steady(
        &bed,
        &[
            named("dram", 0..8),
            Tenant {
                name: "too".into(),
                ..stream(Op::Ld, "dram", 8..16)
            },
        ],
    );
    assert!(shared.gbps(0) + shared.gbps(1) < 1.1 * one);
}

#[test]
fn memory_without_a_placement_is_on_the_cluster_that_touches_it() {
    let bed = bed_of(&changed(CLUSTERS));
    let read_by = |core: u32| {
        let mut tenant = stream(Op::Ld, "dram", core..core + 1);
        tenant.placement = Placement::FirstTouch;
        let seen = run(&bed, &[tenant], 5.0, 10.0, 1);
        let pages = &seen.0.tenants[0].regions[0].tiers;
        pages
            .iter()
            .find(|p| p.resident.get() > 0)
            .unwrap()
            .tier
            .clone()
    };
    assert_eq!(read_by(0), TierName::dram());
    assert_eq!(read_by(9), TierName::named("dram1"));
    assert_eq!(read_by(31), TierName::named("dram3"));
}
