//! Headers and tables that are damaged: refused with what is wrong, and never a panic.

use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::prelude::*;
use weir_namespace::{Create, Make, Options, Pool};

fn host() -> Options {
    Options {
        host: Some("a".into()),
        ..Options::default()
    }
}

fn pool(path: &Path) -> Pool {
    let make = Make {
        bytes: Some(256 << 10),
        places: 1,
        entries: 8,
        holders: 8,
        ..Make::default()
    };
    let pool = Pool::make(path, &make, host()).unwrap();
    pool.create("n", &Create::of(8192)).unwrap();
    pool.create("m", &Create::of(4096)).unwrap();
    pool
}

fn opened(path: &Path) -> String {
    Pool::open(path, host())
        .err()
        .map_or_else(String::new, |why| why.to_string())
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    pool(&path);
    let good = std::fs::read(&path).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(&path, bad).unwrap();
        opened(&path)
    };
    assert!(
        with(0, b"x").contains("are not the magic of a pool, and the header has another content")
    );
    assert!(with(8, &[9]).contains("has version 9, and this program reads 1"));
    assert!(with(40, &[9]).contains("the checksum of its header is wrong"));
    let said = with(8192, &[7; 8192]);
    assert!(
        said.contains("none of the 2 copies of its table, each of 4096 bytes from byte 8192 on"),
        "{said}"
    );
    // Host names have a checksum of their own.
    let said = with(4096 + 64, b"z");
    assert!(
        said.contains("does not admit a host \"a\"; it admits "),
        "{said}"
    );
    std::fs::write(&path, &good[..100 << 10]).unwrap();
    assert!(opened(&path).contains("its pool has 262144 bytes, and the medium 102400"));
    std::fs::write(&path, vec![0; 1 << 16]).unwrap();
    assert!(opened(&path).contains("and the header is zero"));
    std::fs::write(&path, "short").unwrap();
    assert!(opened(&path).contains("it has only 5 bytes"));
    assert!(opened(folder.path()).contains("cannot open"));
    assert!(opened(Path::new("/dev/null")).contains("neither a file nor a DAX device"));
    assert!(opened(&folder.path().join("no")).contains("No such file"));
    // One copy is enough.
    let mut bad = good.clone();
    let newer = 8192
        + if good[8200] < good[8192 + 4096 + 8] {
            4096
        } else {
            0
        };
    bad[newer + 70] ^= 1;
    std::fs::write(&path, bad).unwrap();
    assert_eq!(opened(&path), "");
    let table = Pool::open(&path, host()).unwrap().table().unwrap();
    assert_eq!(
        table.entries.len(),
        1,
        "the last change is lost, and the one before it is there"
    );
}

#[test]
fn a_pool_is_not_made_where_one_is_or_where_it_has_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    pool(&path);
    let make = |bytes: Option<u64>, unit: Option<u64>, force| {
        let make = Make {
            bytes,
            unit,
            force,
            places: 1,
            entries: 8,
            holders: 8,
            ..Make::default()
        };
        Pool::make(&path, &make, host())
            .err()
            .map_or_else(String::new, |e| e.to_string())
    };
    assert!(make(None, None, false).contains("it is a pool already"));
    assert!(
        make(Some(1 << 30), None, true).contains("its pool has 1073741824 bytes, and the medium")
    );
    assert!(make(Some(8192), None, true).contains("so that it needs "));
    assert!(make(None, Some(5000), true).contains("its unit is 5000"));
    assert_eq!(make(None, Some(16384), true), "");
    assert!(
        Pool::open(&path, host())
            .unwrap()
            .table()
            .unwrap()
            .entries
            .is_empty()
    );
    let small = folder.path().join("small");
    let refused = Pool::make(
        &small,
        &Make {
            bytes: Some(8192),
            ..Make::default()
        },
        host(),
    );
    assert!(
        refused.is_err() && !small.exists(),
        "a file that became no pool is gone"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// With right checksums too, so that the checks behind them are reached.
    #[test]
    fn no_damage_panics(
        changes in proptest::collection::vec((0..20_000_usize, any::<u8>()), 1..6),
        sums in any::<bool>(),
    ) {
        thread_local! {
            static GOOD: Vec<u8> = {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("pool");
                drop(pool(&path));
                std::fs::read(&path).unwrap()
            };
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        let mut bytes = GOOD.with(Clone::clone);
        for (at, value) in changes {
            // Two of three near what is parsed.
            let at = match at % 3 { 0 => at % 128, 1 => 8192 + at % 700, _ => at };
            bytes[at] = value;
        }
        if sums {
            let sum = crc32fast::hash(&bytes[..120]).to_le_bytes();
            bytes[120..124].copy_from_slice(&sum);
            for copy in [8192, 12288] {
                let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                let (entries, holders) = (number(copy + 24) as usize, number(copy + 28) as usize);
                if entries <= 8 && holders <= 8 {
                    let end = copy + 64 + entries * 184 + holders * 56;
                    let sum = u64::from(crc32fast::hash(&bytes[copy + 8..end])) | 1 << 32;
                    bytes[copy..copy + 8].copy_from_slice(&sum.to_le_bytes());
                }
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(pool) = Pool::open(&path, host()) {
            let _ = pool.create("x", &Create::of(4096));
            let _ = pool.map("n", true).and_then(|n| n.write_at(0, b"x"));
            let _ = pool.resize("n", 32768);
            let _ = pool.destroy("n");
            let _ = pool.first_unscrubbed();
            pool.table().unwrap();
        }
    }
}

#[test]
fn a_file_of_another_kind_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    std::fs::write(&path, vec![7; 1 << 16]).unwrap();
    assert!(opened(&path).contains("another content"));
    let file = std::fs::File::open(&path).unwrap();
    let mut bytes = [0; 4096];
    file.read_exact_at(&mut bytes, 4096).unwrap();
    assert_eq!(bytes, [7; 4096]);
}
