//! The log on the medium: two areas, of which a superblock names the one in use.
//!
//! | pages of the medium | content |
//! |---|---|
//! | 0, 1 | superblocks; the valid one with the greater generation counts |
//! | 2 … | log area 0, log area 1 |
//! | after them | pages of files |
//!
//! An area begins with a record that has all files (a checkpoint); a record for each flush follows. When an area is
//! full, or a store is opened, a checkpoint goes to the other one, and then its superblock is written.

use crate::error::{FlatError, Result};
use crate::extents::PAGE;
use crate::medium::{Medium, too_few};
use crate::record::{self, Op, Position};

const MAGIC: &[u8; 8] = b"weirflat";
const VERSION: u32 = 1;

/// Where the parts of a medium are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Pages of one log area.
    pub area: u32,
    /// Pages for files.
    pub pages: u32,
}

impl Layout {
    /// The parts of a medium of this many bytes; `None` where it is too small. An area has room for a run for each
    /// page of files, so that files may be scattered as badly as can be.
    pub fn of(bytes: u64) -> Option<Self> {
        let whole = u32::try_from(bytes / PAGE as u64).unwrap_or(u32::MAX - 1);
        // A record has 17 bytes a run; names have their share, and flushes since the checkpoint as much again.
        let area = (whole / 100).max(64);
        let pages = whole
            .checked_sub(2 + 2 * area)
            .filter(|pages| *pages >= 16)?;
        Some(Self { area, pages })
    }

    /// Bytes of a checkpoint that are left for names where every page is a run of its own.
    pub fn name_room(self) -> u64 {
        u64::from(self.area) * PAGE as u64 - record::HEADER as u64 - 17 * u64::from(self.pages)
    }

    fn area_at(self, generation: u64) -> u64 {
        (2 + (generation % 2) * u64::from(self.area)) * PAGE as u64
    }

    /// The byte where pages of files begin.
    pub fn data_at(self) -> u64 {
        (2 + 2 * u64::from(self.area)) * PAGE as u64
    }
}

/// The end of the log, where the next record goes.
#[derive(Debug)]
pub struct Log {
    layout: Layout,
    offset: usize,
    next: Position,
    /// Whether a write failed, after which the content of the medium is not known.
    pub failed: bool,
}

/// What a superblock says.
fn superblock(layout: Layout, generation: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&layout.area.to_le_bytes());
    bytes[16..20].copy_from_slice(&layout.pages.to_le_bytes());
    bytes[24..32].copy_from_slice(&generation.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

impl Log {
    /// A log that has nothing yet; a checkpoint must follow.
    pub fn new(layout: Layout, generation: u64) -> Self {
        let next = Position {
            generation,
            sequence: 0,
        };
        Self {
            layout,
            offset: 0,
            next,
            failed: false,
        }
    }

    /// The log of a medium and its records, in order; `None` where the medium is blank.
    pub fn read(medium: &dyn Medium) -> Result<Option<(Self, Vec<Vec<Op>>)>> {
        let io = |source| FlatError::Io {
            what: "read",
            path: medium.path().to_owned(),
            source,
        };
        let unknown = |why: String| FlatError::NoStore {
            path: medium.path().to_owned(),
            why,
        };
        let Some(layout) = Layout::of(medium.bytes()) else {
            return Err(too_few(medium.path(), medium.bytes()));
        };
        let mut found = None;
        let mut blank = true;
        for slot in 0..2_u64 {
            let mut page = vec![0; PAGE];
            medium.read_at(slot * PAGE as u64, &mut page).map_err(io)?;
            // The first superblock of a new store may have been cut.
            let new = superblock(layout, 1);
            let written = page
                .iter()
                .zip(&new)
                .take_while(|(byte, new)| slot == 1 && byte == new)
                .count();
            blank &= page[written..].iter().all(|byte| *byte == 0);
            let generation = u64::from_le_bytes(page[24..32].try_into().unwrap_or_default());
            if page[..64] == superblock(layout, generation) && generation % 2 == slot {
                found = found.max(Some(generation));
            }
        }
        let Some(generation) = found else {
            return if blank {
                Ok(None)
            } else {
                Err(unknown("its first pages have something else".to_owned()))
            };
        };
        let mut area = vec![0; layout.area as usize * PAGE];
        medium
            .read_at(layout.area_at(generation), &mut area)
            .map_err(io)?;
        let mut log = Self::new(layout, generation);
        let mut records = Vec::new();
        while let Some((ops, length)) = record::decode(&area[log.offset..], log.next) {
            records.push(ops);
            log.advance(length);
        }
        if records.is_empty() {
            let why = "the first record of its log cannot be read".to_owned();
            return Err(FlatError::Damaged {
                path: medium.path().to_owned(),
                why,
            });
        }
        Ok(Some((log, records)))
    }

    fn advance(&mut self, length: usize) {
        self.offset += length;
        self.next.sequence += 1;
    }

    /// Where the parts of the medium are.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Writes a record after the others; false where the area has no room for it.
    pub fn append(&mut self, medium: &dyn Medium, ops: &[Op]) -> Result<bool> {
        let bytes = record::encode(ops, self.next);
        if self.offset + bytes.len() > self.layout.area as usize * PAGE {
            return Ok(false);
        }
        self.write(
            medium,
            self.layout.area_at(self.next.generation) + self.offset as u64,
            &bytes,
        )?;
        self.advance(bytes.len());
        Ok(true)
    }

    /// Writes all files to the other area, and makes it the one in use; false where they do not fit. What was
    /// written before is durable when it returns.
    pub fn checkpoint(&mut self, medium: &dyn Medium, files: &[Op]) -> Result<bool> {
        let mut other = Self::new(self.layout, self.next.generation + 1);
        if !other
            .append(medium, files)
            .inspect_err(|_| self.failed = true)?
        {
            return Ok(false);
        }
        let generation = other.next.generation;
        self.barrier(medium)?;
        self.write(
            medium,
            generation % 2 * PAGE as u64,
            &superblock(self.layout, generation),
        )?;
        self.barrier(medium)?;
        *self = other;
        Ok(true)
    }

    fn write(&mut self, medium: &dyn Medium, at: u64, bytes: &[u8]) -> Result<()> {
        let written = medium.write_at(at, bytes);
        self.failed |= written.is_err();
        written.map_err(|source| FlatError::Io {
            what: "write",
            path: medium.path().to_owned(),
            source,
        })
    }

    /// What was written is durable, as far as the medium can.
    pub fn barrier(&mut self, medium: &dyn Medium) -> Result<()> {
        let done = medium.barrier();
        self.failed |= done.is_err();
        done.map_err(|source| FlatError::Io {
            what: "sync",
            path: medium.path().to_owned(),
            source,
        })
    }
}
