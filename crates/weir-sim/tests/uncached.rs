//! Loads of a mapping that no cache keeps.

use crate::common::*;
use weir_model::access::{Locality, Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::Testbed;
use weir_model::platform::{Platform, Provenance, Sourced};
use weir_model::tenant::Tenant;
use weir_model::units::{Bytes, Nanos};

/// A device with DRAM alone whose loads past the caches take this much longer.
fn with(longer_ns: f64) -> Platform {
    let mut platform = platform("emr2s+cxl-a");
    platform.devices[0].device.measured.uncached = Some(Sourced {
        value: Nanos(longer_ns),
        provenance: Provenance::Source("a test".into()),
    });
    platform
}

fn chased(platform: &Platform, op: Op, memory: Bytes) -> Measured {
    let pattern = Pattern::Chase {
        locality: Locality::TlbFriendly,
    };
    let tenant = chase("cxl0", 0..1, memory).with_stream(|s| (s.op, s.pattern) = (op, pattern));
    run(&bed_of(platform), &[tenant], 50.0, 300.0, 1)
}

#[test]
fn no_cache_keeps_a_line_and_each_load_takes_the_stated_time_longer() {
    let cached = chased(&with(0.0), Op::Ld, Bytes::gib(8)).ns(0);
    // Sets that L1, L2 and the last-level cache would hold, and one that none does.
    for memory in [Bytes::kib(16), Bytes::mib(1), Bytes::mib(64), Bytes::gib(8)] {
        let of = |longer| {
            let seen = chased(&with(longer), Op::UcLd, memory);
            let sent = seen.count(Counter::TorInsertsIaMissCxl);
            assert!((sent - seen.accesses(0)).abs() <= 1.0, "{memory}: {sent}");
            seen.ns(0)
        };
        // Lines of a small set share rows of the DRAM.
        let least = of(0.0);
        assert_near(&format!("{memory}"), least, cached, 0.05);
        for longer in [500.0, 3_000.0] {
            assert_near(&format!("{memory}"), of(longer), least + longer, 0.01);
        }
    }
}

#[test]
fn a_core_has_one_on_its_way_whatever_the_order() {
    let platform = with(1_000.0);
    let bed = bed_of(&platform);
    let one = chased(&platform, Op::UcLd, Bytes::gib(8)).ns(0);
    for pattern in [Pattern::Sequential, Pattern::RandomLine] {
        for cores in [1, 4] {
            let tenant = stream(Op::UcLd, "cxl0", 0..cores).with_stream(|s| s.pattern = pattern);
            let expected = f64::from(cores) * 64.0 / one;
            assert_near(pattern.name(), gbps(&bed, tenant), expected, 0.03);
        }
    }
}

#[test]
fn the_dram_of_a_device_still_holds_pages_of_its_medium() {
    let bed = bed("hotstorage22+hotstorage22-ssd");
    let of = |op, memory| {
        let tenant = chase("cxl0", 0..1, memory).with_stream(|s| {
            s.op = op;
            s.pattern = Pattern::Chase {
                locality: Locality::Random,
            };
        });
        run(&bed, &[tenant], 1_000.0, 60_000.0, 1).ns(0)
    };
    let (small, large) = (Bytes::mib(256), Bytes::gib(8));
    let [hit, miss] = [small, large].map(|memory| of(Op::UcLd, memory));
    // The cached chase finds a few lines of the smaller set in the last-level cache.
    assert_near("hit", hit, of(Op::Ld, small) + 31_800.0, 0.01);
    assert_near("miss", miss, of(Op::Ld, large) + 31_800.0, 0.03);
    assert!(miss > hit + 30_000.0, "{hit}, {miss}");
}

#[test]
fn memory_without_such_a_mapping_is_refused_and_so_are_loads_at_once() {
    let mut machine = bed_of(&with(1_000.0)).open(1).unwrap();
    let mut refused = |tenant: Tenant| machine.start(&[tenant]).unwrap_err().to_string();
    let of =
        |tier: &str, pattern| stream(Op::UcLd, tier, 0..1).with_stream(|s| s.pattern = pattern);
    assert!(refused(of("dram", Pattern::Sequential)).contains("dram has no such mapping"));
    let burst = Pattern::FlushedBurst { lines: 8 };
    assert!(refused(of("cxl0", burst)).contains("cannot be timed"));
}
