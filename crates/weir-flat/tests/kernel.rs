//! What the kernel counts: that nothing is copied, and what is when a program stores into its buffers.

use std::fs;
use std::os::unix::fs::FileExt;

use weir_flat::{Buffer, Options, Store};

const MIB: usize = 1 << 20;

/// A field of `/proc/self/smaps`, in kB, over the mappings in these addresses.
fn smaps(bytes: &[u8], field: &str) -> u64 {
    let (from, to) = (
        bytes.as_ptr() as usize,
        bytes.as_ptr() as usize + bytes.len(),
    );
    let mut within = false;
    let mut sum = 0;
    for line in fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let first = line.split(' ').next().unwrap();
        if let Some((start, end)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).unwrap();
            within = address(start) < to && address(end) > from;
        } else if within && first == field {
            sum += line[first.len()..]
                .trim()
                .trim_end_matches(" kB")
                .parse::<u64>()
                .unwrap();
        }
    }
    sum
}

/// Bytes that system calls of this thread have read and written.
fn called() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").unwrap();
    let field = |name| {
        text.lines()
            .find_map(|line: &str| line.strip_prefix(name))
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap()
    };
    field("rchar:") + field("wchar:")
}

/// Frames of the machine behind these pages; `None` for a user that may not know (they are all 0).
fn frames(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut words = vec![0; bytes.len() / 4096 * 8];
    let pagemap = fs::File::open("/proc/self/pagemap").unwrap();
    pagemap
        .read_exact_at(&mut words, bytes.as_ptr() as u64 / 4096 * 8)
        .unwrap();
    let frame = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap()) & ((1 << 55) - 1);
    let frames: Vec<u64> = words.chunks(8).map(frame).collect();
    frames.iter().all(|frame| *frame != 0).then_some(frames)
}

fn sum(buffer: &Buffer) -> u64 {
    buffer.bytes().iter().map(|byte| u64::from(*byte)).sum()
}

fn a_store(folder: &tempfile::TempDir, huge: bool) -> Store {
    let options = Options {
        create: Some(64 << 20),
        cache: 32 << 20,
        flush_every: None,
        huge,
        ..Options::default()
    };
    Store::open(folder.path().join("store"), options).unwrap()
}

#[test]
fn aligned_reads_and_writes_copy_nothing() {
    for huge in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = a_store(&folder, huge);
        let file = store.create("a").unwrap();
        let mut source = store.buffer(2 * MIB).unwrap();
        let mut target = store.buffer(2 * MIB).unwrap();
        let before = called();
        for nth in 0..4_u64 {
            source.renew().unwrap();
            source.bytes_mut().fill(nth as u8 + 1);
            file.write(nth * 2 * MIB as u64, &mut source).unwrap();
            file.read(nth * 2 * MIB as u64, 2 * MIB, &mut target)
                .unwrap();
            assert_eq!(
                (sum(&target), sum(&source)),
                ((nth + 1) * 2 * MIB as u64, (nth + 1) * 2 * MIB as u64)
            );
            // Neither buffer has a page of its own: all are pages of the memory file.
            for buffer in [&source, &target] {
                assert_eq!(
                    (
                        smaps(buffer.bytes(), "Anonymous:"),
                        smaps(buffer.bytes(), "Rss:")
                    ),
                    (0, 2048)
                );
                assert_eq!(buffer.private_pages().unwrap(), 0);
            }
            // They are the same frames of the machine.
            assert_eq!(frames(source.bytes()), frames(target.bytes()));
        }
        // 16 MiB went through, none of them through a system call; what is counted are the files of this test.
        let calls = called() - before;
        assert!(
            calls < 4 * MIB as u64,
            "{calls} bytes were copied by system calls"
        );
        let stats = store.stats();
        assert_eq!((stats.read_copied_bytes, stats.write_copied_bytes), (0, 0));
        assert_eq!(
            (stats.read_attached_pages, stats.write_attached_pages),
            (2048, 2048)
        );
        if huge {
            println!(
                "huge pages behind the buffer: {} kB",
                smaps(target.bytes(), "FilePmdMapped:")
            );
        }
    }
}

#[test]
fn a_store_into_a_buffer_copies_its_page_and_no_other() {
    for huge in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = a_store(&folder, huge);
        let file = store.create("a").unwrap();
        let mut buffer = store.buffer(2 * MIB).unwrap();
        buffer.renew().unwrap();
        buffer.bytes_mut().fill(1);
        file.write(0, &mut buffer).unwrap();
        for page in [0, 7, 8, 300, 511] {
            buffer.bytes_mut()[page * 4096 + 5] = 2;
        }
        assert_eq!(buffer.private_pages().unwrap(), 5);
        assert_eq!(smaps(buffer.bytes(), "Anonymous:"), 20);
        // Written again, those pages are copied, and the others stay the frames that they are.
        file.write(0, &mut buffer).unwrap();
        let stats = store.stats();
        assert_eq!(
            (stats.private_pages, stats.write_copied_bytes),
            (5, 5 * 4096)
        );
        assert_eq!(stats.frame_references, 512 + 5 + 507);
        let mut read = vec![0; 2 * MIB];
        file.read_into(0, &mut read).unwrap();
        assert!(read == buffer.bytes());
    }
}

#[test]
fn a_cold_read_maps_the_medium_and_later_ones_find_frames() {
    let folder = tempfile::tempdir().unwrap();
    let store = a_store(&folder, true);
    let file = store.create("a").unwrap();
    file.write_from(0, &vec![9; 2 * MIB]).unwrap();
    store.drop_caches().unwrap();
    let mut buffer = store.buffer(2 * MIB).unwrap();
    file.read(0, 2 * MIB, &mut buffer).unwrap();
    assert_eq!(sum(&buffer), 9 * 2 * MIB as u64);
    let stats = store.stats();
    assert_eq!(
        (stats.missed_pages, stats.hit_pages, stats.read_copied_bytes),
        (512, 0, 0)
    );
    // Another thread loads.
    while store.stats().loaded_pages < 512 {
        std::thread::yield_now();
    }
    file.read(0, 2 * MIB, &mut buffer).unwrap();
    assert_eq!(sum(&buffer), 9 * 2 * MIB as u64);
    assert_eq!(
        (store.stats().missed_pages, store.stats().hit_pages),
        (512, 512)
    );
}

#[test]
fn a_flush_holds_the_lock_for_notes_and_copies_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = a_store(&folder, false);
    let file = store.create("a").unwrap();
    let mut buffer = store.buffer(2 * MIB).unwrap();
    buffer.renew().unwrap();
    buffer.bytes_mut().fill(1);
    file.write(0, &mut buffer).unwrap();
    let before = called();
    store.flush().unwrap();
    // All pages in one piece, and a record that has one place for them.
    let written = called() - before;
    assert!(
        (2 * MIB as u64..2 * MIB as u64 + 8192).contains(&written),
        "{written} bytes"
    );
    assert_eq!(store.stats().flushed_pages, 512);
    // What is clean is not written again.
    file.read(0, 2 * MIB, &mut buffer).unwrap();
    store.flush().unwrap();
    assert_eq!(store.stats().flushed_pages, 512);
}
