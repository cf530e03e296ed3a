//! Processes that are killed: at stores, one after the other, and at random while others work.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::drill::{self, WORKER, host, killed_at};
use weir_namespace::{Create, Keep, Make, Options, Pool, Resized};

fn own(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--test-threads=1", "--nocapture"]);
    command.stdout(std::process::Stdio::null());
    command
}

fn make() -> Make {
    Make {
        bytes: Some(512 << 10),
        places: 2,
        entries: 48,
        holders: 64,
        ..Make::default()
    }
}

/// The program that is killed; as a test it does nothing.
#[test]
fn worker() {
    let Ok(words) = std::env::var(WORKER) else {
        return;
    };
    if let Err(why) = drill::worker(&words) {
        eprintln!("worker: {why}");
        std::process::exit(9);
    }
}

fn drilled(operations: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let done = drill::drill(&path, &make(), operations, 0x9e37_79b9_7f4a_7c15, &|| {
        own("kill::worker")
    });
    let done = done.unwrap();
    assert!(done.killed > 0 && done.operations >= operations, "{done:?}");
    println!("{done:?}");
}

#[test]
fn a_thousand_random_operations_leave_nothing_behind() {
    drilled(1000);
}

#[test]
#[ignore = "long; the thousand are a sample of it"]
fn ten_thousand_random_operations_leave_nothing_behind() {
    drilled(10_000);
}

/// Every kind of change, one after the other.
fn changes(path: &str, options: Options) {
    let pool = Pool::open(path, options).unwrap();
    let fill = |name: &str| {
        let namespace = pool.map(name, true).unwrap();
        let tag = drill::tag(name).to_le_bytes();
        let bytes = tag.repeat(namespace.bytes() as usize / 8);
        namespace.write_at(0, &bytes).unwrap();
        namespace.close().unwrap();
    };
    let temporary = Create {
        keep: Keep::With(std::process::id()),
        ..Create::of(8192)
    };
    pool.create("a", &Create::of(8192)).unwrap();
    fill("a");
    pool.create("b", &temporary).unwrap();
    fill("b");
    assert_eq!(pool.resize("a", 12288).unwrap(), Resized::Moved);
    pool.resize("a", 4096).unwrap();
    pool.destroy("b").unwrap();
    pool.create("c", &temporary).unwrap();
    pool.hand_over("a", "drill", false).unwrap();
    pool.destroy("a").unwrap();
}

/// The program that makes the changes; as a test it does nothing.
#[test]
fn changer() {
    let Ok(words) = std::env::var("WEIR_NAMESPACE_CHANGER") else {
        return;
    };
    let (path, nth) = words.rsplit_once('@').unwrap();
    changes(path, killed_at(nth.parse().unwrap(), host()));
}

fn killed_at_every(part: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let path = path.to_str().unwrap();
    let fresh = || {
        let _ = std::fs::remove_file(path);
        Pool::make(path, &make(), host()).unwrap();
    };
    fresh();
    let stores = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&stores);
    let fault: weir_namespace::Fault = Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    changes(
        path,
        Options {
            fault: Some(fault),
            ..host()
        },
    );
    let all = stores.load(Ordering::Relaxed);
    assert!(all > 1000, "{all}");
    let mut nth = 0;
    while nth < all {
        fresh();
        let mut command = own("kill::changer");
        command.env("WEIR_NAMESPACE_CHANGER", format!("{path}@{nth}"));
        let status = command
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "store {nth} of {all} was not reached");
        let pool = Pool::open(path, host()).unwrap();
        let table = pool.table().unwrap();
        assert!(table.holders.is_empty(), "store {nth}");
        for entry in &table.entries {
            // What was kept with the process is gone, and nothing is half scrubbed.
            assert!(
                entry.is_live() && entry.name == "a",
                "store {nth}: {entry:?}"
            );
            let namespace = pool.map("a", false).unwrap();
            assert_eq!(drill::foreign(&namespace).unwrap(), None, "store {nth}");
        }
        assert_eq!(
            pool.first_unscrubbed().unwrap(),
            None,
            "store {nth} of {all}"
        );
        // Steps of a prime number reach every word of a line, and every line.
        nth += part;
    }
}

#[test]
fn a_kill_at_any_store_leaves_a_pool_that_recovers() {
    killed_at_every(149);
}

/// Nothing is recovered between them: what one leaves half written must not make the next one write over what counts.
#[test]
fn kills_in_a_row_leave_a_table_that_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let path = path.to_str().unwrap();
    Pool::make(path, &make(), host()).unwrap();
    let mut state = 0x2545_f491_4f6c_dd1d;
    for nth in 0..80 {
        let store = drill::random(&mut state) % 90;
        let mut command = own("kill::changer");
        command.env("WEIR_NAMESPACE_CHANGER", format!("{path}@{store}"));
        command.stderr(std::process::Stdio::null());
        assert!(!command.status().unwrap().success());
        let look = Options {
            read_only: true,
            ..Options::default()
        };
        Pool::open(path, look).unwrap_or_else(|why| panic!("kill {nth} at store {store}: {why}"));
    }
}

#[test]
#[ignore = "minutes; every 149th store is a sample of it"]
fn a_kill_at_every_single_store_leaves_a_pool_that_recovers() {
    killed_at_every(1);
}
