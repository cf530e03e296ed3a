//! Queries over ten thousand runs of ten figures each.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use weir::store::{Figure, Filter, Metric, NewRun, RunState, Store};
use weir_lab::studies::POINT_STUDIES;
use weir_model::topology::TierName;

const RUNS: usize = 10_000;
const FIGURES: usize = 10;

fn fill(store: &mut Store) {
    const MACHINES: [&str; 4] = ["host", "emr2s", "emr2s+cxl-a", "spr2s"];
    const TIERS: [&str; 2] = ["dram", "cxl0"];
    for n in 0..RUNS {
        let machine = MACHINES[n % MACHINES.len()];
        let experiment = POINT_STUDIES[n / 7 % POINT_STUDIES.len()].name;
        let run = NewRun {
            verb: format!("bench {}", experiment),
            machine: machine.into(),
            machine_kind: "sim".into(),
            digest: machine.into(),
            seed: 1,
            arguments: json!(["bench", experiment]),
            host: Value::Null,
            document: json!({"schema": "weir/bench/1", "topology": "x".repeat(4000)}),
            list_key: "points",
            planned: FIGURES,
            elapsed_s: 0.0,
        };
        let run = store.begin(&run).expect("the store takes a run");
        for seq in 0..FIGURES {
            let body = json!({
                "experiment": experiment,
                "tier": TIERS[seq % TIERS.len()],
                "gbps": (n + seq) as f64,
                "conditions": ["x".repeat(300)],
            });
            let figure = Figure {
                seq,
                body: &body,
                record: Some(&json!({"samples": vec![1.5; 100]})),
                warnings: &[],
                elapsed_s: 1.0,
                address: None,
            };
            store.add(run, &figure).expect("the store takes a figure");
        }
        store
            .finish(run, RunState::Done, 1.0, &[])
            .expect("the store ends a run");
    }
}

fn queries(criterion: &mut Criterion) {
    let folder = tempfile::TempDir::new().expect("a folder");
    let mut store = Store::open(&folder.path().join("runs.sqlite")).expect("a store");
    fill(&mut store);
    let of_tier = Filter {
        experiment: Some("random".into()),
        tier: Some(TierName::cxl(0)),
        metric: Some(Metric::Gbps),
        ..Filter::default()
    };
    let narrow = Filter {
        machine: Some("emr2s".into()),
        limit: Some(20),
        ..of_tier.clone()
    };
    let best_of_all = Filter {
        metric: Some(Metric::Gbps),
        ..Filter::default()
    };
    for (name, filter) in [
        ("every run", Filter::default()),
        ("every run with its best figure", best_of_all),
        ("of one experiment and tier", of_tier),
        ("the newest 20 of one machine, experiment and tier", narrow),
    ] {
        criterion.bench_function(&format!("10,000 runs: {name}"), |bencher| {
            bencher.iter(|| black_box(store.query(&filter).expect("the store answers")));
        });
    }
    criterion.bench_function("10,000 runs: the newest of a machine", |bencher| {
        bencher.iter(|| black_box(store.find("emr2s+").expect("there is one")));
    });
}

criterion_group!(store, queries);
criterion_main!(store);
