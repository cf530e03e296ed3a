//! What the parts of a store share, and the work of its threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{FlatError, Result};
use crate::extents::{PAGE, Run};
use crate::frames::Frames;
use crate::log::Log;
use crate::medium::Medium;
use crate::segment::{Kind, Segment};
use crate::table::Table;

/// How a store works.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of a medium that is to be made; `None` opens an existing one only.
    pub create: Option<u64>,
    /// Bytes of DRAM for cached pages and for fresh frames of buffers.
    pub cache: u64,
    /// How often dirty pages are flushed; `None` flushes when asked only, or when there is no room.
    pub flush_every: Option<Duration>,
    /// Reads and writes of fewer bytes may copy where mapping would cost more.
    pub copy_below: usize,
    /// Whether a read that misses maps the medium's pages, where they can be mapped, and returns; frames are filled
    /// behind it. Otherwise it waits for frames.
    pub attach_misses: bool,
    /// Whether frames are in pages of 2 MiB where the kernel has them.
    pub huge: bool,
    /// Whether a read fills page table entries at once (MADV_POPULATE_READ).
    pub populate: bool,
}

impl Default for Options {
    /// 64 MiB of cache, flushed every 10 ms as in the paper, and no medium made.
    fn default() -> Self {
        Self {
            create: None,
            cache: 64 << 20,
            flush_every: Some(Duration::from_millis(10)),
            copy_below: 16 << 10,
            attach_misses: true,
            huge: true,
            populate: false,
        }
    }
}

/// What the store, its files, buffers and threads share.
pub struct Shared {
    pub(crate) frames: Frames,
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) data_at: u64,
    pub(crate) options: Options,
    pub(crate) pagemap: std::fs::File,
    pub(crate) log: Mutex<Log>,
    pub(crate) table: Mutex<Table>,
    pub(crate) loads: Mutex<Option<SyncSender<Load>>>,
    pub(crate) stopping: Mutex<bool>,
    pub(crate) stop: Condvar,
}

/// Pages that a read missed.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub file: u32,
    pub first: u32,
    pub pages: u32,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No step between two changes that belong together can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    pub(crate) fn io(&self, what: &'static str, source: io::Error) -> FlatError {
        FlatError::Io {
            what,
            path: self.medium.path().to_owned(),
            source,
        }
    }

    pub(crate) fn frames_fd(&self) -> BorrowedFd<'_> {
        self.frames.file().as_fd()
    }

    /// Gives references of a buffer back.
    pub(crate) fn release(&self, segments: &[Segment]) {
        if segments.iter().all(|segment| segment.kind == Kind::Own) {
            return;
        }
        let mut table = self.table();
        for segment in segments {
            match segment.kind {
                Kind::Own => {}
                Kind::Fresh(start) | Kind::Frame(start) => table.drop_frames(segment.run(start)),
                Kind::Medium(start) => table.drop_medium(segment.run(start)),
            }
        }
    }

    /// Takes frames; what is dirty is flushed where that is needed.
    pub(crate) fn take_frames(&self, count: u32) -> Result<Vec<Run>> {
        for flush in [true, false] {
            if let Some(runs) = self.table().take_frames(count) {
                return Ok(runs);
            }
            if flush {
                self.commit(false)?;
            }
        }
        Err(self.cache_full(count))
    }

    pub(crate) fn cache_full(&self, pages: u32) -> FlatError {
        let limit = u64::from(self.table().frames().1) * PAGE as u64;
        FlatError::CacheFull {
            asked: u64::from(pages) * PAGE as u64,
            limit,
        }
    }

    /// Promises pages of the medium to a write. What earlier flushes freed is free after the next two.
    pub(crate) fn reserve(&self, pages: u32) -> Result<()> {
        for attempt in 0..3 {
            let mut table = self.table();
            if table.medium_free() >= pages {
                table.reserved += pages;
                return Ok(());
            }
            drop(table);
            if attempt < 2 {
                self.commit(false)?;
                self.settle()?;
            }
        }
        let free = u64::from(self.table().medium_free()) * PAGE as u64;
        let asked = u64::from(pages) * PAGE as u64;
        Err(FlatError::MediumFull {
            path: self.medium.path().to_owned(),
            asked,
            free,
        })
    }

    /// Asks for pages to be loaded behind a read. Where too many wait already they are left for a later read.
    pub(crate) fn load_later(&self, load: Load) {
        if let Some(loads) = lock(&self.loads).as_ref() {
            let _ = loads.try_send(load);
        }
    }

    pub(crate) fn load_all(&self, asked: &Receiver<Load>) {
        while let Ok(load) = asked.recv() {
            // The pages stay on the medium where it fails, and the next read that misses says why.
            let _ = self.load(load);
        }
    }

    pub(crate) fn flush_all(&self, every: Duration) {
        let mut stopping = lock(&self.stopping);
        while !*stopping {
            stopping = self
                .stop
                .wait_timeout(stopping, every)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            let due = {
                let table = self.table();
                table.dirty_since.is_some() || !table.ops.is_empty()
            };
            if due && !*stopping {
                drop(stopping);
                // A failure is counted, and the pages are dirty still: `sync` meets it again.
                let _ = self.commit(false);
                stopping = lock(&self.stopping);
            }
        }
    }
}
