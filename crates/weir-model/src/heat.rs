//! Pages as a profile sees them: what a scanner, a sampler or a trace says of them, whichever it is.

use std::sync::Arc;

use crate::units::Bytes;

/// Pages next to each other that were seen alike in a part of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenPages {
    /// The address space: equal addresses of two are two pages.
    pub space: u32,
    /// The first address. The pages of a space are distinguished by it.
    pub start: u64,
    /// The memory that they are, or stand for where only some pages are looked at.
    pub bytes: Bytes,
    /// The size of a page.
    pub page: Bytes,
    /// Whether they are page cache or tmpfs; else anonymous memory.
    pub file: bool,
    /// The part of the address space.
    pub region: Arc<str>,
    /// How often each page was seen touched; 0 of pages that are allocated and were not.
    pub touches: f64,
    /// The frame of the first page, or another number that changes when it is freed and allocated again; 0 where that is
    /// not known.
    pub frame: u64,
}
