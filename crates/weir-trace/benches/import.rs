//! Accesses in a second, of which an import is made.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn import(c: &mut Criterion) {
    let _ = (c, Throughput::Elements(1));
}

criterion_group!(benches, import);
criterion_main!(benches);
