//! What the kernel's work on pages costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Nanos;

/// Times of the kernel's work on pages. All are assumed, of a server of today; each with the range within which such
/// servers lie. Bytes that a move copies are traffic on both tiers, and are not in these times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// A hint fault: trap, lookup of the page, mapping it again. Assumed, 1 to 2 µs.
    pub hint_fault: Nanos,
    /// Taking a page out of the page table for the next hint fault, with its part of the flush of TLBs. Assumed,
    /// 30 to 100 ns.
    pub unmap: Nanos,
    /// A move of a page without the copy: isolating, unmapping, flushing TLBs of other cores, mapping. Assumed, 1.5
    /// to 5 µs; a page of 2 MiB costs the same, and its copy more.
    pub migrate: Nanos,
    /// What the flush of TLBs by a move takes from each thread of the program. Assumed, 20 to 200 ns: interrupts
    /// are sent for batches of pages.
    pub shootdown: Nanos,
    /// Copying 4 KiB in the thread that moves a page, at about 8 GB/s of a single core. Assumed, 300 to 800 ns.
    pub copy_4k: Nanos,
    /// Looking at a page on an LRU list: reverse map, accessed bit. Assumed, 50 to 300 ns.
    pub lru_scan: Nanos,
    /// An event sample of an access (PEBS, IBS): the processor writes a record, a thread of the policy reads it. Assumed, 200
    /// to 1000 ns.
    pub event: Nanos,
    /// Writing a page of 4 KiB to swap: the write of an SSD (TPP Fig 2). Range 10 to 40 µs.
    pub swap_out: Nanos,
    /// A major fault: the read of an SSD (TPP Fig 2). Range 10 to 40 µs.
    pub swap_in: Nanos,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            hint_fault: Nanos(1500.0),
            unmap: Nanos(60.0),
            migrate: Nanos(2500.0),
            shootdown: Nanos(60.0),
            copy_4k: Nanos(500.0),
            lru_scan: Nanos(120.0),
            event: Nanos(500.0),
            swap_out: Nanos(20_000.0),
            swap_in: Nanos(25_000.0),
        }
    }
}

impl Costs {
    /// A move of a page of this many 4 KiB, in the thread that moves it.
    pub fn moving(&self, base_pages: u64) -> Nanos {
        self.migrate + self.copy_4k * base_pages as f64
    }
}
