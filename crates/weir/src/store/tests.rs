use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("runs.sqlite");
    (folder, path)
}

fn a_run(machine: &str) -> NewRun {
    NewRun {
        verb: "bench latency".into(),
        machine: machine.into(),
        machine_kind: "sim".into(),
        digest: "d1".into(),
        seed: u64::MAX,
        arguments: json!(["bench", "latency"]),
        host: json!({"processor": "a processor"}),
        document: json!({"schema": "weir/bench/1"}),
        list_key: "points",
        planned: 3,
        elapsed_s: 0.0,
    }
}

fn add(store: &mut Store, run: RunId, seq: usize) -> Result<(), StoreError> {
    store.add(
        run,
        &Figure {
            seq,
            body: &json!({"seq": seq, "padding": "x".repeat(500)}),
            record: Some(&json!({"raw": seq})),
            warnings: &["the clock wanders".to_owned()],
            elapsed_s: seq as f64,
            address: None,
        },
    )
}

#[test]
fn a_run_that_is_kept_when_it_ends_began_before() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    for elapsed_s in [0.0, 7200.0] {
        store
            .begin(&NewRun {
                elapsed_s,
                ..a_run("host")
            })
            .unwrap();
    }
    let hour_ago = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs() as i64
        - 3600;
    let latest = Filter {
        since_s: Some(hour_ago),
        ..Filter::default()
    };
    let ids: Vec<RunId> = (store.query(&latest).unwrap().iter())
        .map(|line| line.id)
        .collect();
    assert_eq!(ids, [RunId(1)]);
}

#[test]
fn a_finished_run_reads_back_whole_and_in_plan_order() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    let run = store.begin(&a_run("emr2s")).unwrap();
    for seq in [2, 0, 1] {
        add(&mut store, run, seq).unwrap();
    }
    store
        .finish(run, RunState::Done, 9.5, &["a warning".into()])
        .unwrap();

    let stored = Store::open_existing(&path)
        .unwrap()
        .unwrap()
        .load(run)
        .unwrap();
    assert_eq!(stored.summary.seed, u64::MAX);
    assert!(!stored.summary.partial);
    assert_eq!(stored.document["partial"], json!(false));
    assert_eq!(stored.document["elapsed_s"], json!(9.5));
    assert_eq!(
        stored.document["warnings"],
        json!(["a warning", "the clock wanders"])
    );
    let order: Vec<u64> = stored.document["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(order, [0, 1, 2]);
    assert_eq!(stored.records.len(), 3);
}

#[test]
fn a_run_that_never_finished_is_partial_with_what_it_had() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    let run = store.begin(&a_run("host")).unwrap();
    add(&mut store, run, 0).unwrap();
    drop(store);
    let stored = Store::open(&path).unwrap().load(run).unwrap();
    assert_eq!((stored.summary.kept, stored.summary.planned), (1, 3));
    assert_eq!(stored.document["partial"], json!(true));
}

#[test]
fn runs_are_found_by_number_by_last_and_by_machine() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    for machine in ["host", "emr2s+cxl-a", "host", "emr2s"] {
        store.begin(&a_run(machine)).unwrap();
    }
    let found = |name: &str| store.find(name).map(|id| id.0).ok();
    assert_eq!(found("2"), Some(2));
    assert_eq!(found("last"), Some(4));
    assert_eq!(found("host"), Some(3));
    assert_eq!(found("emr2s"), Some(4));
    assert_eq!(found("emr2s+"), Some(2));
    assert_eq!(found("5"), None);
    assert_eq!(found(""), None);
}

#[test]
fn a_run_keeps_the_number_of_the_one_that_was_the_last() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    let words = json!(["accept", "--baseline=last", "last", "lastly", "--", "last"]);
    let mut kept = || {
        let run = NewRun {
            arguments: words.clone(),
            ..a_run("host")
        };
        let run = store.begin(&run).unwrap();
        store.load(run).unwrap().arguments
    };
    assert_eq!(kept(), words, "there was none");
    assert_eq!(
        kept(),
        json!(["accept", "--baseline=1", "1", "lastly", "--", "last"])
    );
}

#[test]
fn a_store_that_may_not_be_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a store?.sqlite");
    let mut store = Store::open(&path).unwrap();
    let run = store.begin(&a_run("host")).unwrap();
    drop(store);
    let before = std::fs::read(&path).unwrap();
    let store = Store::read_only(&path).unwrap();
    assert_eq!(store.list().unwrap()[0].id, run);
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// What is locked may be read after a while, and is not what it was before.
#[test]
fn a_store_that_is_locked_is_not_read_past_its_lock() {
    let (_folder, path) = place();
    drop(Store::open(&path).unwrap());
    let held = Connection::open(&path).unwrap();
    held.pragma_update(None, "locking_mode", "EXCLUSIVE")
        .unwrap();
    held.execute_batch("BEGIN EXCLUSIVE; DELETE FROM runs")
        .unwrap();
    let refused = Store::read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Busy { .. }), "{refused}");
}

#[test]
fn a_store_from_a_newer_version_is_refused_and_left_alone() {
    let (_folder, path) = place();
    drop(Store::open(&path).unwrap());
    let db = Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", schema::VERSION + 1)
        .unwrap();
    drop(db);
    let before = fs::read(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found, .. } if found == schema::VERSION + 1));
    assert!(error.to_string().contains("update Weir"));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_refused() {
    let (_folder, path) = place();
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    assert!(matches!(
        Store::open(&path),
        Err(StoreError::Foreign { .. })
    ));
}

#[test]
fn an_empty_file_becomes_a_store_only_where_a_run_is_kept() {
    let (_folder, path) = place();
    fs::write(&path, "").unwrap();
    assert!(Store::open_existing(&path).unwrap().is_none());
    assert_eq!(fs::read(&path).unwrap(), b"");
    Store::open(&path).unwrap();
    assert!(Store::open_existing(&path).unwrap().is_some());
}

#[test]
fn a_store_cut_anywhere_is_damaged_and_never_replaced() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    let run = store.begin(&a_run("host")).unwrap();
    for seq in 0..200 {
        add(&mut store, run, seq).unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    for keep in [1, 99, 600, 4096, 5000, whole.len() / 2, whole.len() - 4096] {
        fs::write(&path, &whole[..keep]).unwrap();
        let read = Store::open(&path).and_then(|store| store.load(run).map(drop));
        let error = read.expect_err("a cut store is no store");
        assert!(
            matches!(error, StoreError::Damaged { .. }),
            "{keep}: {error}"
        );
        assert_eq!(fs::read(&path).unwrap(), &whole[..keep], "cut at {keep}");
    }
}

#[test]
fn a_file_of_something_else_is_no_store() {
    let (_folder, path) = place();
    fs::write(&path, "to be or not to be\n".repeat(500)).unwrap();
    assert!(matches!(
        Store::open(&path),
        Err(StoreError::Damaged { .. })
    ));
}

#[test]
fn a_full_disk_is_reported_and_keeps_what_was_written_before() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    let run = store.begin(&a_run("host")).unwrap();
    // SQLite reports its own page limit as it reports a full disk.
    store.db.pragma_update(None, "max_page_count", 20).unwrap();
    let mut kept = 0;
    let error = loop {
        match add(&mut store, run, kept) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1000, "the disk never fills");
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(kept > 0);
    assert_eq!(store.load(run).unwrap().summary.kept, kept);
}

#[test]
fn a_store_that_was_removed_or_replaced_takes_no_figure_in_silence() {
    for is_replaced in [false, true] {
        let (_folder, path) = place();
        let mut store = Store::open(&path).unwrap();
        let run = store.begin(&a_run("host")).unwrap();
        add(&mut store, run, 0).unwrap();
        fs::rename(&path, path.with_extension("old")).unwrap();
        if is_replaced {
            drop(Store::open(&path).unwrap());
        }
        for refused in [
            add(&mut store, run, 1),
            store.finish(run, RunState::Done, 1.0, &[]),
        ] {
            let why = refused.unwrap_err().to_string();
            assert!(why.contains("removed, moved or replaced"), "{why}");
        }
    }
}

#[test]
fn two_writers_wait_for_each_other_and_lose_nothing() {
    let (_folder, path) = place();
    let write = || {
        let mut store = Store::open(&path).unwrap();
        let run = store.begin(&a_run("host")).unwrap();
        for seq in 0..50 {
            add(&mut store, run, seq).unwrap();
        }
        store.finish(run, RunState::Done, 1.0, &[]).unwrap();
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(write);
        }
    });
    let runs = Store::open(&path).unwrap().list().unwrap();
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run.kept == 50 && !run.partial));
}

#[test]
fn reading_where_there_is_no_store_makes_none() {
    let (_folder, path) = place();
    assert!(Store::open_existing(&path).unwrap().is_none());
    assert!(!path.exists());
}

#[test]
fn a_document_that_is_no_object_is_damage_and_no_panic() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    let run = store
        .begin(&NewRun {
            document: Value::Null,
            ..a_run("host")
        })
        .unwrap();
    assert!(matches!(store.load(run), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_store_of_the_first_format_is_brought_along_with_all_it_holds() {
    let (_folder, path) = place();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(schema::STEPS[0]).unwrap();
    old.execute_batch(
        r#"INSERT INTO runs (started_s, verb, machine, machine_kind, digest, seed, weir, arguments,
                             host, document, list_key, planned, state, elapsed_s)
           VALUES (1700000000, 'bench bandwidth', 'emr2s', 'sim', 'd', -1, '0.0.1', '["bench"]',
                   'null', '{"schema": "weir/bench/1"}', 'points', 2, 'done', 2.5);
           INSERT INTO results (run, seq, body) VALUES
               (1, 0, '{"experiment": "bandwidth", "tier": "dram", "gbps": 10.5}'),
               (1, 1, '{"experiment": "latency", "tier": "dram", "ns": {"mean": 99}}');
           PRAGMA application_id = 0x57656972;
           PRAGMA user_version = 1;"#,
    )
    .unwrap();
    drop(old);

    let store = Store::open(&path).unwrap();
    let listed = store
        .query(&Filter {
            tier: Some(weir_model::topology::TierName::dram()),
            metric: Some(Metric::Gbps),
            ..Filter::default()
        })
        .unwrap();
    assert_eq!((listed[0].kept, listed[0].best_gbps), (2, Some(10.5)));
    assert_eq!(listed[0].seed, u64::MAX);
    let run = listed[0].id;
    assert_eq!(store.load(run).unwrap().places, [0, 1]);
    assert_eq!(store.plan::<Value>(run).unwrap(), None);
    // Figures of an older store have no address; a run that is resumed finds them by their place.
    assert_eq!(store.answer(run, 1, "x", true, false).unwrap(), None);
    assert!(store.answer(run, 1, "x", true, true).unwrap().is_some());
}

#[test]
fn times_are_dates_or_so_long_ago() {
    let (_folder, path) = place();
    let store = Store::open(&path).unwrap();
    let at = |words| store.time(words).unwrap();
    assert_eq!(at("2026-03-01"), Some(1_772_323_200));
    assert_eq!(
        at("2026-03-01 14:05"),
        Some(1_772_323_200 + 14 * 3600 + 300)
    );
    assert_eq!(at("1d").unwrap() - at("2d").unwrap(), 86_400);
    assert!(at("30m") > at("1h"));
    for nonsense in [
        "",
        "yesterday",
        "2026",
        "12",
        "d",
        "-3d",
        "2026-13-45",
        "now",
        "1e9d",
    ] {
        assert_eq!(at(nonsense), None, "{nonsense}");
    }
}

/// A finished run whose figures say what they are of and what was found.
fn measured(store: &mut Store, machine: &str, figures: &[(&str, u32)]) -> RunId {
    let run = store.begin(&a_run(machine)).unwrap();
    for (seq, (address, found)) in figures.iter().enumerate() {
        let figure = Figure::<_, Value> {
            seq,
            body: &json!({"found": found}),
            record: None,
            warnings: &[],
            elapsed_s: 1.0,
            address: Some(address),
        };
        store.add(run, &figure).unwrap();
    }
    run
}

#[test]
fn merged_stores_have_every_run_once_and_lose_no_figure() {
    let (_a, one) = place();
    let (_b, two) = place();
    let (mut own, mut theirs) = (Store::open(&one).unwrap(), Store::open(&two).unwrap());
    let kept = measured(&mut own, "emr2s", &[("x", 1), ("y", 2)]);
    own.finish(kept, RunState::Done, 1.0, &[]).unwrap();
    // Of the same command and second, with another figure of `y`: another run.
    let other = measured(&mut theirs, "emr2s", &[("x", 1), ("y", 3)]);
    theirs.finish(other, RunState::Done, 1.0, &[]).unwrap();
    theirs.keep(other, "workload", "z", "{}").unwrap();
    let partial = measured(&mut theirs, "spr2s", &[("p", 1)]);

    let merged = own.merge(&two).unwrap();
    assert_eq!((merged.added, merged.shared, merged.differ), (2, 2, 1));
    assert_eq!(own.list().unwrap().len(), 3);
    assert_eq!(own.recall("z", None).unwrap().as_deref(), Some("{}"));
    let again = own.merge(&two).unwrap();
    assert_eq!((again.added, again.known, again.continued), (0, 2, 0));

    // What was stopped there and went on is continued here under its number.
    let figure = Figure::<_, Value> {
        seq: 1,
        body: &json!({"found": 9}),
        record: None,
        warnings: &[],
        elapsed_s: 2.0,
        address: Some("q"),
    };
    theirs.add(partial, &figure).unwrap();
    theirs.finish(partial, RunState::Done, 2.0, &[]).unwrap();
    let third = own.merge(&two).unwrap();
    assert_eq!((third.added, third.known, third.continued), (0, 1, 1));
    let runs = own.list().unwrap();
    let line = runs.iter().find(|run| run.machine == "spr2s").unwrap();
    assert!(line.kept == 2 && !line.partial && runs.len() == 3);
    // And the other way round nothing is taken back.
    let back = theirs.merge(&one).unwrap();
    assert_eq!((back.added, back.known, back.continued), (1, 2, 0));
}

/// A study that asks no points has answers and no figures until it ends.
#[test]
fn answers_of_a_run_that_was_stopped_are_merged_each_time_and_never_lost() {
    let (_a, one) = place();
    let (_b, two) = place();
    let (mut own, mut theirs) = (Store::open(&one).unwrap(), Store::open(&two).unwrap());
    let here = own.begin(&a_run("emr2s")).unwrap();
    own.keep(here, "workload", "here", "{}").unwrap();
    let there = theirs.begin(&a_run("emr2s")).unwrap();
    for address in ["first", "second"] {
        theirs.keep(there, "workload", address, "{}").unwrap();
        own.merge(&two).unwrap();
        assert!(own.recall(address, None).unwrap().is_some(), "{address}");
    }
    theirs.finish(there, RunState::Done, 1.0, &[]).unwrap();
    own.merge(&two).unwrap();
    assert!(own.recall("here", None).unwrap().is_some());
    assert_eq!(own.list().unwrap().len(), 2);
}

#[test]
fn a_file_that_cannot_be_merged_leaves_both_as_they_were() {
    let (_a, one) = place();
    let (_b, two) = place();
    let mut own = Store::open(&one).unwrap();
    measured(&mut own, "emr2s", &[("x", 1)]);
    assert!(matches!(own.merge(&one), Err(StoreError::Same { .. })));
    fs::write(
        &two,
        "no store at all, but long enough to be read as a file of some sort ".repeat(20),
    )
    .unwrap();
    let refused = |own: &mut Store, words: &str| {
        let why = own.merge(&two).unwrap_err().to_string();
        assert!(why.contains(words) && !why.contains("--store"), "{why}");
    };
    refused(&mut own, "is damaged or is no store");
    fs::remove_file(&two).unwrap();
    drop(Store::open(&two).unwrap());
    for (form, words) in [(99, "format 99"), (-1, "not a store of Weir")] {
        let other = Connection::open(&two).unwrap();
        other.pragma_update(None, "user_version", form).unwrap();
        drop(other);
        refused(&mut own, words);
    }
    assert_eq!(own.list().unwrap().len(), 1);
    // The store is usable after each of them.
    measured(&mut own, "emr2s", &[("x", 1)]);
}

#[test]
fn a_run_that_is_settled_twice_has_its_last_rows_and_its_points_are_found() {
    let (_folder, path) = place();
    let mut store = Store::open(&path).unwrap();
    let run = measured(&mut store, "emr2s", &[("x", 1), ("y", 2), ("z", 3)]);
    for rows in [json!([{"row": 1}, {"row": 2}]), json!([{"row": 3}])] {
        let count = rows.as_array().unwrap().len();
        store
            .settle(
                run,
                &json!({"schema": "weir/accept/1", "checks": rows}),
                "checks",
            )
            .unwrap();
        let stored = store.load(run).unwrap();
        assert_eq!(stored.document["checks"], rows);
        assert_eq!(
            (stored.summary.kept, stored.summary.planned),
            (count, count)
        );
        for (seq, address) in ["x", "y", "z"].into_iter().enumerate() {
            let found = store
                .answer(run, seq, address, false, false)
                .unwrap()
                .unwrap();
            assert_eq!(found.body, json!({"found": seq + 1}).to_string());
        }
    }
}
