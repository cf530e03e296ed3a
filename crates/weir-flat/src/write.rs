//! Writes: which frames become the cache's, and which bytes are copied.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use crate::buffer::Buffer;
use crate::error::{FlatError, Result};
use crate::extents::{PAGE, Run};
use crate::segment::Kind;
use crate::store::File;
use crate::table::pages_of;

/// Pages that a written run has on average, or the pages of the write are copied together.
const SCATTERED: usize = 32;

/// Pages of a write that come from one place.
#[derive(Debug, Clone, Copy)]
struct Piece {
    page: u32,
    pages: u32,
    /// Frames of the buffer from this one on; otherwise the bytes are copied.
    frames: Option<u32>,
}

impl File {
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
        // One writer at a time, so that two that change parts of one page do not lose each other's part.
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
