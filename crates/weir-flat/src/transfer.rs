//! Reads and writes: which pages are mapped, and which bytes are copied.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use crate::buffer::{Buffer, Kind, Segment};
use crate::error::{FlatError, Result};
use crate::extents::{PAGE, Run};
use crate::store::{File, Load, Shared};
use crate::table::{NONE, pages_of};

/// A read that would make more mappings than this copies: a process has 65,530 (vm.max_map_count).
const RUNS: usize = 64;
/// Pages that a written run has on average, or the pages of the write are copied together.
const SCATTERED: usize = 32;

/// Where the pages of a read are, with a reference of each.
struct Held<'a> {
    shared: &'a Shared,
    segments: Vec<Segment>,
    bytes: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shared.release(&self.segments);
    }
}

impl Held<'_> {
    /// Copies bytes which begin so far into the first page.
    fn copy(&self, start: usize, into: &mut [u8]) -> Result<()> {
        let mut rest = into;
        let mut skip = start;
        for segment in &self.segments {
            let length = (segment.pages as usize * PAGE - skip).min(rest.len());
            let (part, after) = rest.split_at_mut(length);
            match segment.kind {
                Kind::Own => part.fill(0),
                // SAFETY: the references are held, and a frame of the table is never written.
                Kind::Fresh(at) | Kind::Frame(at) => unsafe {
                    part.copy_from_slice(
                        &self.shared.frames.bytes(segment.run(at))[skip..skip + length],
                    );
                },
                Kind::Medium(at) => {
                    let at = self.shared.data_at + u64::from(at) * PAGE as u64 + skip as u64;
                    let read = self.shared.medium.read_at(at, part);
                    read.map_err(|source| self.shared.io("read", source))?;
                }
            }
            (rest, skip) = (after, 0);
        }
        Ok(())
    }
}

/// Pages of a write that come from one place.
#[derive(Debug, Clone, Copy)]
struct Piece {
    page: u32,
    pages: u32,
    /// Frames of the buffer from this one on; otherwise the bytes are copied.
    frames: Option<u32>,
}

impl File {
    /// Bytes of the file.
    pub fn bytes(&self) -> Result<u64> {
        Ok(self.shared.table().file(self.id, &self.name)?.size)
    }

    /// The pages of a part of the file. Where the medium's pages cannot be used as they are, those that missed are
    /// loaded first.
    fn hold(&self, offset: u64, len: usize, medium: bool) -> Result<Held<'_>> {
        // Pages that were loaded may be evicted again before they are held.
        for _ in 0..8 {
            let mut table = self.shared.table();
            let file = table.file(self.id, &self.name)?;
            let bytes = usize::try_from(file.size.saturating_sub(offset))
                .unwrap_or(usize::MAX)
                .min(len);
            let (first, end) = (
                (offset / PAGE as u64) as u32,
                pages_of(offset + bytes as u64) as u32,
            );
            let mut segments: Vec<Segment> = Vec::new();
            let (mut hits, mut misses) = (0, 0);
            let range = if bytes == 0 {
                0..0
            } else {
                first as usize..end as usize
            };
            for (nth, entry) in file.entries[range].iter_mut().enumerate() {
                let kind = match (entry.frame, entry.home) {
                    (NONE, NONE) => Kind::Own,
                    (NONE, home) => Kind::Medium(home),
                    (frame, _) => Kind::Frame(frame),
                };
                entry.used = true;
                hits += u64::from(matches!(kind, Kind::Frame(_)));
                misses += u64::from(matches!(kind, Kind::Medium(_)));
                match segments.last_mut() {
                    Some(last) if last.kind.skip(last.pages) == kind => last.pages += 1,
                    _ => segments.push(Segment {
                        first: nth as u32,
                        pages: 1,
                        kind,
                    }),
                }
            }
            if misses > 0 && !medium {
                drop(table);
                for segment in segments
                    .iter()
                    .filter(|segment| matches!(segment.kind, Kind::Medium(_)))
                {
                    let load = Load {
                        file: self.id,
                        first: first + segment.first,
                        pages: segment.pages,
                    };
                    self.shared.load(load)?;
                }
                continue;
            }
            for segment in &segments {
                match segment.kind {
                    Kind::Fresh(at) | Kind::Frame(at) => table.hold_frames(segment.run(at)),
                    Kind::Medium(at) => table.hold_medium(segment.run(at)),
                    Kind::Own => {}
                }
            }
            table.stats.hit_pages += hits;
            table.stats.missed_pages += misses;
            drop(table);
            for segment in &segments {
                let Kind::Medium(at) = segment.kind else {
                    continue;
                };
                let at = self.shared.data_at + u64::from(at) * PAGE as u64;
                self.shared
                    .medium
                    .will_read(at, u64::from(segment.pages) * PAGE as u64);
                self.shared.load_later(Load {
                    file: self.id,
                    first: first + segment.first,
                    pages: segment.pages,
                });
            }
            return Ok(Held {
                shared: &self.shared,
                segments,
                bytes,
            });
        }
        Err(self.shared.cache_full(pages_of(len as u64) as u32))
    }

    /// Reads up to `len` bytes; fewer are there at the end of the file. The buffer's window is what was read. Whole
    /// pages are mapped; only small reads into fresh frames, and those from many places, are copied.
    pub fn read(&self, offset: u64, len: usize, buffer: &mut Buffer) -> Result<usize> {
        let (start, within) = self.room(offset, len, buffer)?;
        let mappable = self.shared.options.attach_misses && self.shared.medium.mappable().is_some();
        // Not more than there is room for: the file may have grown just now.
        let mut held = self.hold(offset, within, mappable)?;
        let bytes = held.bytes;
        let pages: u32 = held.segments.iter().map(|segment| segment.pages).sum();
        let scattered = held.segments.len() > RUNS;
        if bytes == 0 {
            buffer.set_window(0, 0)?;
            return Ok(0);
        }
        if scattered || (bytes < self.shared.options.copy_below && buffer.is_exclusive(0, pages)) {
            if scattered {
                buffer.replace(0, pages, Kind::Own)?;
            }
            held.copy(start, buffer.part_mut(start, bytes))?;
            self.shared.table().stats.read_copied_bytes += bytes as u64;
        } else {
            let mut attached = 0;
            while let Some(segment) = held.segments.last().copied() {
                buffer.replace(segment.first, segment.pages, segment.kind)?;
                // The reference is the buffer's now.
                held.segments.pop();
                attached += if segment.kind == Kind::Own {
                    0
                } else {
                    u64::from(segment.pages)
                };
            }
            self.shared.table().stats.read_attached_pages += attached;
        }
        buffer.set_window(start, bytes)?;
        Ok(bytes)
    }

    /// Reads as [`File::read`] does, for a program that will store into most pages: copies once into fresh frames,
    /// so that no store makes the kernel copy a page, and the next write hands the frames over.
    pub fn read_to_modify(&self, offset: u64, len: usize, buffer: &mut Buffer) -> Result<usize> {
        let (start, within) = self.room(offset, len, buffer)?;
        let held = self.hold(offset, within, true)?;
        buffer.renew()?;
        held.copy(start, buffer.part_mut(start, held.bytes))?;
        self.shared.table().stats.read_copied_bytes += held.bytes as u64;
        buffer.set_window(start, held.bytes)?;
        Ok(held.bytes)
    }

    /// Where in its first page a read begins, and how many bytes the file has for it; the buffer has room for them.
    fn room(&self, offset: u64, len: usize, buffer: &Buffer) -> Result<(usize, usize)> {
        if !Arc::ptr_eq(&self.shared, &buffer.shared) {
            return Err(FlatError::OtherStore);
        }
        let start = (offset % PAGE as u64) as usize;
        let rest = usize::try_from(self.bytes()?.saturating_sub(offset)).unwrap_or(usize::MAX);
        let within = len.min(rest);
        if start + within > buffer.capacity() {
            return Err(FlatError::BufferSmall {
                asked: (start + within) as u64,
                has: buffer.capacity() as u64,
            });
        }
        Ok((start, within))
    }

    /// Reads into ordinary memory, by copying.
    pub fn read_into(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let held = self.hold(offset, into.len(), true)?;
        held.copy((offset % PAGE as u64) as usize, &mut into[..held.bytes])?;
        self.shared.table().stats.read_copied_bytes += held.bytes as u64;
        Ok(held.bytes)
    }

    /// Writes the buffer's window. Whole pages whose offset in the buffer fits that in the file become pages of the
    /// cache; the buffer keeps its content, and later stores into it are its own. Edges, small writes and pages
    /// which the kernel had to copy before are copied.
    pub fn write(&self, offset: u64, buffer: &mut Buffer) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, &buffer.shared) {
            return Err(FlatError::OtherStore);
        }
        let (start, len) = buffer.window();
        let end = self.end(offset, len)?;
        let (first, last) = (pages_of(offset) as u32, (end / PAGE as u64) as u32);
        let fits = start % PAGE == (offset % PAGE as u64) as usize;
        if !fits || len < self.shared.options.copy_below || first >= last {
            return self.put(offset, buffer.bytes(), &[self.copied(offset, end)]);
        }
        let within = (start + (u64::from(first) * PAGE as u64 - offset) as usize) / PAGE;
        let (within, pages) = (within as u32, last - first);
        debug_assert!(within + pages <= buffer.page_count());
        let segments = buffer.within(within, pages);
        let fresh = segments
            .iter()
            .all(|segment| matches!(segment.kind, Kind::Fresh(_)));
        let private = if fresh {
            Vec::new()
        } else {
            buffer.private(within, pages)?
        };
        let mut pieces = Vec::new();
        let mut add = |page: u32, pages: u32, frames: Option<u32>| match pieces.last_mut() {
            Some(Piece {
                page: before,
                pages: count,
                frames: place,
            }) if *before + *count == page && place.map(|place| place + *count) == frames => {
                *count += pages;
            }
            _ => pieces.push(Piece {
                page,
                pages,
                frames,
            }),
        };
        if !offset.is_multiple_of(PAGE as u64) {
            add(first - 1, 1, None);
        }
        let mut copies = 0;
        for segment in &segments {
            let page = first + segment.first - within;
            match segment.kind {
                Kind::Fresh(at) => add(page, segment.pages, Some(at)),
                Kind::Own => add(page, segment.pages, None),
                Kind::Frame(_) | Kind::Medium(_) => {
                    for nth in 0..segment.pages {
                        let copied = private[(segment.first - within + nth) as usize];
                        copies += u64::from(copied);
                        let frame = match segment.kind {
                            Kind::Frame(at) if !copied => Some(at + nth),
                            _ => None,
                        };
                        add(page + nth, 1, frame);
                    }
                }
            }
        }
        if !end.is_multiple_of(PAGE as u64) {
            add(last, 1, None);
        }
        // Pages here and there would make later reads map as many pieces.
        if pieces.len() > 3 + pages as usize / SCATTERED {
            pieces = vec![self.copied(offset, end)];
        } else {
            segments
                .into_iter()
                .try_for_each(|segment| buffer.hand_over(segment))?;
        }
        self.shared.table().stats.private_pages += copies;
        self.put(offset, buffer.bytes(), &pieces)
    }

    /// Writes ordinary memory, by copying.
    pub fn write_from(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = self.end(offset, bytes.len())?;
        self.put(offset, bytes, &[self.copied(offset, end)])
    }

    fn end(&self, offset: u64, len: usize) -> Result<u64> {
        let end = offset.saturating_add(len as u64);
        let limit = self.shared.medium.bytes();
        if end > limit {
            Err(FlatError::TooLong { end, limit })
        } else {
            Ok(end)
        }
    }

    /// All pages of a write, to be copied.
    fn copied(&self, offset: u64, end: u64) -> Piece {
        let page = (offset / PAGE as u64) as u32;
        Piece {
            page,
            pages: pages_of(end) as u32 - page,
            frames: None,
        }
    }

    /// Makes the pieces the new version of these bytes, all at once.
    fn put(&self, offset: u64, bytes: &[u8], pieces: &[Piece]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let shared = &*self.shared;
        let writer = shared.table().file(self.id, &self.name)?.writer.clone();
        // One writer at a time, so that two who change parts of one page do not lose each other's part.
        let _turn: MutexGuard<'_, ()> = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let pages: u32 = pieces.iter().map(|piece| piece.pages).sum();
        let copied = pieces.iter().filter(|piece| piece.frames.is_none());
        shared.reserve(pages)?;
        let filled = self.fill(offset, bytes, copied.copied());
        let (runs, copied_bytes) = filled.inspect_err(|_| shared.table().reserved -= pages)?;
        let mut table = shared.table();
        if let Err(error) = table.file(self.id, &self.name) {
            table.reserved -= pages;
            runs.iter().for_each(|run| table.drop_frames(*run));
            return Err(error);
        }
        let mut new = runs.into_iter();
        let mut part: Option<Run> = None;
        let mut needs = 0;
        let mut attached = 0;
        for piece in pieces {
            if let Some(start) = piece.frames {
                let run = Run {
                    start,
                    len: piece.pages,
                };
                table.hold_frames(run);
                needs += table.set_versions(self.id, piece.page, run);
                attached += u64::from(piece.pages);
                continue;
            }
            let mut at = piece.page;
            while at < piece.page + piece.pages {
                let Some(run) = part.take().or_else(|| new.next()) else {
                    break;
                };
                let len = run.len.min(piece.page + piece.pages - at);
                needs += table.set_versions(self.id, at, Run { len, ..run });
                part = (len < run.len).then(|| Run {
                    start: run.start + len,
                    len: run.len - len,
                });
                at += len;
            }
        }
        // Pages that were dirty already have their promise.
        table.reserved -= pages - needs;
        table.written(self.id, offset + bytes.len() as u64, Instant::now());
        table.stats.write_attached_pages += attached;
        table.stats.write_copied_bytes += copied_bytes;
        Ok(())
    }

    /// New frames for the pieces that are copied, filled with what is written and, at the edges, with what was there.
    fn fill(
        &self,
        offset: u64,
        bytes: &[u8],
        pieces: impl Iterator<Item = Piece> + Clone,
    ) -> Result<(Vec<Run>, u64)> {
        let count: u32 = pieces.clone().map(|piece| piece.pages).sum();
        if count == 0 {
            return Ok((Vec::new(), 0));
        }
        let shared = &*self.shared;
        let runs = shared.take_frames(count)?;
        let give_back = || {
            let mut table = shared.table();
            runs.iter().for_each(|run| table.drop_frames(*run));
        };
        runs.iter().for_each(|run| shared.frames.prepare(*run));
        let frames = runs.iter().flat_map(|run| run.start..run.start + run.len);
        let pages = pieces.flat_map(|piece| piece.page..piece.page + piece.pages);
        let end = offset + bytes.len() as u64;
        let mut copied = 0;
        for (frame, page) in frames.zip(pages) {
            // SAFETY: the frame was taken above, and is in no mapping and no table.
            let into = unsafe {
                shared.frames.bytes_mut(Run {
                    start: frame,
                    len: 1,
                })
            };
            let begin = u64::from(page) * PAGE as u64;
            let (from, to) = (offset.max(begin), end.min(begin + PAGE as u64));
            if to - from < PAGE as u64 {
                into.fill(0);
                let old = self.hold(begin, PAGE, true);
                let read = old.and_then(|old| old.copy(0, &mut into[..old.bytes]));
                read.inspect_err(|_| give_back())?;
            }
            into[(from - begin) as usize..(to - begin) as usize]
                .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
            copied += to - from;
        }
        Ok((runs, copied))
    }
}
