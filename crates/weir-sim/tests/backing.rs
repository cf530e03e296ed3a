//! CXL devices whose DRAM is a cache of a slower medium.

use crate::common::*;
use weir_model::access::Op;
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
    let cached = z_nand(1024);
    for tenant in [
        chase("cxl0", 0..1, Bytes::gib(1)),
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
    let by_cache = [128, 256, 512, 768].map(|mib| chased(&z_nand(mib), 1024));
    assert!(by_cache.is_sorted_by(|a, b| a > b), "{by_cache:?}");
    let by_read = [1.0, 3.0, 20.0].map(|us| {
        let slower = with("cxl-ssd-znand", |b| {
            b.cache.value = Bytes::mib(256);
            b.read.value = Nanos::from_micros(us);
        });
        chased(&slower, 1024)
    });
    assert!(by_read.is_sorted_by(|a, b| a < b), "{by_read:?}");
}
