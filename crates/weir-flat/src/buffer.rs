//! Buffers: addresses at which pages of the cache, pages of the medium, or frames of the program's own are mapped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::error::{FlatError, Result};
use crate::extents::PAGE;
use crate::frames;
use crate::segment::{Kind, Segment};
use crate::shared::Shared;

/// A range of whole pages for reads and writes without copying, aligned to 2 MiB.
///
/// What was read or written is mapped with copy on write: stores of the program go to private copies, never to a
/// file or to another buffer. Only the part that the last read filled, or that [`Buffer::set_window`] set, is
/// visible: its start is the file's offset within a page.
pub struct Buffer {
    pub(crate) shared: Arc<Shared>,
    base: *mut u8,
    pages: u32,
    segments: Vec<Segment>,
    start: usize,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone; `&Buffer` only reads it.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn new(shared: Arc<Shared>, bytes: usize) -> Result<Self> {
        let pages = u32::try_from(bytes.div_ceil(PAGE).max(1))
            .ok()
            .filter(|pages| *pages < u32::MAX / 2);
        let limit = u64::from(u32::MAX / 2) * PAGE as u64;
        let pages = pages.ok_or(FlatError::TooLong {
            end: bytes as u64,
            limit,
        })?;
        let reserved = frames::reserve(pages as usize * PAGE);
        let base =
            reserved.map_err(|source| shared.io("reserve addresses for a buffer of", source))?;
        let segments = vec![Segment {
            first: 0,
            pages,
            kind: Kind::Own,
        }];
        let buffer = Self {
            shared,
            base,
            pages,
            segments,
            start: 0,
            len: bytes,
        };
        buffer.map(0, pages, Kind::Own)?;
        Ok(buffer)
    }

    /// Bytes that it has room for.
    pub fn capacity(&self) -> usize {
        self.pages as usize * PAGE
    }

    /// The visible part.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: all pages are mapped readable; frames of the cache do not change while this buffer maps them, and
        // fresh ones change by `&mut self` only. Pages of the medium are changed by no store that has its lock.
        unsafe { std::slice::from_raw_parts(self.base.add(self.start), self.len) }
    }

    /// The visible part, to store into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the mapping is writable, and what is stored reaches this buffer only.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(self.start), self.len) }
    }

    /// Where the visible part begins and how long it is, in bytes.
    pub fn window(&self) -> (usize, usize) {
        (self.start, self.len)
    }

    /// Makes this part visible: what the next write writes.
    pub fn set_window(&mut self, start: usize, len: usize) -> Result<()> {
        let end = start.checked_add(len).filter(|end| *end <= self.capacity());
        let Some(_) = end else {
            return Err(FlatError::BufferSmall {
                asked: (start as u64).saturating_add(len as u64),
                has: self.capacity() as u64,
            });
        };
        (self.start, self.len) = (start, len);
        Ok(())
    }

    /// Gives the whole buffer fresh frames, which the next write hands over without copying. What is in them is
    /// anything: this is for programs that store every byte before they write. Pages that it read or wrote before
    /// are let go.
    pub fn renew(&mut self) -> Result<()> {
        // A writer that renews what it has not handed over has fresh frames already.
        if self
            .segments
            .iter()
            .all(|segment| matches!(segment.kind, Kind::Fresh(_)))
        {
            return Ok(());
        }
        // First what it has, so that a cache as small as the buffer suffices.
        self.replace(0, self.pages, Kind::Own)?;
        let runs = self.shared.take_frames(self.pages)?;
        let mut first = 0;
        for (nth, run) in runs.iter().enumerate() {
            self.shared.frames.prepare(*run);
            if let Err(error) = self.replace(first, run.len, Kind::Fresh(run.start)) {
                let mut table = self.shared.table();
                runs[nth..].iter().for_each(|run| table.drop_frames(*run));
                return Err(error);
            }
            first += run.len;
        }
        Ok(())
    }

    /// How many pages of the buffer are private copies that the kernel made for stores, by `/proc/self/pagemap`.
    pub fn private_pages(&self) -> Result<u32> {
        let private = self.private(0, self.pages)?;
        let attached = |page: u32| {
            self.segments
                .iter()
                .any(|it| it.kind != Kind::Own && it.covers(page))
        };
        Ok((0..self.pages)
            .filter(|page| private[*page as usize] && attached(*page))
            .count() as u32)
    }

    pub(crate) fn page_count(&self) -> u32 {
        self.pages
    }

    /// Whether these pages are this buffer's alone, so that storing there makes the kernel copy nothing.
    pub(crate) fn is_exclusive(&self, first: u32, pages: u32) -> bool {
        let exclusive = |segment: &Segment| matches!(segment.kind, Kind::Fresh(_) | Kind::Own);
        self.within(first, pages).iter().all(exclusive)
    }

    /// The segments of these pages, cut to them.
    pub(crate) fn within(&self, first: u32, pages: u32) -> Vec<Segment> {
        self.segments
            .iter()
            .filter_map(|segment| segment.cut(first, first + pages))
            .collect()
    }

    /// Which of these pages are private copies.
    pub(crate) fn private(&self, first: u32, pages: u32) -> Result<Vec<bool>> {
        let mut words = vec![0; pages as usize * 8];
        let at = (self.base as usize / PAGE + first as usize) as u64 * 8;
        let read = self.shared.pagemap.read_exact_at(&mut words, at);
        read.map_err(|source| {
            self.shared
                .io("read /proc/self/pagemap for a buffer of", source)
        })?;
        // Documentation/admin-guide/mm/pagemap.rst: 63 present, 62 swapped, 61 a page of a file or shared memory.
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        Ok(words
            .chunks(8)
            .map(word)
            .map(|word| word >> 62 != 0 && word >> 61 & 1 == 0)
            .collect())
    }

    /// Maps something else at these pages. For frames and pages of the medium a reference of each passes to the
    /// buffer, where this succeeds.
    pub(crate) fn replace(&mut self, first: u32, pages: u32, kind: Kind) -> Result<()> {
        self.map(first, pages, kind)?;
        let gone = self.note(first, pages, kind);
        self.shared.release(&gone);
        Ok(())
    }

    /// Frames that a write hands to the cache: from now on stores of the program make copies. References stay.
    pub(crate) fn hand_over(&mut self, segment: Segment) -> Result<()> {
        let Kind::Fresh(start) = segment.kind else {
            return Ok(());
        };
        self.map(segment.first, segment.pages, Kind::Frame(start))?;
        self.note(segment.first, segment.pages, Kind::Frame(start));
        Ok(())
    }

    /// Enters a segment, and returns what was there.
    fn note(&mut self, first: u32, pages: u32, kind: Kind) -> Vec<Segment> {
        let end = first + pages;
        let new = Segment { first, pages, kind };
        // The usual case: a buffer that is read as a whole.
        if self.segments.len() == 1 && pages == self.pages {
            return vec![std::mem::replace(&mut self.segments[0], new)];
        }
        let gone = self.within(first, pages);
        let before = self
            .segments
            .iter()
            .filter_map(|segment| segment.cut(0, first));
        let after = self
            .segments
            .iter()
            .filter_map(|segment| segment.cut(end, self.pages));
        self.segments = before.chain([new]).chain(after).collect();
        gone
    }

    fn map(&self, first: u32, pages: u32, kind: Kind) -> Result<()> {
        let none = || {
            self.shared
                .io("map pages of", io::ErrorKind::Unsupported.into())
        };
        let (flags, fd, page): (_, Option<BorrowedFd>, u64) = match kind {
            Kind::Own => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None, 0),
            Kind::Fresh(start) => (
                libc::MAP_SHARED,
                Some(self.shared.frames_fd()),
                start.into(),
            ),
            Kind::Frame(start) => (
                libc::MAP_PRIVATE,
                Some(self.shared.frames_fd()),
                start.into(),
            ),
            Kind::Medium(start) => {
                let page = self.shared.data_at / PAGE as u64 + u64::from(start);
                (
                    libc::MAP_PRIVATE,
                    Some(self.shared.medium.mappable().ok_or_else(none)?),
                    page,
                )
            }
        };
        let bytes = pages as usize * PAGE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the addresses are of this buffer, whose bytes are not borrowed: `&mut self` is held by all callers
        // but `new`. The kernel replaces the mapping in one step.
        let at = unsafe {
            let at = self.base.add(first as usize * PAGE).cast();
            libc::mmap(
                at,
                bytes,
                access,
                flags | libc::MAP_FIXED,
                fd.map_or(-1, |fd| fd.as_raw_fd()),
                (page * PAGE as u64) as libc::off_t,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(self.shared.io("map pages of", io::Error::last_os_error()));
        }
        // Page table entries now rather than at the first touch; a failure costs the faults. All of fresh frames are to
        // be stored into.
        let advice = match kind {
            Kind::Own => None,
            Kind::Fresh(_) => Some(libc::MADV_POPULATE_WRITE),
            Kind::Frame(_) | Kind::Medium(_) => self
                .shared
                .options
                .populate
                .then_some(libc::MADV_POPULATE_READ),
        };
        if let Some(advice) = advice {
            // SAFETY: advice on the pages that were just mapped.
            unsafe { libc::madvise(at, bytes, advice) };
        }
        Ok(())
    }

    /// Some bytes of the whole buffer, to store into.
    pub(crate) fn part_mut(&mut self, at: usize, len: usize) -> &mut [u8] {
        assert!(at + len <= self.capacity());
        // SAFETY: as in `bytes_mut`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(at), len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no borrow of it is left.
        unsafe { libc::munmap(self.base.cast(), self.capacity()) };
        self.shared.release(&self.segments);
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer")
            .field("at", &self.base)
            .field("window", &self.window())
            .finish_non_exhaustive()
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}
