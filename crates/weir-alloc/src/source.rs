//! Where the segments of a class come from: memory of the kernel in the class's place, up to its limit.

use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::names;
use crate::node::{self, Place, STRETCH};
use crate::segment::{self, Owner, Segment};

/// Why there is no memory. All sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The policy's limit for the class.
    Limit {
        /// The class.
        class: Arc<str>,
        /// Its limit.
        limit: usize,
        /// What it has mapped.
        mapped: usize,
        /// What it would have mapped more.
        asked: usize,
    },
    /// The nodes of the class have no room.
    Full {
        /// The class.
        class: Arc<str>,
        /// What is free on its nodes.
        free: u64,
        /// What it would have mapped.
        asked: usize,
    },
    /// Alignments are powers of two up to 4 MiB.
    Alignment(usize),
    /// The kernel's error number.
    Kernel(i32),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit {
                class,
                limit,
                mapped,
                asked,
            } => write!(
                f,
                "class {class}: {asked} bytes more than the {mapped} that it has are above its limit of {limit}"
            ),
            Self::Full { class, free, asked } => write!(
                f,
                "class {class}: {asked} bytes do not fit its nodes, where {free} are free; `fallback = \"any\"` allows others"
            ),
            Self::Alignment(align) => write!(
                f,
                "an alignment of {align}: it is a power of two up to 4 MiB"
            ),
            Self::Kernel(number) => {
                write!(
                    f,
                    "the kernel gives no memory: {}",
                    std::io::Error::from_raw_os_error(*number)
                )
            }
        }
    }
}

impl std::error::Error for Refused {}

/// A class's part of the kernel's memory.
pub struct Source {
    /// The name of the class.
    pub name: Arc<str>,
    place: Place,
    limit: usize,
    mapped: AtomicUsize,
    turn: AtomicUsize,
}

impl Source {
    pub fn new(name: &str, place: Place, limit: Option<usize>) -> Self {
        Self {
            name: name.into(),
            place,
            limit: limit.unwrap_or(usize::MAX),
            mapped: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
        }
    }

    /// Bytes that are mapped.
    pub fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Acquire)
    }

    /// A segment of this many bytes, with this class's place and name.
    pub fn map(&self, owner: *const Owner, bytes: usize) -> Result<*mut Segment, Refused> {
        let add = |sum: usize| sum.checked_add(bytes).filter(|&sum| sum <= self.limit);
        if let Err(mapped) = (self.mapped).fetch_update(Ordering::AcqRel, Ordering::Relaxed, add) {
            return Err(Refused::Limit {
                class: self.name.clone(),
                limit: self.limit,
                mapped,
                asked: bytes,
            });
        }
        let made = self.map_within_limit(owner, bytes);
        if made.is_err() {
            self.mapped.fetch_sub(bytes, Ordering::AcqRel);
        }
        made
    }

    fn map_within_limit(&self, owner: *const Owner, bytes: usize) -> Result<*mut Segment, Refused> {
        // The kernel would end the program only when it touches the page for which there is no room.
        let nodes = self.place.nodes.iter().map(|one| one.0);
        if !self.place.elsewhere
            && !self.place.nodes.is_empty()
            && let Some(free) = node::free(nodes)
            && free < bytes as u64
        {
            return Err(Refused::Full {
                class: self.name.clone(),
                free,
                asked: bytes,
            });
        }
        let kernel =
            || Refused::Kernel(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
        let base = segment::map_aligned(bytes).ok_or_else(kernel)?;
        let give_back = |why: Refused| {
            segment::unmap(base, bytes);
            why
        };
        let turn = self
            .turn
            .fetch_add(bytes.div_ceil(STRETCH), Ordering::Relaxed);
        let bound = self.place.bind(base.expose_provenance(), bytes, turn);
        bound.map_err(|error| give_back(Refused::Kernel(error.raw_os_error().unwrap_or(0))))?;
        let known = segment::map(size_of::<Segment>()).ok_or_else(|| give_back(kernel()))?;
        let segment = known.cast::<Segment>();
        let mut text = [0_u8; names::LONGEST];
        let name = b"weir:".iter().chain(self.name.as_bytes());
        let length = text
            .iter_mut()
            .zip(name)
            .map(|(to, from)| *to = *from)
            .count();
        // SAFETY: a mapping of this size, whose zeros are an empty segment, and which no other thread knows yet.
        unsafe {
            (*segment).owner = owner;
            (*segment).base = base;
            (*segment).bytes = bytes;
            (*segment).slot = names::name(base.addr(), bytes, &text[..length]);
        }
        if !segment::register(base, segment) {
            // SAFETY: as above.
            unsafe { names::ended((*segment).slot) };
            segment::unmap(known, size_of::<Segment>());
            return Err(give_back(kernel()));
        }
        Ok(segment)
    }

    /// # Safety
    /// The segment is in no list, and nothing in it is used.
    pub unsafe fn unmap(&self, segment: *mut Segment) {
        // SAFETY: it exists, and after this no thread knows it.
        unsafe {
            let (base, bytes) = ((*segment).base, (*segment).bytes);
            segment::register(base, ptr::null_mut());
            names::ended((*segment).slot);
            segment::unmap(base, bytes);
            segment::unmap(segment.cast(), size_of::<Segment>());
            self.mapped.fetch_sub(bytes, Ordering::AcqRel);
        }
    }
}
