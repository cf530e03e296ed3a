//! CXL devices whose DRAM is a cache of a slower medium.

use std::ops::Range;

use crate::common::*;
use weir_model::access::{Locality, Op, Pattern};
use weir_model::counters::Counter;
use weir_model::platform::{Backing, Platform};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::Workloads;

/// A server with this device, whose medium is changed.
fn with(device: &str, change: impl Fn(&mut Backing)) -> Platform {
    let mut platform = platform(&format!("emr2s+{device}"));
    change(platform.devices[0].device.backing.as_mut().unwrap());
    platform
}

/// The Z-NAND device with a cache of this many MiB.
fn z_nand(mib: u64) -> Platform {
    with("cxl-ssd-znand", |b| b.cache.value = Bytes::mib(mib))
}

/// The latency of a chase through this much of it.
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

/// A random chase, which visits a page again only after the rest of its memory.
fn at_random(tier: &str, memory: Bytes) -> Tenant {
    chase(tier, 0..1, memory).with_stream(|s| {
        s.pattern = Pattern::Chase {
            locality: Locality::Random,
        };
    })
}

/// Random lines of 1 GiB.
fn random(op: Op, tier: &str, cores: Range<u32>) -> Tenant {
    stream(op, tier, cores).with_stream(|s| {
        s.pattern = Pattern::RandomLine;
        s.working_set = Bytes::gib(1);
    })
}

#[test]
fn a_chase_takes_the_mean_of_hits_and_misses_of_the_page_cache() {
    let cached = z_nand(256);
    let chased = |platform: &Platform| {
        let tenant = at_random("cxl0", Bytes::gib(1));
        run(&bed_of(platform), &[tenant], 100.0, 40_000.0, 1)
    };
    let (with, without) = (chased(&cached), chased(&plain(&cached)));
    // Lines that the last-level cache of the host has do not come to the device; a quarter of the others is in its DRAM.
    let come = with.count(Counter::TorInsertsIaMissCxl) / with.accesses(0);
    let b = cached.devices[0].device.backing.as_ref().unwrap();
    let miss = b.firmware.get() + b.read.get() + 64.0 * b.channel_rate.line_time().get();
    let expected = without.ns(0) + come * 0.75 * miss;
    assert_near("latency", with.ns(0), expected, 0.03);
    let hits = with.count(Counter::MediumHits);
    assert_near(
        "hits",
        hits / (hits + with.count(Counter::MediumMisses)),
        0.25,
        0.1,
    );
    assert_eq!(
        with.count(Counter::MediumReads),
        with.count(Counter::MediumMisses)
    );
    assert!(without.0.counters.get(Counter::MediumHits).is_err());
}

#[test]
fn pages_that_leave_are_copied_and_those_who_wait_for_their_dies_feel_it() {
    let stored_beside = |deterministic: bool, change: &dyn Fn(&mut Backing)| {
        let cached = with("cxl-ssd-znand", |b| {
            b.cache.value = Bytes::mib(4);
            b.dies.value = 16;
            change(b);
        });
        let tenants = [
            random(Op::St, "cxl0", 1..5),
            Tenant {
                deterministic,
                ..at_random("cxl0", Bytes::gib(1))
            },
        ];
        run(&bed_of(&cached), &tenants, 5_000.0, 60_000.0, 1)
    };
    let stored = |change: &dyn Fn(&mut Backing)| stored_beside(false, change);
    let tail = |seen: &Measured| {
        seen.0.tenants[1]
            .latency
            .as_ref()
            .unwrap()
            .quantile(0.95)
            .get()
    };
    let collecting = stored(&|_| {});
    let without = stored(&|b| (b.erase, b.block) = (None, None));
    let fast = stored(&|b| {
        (b.erase, b.block) = (None, None);
        b.program.value = Nanos::from_micros(1.0);
    });
    let [programs, copies, reads, misses] = [
        Counter::MediumPrograms,
        Counter::MediumCopies,
        Counter::MediumReads,
        Counter::MediumMisses,
    ]
    .map(|counter| collecting.count(counter));
    let amplification = programs / (programs - copies);
    // Blocks that are collected in turn with a share of 7 % spare give 7.5.
    assert!((3.0..8.0).contains(&amplification), "{amplification}");
    // Those under way when the window begins are read in it.
    assert!(reads - copies <= misses + 64.0, "{reads} {copies} {misses}");
    assert!(collecting.count(Counter::MediumErases) > 0.0);
    assert_eq!(without.count(Counter::MediumCopies), 0.0);
    let rates = [&collecting, &without, &fast].map(|seen| seen.gbps(0));
    assert!(rates[0] < 0.5 * rates[1], "{rates:?}");
    assert!(rates[1] < 0.9 * rates[2], "{rates:?}");
    // Loads with the hint do not wait for collection, and hardly for stores.
    let hinted = stored_beside(true, &|_| {});
    let tails = [&collecting, &without, &hinted].map(tail);
    assert!(tails[0] > 4.0 * tails[1], "{tails:?}");
    assert!(tails[2] < 0.2 * tails[1], "{tails:?}");
    // They take places from stores, which go on.
    assert!(hinted.count(Counter::MediumErases) > 0.0);
    assert!(hinted.gbps(0) > 0.1 * collecting.gbps(0));
}

/// Apex-Map: dependent loads of the lines of `memory`, each at `u^(1/alpha)` of it.
fn apex(memory: Bytes, alpha: f64) -> Tenant {
    let text = format!(
        r#"
kind = "workload"
summary = "Apex-Map"
source = "Strohmaier and Shan, Apex-Map, SC 2005"
[[phase]]
cpi = 1
apki = 500
regions = [
  {{ name = "data", bytes = "{} GiB", order = "apex", element = "64 B", skew = {alpha}, dependent = 1 }},
]
"#,
        memory.get() >> 30
    );
    let work = Workloads::check("apex.toml", &text).unwrap();
    let placement = Placement::Bind(TierName::named("cxl0"));
    Tenant {
        prefetch: false,
        ..Tenant::running(work, vec![0], placement)
    }
}

#[test]
fn of_apex_map_those_accesses_miss_that_its_law_sends_beyond_the_cache() {
    let cached = z_nand(256);
    let memory = Bytes::gib(16);
    for alpha in [1.0, 0.3, 0.1] {
        let seen = run(
            &bed_of(&cached),
            &[apex(memory, alpha)],
            2_000.0,
            30_000.0,
            1,
        );
        let missed = seen.count(Counter::MediumMisses) / seen.accesses(0);
        let expected = 1.0 - (Bytes::mib(256).get() as f64 / memory.get() as f64).powf(alpha);
        // The least recently used pages leave, which are not always the least popular ones; and lines that the host's
        // caches answer leave their pages unused.
        let ratio = missed / expected;
        assert!(
            (0.97..1.3).contains(&ratio),
            "{alpha}: {missed} of {expected}"
        );
    }
}

#[test]
fn poison_comes_to_the_tenant_that_reads_a_page_that_fails_and_to_no_other() {
    let cached = with("cxl-ssd-znand", |b| {
        b.cache.value = Bytes::mib(64);
        b.failing.value = 0.05;
    });
    let tenants = [
        Tenant {
            name: "reads".into(),
            ..at_random("cxl0", Bytes::gib(1))
        },
        stream(Op::Ld, "dram", 1..3),
        // What it uses is in the device's DRAM.
        Tenant {
            name: "small".into(),
            cores: vec![3],
            ..at_random("cxl0", Bytes::mib(1))
        },
    ];
    let seen = run(&bed_of(&cached), &tenants, 100.0, 6_000.0, 1);
    let poisoned = |tenant: usize| {
        let counters = &seen.0.tenants[tenant].counters;
        counters.get(Counter::MediumPoison).unwrap() as f64
    };
    let missed = seen.count(Counter::MediumMisses);
    assert_near("poison", poisoned(0), 0.05 * missed, 0.3);
    assert_eq!([poisoned(1), poisoned(2)], [0.0; 2]);
    assert_eq!(seen.count(Counter::MediumPoison), poisoned(0));
    let whole = run(&bed_of(&z_nand(64)), &tenants, 100.0, 6_000.0, 1);
    assert_eq!(whole.count(Counter::MediumPoison), 0.0);
}

#[test]
fn a_worn_out_medium_keeps_what_it_has_and_what_it_loses_comes_with_poison() {
    let stored = |worn: f64| {
        let cached = with("cxl-ssd-znand", |b| {
            b.cache.value = Bytes::mib(4);
            b.worn.value = worn;
        });
        let mut stores = random(Op::St, "cxl0", 0..2);
        stores.name = "stores".into();
        let loads = random(Op::Ld, "cxl0", 2..4);
        run(&bed_of(&cached), &[stores, loads], 1_000.0, 20_000.0, 1)
    };
    let of = |seen: &Measured, tenant: usize| {
        seen.0.tenants[tenant]
            .counters
            .get(Counter::MediumPoison)
            .unwrap()
    };
    let [new, half, worn_out] = [0.0, 0.5, 1.5].map(stored);
    // Nothing of a run of milliseconds is felt while blocks last.
    assert_eq!(
        new.count(Counter::MediumLost) + half.count(Counter::MediumLost),
        0.0
    );
    assert_eq!(of(&half, 0), 0);
    assert!(half.count(Counter::MediumPrograms) > 1_000.0);
    assert!(worn_out.count(Counter::MediumLost) > 1_000.0);
    assert_eq!(worn_out.count(Counter::MediumPrograms), 0.0);
    // A store reads its line first. The other tenant's pages are whole.
    assert!(of(&worn_out, 0) > 0);
    assert_eq!(of(&worn_out, 1), 0);
}

#[test]
fn fewer_spare_blocks_are_left_of_a_worn_medium_and_more_pages_are_copied() {
    let copied = |worn: f64| {
        let cached = with("cxl-ssd-znand", |b| {
            b.cache.value = Bytes::mib(4);
            b.dies.value = 16;
            b.spare.value = 0.28;
            b.endurance_spread.value = 0.3;
            b.worn.value = worn;
        });
        let stores = random(Op::St, "cxl0", 0..4);
        let seen = run(&bed_of(&cached), &[stores], 5_000.0, 60_000.0, 1);
        seen.count(Counter::MediumPrograms)
            / (seen.count(Counter::MediumPrograms) - seen.count(Counter::MediumCopies))
    };
    let [half, most] = [0.5, 0.75].map(copied);
    assert!(most > half * 1.1, "{half}, {most}");
}

#[test]
fn equal_seeds_give_equal_results() {
    let bed = bed("emr2s+cxl-ssd-tlc");
    let tenants = [stream(Op::Ld, "dram", 0..8), random(Op::St, "cxl0", 8..16)];
    let both = || run(&bed, &tenants, 200.0, 500.0, 3);
    let (one, other) = (both(), both());
    assert_eq!(one.accesses(0), other.accesses(0));
    assert_eq!(one.accesses(1), other.accesses(1));
}

#[test]
fn memory_beside_a_medium_is_slower_once_its_requests_fill_the_tables() {
    let cached = with("cxl-ssd-tlc", |b| b.cache.value = Bytes::mib(64));
    let bed = bed_of(&cached);
    let beside = |other: Option<Tenant>| {
        let tenants: Vec<_> = [stream(Op::Ld, "dram", 0..8)]
            .into_iter()
            .chain(other)
            .collect();
        let seen = run(&bed, &tenants, 200.0, 300.0, 3);
        [
            seen.gbps(0),
            seen.mean_level(Counter::TorOccupancyIaMissCxl),
        ]
    };
    let [alone, _] = beside(None);
    let core = &cached.host.core;
    let [buffers, queue] = [&core.line_fill_buffers, &core.super_queue].map(|n| f64::from(**n));
    let entries = f64::from(*cached.host.uncore.tor * *cached.host.llc.slices);
    // Demand loads that wait for the medium hold their fill buffers: those of 24 cores are too few for the tables.
    let [gbps, held] = beside(Some(random(Op::Ld, "cxl0", 8..32)));
    assert_near("held", held, 24.0 * buffers, 0.01);
    assert!(held < 0.5 * entries && gbps > 0.98 * alone, "{gbps} {held}");
    // So are the prefetches of 8 cores, and those of 24 are not.
    let [gbps, held] = beside(Some(stream(Op::Ld, "cxl0", 8..16)));
    assert!(
        8.0 * queue < entries && gbps > 0.98 * alone,
        "{gbps} {held}"
    );
    let [gbps, held] = beside(Some(stream(Op::Ld, "cxl0", 8..32)));
    assert!(
        24.0 * queue > entries && gbps < 0.1 * alone,
        "{gbps} {held}"
    );
    assert!(held > 0.9 * entries, "{held}");
    // Nothing in a core limits posted stores: four cores fill the tables.
    let [gbps, held] = beside(Some(random(Op::NtSt, "cxl0", 8..12)));
    assert!(gbps < 0.1 * alone, "{gbps} {held}");
}
