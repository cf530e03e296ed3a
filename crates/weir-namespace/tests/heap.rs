//! The heap in a namespace: laws against a model, kills, and other processes.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;
use weir_namespace::{Create, Heap, Make, Namespace, NamespaceError, Options, Pool};

fn host() -> Options {
    Options {
        host: Some("a".into()),
        ..Options::default()
    }
}

fn namespace(folder: &tempfile::TempDir, bytes: u64) -> Namespace {
    let make = Make {
        bytes: Some(bytes + (256 << 10)),
        places: 1,
        ..Make::default()
    };
    let pool = Pool::make(folder.path().join("pool"), &make, host()).unwrap();
    pool.create("n", &Create::of(bytes)).unwrap();
    pool.map("n", true).unwrap()
}

/// A child of another thread has the pool's file until it executes its program.
#[test]
fn who_has_a_file_for_a_moment_does_not_use_it() {
    let folder = tempfile::tempdir().unwrap();
    let pool = folder.path().join("pool");
    let has_it = |seconds: &str| {
        let file = std::fs::File::create(&pool).unwrap();
        let mut command = Command::new("sleep");
        command
            .arg(seconds)
            .stdin(Stdio::from(file))
            .spawn()
            .unwrap()
    };
    let make = Make {
        bytes: Some(1 << 20),
        places: 1,
        ..Make::default()
    };
    let mut child = has_it("60");
    let refused = Pool::make(&pool, &make, host()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("in use: process"), "{refused}");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut child = has_it("0.1");
    Pool::make(&pool, &make, host()).unwrap();
    child.wait().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn allocations_never_overlap_and_all_comes_back(
        steps in proptest::collection::vec((0..3_u8, 1..40_000_usize, any::<usize>()), 1..200)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let namespace = namespace(&folder, 512 << 10);
        let heap = Heap::make(&namespace).unwrap();
        let empty = heap.stats();
        let mut model: BTreeMap<u64, usize> = BTreeMap::new();
        for (kind, bytes, which) in steps {
            if kind < 2 {
                let bytes = if kind == 0 { bytes % 600 } else { bytes };
                if let Ok(offset) = heap.allocate(bytes) {
                    let room = heap.room(offset).unwrap();
                    prop_assert!(room >= bytes && offset % 16 == 0);
                    prop_assert!(offset + room as u64 <= namespace.bytes());
                    let before = model.range(..=offset).next_back();
                    prop_assert!(before.is_none_or(|(o, r)| o + *r as u64 <= offset));
                    let after = model.range(offset..).next();
                    prop_assert!(after.is_none_or(|(o, _)| offset + room as u64 <= *o));
                    model.insert(offset, room);
                }
            } else if !model.is_empty() {
                let offset = *model.keys().nth(which % model.len()).unwrap();
                heap.free(offset).unwrap();
                prop_assert!(heap.free(offset).is_err(), "freed twice");
                model.remove(&offset);
            }
            prop_assert_eq!(heap.stats().objects, model.len() as u64);
        }
        // What is kept stays, and all else comes back.
        let kept: Vec<u64> = model.keys().copied().take(2).collect();
        heap.sweep(&mut |offset| kept.contains(&offset)).unwrap();
        prop_assert_eq!(heap.stats().objects, kept.len() as u64);
        for offset in kept {
            heap.free(offset).unwrap();
        }
        heap.sweep(&mut |_| true).unwrap();
        prop_assert_eq!(heap.stats(), empty);
    }
}

#[test]
fn a_heap_is_made_once_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let namespace = namespace(&folder, 64 << 10);
    assert!(Heap::open(&namespace).is_err());
    let heap = Heap::make(&namespace).unwrap();
    assert!(Heap::make(&namespace).is_err(), "it is there");
    let at = heap.allocate(100).unwrap();
    heap.set_root(3, at).unwrap();
    assert!(heap.set_root(8, at).is_err() && heap.root(9).is_err());
    let heap = Heap::open(&namespace).unwrap();
    assert_eq!(heap.root(3).unwrap(), at);
    assert_eq!(heap.room(at).unwrap(), 128);
    for wrong in [0, at + 16, at + 1, 1 << 40, u64::MAX] {
        assert!(heap.free(wrong).is_err(), "{wrong}");
    }
    assert!(heap.allocate(1 << 20).is_err() && heap.allocate(usize::MAX).is_err());
    let pool = Pool::open(folder.path().join("pool"), host()).unwrap();
    let read_only = pool.map("n", false).unwrap();
    assert!(matches!(
        Heap::open(&read_only),
        Err(NamespaceError::ReadOnly(_))
    ));
}

#[test]
fn chunks_of_runs_come_back_without_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let namespace = namespace(&folder, 512 << 10);
    let heap = Heap::make(&namespace).unwrap();
    let empty = heap.stats();
    let (first, second) = (
        heap.allocate(16 << 10).unwrap(),
        heap.allocate(16 << 10).unwrap(),
    );
    assert!(heap.free(first + 16).is_err(), "within a run");
    // What the program wrote there is no sign of objects.
    namespace.write_at(first, &[0xff; 4096]).unwrap();
    heap.free(first).unwrap();
    // One chunk is free before the second run, which is in the way of two.
    let before = heap.stats();
    let two = heap.allocate(32 << 10).unwrap();
    assert!(two > second);
    heap.free(two).unwrap();
    assert_eq!(heap.stats(), before);
    let object = heap.allocate(16).unwrap();
    assert_eq!(heap.stats().objects, before.objects + 1);
    heap.free(object).unwrap();
    assert!(heap.room(object).is_err());
    heap.free(second).unwrap();
    // A process that was killed had taken the last chunk for a run: the words of chunks are from byte 128 on.
    let last = 128 + 8 * (empty.chunks - 1);
    namespace
        .write_at(last, &(3_u64 << 56).to_le_bytes())
        .unwrap();
    assert!(heap.stats().free_chunks < empty.chunks);
    heap.sweep(&mut |_| true).unwrap();
    assert_eq!(heap.stats(), empty);
}

/// The program that is killed; as a test it does nothing.
#[test]
fn allocator() {
    let Ok(path) = std::env::var("WEIR_NAMESPACE_ALLOCATOR") else {
        return;
    };
    let namespace = Pool::open(path, host()).unwrap().map("n", true).unwrap();
    let heap = Heap::open(&namespace).unwrap();
    let mut state = u64::from(std::process::id()) | 1;
    let mut own = Vec::new();
    loop {
        let number = crate::drill::random(&mut state);
        if own.len() < 40 && number.is_multiple_of(2) {
            let bytes = if number.is_multiple_of(7) {
                20_000
            } else {
                1 + number as usize % 900
            };
            let Ok(at) = heap.allocate(bytes) else {
                continue;
            };
            // No other agent has it.
            let mark = (at ^ u64::from(std::process::id())).to_le_bytes();
            namespace.write_at(at, &mark).unwrap();
            own.push((at, mark));
        } else if let Some((at, mark)) = own.pop() {
            let mut seen = [0; 8];
            namespace.read_at(at, &mut seen).unwrap();
            assert_eq!(seen, mark, "two have {at}");
            heap.free(at).unwrap();
        }
    }
}

#[test]
fn processes_that_are_killed_leave_a_heap_that_works() {
    let folder = tempfile::tempdir().unwrap();
    let namespace = namespace(&folder, 4 << 20);
    let heap = Heap::make(&namespace).unwrap();
    let empty = heap.stats();
    for round in 0..4 {
        let start = || {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "heap::allocator", "--test-threads=1"])
                .env("WEIR_NAMESPACE_ALLOCATOR", folder.path().join("pool"))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut children = [start(), start()];
        std::thread::sleep(Duration::from_millis(60 + 17 * round));
        for child in &mut children {
            assert!(child.try_wait().unwrap().is_none(), "it failed");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        heap.sweep(&mut |_| false).unwrap();
        assert_eq!(heap.stats(), empty);
    }
}
