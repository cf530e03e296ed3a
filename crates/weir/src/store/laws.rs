//! What holds of every store: what was put in comes back, a run is taken up as often as one likes,
//! filters let through what they say, and queries over many runs read indices only.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use weir_model::topology::TierName;

const MACHINES: [&str; 4] = ["host", "emr2s", "emr2s+cxl-a", "spr2s"];
const EXPERIMENTS: [&str; 3] = ["latency", "random", "tail"];
const TIERS: [&str; 3] = ["dram", "cxl0", "remote"];

fn a_store() -> (TempDir, Store) {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("runs.sqlite")).unwrap();
    (folder, store)
}

fn a_run(machine: &str, planned: usize) -> NewRun {
    NewRun {
        verb: "bench random".into(),
        machine: machine.into(),
        machine_kind: "sim".into(),
        digest: format!("digest of {machine}"),
        seed: 7,
        arguments: json!(["bench", "random"]),
        host: Value::Null,
        document: json!({"schema": "weir/bench/1"}),
        list_key: "points",
        planned,
        elapsed_s: 0.0,
    }
}

fn keep(store: &mut Store, run: RunId, seq: usize, body: &Value) {
    let figure = Figure::<_, Value> {
        seq,
        body,
        record: None,
        warnings: &[],
        elapsed_s: 1.0,
        address: None,
    };
    store.add(run, &figure).unwrap();
}

/// A figure in short: machine, experiment and tier by index, GB/s, ns.
type Short = (usize, usize, Option<f64>, Option<f64>);

fn figure() -> impl Strategy<Value = Short> {
    let value = || prop::option::of(0.1..1e4_f64);
    (0..EXPERIMENTS.len(), 0..TIERS.len(), value(), value())
}

fn body(&(experiment, tier, gbps, mean): &Short) -> Value {
    json!({
        "experiment": EXPERIMENTS[experiment],
        "tier": TIERS[tier],
        "gbps": gbps,
        "ns": mean.map(|mean| json!({"mean": mean})),
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    (
        prop::option::of(prop::sample::select(vec![
            "", "h", "emr2s", "emr2s+", "zzz",
        ])),
        prop::option::of(prop::sample::select(EXPERIMENTS.to_vec())),
        prop::option::of(prop::sample::select(TIERS.to_vec())),
        prop::option::of(0..4_u32),
        prop::option::of(prop::sample::select(vec![Metric::Gbps, Metric::Ns])),
    )
        .prop_map(|(machine, experiment, tier, limit, metric)| Filter {
            machine: machine.map(str::to_owned),
            experiment: experiment.map(str::to_owned),
            tier: tier.map(TierName::named),
            since_s: None,
            limit,
            metric,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_put_in_comes_back_to_the_last_bit(
        samples in vec((any::<f64>().prop_filter("JSON has no other", |f| f.is_finite()), ".*"), 1..8),
        seed in any::<u64>(),
    ) {
        let (_folder, mut store) = a_store();
        let run = store.begin(&NewRun { seed, ..a_run("host", samples.len()) }).unwrap();
        for (seq, (figure, words)) in samples.iter().enumerate() {
            keep(&mut store, run, seq, &json!({"figure": figure, "words": words}));
        }
        let back = store.load(run).unwrap();
        prop_assert_eq!(back.summary.seed, seed);
        prop_assert_eq!(back.summary.kept, samples.len());
        for (point, (figure, words)) in back.document["points"].as_array().unwrap().iter().zip(&samples) {
            prop_assert_eq!(point["figure"].as_f64().unwrap().to_bits(), figure.to_bits());
            prop_assert_eq!(point["words"].as_str().unwrap(), words);
        }
    }

    /// However often a run stops, and whichever figures it had by then, its plan is what it was, the last figure of
    /// a point is its answer, and another run sees it only where answers are shared.
    #[test]
    fn a_run_is_resumed_with_its_plan_and_its_answers(
        points in vec(".{0,9}", 1..20),
        stops in vec(vec((any::<prop::sample::Index>(), 1..4_u32), 0..6), 0..5),
        rounds in 1..4_u32,
    ) {
        let (_folder, mut store) = a_store();
        let plan = Plan::new("emr2s", rounds, &points).unwrap();
        let run = store.begin_planned(&a_run("emr2s", points.len()), &plan).unwrap();
        let other = store.begin(&a_run("emr2s", points.len())).unwrap();
        let mut had = vec![0; points.len()];
        let address = |seq: usize| format!("{seq}");
        for stop in &stops {
            let kept = store.plan::<String>(run).unwrap().unwrap();
            prop_assert_eq!((&kept.points, kept.rounds), (&points, rounds));
            for (index, repetitions) in stop {
                let seq = index.index(points.len());
                let body = json!({ "repetitions": repetitions });
                let address = address(seq);
                store.add(run, &Figure::<_, ()> {
                    seq,
                    body: &body,
                    record: None,
                    warnings: &[],
                    elapsed_s: 1.0,
                    address: Some(&address),
                }).unwrap();
                had[seq] = *repetitions;
            }
            for (seq, had) in had.iter().enumerate() {
                let answer = |of, shared| store.answer(of, seq, &address(seq), shared, false).unwrap();
                let body = answer(run, false).map(|answer| answer.body);
                prop_assert_eq!(&body, &(*had > 0).then(|| json!({ "repetitions": had }).to_string()));
                prop_assert_eq!(answer(other, false), None);
                prop_assert_eq!(answer(other, true).map(|answer| answer.body), body);
            }
            store.reopen(run, &[]).unwrap();
        }
        let back = store.load(run).unwrap();
        prop_assert_eq!(back.summary.kept, had.iter().filter(|had| **had > 0).count());
        prop_assert_eq!(back.places.len(), back.summary.kept);
        let points = back.document["points"].as_array().unwrap();
        for (seq, point) in back.places.iter().zip(points) {
            prop_assert_eq!(point["repetitions"].as_u64(), Some(u64::from(had[*seq])));
        }
    }

    #[test]
    fn a_plan_is_known_by_its_points_and_their_order(
        one in vec(".{0,5}", 0..6),
        other in vec(".{0,5}", 0..6),
    ) {
        let digest = |points: &[String]| Plan::new("host", 1, points).unwrap().digest;
        prop_assert_eq!(digest(&one) == digest(&other), one == other);
    }

    #[test]
    fn a_filter_lets_through_what_a_plain_look_does(
        runs in vec((0..MACHINES.len(), vec(figure(), 0..5)), 0..8),
        filter in filter(),
    ) {
        let (_folder, mut store) = a_store();
        for (machine, figures) in &runs {
            let run = store.begin(&a_run(MACHINES[*machine], figures.len())).unwrap();
            for (seq, figure) in figures.iter().enumerate() {
                keep(&mut store, run, seq, &body(figure));
            }
        }
        let fits = |figure: &&Short| {
            let &&(experiment, tier, ..) = figure;
            filter.experiment.as_deref().is_none_or(|wanted| wanted == EXPERIMENTS[experiment])
                && filter.tier.as_ref().is_none_or(|wanted| wanted.as_str() == TIERS[tier])
        };
        let narrow = filter.experiment.is_some() || filter.tier.is_some();
        let expected: Vec<(i64, Option<f64>, Option<f64>)> = (runs.iter().enumerate())
            .rev()
            .map(|(at, run)| (at as i64 + 1, run))
            .filter(|(_, (machine, figures))| {
                let named = filter.machine.as_ref();
                named.is_none_or(|m| MACHINES[*machine].starts_with(m.as_str()))
                    && (!narrow || figures.iter().any(|f| fits(&f)))
            })
            .take(filter.limit.unwrap_or(u32::MAX) as usize)
            .map(|(id, (_, figures))| {
                let best = figures.iter().filter(fits).filter_map(|f| f.2).reduce(f64::max);
                let least = figures.iter().filter(fits).filter_map(|f| f.3).reduce(f64::min);
                (
                    id,
                    best.filter(|_| filter.metric == Some(Metric::Gbps)),
                    least.filter(|_| filter.metric == Some(Metric::Ns)),
                )
            })
            .collect();
        let listed: Vec<_> = (store.query(&filter).unwrap().iter())
            .map(|run| (run.id.0, run.best_gbps, run.least_ns))
            .collect();
        prop_assert_eq!(listed, expected);
    }
}

/// Ten thousand runs, put in as one transaction: what is measured is the query.
pub(super) fn ten_thousand_runs(store: &mut Store) {
    let step = store.db.transaction().unwrap();
    for n in 0..10_000_usize {
        let run = enter(&step, &a_run(MACHINES[n % 4], 4)).unwrap();
        for seq in 0..4 {
            let short = ((n + seq) % 3, seq % 3, Some(n as f64), Some(100.0));
            step.execute(
                "INSERT INTO results (run, seq, body) VALUES (?1, ?2, ?3)",
                params![run.0, seq, body(&short).to_string()],
            )
            .unwrap();
        }
    }
    step.execute(
        "UPDATE runs SET kept = 4, state = 'done', started_s = 1700000000 + 60 * id",
        [],
    )
    .unwrap();
    step.commit().unwrap();
}

#[test]
fn queries_over_ten_thousand_runs_look_into_indices_only() {
    let (_folder, mut store) = a_store();
    ten_thousand_runs(&mut store);
    let everything = Filter {
        machine: Some("emr2s".into()),
        experiment: Some("random".into()),
        tier: Some(TierName::dram()),
        since_s: Some(1_700_300_000),
        limit: Some(20),
        metric: Some(Metric::Gbps),
    };
    let each = [
        Filter {
            machine: everything.machine.clone(),
            ..Filter::default()
        },
        Filter {
            experiment: everything.experiment.clone(),
            ..Filter::default()
        },
        Filter {
            tier: everything.tier.clone(),
            metric: Some(Metric::Ns),
            ..Filter::default()
        },
        Filter {
            since_s: everything.since_s,
            ..Filter::default()
        },
        everything.clone(),
    ];
    for filter in &each {
        let sql = format!("EXPLAIN QUERY PLAN {}", filter.sql());
        let mut query = store.db.prepare(&sql).unwrap();
        let steps: Vec<String> = filter
            .values(|values| {
                let rows = query.query_map(values, |row| row.get(3))?;
                rows.collect::<rusqlite::Result<_>>()
            })
            .unwrap();
        let text = steps.join("\n");
        assert!(
            text.contains("SCAN runs USING COVERING INDEX runs_lines"),
            "{text}"
        );
        // Figures are met through the index that holds what is asked of them.
        for step in steps.iter().filter(|step| step.contains("results")) {
            assert!(step.contains("INDEX results_by_what (run=?"), "{text}");
        }
    }
    let listed = store.query(&everything).unwrap();
    assert_eq!(listed.len(), 20);
    assert!(listed.iter().all(|run| run.machine.starts_with("emr2s")));
    assert_eq!(store.list().unwrap().len(), 10_000);
}
