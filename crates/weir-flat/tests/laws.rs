//! The store against a model: files are vectors of bytes, buffers are copies.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use weir_flat::{Buffer, FlatError, Options, Store};

const NAMES: [&str; 3] = ["a", "b", "c"];
const ROOM: usize = 8 * 4096;

#[derive(Debug, Clone)]
enum Step {
    Create(usize),
    Remove(usize),
    /// File, buffer, offset in the file, part of the buffer's window.
    Write(usize, usize, u64, usize, usize),
    /// The last says that the program will modify it.
    Read(usize, usize, u64, usize, bool),
    WriteFrom(usize, u64, usize, u8),
    /// Buffer, place, length, byte.
    Store(usize, usize, usize, u8),
    Renew(usize, u8),
    Flush,
    DropCaches,
    Reopen,
}

fn an_offset() -> impl Strategy<Value = u64> {
    prop_oneof![(0..12_u64).prop_map(|page| page * 4096), 0..50_000_u64]
}

fn a_step() -> impl Strategy<Value = Step> {
    let length = || prop_oneof![(1..9_usize).prop_map(|pages| pages * 4096), 1..ROOM];
    let start = || {
        prop_oneof![
            Just(0_usize),
            (0..8_usize).prop_map(|page| page * 4096),
            0..ROOM
        ]
    };
    prop_oneof![
        1 => (0..3_usize).prop_map(Step::Create),
        1 => (0..3_usize).prop_map(Step::Remove),
        6 => (0..3_usize, 0..3_usize, an_offset(), start(), length()).prop_map(|(f, b, o, s, l)| Step::Write(f, b, o, s, l)),
        6 => (0..3_usize, 0..3_usize, an_offset(), length(), any::<bool>()).prop_map(|(f, b, o, l, m)| Step::Read(f, b, o, l, m)),
        2 => (0..3_usize, an_offset(), length(), any::<u8>()).prop_map(|(f, o, l, x)| Step::WriteFrom(f, o, l, x)),
        5 => (0..3_usize, 0..ROOM, length(), any::<u8>()).prop_map(|(b, a, l, x)| Step::Store(b, a, l, x)),
        3 => (0..3_usize, any::<u8>()).prop_map(|(b, x)| Step::Renew(b, x)),
        2 => Just(Step::Flush),
        1 => Just(Step::DropCaches),
        1 => Just(Step::Reopen),
    ]
}

/// Bytes that differ at every place.
fn pattern(seed: u8, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| seed.wrapping_mul(37) ^ (at / 251) as u8 ^ at as u8)
        .collect()
}

struct World {
    store: Option<Store>,
    buffers: Vec<(Buffer, Vec<u8>)>,
    files: BTreeMap<&'static str, Vec<u8>>,
    path: std::path::PathBuf,
    options: Options,
}

impl World {
    fn open(&mut self) {
        let store = Store::open(&self.path, self.options.clone()).unwrap();
        self.buffers = (0..3)
            .map(|_| (store.buffer(ROOM).unwrap(), vec![0; ROOM]))
            .collect();
        self.store = Some(store);
    }

    fn step(&mut self, step: &Step) {
        let store = self.store.as_ref().unwrap();
        match *step {
            Step::Create(file) => {
                let made = store.create(NAMES[file]);
                assert_eq!(made.is_ok(), !self.files.contains_key(NAMES[file]));
                self.files.entry(NAMES[file]).or_default();
            }
            Step::Remove(file) => {
                assert_eq!(
                    store.remove(NAMES[file]).is_ok(),
                    self.files.remove(NAMES[file]).is_some()
                );
            }
            Step::Write(file, buffer, offset, start, len) => {
                let (buffer, model) = &mut self.buffers[buffer];
                let Some(content) = self.files.get_mut(NAMES[file]) else {
                    return;
                };
                let start = start.min(model.len());
                let len = len.min(model.len() - start);
                let (at, whole) = buffer.window();
                buffer.set_window(at + start, len).unwrap();
                store
                    .file(NAMES[file])
                    .unwrap()
                    .write(offset, buffer)
                    .unwrap();
                buffer.set_window(at, whole).unwrap();
                write(content, offset, &model[start..start + len]);
            }
            Step::Read(file, buffer, offset, len, modify) => {
                let (buffer, model) = &mut self.buffers[buffer];
                let Some(content) = self.files.get(NAMES[file]) else {
                    return;
                };
                let rest = content.get(offset as usize..).unwrap_or_default();
                let rest = &rest[..len.min(rest.len())];
                let file = store.file(NAMES[file]).unwrap();
                let read = if modify {
                    file.read_to_modify(offset, len, buffer)
                } else {
                    file.read(offset, len, buffer)
                };
                if rest.len() + offset as usize % 4096 > ROOM {
                    assert!(matches!(read, Err(FlatError::BufferSmall { .. })));
                    return;
                }
                assert_eq!(read.unwrap(), rest.len());
                *model = rest.to_vec();
            }
            Step::WriteFrom(file, offset, len, seed) => {
                let Some(content) = self.files.get_mut(NAMES[file]) else {
                    return;
                };
                let bytes = pattern(seed, len);
                store
                    .file(NAMES[file])
                    .unwrap()
                    .write_from(offset, &bytes)
                    .unwrap();
                write(content, offset, &bytes);
            }
            Step::Store(buffer, at, len, seed) => {
                let (buffer, model) = &mut self.buffers[buffer];
                let at = at.min(model.len());
                let len = len.min(model.len() - at);
                let bytes = pattern(seed, len);
                buffer.bytes_mut()[at..at + len].copy_from_slice(&bytes);
                model[at..at + len].copy_from_slice(&bytes);
            }
            Step::Renew(buffer, seed) => {
                let (buffer, model) = &mut self.buffers[buffer];
                buffer.renew().unwrap();
                buffer.set_window(0, ROOM).unwrap();
                *model = pattern(seed, ROOM);
                buffer.bytes_mut().copy_from_slice(model);
            }
            Step::Flush => store.flush().unwrap(),
            Step::DropCaches => store.drop_caches().unwrap(),
            Step::Reopen => {
                self.buffers.clear();
                self.store.take().unwrap().close().unwrap();
                self.open();
            }
        }
    }

    /// No store into a buffer reached a file or another buffer, no write reached a buffer.
    fn check(&self) {
        for (buffer, model) in &self.buffers {
            assert!(buffer.bytes() == model, "a buffer differs");
        }
        let store = self.store.as_ref().unwrap();
        let sizes: BTreeMap<String, u64> = self
            .files
            .iter()
            .map(|(name, content)| ((*name).to_owned(), content.len() as u64))
            .collect();
        assert_eq!(store.files(), sizes);
        for (name, content) in &self.files {
            let mut read = vec![0; content.len() + 10];
            let length = store.file(name).unwrap().read_into(0, &mut read).unwrap();
            assert!(read[..length] == **content, "file {name} differs");
        }
    }

    /// Every frame and every page of the medium is in a file, in a buffer, or free.
    fn conserve(&mut self) {
        self.buffers.clear();
        let store = self.store.as_ref().unwrap();
        // Pages may be loaded behind an earlier read still.
        let mut stats = store.stats();
        for _ in 0..5000 {
            store.drop_caches().unwrap();
            stats = store.stats();
            if stats.frame_references == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(
            (stats.free_frame_bytes, stats.frame_references),
            (stats.frame_bytes, 0),
            "frames leak"
        );
        let _ = store.sync();
        let held: u64 = self.store.as_ref().unwrap().stats().free_medium_bytes;
        self.files
            .keys()
            .for_each(|name| store.remove(name).unwrap());
        let _ = store.sync();
        let empty = store.stats().free_medium_bytes;
        let most: u64 = self
            .files
            .values()
            .map(|content| content.len().div_ceil(4096) as u64 * 4096)
            .sum();
        assert!(
            empty - held <= most,
            "{} bytes of files hold {}",
            most,
            empty - held
        );
        // As many as on a new store.
        let new = self.path.with_extension("new");
        let new = Store::open(new, self.options.clone()).unwrap();
        assert_eq!(
            empty,
            new.stats().free_medium_bytes,
            "pages of the medium leak"
        );
    }
}

fn write(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = offset as usize + bytes.len();
    content.resize(content.len().max(end), 0);
    content[offset as usize..end].copy_from_slice(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_is_files_of_bytes_and_buffers_are_copies(
        steps in prop::collection::vec(a_step(), 1..60), threads in any::<bool>(), attach in any::<bool>(),
        copy_below in prop_oneof![Just(0_usize), Just(10_000)], huge in any::<bool>()
    ) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            create: Some(2 << 20),
            cache: 96 * 4096,
            flush_every: threads.then_some(Duration::from_millis(1)),
            copy_below,
            attach_misses: attach,
            huge,
            populate: huge,
        };
        let path = folder.path().join("store");
        let mut world = World { store: None, buffers: Vec::new(), files: BTreeMap::new(), path, options };
        world.open();
        for file in 0..3 {
            world.step(&Step::Create(file));
        }
        for step in &steps {
            world.step(step);
            world.check();
        }
        world.conserve();
    }
}
