//! Reads: which pages are mapped, and which bytes are copied.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::error::{FlatError, Result};
use crate::extents::PAGE;
use crate::segment::{Kind, Segment};
use crate::shared::{Load, Shared};
use crate::store::File;
use crate::table::{NONE, pages_of};

/// A read that would make more mappings than this copies: a process has 65,530 (vm.max_map_count).
const RUNS: usize = 64;
/// Where the pages of a read are, with a reference of each.
pub struct Held<'a> {
    shared: &'a Shared,
    segments: Vec<Segment>,
    /// Bytes that the file has of what was asked for.
    pub bytes: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shared.release(&self.segments);
    }
}

impl Held<'_> {
    /// Copies bytes which begin so far into the first page.
    pub fn copy(&self, start: usize, into: &mut [u8]) -> Result<()> {
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

impl File {
    /// Bytes of the file.
    pub fn bytes(&self) -> Result<u64> {
        Ok(self.shared.table().file(self.id, &self.name)?.size)
    }

    /// The pages of a part of the file. Where the medium's pages cannot be used as they are, those that missed are
    /// loaded first.
    pub(crate) fn hold(&self, offset: u64, len: usize, medium: bool) -> Result<Held<'_>> {
        let mut waited = 0;
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
                waited = waited.max(misses);
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
            // What was loaded first is a miss too.
            table.stats.hit_pages += hits - waited.min(hits);
            table.stats.missed_pages += misses + waited;
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
}
