//! CXL devices whose DRAM is a cache of a slower medium.

use crate::common::*;
use weir_model::access::{Op, Pattern};
use weir_model::platform::{Backing, Platform};
use weir_model::units::{Bytes, Nanos};

/// A server with this device, whose medium is changed.
fn with(device: &str, change: impl Fn(&mut Backing)) -> Platform {
    let mut platform = platform(&format!("emr2s+{device}"));
    change(platform.devices[0].device.backing.as_mut().unwrap());
    platform
}

/// The Z-NAND device with a cache of so many MiB.
fn z_nand(mib: u64) -> Platform {
    with("cxl-ssd-znand", |b| b.cache.value = Bytes::mib(mib))
}

/// The latency of a chase through so much of it.
fn chased(platform: &Platform, mib: u64) -> f64 {
    let seen = run(
        &bed_of(platform),
        &[chase("cxl0", 0..1, Bytes::mib(mib))],
        50.0,
        3_000.0,
        1,
    );
    seen.ns(0)
}

/// The same device without its medium.
fn plain(platform: &Platform) -> Platform {
    let mut plain = platform.clone();
    plain.devices[0].device.backing = None;
    plain
}

#[test]
fn a_cache_as_large_as_what_is_used_is_plain_memory() {
    let cached = z_nand(64);
    for tenant in [
        chase("cxl0", 0..1, Bytes::mib(64)),
        stream(Op::Ld, "cxl0", 0..4).with_stream(|s| s.working_set = Bytes::mib(8)),
        stream(Op::NtSt, "cxl0", 0..2).with_stream(|s| s.working_set = Bytes::mib(8)),
    ] {
        let one = steady(&bed_of(&cached), std::slice::from_ref(&tenant));
        let other = steady(&bed_of(&plain(&cached)), &[tenant]);
        assert_eq!(one.accesses(0), other.accesses(0));
    }
}

#[test]
fn latency_falls_with_the_cache_and_rises_with_the_medium() {
    let by_cache = [4, 16, 32, 48].map(|mib| chased(&z_nand(mib), 64));
    assert!(by_cache.is_sorted_by(|a, b| a > b), "{by_cache:?}");
    let by_read = [1.0, 3.0, 20.0].map(|us| {
        let slower = with("cxl-ssd-znand", |b| {
            b.cache.value = Bytes::mib(16);
            b.read.value = Nanos::from_micros(us);
        });
        chased(&slower, 64)
    });
    assert!(by_read.is_sorted_by(|a, b| a < b), "{by_read:?}");
}

#[test]
fn a_chase_takes_the_mean_of_a_hit_and_a_miss() {
    let cached = z_nand(16);
    let hit = chased(&plain(&cached), 64);
    // A quarter of the pages is in the cache: the other lines wait for firmware, die and channel.
    let miss = 8_600.0 + 3_000.0 + 4096.0 / 1.2;
    assert_near("latency", chased(&cached, 64), hit + 0.75 * miss, 0.04);
}

#[test]
fn programs_and_garbage_collection_limit_stores() {
    let random = |change: &dyn Fn(&mut Backing)| {
        let tenant = stream(Op::St, "cxl0", 0..4).with_stream(|s| {
            s.pattern = Pattern::RandomLine;
            s.working_set = Bytes::gib(1);
        });
        let cached = with("cxl-ssd-znand", |b| {
            b.cache.value = Bytes::mib(4);
            b.dies.value = 16;
            change(b);
        });
        run(&bed_of(&cached), &[tenant], 2_000.0, 20_000.0, 1).gbps(0)
    };
    let collecting = random(&|_| {});
    let without = random(&|b| (b.erase, b.block) = (None, None));
    let fast = random(&|b| b.program.value = Nanos::from_micros(1.0));
    assert!(collecting < 0.9 * without, "{collecting} {without}");
    assert!(without < 0.9 * fast, "{without} {fast}");
}

#[test]
fn equal_seeds_give_equal_results_and_memory_beside_it_is_slower_for_it() {
    let cached = with("cxl-ssd-tlc", |b| b.cache.value = Bytes::mib(64));
    let tenants = [
        stream(Op::Ld, "dram", 0..8),
        stream(Op::Ld, "cxl0", 8..24).with_stream(|s| s.pattern = Pattern::RandomLine),
    ];
    let both = || run(&bed_of(&cached), &tenants, 200.0, 500.0, 3);
    let (one, other) = (both(), both());
    assert_eq!(one.accesses(0), other.accesses(0));
    assert_eq!(one.accesses(1), other.accesses(1));
    let alone = run(&bed_of(&cached), &tenants[..1], 200.0, 500.0, 3);
    assert!(
        one.gbps(0) < alone.gbps(0),
        "{} {}",
        one.gbps(0),
        alone.gbps(0)
    );
}
