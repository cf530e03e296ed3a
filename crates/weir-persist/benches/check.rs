//! Stores in a second that are read and checked: records that are written, flushed, and published by a counter.

use std::fmt::Write as _;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use weir_persist::checker::{Limits, allow};
use weir_persist::{Checker, Platform, Reader};

/// Records; each has two stores.
const RECORDS: u64 = 50_000;

fn trace() -> String {
    let mut text = String::from("weir-persist 1\npool 1048576\n");
    for record in 1..=RECORDS {
        let at = 64 + record % 16_000 * 64;
        let digits = format!("{:016x}", record.swap_bytes());
        // No write to a `String` fails.
        let _ = write!(
            text,
            "store {at} {digits} @log.c:10\nflush {at}\nfence\n\
             require entry 0={digits} -> {at}={digits}\n\
             store 0 {digits} @log.c:13\nflush 0\nfence\n"
        );
    }
    text
}

fn check(c: &mut Criterion) {
    let text = trace();
    let mut group = c.benchmark_group("check");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(2 * RECORDS));
    for platform in [Platform::Adr, Platform::Eadr] {
        group.bench_function(platform.name(), |bencher| {
            bencher.iter(|| {
                let mut reader = Reader::new(text.as_bytes());
                let mut checker = Checker::new(platform, Limits::default(), allow);
                while let Ok(Some((place, event))) = reader.next_event() {
                    let Ok(()) = checker.event(&place, &event);
                }
                let Ok(()) = checker.finish();
                assert!(checker.found().is_none());
                checker.tally()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, check);
criterion_main!(benches);
