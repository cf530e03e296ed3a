//! Bad luck: full and failing media, stores that are open twice, files that are no store, buffers that stay.

use std::fs;
use std::path::Path;

use weir_flat::{FlatError, Options, Store};

use crate::media::Recorded;

fn options(create: u64) -> Options {
    Options {
        create: Some(create),
        cache: 1 << 20,
        flush_every: None,
        ..Options::default()
    }
}

fn read(store: &Store, name: &str) -> Vec<u8> {
    let mut bytes = vec![0; store.files()[name] as usize];
    store.file(name).unwrap().read_into(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_full_medium_refuses_a_write_and_keeps_what_it_has() {
    let store = Store::on(Box::new(Recorded::blank(1 << 20)), options(1 << 20)).unwrap();
    let mut written = Vec::new();
    let refused = loop {
        let name = format!("file {}", written.len());
        let file = store.create(&name).unwrap();
        match file.write_from(0, &vec![written.len() as u8; 64 << 10]) {
            Ok(()) => written.push(name),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(refused, FlatError::MediumFull { asked: 65536, .. }),
        "{refused}"
    );
    assert!(
        refused
            .to_string()
            .starts_with("recorded is full: 65536 bytes are to be written, "),
        "{refused}"
    );
    // 126 pages are for files.
    assert_eq!(written.len(), 7);
    for (nth, name) in written.iter().enumerate() {
        assert_eq!(read(&store, name), vec![nth as u8; 64 << 10]);
    }
    // A version needs a place next to the one that it replaces; a removal makes room.
    store.remove(&written[0]).unwrap();
    store
        .file(&written[1])
        .unwrap()
        .write_from(0, &vec![99; 64 << 10])
        .unwrap();
    assert_eq!(read(&store, &written[1]), vec![99; 64 << 10]);
}

#[test]
fn a_write_that_fails_leaves_pages_dirty_and_the_next_flush_has_them() {
    let medium = Recorded::blank(2 << 20);
    let store = Store::on(Box::new(medium.clone()), options(2 << 20)).unwrap();
    store
        .create("a")
        .unwrap()
        .write_from(100, &[7; 20_000])
        .unwrap();
    medium.inside().fail_writes = true;
    let refused = store.flush().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot write recorded: Input/output error (os error 5)"
    );
    assert_eq!(store.stats().failed_flushes, 1);
    assert_eq!(read(&store, "a")[100..], [7; 20_000]);
    medium.inside().fail_writes = false;
    store.sync().unwrap();
    drop(store);
    let again = Store::on(Box::new(medium), options(2 << 20)).unwrap();
    assert_eq!(read(&again, "a")[100..], [7; 20_000]);
}

#[test]
fn wherever_writes_begin_to_fail_the_files_are_those_of_one_commit() {
    for barriers in [false, true] {
        for first in 0..16 {
            let medium = Recorded::blank(2 << 20);
            if barriers {
                medium.inside().fail_barriers = first == 0;
            } else {
                medium.inside().fail_from = Some(first);
            }
            let mut committed = 0;
            let opened = Store::on(Box::new(medium.clone()), options(2 << 20));
            if let Ok(store) = opened {
                let file = store.create("a").unwrap();
                for version in 1..6_u8 {
                    if barriers && version == first as u8 {
                        medium.inside().fail_barriers = true;
                    }
                    if file.write_from(0, &vec![version; 40_000]).is_err() || store.sync().is_err()
                    {
                        // It stays refused where the log is in doubt, and reads go on.
                        assert!(matches!(
                            store.sync(),
                            Err(FlatError::Failed { .. } | FlatError::Io { .. })
                        ));
                        let mut byte = [0];
                        file.read_into(0, &mut byte).unwrap();
                        assert!(byte[0] == version || byte[0] + 1 == version);
                        break;
                    }
                    committed = version;
                }
            }
            {
                let mut inside = medium.inside();
                (inside.fail_from, inside.fail_barriers) = (None, false);
            }
            let again = Store::on(Box::new(medium), options(2 << 20)).unwrap();
            let there = again.files().contains_key("a");
            let found = if there { read(&again, "a") } else { Vec::new() };
            let version = found.first().copied().unwrap_or(0);
            assert!(found.iter().all(|byte| *byte == version), "torn");
            assert!(
                (committed..=committed + 1).contains(&version),
                "{version} of {committed}, from write {first}"
            );
        }
    }
}

#[test]
fn a_read_that_fails_is_an_error_and_later_reads_work() {
    let medium = Recorded::blank(2 << 20);
    let store = Store::on(Box::new(medium.clone()), options(2 << 20)).unwrap();
    let file = store.create("a").unwrap();
    file.write_from(0, &[5; 40_000]).unwrap();
    store.drop_caches().unwrap();
    medium.inside().fail_reads = true;
    let mut buffer = store.buffer(40_000).unwrap();
    let refused = file.read(0, 40_000, &mut buffer).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot read recorded: Input/output error (os error 5)"
    );
    assert!(
        file.write_from(10, &[1; 10]).is_err(),
        "the rest of the page cannot be had"
    );
    medium.inside().fail_reads = false;
    assert_eq!(file.read(0, 40_000, &mut buffer).unwrap(), 40_000);
    assert_eq!(buffer.bytes(), [5; 40_000]);
    // What had to be loaded is a miss, and the next read a hit.
    assert_eq!(
        (store.stats().hit_pages, store.stats().missed_pages),
        (0, 10 + 1)
    );
    file.read(0, 40_000, &mut buffer).unwrap();
    assert_eq!(
        (store.stats().hit_pages, store.stats().missed_pages),
        (10, 10 + 1)
    );
}

#[test]
fn buffers_that_hold_every_frame_refuse_a_write_until_one_is_dropped() {
    let store = Store::on(Box::new(Recorded::blank(4 << 20)), options(4 << 20)).unwrap();
    let mut buffers = Vec::new();
    let refused = loop {
        let mut buffer = store.buffer(256 << 10).unwrap();
        match buffer.renew() {
            Ok(()) => buffers.push(buffer),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            refused,
            FlatError::CacheFull {
                asked: 262_144,
                limit: 1_048_576
            }
        ),
        "{refused}"
    );
    assert_eq!(buffers.len(), 4);
    let file = store.create("a").unwrap();
    assert!(matches!(
        file.write_from(0, &[1; 10]),
        Err(FlatError::CacheFull { .. })
    ));
    buffers.pop();
    file.write_from(0, &[1; 10]).unwrap();
    assert_eq!(store.stats().frame_references, 3 * 64 + 1);
}

#[test]
fn a_store_is_open_once_and_a_buffer_outlives_its_file_and_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path, options(4 << 20)).unwrap();
    let refused = Store::open(&path, options(4 << 20)).err().unwrap();
    assert!(
        matches!(&refused, FlatError::InUse { path: found } if *found == path),
        "{refused}"
    );
    let file = store.create("a").unwrap();
    file.write_from(0, &[3; 100_000]).unwrap();
    let mut buffer = store.buffer(100_000).unwrap();
    file.read(0, 100_000, &mut buffer).unwrap();
    store.remove("a").unwrap();
    assert!(matches!(file.bytes(), Err(FlatError::Missing { name }) if name == "a"));
    // What takes the place of the file does not reach the buffer.
    let other = store.create("a").unwrap();
    for version in 0..20 {
        other.write_from(0, &[version; 100_000]).unwrap();
        store.flush().unwrap();
    }
    assert_eq!(buffer.bytes(), [3; 100_000]);
    store.close().unwrap();
    assert!(matches!(other.write_from(0, &[1]), Err(FlatError::Closed)));
    drop((file, other));
    assert_eq!(buffer.bytes(), [3; 100_000]);
    assert!(
        matches!(Store::open(&path, options(1)), Err(FlatError::InUse { .. })),
        "its pages could change"
    );
    drop(buffer);
    assert_eq!(
        read(&Store::open(&path, options(1)).unwrap(), "a"),
        [19; 100_000]
    );
}

#[test]
fn pages_of_the_medium_that_a_buffer_maps_are_not_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store"), options(4 << 20)).unwrap();
    let file = store.create("a").unwrap();
    file.write_from(0, &[3; 100_000]).unwrap();
    store.drop_caches().unwrap();
    let mut buffer = store.buffer(100_000).unwrap();
    file.read(0, 100_000, &mut buffer).unwrap();
    assert_eq!(store.stats().missed_pages, 25);
    for version in 0..200 {
        file.write_from(0, &[version; 100_000]).unwrap();
        store.flush().unwrap();
    }
    assert_eq!(buffer.bytes(), [3; 100_000]);
}

#[test]
fn writes_and_removals_go_on_while_a_flush_writes_and_the_next_flush_has_them() {
    let medium = Recorded::blank(2 << 20);
    let store = Store::on(Box::new(medium.clone()), options(2 << 20)).unwrap();
    for name in ["kept", "changed", "removed"] {
        store
            .create(name)
            .unwrap()
            .write_from(0, &[1; 20_000])
            .unwrap();
    }
    let store = std::sync::Arc::new(store);
    let other = store.clone();
    // The flush holds no lock that these need, or the test hangs.
    medium.meanwhile(move || {
        other
            .file("changed")
            .unwrap()
            .write_from(0, &[2; 20_000])
            .unwrap();
        other.remove("removed").unwrap();
        other
            .create("new")
            .unwrap()
            .write_from(0, &[3; 20_000])
            .unwrap();
    });
    store.flush().unwrap();
    let first = medium.inside().bytes.clone();
    let first = Store::on(Box::new(Recorded::of(first)), options(2 << 20)).unwrap();
    for name in ["kept", "changed", "removed"] {
        assert_eq!(read(&first, name), [1; 20_000]);
    }
    store.flush().unwrap();
    store.drop_caches().unwrap();
    let second = medium.inside().bytes.clone();
    let second = Store::on(Box::new(Recorded::of(second)), options(2 << 20)).unwrap();
    for store in [&*store, &second] {
        assert_eq!(store.files().len(), 3);
        for (name, byte) in [("kept", 1), ("changed", 2), ("new", 3)] {
            assert_eq!(read(store, name), [byte; 20_000]);
        }
    }
    // The removed file's places are free again.
    let (used, new) = (store.stats(), second.stats());
    store.sync().unwrap();
    store.sync().unwrap();
    assert_eq!(
        store.stats().free_medium_bytes,
        new.free_medium_bytes,
        "{used:?}"
    );
}

#[test]
fn what_is_no_store_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    let cases = [
        (vec![b'x'; 2 << 20], "its first pages have something else"),
        (vec![0; 2 << 20], "it is blank"),
        (vec![0; 4096], "4096 bytes are too few"),
    ];
    for (content, why) in cases {
        fs::write(&path, &content).unwrap();
        let refused = Store::open(&path, Options::default()).err().unwrap();
        assert!(refused.to_string().contains(why), "{refused}");
        assert!(
            refused.to_string().contains("/other has no store: "),
            "{refused}"
        );
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    // A file that gets too few bytes gets none, and so may get enough.
    let small = folder.path().join("small");
    let refused = Store::open(&small, options(4096)).err().unwrap();
    assert!(refused.to_string().contains("4096 bytes are too few"));
    assert!(Store::open(&small, options(1 << 20)).is_ok());
    let refused = Store::open(folder.path(), Options::default())
        .err()
        .unwrap();
    assert!(refused.to_string().starts_with("cannot open "), "{refused}");
    let refused = Store::open("/dev/null", Options::default()).err().unwrap();
    assert!(
        refused
            .to_string()
            .contains("neither a file nor a DAX device"),
        "{refused}"
    );
    let refused = Store::open("/dev/full/x", options(1 << 20)).err().unwrap();
    assert!(
        refused.to_string().starts_with("cannot open /dev/full/x: "),
        "{refused}"
    );
}

#[test]
fn memory_is_not_durable_and_sync_says_so() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path, options(4 << 20)).unwrap();
    store.create("a").unwrap().write_from(0, b"text").unwrap();
    let refused = store.sync().unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("is on tmpfs, which keeps nothing when the machine stops"),
        "{refused}"
    );
    assert_eq!(store.medium(), "tmpfs");
    drop(store);
    assert_eq!(read(&Store::open(&path, options(1)).unwrap(), "a"), b"text");
}

#[test]
fn names_lengths_and_windows_are_checked() {
    let store = Store::on(Box::new(Recorded::blank(2 << 20)), options(2 << 20)).unwrap();
    assert!(matches!(store.create(""), Err(FlatError::Name(0))));
    assert!(matches!(
        store.create(&"x".repeat(256)),
        Err(FlatError::Name(256))
    ));
    let file = store.create(&"x".repeat(255)).unwrap();
    assert!(matches!(
        store.create(&"x".repeat(255)),
        Err(FlatError::Exists { .. })
    ));
    assert!(matches!(store.remove("y"), Err(FlatError::Missing { .. })));
    assert!(matches!(
        file.write_from(u64::MAX, b"x"),
        Err(FlatError::TooLong { .. })
    ));
    assert!(matches!(
        file.write_from(1 << 43, b"x"),
        Err(FlatError::TooLong { .. })
    ));
    assert_eq!(file.read_into(u64::MAX, &mut [0]).unwrap(), 0);
    let mut buffer = store.buffer(100).unwrap();
    assert!(matches!(
        buffer.set_window(4000, 100),
        Err(FlatError::BufferSmall { .. })
    ));
    assert!(matches!(
        buffer.set_window(usize::MAX, 2),
        Err(FlatError::BufferSmall { .. })
    ));
    assert_eq!(file.read(u64::MAX - 5, usize::MAX, &mut buffer).unwrap(), 0);
    let other = Store::on(Box::new(Recorded::blank(2 << 20)), options(2 << 20)).unwrap();
    assert!(matches!(
        other.create("a").unwrap().write(0, &mut buffer),
        Err(FlatError::OtherStore)
    ));
    // More names than the log has room for.
    let refused = (0..)
        .find_map(|nth| store.create(&format!("{nth:0250}")).err())
        .unwrap();
    assert!(matches!(refused, FlatError::MediumFull { .. }), "{refused}");
    store.flush().unwrap();
}
