//! The device disappears, or the file is cut off, while a pool is open: errors and no SIGBUS, and what is left is whole.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use weir_namespace::{Create, Keep, Make, Namespace, NamespaceError, Options, Pool};

const BYTES: u64 = 1 << 20;

fn host(name: &str) -> Options {
    Options {
        host: Some(name.into()),
        ..Options::default()
    }
}

/// A pool with two namespaces, the second one open, and what is in its file.
fn pool(folder: &Path, lease: Duration) -> (PathBuf, Pool, Namespace, Vec<u8>) {
    let path = folder.join("pool");
    let make = Make {
        bytes: Some(BYTES),
        places: 2,
        entries: 8,
        holders: 8,
        hosts: vec!["b".into()],
        lease,
        ..Make::default()
    };
    let pool = Pool::make(&path, &make, host("a")).unwrap();
    let keep = |size| Create {
        keep: Keep::Forever,
        ..Create::of(size)
    };
    for name in ["first", "second"] {
        pool.create(name, &keep(128 << 10)).unwrap();
        let namespace = pool.map(name, true).unwrap();
        let text = name.as_bytes().repeat((128 << 10) / name.len());
        namespace.write_at(0, &text).unwrap();
        namespace.flush(0, text.len()).unwrap();
        namespace.close().unwrap();
    }
    let held = pool.map("second", true).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (path, pool, held, bytes)
}

fn cut(path: &Path, bytes: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
}

/// Whether an error says that memory cannot be accessed, or nothing went wrong.
fn is_gone<T>(done: Result<T, NamespaceError>) -> bool {
    match done {
        Ok(_) => false,
        Err(why) => {
            let text = why.to_string();
            assert!(
                text.contains("cannot be accessed") && text.contains("gone"),
                "{text}"
            );
            true
        }
    }
}

#[test]
fn without_its_table_a_pool_refuses_everything_and_has_lost_nothing_of_it() {
    for left in [0, 4096, 8192] {
        let folder = tempfile::tempdir().unwrap();
        // Signs of life come from a thread of their own, every millisecond.
        let (path, pool, held, whole) = pool(folder.path(), Duration::from_millis(4));
        cut(&path, left);
        std::thread::sleep(Duration::from_millis(30));
        let mut bytes = [0; 16];
        assert!(is_gone(pool.table()));
        // A sign of life may have come between reading all of it and the cut.
        let kept = std::fs::read(&path).unwrap();
        assert_eq!(kept.len() as u64, left);
        assert!(is_gone(pool.create("third", &Create::of(4096))));
        assert!(is_gone(pool.map("first", false)));
        assert!(is_gone(pool.destroy("first")));
        assert!(is_gone(pool.resize("first", 4096)));
        assert!(is_gone(pool.hand_over("first", "b", true)));
        assert!(is_gone(pool.admit("c")));
        assert!(is_gone(pool.recover()));
        assert!(is_gone(pool.first_unscrubbed()));
        assert!(is_gone(held.read_at(0, &mut bytes)));
        assert!(is_gone(held.write_at(0, &bytes)));
        assert!(is_gone(held.flush(0, 16)));
        assert!(pool.hosts().is_empty());
        assert!(is_gone(held.close()));
        drop(pool);
        assert_eq!(std::fs::read(&path).unwrap(), kept);
        // The device is back, with what it had.
        std::fs::write(&path, &whole).unwrap();
        let pool = Pool::open(&path, host("a")).unwrap();
        for name in ["first", "second"] {
            let namespace = pool.map(name, false).unwrap();
            namespace.read_at(0, &mut bytes[..5]).unwrap();
            assert_eq!(&bytes[..5], &name.as_bytes()[..5]);
        }
        assert_eq!(pool.first_unscrubbed().unwrap(), None);
    }
}

#[test]
fn what_is_before_the_cut_is_served_and_what_is_behind_it_is_never_free() {
    let folder = tempfile::tempdir().unwrap();
    let (path, pool, held, whole) = pool(folder.path(), Duration::from_secs(60));
    let entry = pool.table().unwrap().named("second").unwrap().clone();
    cut(&path, entry.offset + 8192);
    let mut bytes = [0; 6];
    held.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"second");
    held.flush(0, 8192).unwrap();
    assert!(is_gone(held.read_at(8192, &mut bytes)));
    assert!(is_gone(held.flush(0, 8193)));
    held.close().unwrap();
    let first = pool.map("first", true).unwrap();
    first.write_at(0, b"still").unwrap();
    // A range that cannot be scrubbed is not free.
    assert!(is_gone(pool.destroy("second")));
    assert!(is_gone(pool.first_unscrubbed()));
    assert!(pool.create("large", &Create::of(BYTES / 2)).is_ok());
    let free = pool.free().unwrap();
    let end = entry.offset + entry.size;
    assert!(
        free.iter()
            .all(|(at, bytes)| at + bytes <= entry.offset || *at >= end),
        "{free:?}"
    );
    // Once it is back, the scrub is finished.
    let mut now = std::fs::read(&path).unwrap();
    now.extend_from_slice(&whole[now.len()..]);
    first.close().unwrap();
    drop(pool);
    std::fs::write(&path, &now).unwrap();
    let pool = Pool::open(&path, host("a")).unwrap();
    assert_eq!(pool.first_unscrubbed().unwrap(), None);
}

#[test]
fn a_file_without_a_name_stays_until_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, pool, held, _) = pool(folder.path(), Duration::from_secs(60));
    std::fs::remove_file(&path).unwrap();
    held.write_at(0, b"here").unwrap();
    pool.create("third", &Create::of(4096)).unwrap();
    assert_eq!(pool.table().unwrap().entries.len(), 3);
    let refused = Pool::open(&path, host("a")).err().unwrap().to_string();
    assert!(refused.contains("cannot open"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Wherever it is cut: no signal, no panic, and the bytes before the cut are those of whole changes.
    #[test]
    fn a_pool_is_cut_anywhere(left in 0..BYTES) {
        let folder = tempfile::tempdir().unwrap();
        let (path, pool, held, whole) = pool(folder.path(), Duration::from_millis(4));
        cut(&path, left);
        let mut bytes = [0; 4096];
        for at in (0..held.bytes()).step_by(4096) {
            let done = held.read_at(at, &mut bytes);
            prop_assert_eq!(held.offset() + at + 4096 > left, is_gone(done));
        }
        let _ = pool.create("third", &Create::of(4096));
        let _ = pool.resize("first", 256 << 10);
        let _ = pool.destroy("first");
        let _ = pool.recover();
        drop(held);
        drop(pool);
        let mut back = std::fs::read(&path).unwrap();
        prop_assert_eq!(back.len() as u64, left);
        back.extend_from_slice(&whole[back.len()..]);
        std::fs::write(&path, &back).unwrap();
        let pool = Pool::open(&path, host("a")).unwrap();
        let second = pool.map("second", false).unwrap();
        second.read_at(0, &mut bytes[..6]).unwrap();
        prop_assert_eq!(&bytes[..6], b"second");
        prop_assert_eq!(pool.first_unscrubbed().unwrap(), None);
    }
}
