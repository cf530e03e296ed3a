//! An access of a described program, and those that follow it in the same element.

/// An access to one line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Visit {
    /// The line.
    pub line: u64,
    /// The line after the last of its region.
    pub end: u64,
    /// Consecutive accesses to it.
    pub accesses: u32,
    /// Instructions from here to the next visit.
    pub gap: f64,
    /// Its phase, as a position in [`Script::phases`](super::Script::phases).
    pub phase: u16,
    /// Whether it is a store, and if so whether it bypasses the caches.
    pub store: bool,
    /// See `store`.
    pub non_temporal: bool,
    /// The chain whose latest load gives its address.
    pub after: Option<u16>,
    /// The chain that it belongs to.
    pub chain: u16,
    /// Whether a branch that waits for it is mispredicted.
    pub mispredicted: bool,
    /// Lines from one access of its instruction to the next, if the stride is constant; else zero.
    pub stride: u64,
    /// Whether its translation is not in the TLBs, and the share of lines of the region's page tables that the
    /// last-level cache has and L2 has not, of 2^32.
    pub walks: bool,
    /// See `walks`.
    pub table_cached: u32,
    /// The same of the hypervisor's tables.
    pub host_cached: u32,
    /// Whether it is the first touch of its page.
    pub faults: bool,
    /// Share of such lines that the last-level cache has and L2 has not, of 2^32.
    pub cached: u32,
}

/// The rest of an element.
#[derive(Debug, Clone, Copy)]
pub struct Rest {
    pub lines: u64,
    pub next: Visit,
    /// The element's first line, its lines, and from one of them to the next, where they do not ascend.
    pub around: Option<(u64, u64, u64)>,
}

impl Rest {
    /// The next line, and what follows it.
    pub fn step(&mut self) {
        self.lines -= 1;
        match self.around {
            None => self.next.line += 1,
            Some((first, lines, step)) => {
                self.next.line = first + (self.next.line - first + step) % lines;
            }
        }
    }
}
