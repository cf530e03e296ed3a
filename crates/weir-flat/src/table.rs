//! The table: where each page of each file is, what holds frames and pages of the medium, and what is to be flushed.
//!
//! A frame, or a page of the medium, is freed with its last reference. The table has one for each page that it has
//! there, each buffer one for each page that it maps, and a flush one for each page that it writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::error::{FlatError, Result};
use crate::extents::{Extents, PAGE, Run, push};
use crate::log::Layout;
use crate::record::Op;
use crate::stats::Stats;

/// No frame, or no page of the medium.
pub const NONE: u32 = u32::MAX;

/// What a frame has that the medium does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Nothing.
    Clean,
    /// A version to be flushed.
    Dirty,
    /// A version that is being flushed.
    Flushing,
}

/// Where a page of a file is.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its frame in DRAM, or `NONE`.
    pub frame: u32,
    /// Its page of the medium, or `NONE`.
    pub home: u32,
    /// Whether they differ.
    pub version: Version,
    /// Whether it was used since the hand of eviction came by.
    pub used: bool,
}

impl Entry {
    /// A page that was never written: zeros.
    pub const HOLE: Self = Self {
        frame: NONE,
        home: NONE,
        version: Version::Clean,
        used: false,
    };
}

/// A file.
#[derive(Debug)]
pub struct FileTable {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Bytes, as the log has it.
    pub logged_size: u64,
    /// Its pages.
    pub entries: Vec<Entry>,
    /// Where dirty pages are, among others; the end of each range is not in it.
    pub dirty: Vec<(u32, u32)>,
    /// Held by writers, one at a time, so that parts of one page are not lost.
    pub writer: Arc<Mutex<()>>,
}

/// Everything that one lock protects. It is held to look up and to note, never while data is copied.
#[derive(Debug)]
pub struct Table {
    pub names: BTreeMap<String, u32>,
    pub files: BTreeMap<u32, FileTable>,
    pub next_id: u32,
    /// Bytes that names may still take in a checkpoint.
    pub name_room: u64,
    frame_refs: Vec<u32>,
    frames: Extents,
    medium_refs: Vec<u32>,
    medium: Extents,
    /// Pages that dirty pages will need; as many are free.
    pub reserved: u32,
    /// Files that have dirty pages, or another size than the log has.
    pub dirty_files: BTreeSet<u32>,
    /// Creations and removals which no record has yet.
    pub ops: Vec<Op>,
    /// Pages of the medium which those removals free.
    pub removed: Vec<Run>,
    /// Pages of the medium that a record freed which may not be durable yet.
    pub superseded: Vec<Run>,
    /// When the oldest unflushed write was made.
    pub dirty_since: Option<Instant>,
    hand: (u32, u32),
    pub stats: Stats,
    pub closed: bool,
}

impl Table {
    /// No files.
    pub fn new(frames: u32, layout: Layout) -> Self {
        let pages = layout.pages;
        Self {
            name_room: layout.name_room(),
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            next_id: 0,
            frame_refs: vec![0; frames as usize],
            frames: Extents::new(frames),
            medium_refs: vec![0; pages as usize],
            medium: Extents::new(pages),
            reserved: 0,
            dirty_files: BTreeSet::new(),
            ops: Vec::new(),
            removed: Vec::new(),
            superseded: Vec::new(),
            dirty_since: None,
            hand: (0, 0),
            stats: Stats::default(),
            closed: false,
        }
    }

    /// The file with this number.
    pub fn file(&mut self, id: u32, name: &str) -> Result<&mut FileTable> {
        if self.closed {
            return Err(FlatError::Closed);
        }
        self.files.get_mut(&id).ok_or_else(|| FlatError::Missing {
            name: name.to_owned(),
        })
    }

    /// Adds a file without pages.
    pub fn add(&mut self, id: u32, name: String) {
        let writer = Arc::default();
        self.name_room = self.name_room.saturating_sub(name_cost(&name));
        self.names.insert(name.clone(), id);
        let file = FileTable {
            name,
            size: 0,
            logged_size: 0,
            entries: Vec::new(),
            dirty: Vec::new(),
            writer,
        };
        self.files.insert(id, file);
        self.next_id = self.next_id.max(id + 1);
    }

    /// Takes a file out; what the medium has of it is free when a record says so.
    pub fn remove(&mut self, id: u32) {
        let Some(file) = self.files.remove(&id) else {
            return;
        };
        self.names.remove(&file.name);
        self.name_room += name_cost(&file.name);
        for entry in file.entries {
            if entry.frame != NONE {
                self.drop_frame(entry.frame);
            }
            if entry.version == Version::Dirty {
                self.reserved -= 1;
            }
            if entry.home != NONE {
                push(&mut self.removed, entry.home);
            }
        }
    }

    /// Frames free, and of how many.
    pub fn frames(&self) -> (u32, u32) {
        (self.frames.pages(), self.frame_refs.len() as u32)
    }

    /// Pages of the medium that are free and not reserved.
    pub fn medium_free(&self) -> u32 {
        self.medium.pages() - self.reserved
    }

    /// Takes frames, each with one reference; clean pages are evicted where too few are free. `None` where those do
    /// not suffice.
    pub fn take_frames(&mut self, count: u32) -> Option<Vec<Run>> {
        if self.frames.pages() < count {
            self.evict(count - self.frames.pages());
        }
        let runs = self.frames.take(count)?;
        for run in &runs {
            self.frame_refs[run.start as usize..][..run.len as usize].fill(1);
        }
        Some(runs)
    }

    /// Takes pages of the medium for what is reserved.
    pub fn take_medium(&mut self, count: u32) -> Option<Vec<Run>> {
        let runs = self.medium.take(count)?;
        for run in &runs {
            self.medium_refs[run.start as usize..][..run.len as usize].fill(1);
        }
        self.reserved -= count;
        Some(runs)
    }

    /// Notes that a page of the medium belongs to a file, as the log says; false where it is another's too.
    pub fn claim_medium(&mut self, run: Run) -> bool {
        let whole = u64::from(run.start) + u64::from(run.len) <= self.medium_refs.len() as u64;
        let free = whole && self.medium.remove(run);
        if free {
            self.medium_refs[run.start as usize..][..run.len as usize].fill(1);
        }
        free
    }

    /// One more reference of each.
    pub fn hold_frames(&mut self, run: Run) {
        self.frame_refs[run.start as usize..][..run.len as usize]
            .iter_mut()
            .for_each(|refs| *refs += 1);
    }

    /// One more reference of each.
    pub fn hold_medium(&mut self, run: Run) {
        self.medium_refs[run.start as usize..][..run.len as usize]
            .iter_mut()
            .for_each(|refs| *refs += 1);
    }

    /// One reference less.
    pub fn drop_frame(&mut self, frame: u32) {
        self.drop_frames(Run {
            start: frame,
            len: 1,
        });
    }

    /// One reference of each less.
    pub fn drop_frames(&mut self, run: Run) {
        release(&mut self.frame_refs, &mut self.frames, run);
    }

    /// One reference of each less.
    pub fn drop_medium(&mut self, run: Run) {
        release(&mut self.medium_refs, &mut self.medium, run);
    }

    /// How many references there are, of all frames.
    pub fn frame_references(&self) -> u64 {
        self.frame_refs.iter().map(|refs| u64::from(*refs)).sum()
    }

    /// Makes frames free: of clean pages that were not used lately, by a second chance for each (the clock algorithm).
    /// Frames with other references, of a buffer or of a page that was written with the same frame, go last: each
    /// page alone frees nothing.
    pub fn evict(&mut self, count: u32) {
        let before = self.frames.pages();
        self.evict_those(count, false);
        if self.frames.pages() < before + count {
            self.evict_those(count, true);
        }
    }

    fn evict_those(&mut self, count: u32, shared: bool) {
        // More than asked for, so that the next ones find runs.
        let wanted = count.max(self.frame_refs.len() as u32 / 64);
        let all: usize = self.files.values().map(|file| file.entries.len()).sum();
        let mut freed = 0;
        let mut looked = 0;
        let mut drop = Vec::new();
        while (shared || freed < wanted) && looked < 2 * all {
            let (id, page) = self.hand;
            let Some((&id, file)) = self.files.range_mut(id..).next() else {
                self.hand = (0, 0);
                continue;
            };
            let page = if id == self.hand.0 { page } else { 0 };
            let mut next = page as usize;
            for entry in file.entries.iter_mut().skip(page as usize) {
                next += 1;
                looked += 1;
                let clean =
                    entry.frame != NONE && entry.home != NONE && entry.version == Version::Clean;
                if !clean || (self.frame_refs[entry.frame as usize] > 1 && !shared) {
                    continue;
                }
                if std::mem::take(&mut entry.used) {
                    continue;
                }
                push(&mut drop, std::mem::replace(&mut entry.frame, NONE));
                freed += 1;
                if freed == wanted && !shared {
                    break;
                }
            }
            self.hand = if next >= file.entries.len() {
                (id + 1, 0)
            } else {
                (id, next as u32)
            };
        }
        self.stats.evicted_pages += u64::from(freed);
        drop.into_iter().for_each(|run| self.drop_frames(run));
    }

    /// Pages get new versions, whose references are the table's from now on. Returns how many were not dirty before,
    /// and so need a place on the medium.
    pub fn set_versions(&mut self, id: u32, page: u32, run: Run) -> u32 {
        let Some(file) = self.files.get_mut(&id) else {
            return 0;
        };
        let (first, end) = (page as usize, (page + run.len) as usize);
        if file.entries.len() < end {
            file.entries.resize(end, Entry::HOLE);
        }
        let mut needs = 0;
        let mut old = Vec::new();
        for (entry, frame) in file.entries[first..end].iter_mut().zip(run.start..) {
            if entry.frame != NONE {
                push(&mut old, entry.frame);
            }
            needs += u32::from(entry.version != Version::Dirty);
            *entry = Entry {
                frame,
                home: entry.home,
                version: Version::Dirty,
                used: true,
            };
        }
        self.mark(id, page, page + run.len);
        old.into_iter().for_each(|run| self.drop_frames(run));
        needs
    }

    /// Notes where dirty pages are.
    pub fn mark(&mut self, id: u32, from: u32, to: u32) {
        let Some(file) = self.files.get_mut(&id) else {
            return;
        };
        match file.dirty.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            Some(last) if last.0 <= from && to <= last.1 => {}
            _ => file.dirty.push((from, to)),
        }
        self.dirty_files.insert(id);
    }

    /// Notes that a file was written up to this byte.
    pub fn written(&mut self, id: u32, end: u64, now: Instant) {
        if let Some(file) = self.files.get_mut(&id) {
            file.size = file.size.max(end);
        }
        self.dirty_since.get_or_insert(now);
    }

    /// All files, as the log has to know them.
    pub fn checkpoint(&self) -> Vec<Op> {
        let mut ops = Vec::new();
        for (&id, file) in &self.files {
            ops.push(Op::Create {
                id,
                name: file.name.clone(),
            });
            ops.push(Op::Size {
                id,
                bytes: file.logged_size,
            });
            let homes = file
                .entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| entry.home != NONE);
            append_maps(
                &mut ops,
                id,
                homes.map(|(page, entry)| (page as u32, entry.home)),
            );
        }
        ops
    }
}

/// Adds places of pages to operations, as runs.
pub fn append_maps(ops: &mut Vec<Op>, of: u32, places: impl Iterator<Item = (u32, u32)>) {
    for (at, place) in places {
        match ops.last_mut() {
            Some(Op::Map { id, page, run })
                if *id == of && *page + run.len == at && run.start + run.len == place =>
            {
                run.len += 1;
            }
            _ => ops.push(Op::Map {
                id: of,
                page: at,
                run: Run {
                    start: place,
                    len: 1,
                },
            }),
        }
    }
}

/// Bytes that a file without pages takes in a checkpoint: its name in words of 9 bytes, and its size.
pub fn name_cost(name: &str) -> u64 {
    17 + 9 * (name.len() as u64).div_ceil(8) + 17
}

fn release(refs: &mut [u32], free: &mut Extents, run: Run) {
    let mut gone = Vec::new();
    for page in run.start..run.start + run.len {
        let held = &mut refs[page as usize];
        *held -= 1;
        if *held == 0 {
            push(&mut gone, page);
        }
    }
    gone.into_iter().for_each(|run| free.give(run));
}

/// Pages that this many bytes need.
pub fn pages_of(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE as u64)
}
