//! Flushes in two phases: dirty pages are collected under the lock, and written without it.
//!
//! Every page goes to a place of the medium that nothing refers to; a record of the log then makes all places of a
//! flush valid at once. Data is durable before its record is written, and a place that a record freed is not used
//! before that record is durable. So a medium that stops at any point has the files of one commit.

use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::{FlatError, Result};
use crate::extents::{PAGE, Run, push};
use crate::log::Log;
use crate::record::Op;
use crate::shared::{Load, Shared};
use crate::table::{NONE, Table, Version, append_maps};

/// What one flush writes.
struct Batch {
    /// Number of the file, page, frame. A reference of each frame is held.
    pages: Vec<(u32, u32, u32)>,
    homes: Vec<Run>,
    names: Vec<Op>,
    sizes: Vec<Op>,
    files: Vec<u32>,
    removed: Vec<Run>,
    superseded: Vec<Run>,
    since: Option<Instant>,
}

impl Batch {
    /// The first phase: notes and references, no copy.
    fn collect(table: &mut Table) -> Option<Self> {
        let mut pages = Vec::new();
        let mut sizes = Vec::new();
        let files: Vec<u32> = std::mem::take(&mut table.dirty_files).into_iter().collect();
        for &id in &files {
            let Some(file) = table.files.get_mut(&id) else {
                continue;
            };
            if file.size != file.logged_size {
                sizes.push(Op::Size {
                    id,
                    bytes: file.size,
                });
            }
            for page in std::mem::take(&mut file.dirty)
                .into_iter()
                .flat_map(|(from, to)| from..to)
            {
                let entry = &mut file.entries[page as usize];
                if entry.version == Version::Dirty {
                    entry.version = Version::Flushing;
                    pages.push((id, page, entry.frame));
                }
            }
        }
        let mut runs = Vec::new();
        pages
            .iter()
            .for_each(|(_, _, frame)| push(&mut runs, *frame));
        runs.into_iter().for_each(|run| table.hold_frames(run));
        let homes = table.take_medium(pages.len() as u32)?;
        Some(Self {
            pages,
            homes,
            sizes,
            files,
            names: std::mem::take(&mut table.ops),
            removed: std::mem::take(&mut table.removed),
            superseded: std::mem::take(&mut table.superseded),
            since: table.dirty_since.take(),
        })
    }

    fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.names.is_empty() && self.sizes.is_empty()
    }

    fn places(&self) -> impl Iterator<Item = ((u32, u32, u32), u32)> {
        self.pages.iter().copied().zip(
            self.homes
                .iter()
                .flat_map(|run| run.start..run.start + run.len),
        )
    }

    /// Writes the pages to their places.
    fn write(&self, shared: &Shared) -> Result<()> {
        let mut runs: Vec<(Run, u32)> = Vec::new();
        for ((_, _, frame), home) in self.places() {
            match runs.last_mut() {
                Some((run, at)) if run.start + run.len == frame && *at + run.len == home => {
                    run.len += 1
                }
                _ => runs.push((
                    Run {
                        start: frame,
                        len: 1,
                    },
                    home,
                )),
            }
        }
        for (run, home) in runs {
            // SAFETY: the batch holds a reference of each, and a frame of the table is never written.
            let bytes = unsafe { shared.frames.bytes(run) };
            let at = shared.data_at + u64::from(home) * PAGE as u64;
            shared
                .medium
                .write_at(at, bytes)
                .map_err(|source| shared.io("write", source))?;
        }
        Ok(())
    }

    /// The record: names, sizes, places, in the order in which they are read.
    fn ops(&self) -> Vec<Op> {
        let mut ops = self.names.clone();
        ops.extend(self.sizes.iter().cloned());
        for ((id, page, _), home) in self.places() {
            append_maps(&mut ops, id, std::iter::once((page, home)));
        }
        ops
    }

    /// Nothing was committed: all is dirty as before.
    fn undo(self, table: &mut Table) {
        for &(id, page, frame) in &self.pages {
            let entry = table
                .files
                .get_mut(&id)
                .and_then(|file| file.entries.get_mut(page as usize));
            if let Some(entry) = entry
                && entry.version == Version::Flushing
                && entry.frame == frame
            {
                entry.version = Version::Dirty;
                table.reserved += 1;
                table.mark(id, page, page + 1);
            }
            table.drop_frame(frame);
        }
        let existing: Vec<u32> = self
            .files
            .into_iter()
            .filter(|id| table.files.contains_key(id))
            .collect();
        table.dirty_files.extend(existing);
        self.homes
            .into_iter()
            .for_each(|run| table.drop_medium(run));
        table.ops.splice(0..0, self.names);
        table.removed.extend(self.removed);
        table.superseded.extend(self.superseded);
        table.dirty_since = self.since.or(table.dirty_since);
        table.stats.failed_flushes += 1;
    }

    /// The record is in the log.
    fn done(&self, table: &mut Table) {
        for ((id, page, frame), home) in self.places() {
            match table
                .files
                .get_mut(&id)
                .and_then(|file| file.entries.get_mut(page as usize))
            {
                Some(entry) => {
                    let old = std::mem::replace(&mut entry.home, home);
                    if entry.version == Version::Flushing && entry.frame == frame {
                        entry.version = Version::Clean;
                    }
                    if old != NONE {
                        push(&mut table.superseded, old);
                    }
                }
                // The record that removes the file frees the page.
                None => push(&mut table.removed, home),
            }
            table.drop_frame(frame);
        }
        for size in &self.sizes {
            if let Op::Size { id, bytes } = size
                && let Some(file) = table.files.get_mut(id)
            {
                file.logged_size = *bytes;
            }
        }
        table.superseded.extend(&self.removed);
        table.stats.commits += 1;
        table.stats.flushed_pages += self.pages.len() as u64;
        if let Some(since) = self.since {
            table.stats.flush_lag = since.elapsed();
            table.stats.flush_lag_max = table.stats.flush_lag_max.max(table.stats.flush_lag);
        }
    }
}

impl Shared {
    fn log(&self) -> Result<MutexGuard<'_, Log>> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.failed {
            Err(FlatError::Failed {
                path: self.medium.path().to_owned(),
            })
        } else {
            Ok(log)
        }
    }

    /// Commits all that is dirty, and all files that were made or removed. With `durable`, it is durable.
    pub(crate) fn commit(&self, durable: bool) -> Result<()> {
        let mut log = self.log()?;
        let began = Instant::now();
        let batch = {
            let mut table = self.table();
            let batch = Batch::collect(&mut table);
            table.stats.collection_max = table.stats.collection_max.max(began.elapsed());
            batch
        };
        // Writes promise no more than is free.
        let Some(mut batch) = batch else {
            return Err(FlatError::Failed {
                path: self.medium.path().to_owned(),
            });
        };
        if batch.is_empty() {
            self.table().superseded.append(&mut batch.superseded);
        } else {
            self.persist(&mut log, batch)?;
        }
        if !durable {
            return Ok(());
        }
        self.settle_in(&mut log)?;
        if self.medium.durable() {
            return Ok(());
        }
        Err(FlatError::NotDurable {
            path: self.medium.path().to_owned(),
            medium: self.medium.kind(),
        })
    }

    /// The second phase, without the lock of the table.
    fn persist(&self, log: &mut Log, mut batch: Batch) -> Result<()> {
        let medium = &*self.medium;
        let written = batch.write(self).and_then(|()| log.barrier(medium));
        if let Err(error) = written {
            batch.undo(&mut self.table());
            return Err(error);
        }
        // Earlier records are durable now, and with them that these places are free.
        let free = std::mem::take(&mut batch.superseded);
        {
            let mut table = self.table();
            free.into_iter().for_each(|run| table.drop_medium(run));
        }
        // Where this fails, the record can perhaps be read later, and must find its pages: they stay as they are, and
        // `log.failed` keeps all that follows from the medium.
        let appended = log.append(medium, &batch.ops())?;
        let files = {
            let mut table = self.table();
            batch.done(&mut table);
            if appended {
                return Ok(());
            }
            table.checkpoint()
        };
        // The area is full: the other one gets all files as this flush leaves them.
        if !log.checkpoint(medium, &files)? {
            log.failed = true;
            return Err(FlatError::Failed {
                path: medium.path().to_owned(),
            });
        }
        self.settled();
        Ok(())
    }

    fn settled(&self) {
        let mut table = self.table();
        let free = std::mem::take(&mut table.superseded);
        free.into_iter().for_each(|run| table.drop_medium(run));
    }

    fn settle_in(&self, log: &mut Log) -> Result<()> {
        log.barrier(&*self.medium)?;
        self.settled();
        Ok(())
    }

    /// Makes all records durable, so that what they freed can be used.
    pub(crate) fn settle(&self) -> Result<()> {
        let mut log = self.log()?;
        self.settle_in(&mut log)
    }

    /// Fills frames for pages that are on the medium only.
    pub(crate) fn load(&self, load: Load) -> Result<()> {
        let mut places: Vec<(u32, u32)> = Vec::new();
        let frames = {
            let mut table = self.table();
            let Some(file) = table.files.get(&load.file) else {
                return Ok(());
            };
            let pages =
                load.first as usize..((load.first + load.pages) as usize).min(file.entries.len());
            let entries = file.entries.get(pages).unwrap_or_default();
            for (page, entry) in (load.first..).zip(entries) {
                if entry.frame == NONE && entry.home != NONE {
                    places.push((page, entry.home));
                }
            }
            if places.is_empty() {
                return Ok(());
            }
            let frames = table.take_frames(places.len() as u32);
            if frames.is_some() {
                places.iter().for_each(|(_, home)| {
                    table.hold_medium(Run {
                        start: *home,
                        len: 1,
                    })
                });
            }
            frames
        };
        let Some(frames) = frames else {
            return Err(self.cache_full(places.len() as u32));
        };
        frames.iter().for_each(|run| self.frames.prepare(*run));
        let each = || frames.iter().flat_map(|run| run.start..run.start + run.len);
        let mut runs: Vec<(Run, u32)> = Vec::new();
        for (frame, (_, home)) in each().zip(&places) {
            match runs.last_mut() {
                Some((run, at)) if run.start + run.len == frame && *at + run.len == *home => {
                    run.len += 1
                }
                _ => runs.push((
                    Run {
                        start: frame,
                        len: 1,
                    },
                    *home,
                )),
            }
        }
        let read = runs.into_iter().try_for_each(|(run, home)| {
            // SAFETY: the frames were taken above, and are in no mapping and no table.
            let bytes = unsafe { self.frames.bytes_mut(run) };
            self.medium
                .read_at(self.data_at + u64::from(home) * PAGE as u64, bytes)
        });
        let mut table = self.table();
        for (frame, &(page, home)) in each().zip(&places) {
            let entry = table
                .files
                .get_mut(&load.file)
                .and_then(|file| file.entries.get_mut(page as usize));
            match entry {
                // A write may have come first.
                Some(entry) if read.is_ok() && entry.frame == NONE && entry.home == home => {
                    (entry.frame, entry.used) = (frame, true);
                    table.stats.loaded_pages += 1;
                }
                _ => table.drop_frame(frame),
            }
            table.drop_medium(Run {
                start: home,
                len: 1,
            });
        }
        read.map_err(|source| self.io("read", source))
    }
}
