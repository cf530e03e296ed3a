//! Accesses in a second that become what a description is made of: decoded and watched, as `weir workload import` does.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use weir_trace::Watch;

mod written;

use written::{FORMATS, Written, read};

/// Accesses of a trace.
const ACCESSES: u64 = 2_000_000;

fn import(c: &mut Criterion) {
    let written = Written::new(ACCESSES);
    let mut group = c.benchmark_group("import");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(ACCESSES));
    for name in FORMATS {
        let bytes = written.of(name);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut watch = Watch::new();
                read(bytes, &mut watch);
                watch.accesses()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, import);
criterion_main!(benches);
