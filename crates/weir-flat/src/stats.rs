//! What the store did.

use std::time::Duration;

/// Counts since the store was opened, and what it holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Pages read that had a frame.
    pub hit_pages: u64,
    /// Pages read that were on the medium only.
    pub missed_pages: u64,
    /// Pages that reads mapped into buffers.
    pub read_attached_pages: u64,
    /// Pages of buffers that writes gave to the cache.
    pub write_attached_pages: u64,
    /// Bytes that reads copied: below the threshold, too scattered to map, or into ordinary memory.
    pub read_copied_bytes: u64,
    /// Bytes that writes copied: edges, below the threshold, from ordinary memory, and private pages.
    pub write_copied_bytes: u64,
    /// Pages of written buffers which the kernel had copied, because the program stored into what it had read or
    /// written before.
    pub private_pages: u64,
    /// Pages that were read from the medium into frames.
    pub loaded_pages: u64,
    /// Pages whose frames were given up.
    pub evicted_pages: u64,
    /// Records of the log that flushes wrote.
    pub commits: u64,
    /// Pages that flushes wrote.
    pub flushed_pages: u64,
    /// Flushes that failed; their pages are dirty again.
    pub failed_flushes: u64,
    /// From the oldest write of a flush to its commit, the last one.
    pub flush_lag: Duration,
    /// The longest.
    pub flush_lag_max: Duration,
    /// The longest time that a flush held the lock to collect pages.
    pub collection_max: Duration,
    /// Bytes of frames that are free now.
    pub free_frame_bytes: u64,
    /// Bytes of all frames.
    pub frame_bytes: u64,
    /// References of frames now, of the table, of buffers and of flushes.
    pub frame_references: u64,
    /// Bytes of the medium that are free now and not promised to a write.
    pub free_medium_bytes: u64,
}
