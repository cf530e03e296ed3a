//! Fitting on, and predicting for, a thousand counter sets.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;

use common::{CONSTANTS, Program, micros, model};
use criterion::{Criterion, criterion_group, criterion_main};
use weir_insight::Run;
use weir_insight::slowdown::{Pair, calibrate, predict};
use weir_model::insight::{Micro, PrefetchForm};

const FORM: PrefetchForm = PrefetchForm::SapphireRapids;
const WORKLOADS: u32 = 1000;

fn pairs() -> Vec<Pair> {
    let mut pairs = micros(&CONSTANTS, FORM);
    pairs.extend((0..WORKLOADS).map(|n| {
        let program = Program {
            miss_stalls: f64::from(n % 50) / 100.0,
            aol: 10.0 + f64::from(n * 7 % 240),
            level_stalls: f64::from(n % 9) / 30.0,
            fill_buffer_hits: 0.6,
            from_memory: f64::from(n % 11) / 11.0,
            by_l1: 0.4,
            store: f64::from(n % 5) / 25.0,
        };
        program.pair(Micro::Mixed, &CONSTANTS, FORM)
    }));
    pairs
}

fn benchmarks(criterion: &mut Criterion) {
    let pairs = pairs();
    criterion.bench_function("calibrate on 1000 workloads", |bencher| {
        bencher.iter(|| calibrate(black_box(&pairs), FORM));
    });
    let model = model(
        calibrate(&pairs, FORM).expect("the workloads determine it"),
        FORM,
    );
    criterion.bench_function("predict 1000 workloads", |bencher| {
        bencher.iter(|| {
            let predicted = pairs.iter().filter_map(|pair| {
                let run = Run::of(&pair.local).ok()?;
                predict(&model, &run).ok()
            });
            predicted.count()
        });
    });
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
