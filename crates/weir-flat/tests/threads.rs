//! Threads on one store, whose cache is smaller than its files: a read sees one write as a whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_flat::{FlatError, Options, Store};

const BYTES: usize = 64 << 10;
const FILES: u64 = 8;

#[test]
fn a_read_sees_one_write_as_a_whole_while_others_write_flush_and_evict() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        create: Some(8 << 20),
        // Fewer frames than the files have pages.
        cache: 7 * BYTES as u64,
        flush_every: Some(Duration::from_millis(1)),
        copy_below: 8192,
        ..Options::default()
    };
    let store = Store::open(folder.path().join("store"), options.clone()).unwrap();
    for file in 0..FILES {
        store
            .create(&file.to_string())
            .unwrap()
            .write_from(0, &[0; BYTES])
            .unwrap();
    }
    let done = AtomicBool::new(false);
    let (store, done) = (&store, &done);
    // Every frame may be in a buffer at the moment.
    let unless_full = |result: Result<usize, FlatError>| match result {
        Ok(length) => length == BYTES,
        Err(FlatError::CacheFull { .. }) => false,
        Err(why) => panic!("{why}"),
    };
    std::thread::scope(|scope| {
        for thread in 0..2_u8 {
            scope.spawn(move || {
                let mut buffer = store.buffer(BYTES).unwrap();
                for nth in 0..400_u64 {
                    let byte = (nth as u8).wrapping_mul(2) | thread;
                    let file = store
                        .file(&((nth * 5 + u64::from(thread)) % FILES).to_string())
                        .unwrap();
                    let renewed = nth % 3 > 0 && buffer.renew().is_ok();
                    buffer.set_window(0, BYTES).unwrap();
                    buffer.bytes_mut().fill(byte);
                    let written = file.write(0, &mut buffer).map(|()| BYTES);
                    unless_full(written);
                    // What is stored after the write is in no file.
                    buffer.bytes_mut()[..BYTES / 2].fill(if renewed { 254 } else { 255 });
                }
                done.store(true, Ordering::Relaxed);
            });
        }
        for thread in 0..2_u64 {
            scope.spawn(move || {
                let mut buffer = store.buffer(BYTES).unwrap();
                let mut nth = thread;
                while !done.load(Ordering::Relaxed) {
                    nth += 1;
                    let file = store.file(&(nth % FILES).to_string()).unwrap();
                    if unless_full(file.read(0, BYTES, &mut buffer)) {
                        let first = buffer.bytes()[0];
                        assert!(buffer.bytes().iter().all(|byte| *byte == first), "torn");
                    }
                }
            });
        }
    });
    store.flush().unwrap();
    let stats = store.stats();
    assert!(
        stats.evicted_pages > 0 && stats.missed_pages > 0,
        "{stats:?}"
    );
}
