//! Line requests per second of the engine, whole path, counters on.
//!
//! `cargo bench -p weir-sim --bench engine`; each sample is a short window of a machine in steady state. If
//! other programs share the processor, instructions (`weir-counted lines`) are the more stable figure.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

mod workloads;

/// Windows over which their mean number of lines is taken.
const MANY: u32 = 5;

fn lines_a_second(c: &mut Criterion) {
    let mut group = c.benchmark_group("lines");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    for workload in &workloads::ALL {
        let mut machine = workload.start();
        let lines =
            workload.advance(&mut machine, workload.window * f64::from(MANY)) / u64::from(MANY);
        group.throughput(Throughput::Elements(lines));
        group.bench_function(BenchmarkId::from_parameter(workload.name), |b| {
            b.iter(|| workload.advance(&mut machine, workload.window));
        });
    }
    group.finish();
}

criterion_group!(benches, lines_a_second);
criterion_main!(benches);
