//! By which rules stores arrive in the pool, and what a failure leaves.

use crate::line::LINE;

weir_model::named! {
    /// A platform with its failure.
    pub enum Platform {
        /// Caches are lost when power fails; what a flush and a fence wrote back is kept.
        Adr = "adr",
        /// Caches are kept when power fails; buffers of non-temporal stores are not.
        Eadr = "eadr",
        /// Caches are flushed when power fails, and that completed.
        FlushOnFail = "flush-on-fail",
        /// Caches were being flushed when power ended: any line may be missing, and the shutdown is reported as dirty.
        FlushOnFailIncomplete = "flush-on-fail-incomplete",
        /// Volatile memory that hosts share coherently: one host crashes, with its caches, and another recovers.
        SharedPool = "shared-pool",
        /// A file on a disk, through the page cache of the kernel: only msync and fsync write it for sure.
        PageCache = "page-cache",
        /// A CXL device whose DRAM buffers writes of another medium and is lost with power, without a global persistent flush:
        /// only what a `sync` has made the device write is kept (CXL-SSD, HotStorage 2022, section 5).
        DeviceBuffer = "device-buffer",
    }
}

impl Platform {
    /// Whether stores in caches are kept.
    pub(crate) const fn keeps_caches(self) -> bool {
        matches!(self, Platform::Eadr | Platform::FlushOnFail)
    }

    /// Whether each host crashes alone.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, Platform::SharedPool)
    }

    /// Whether flushes and fences of lines ensure nothing.
    pub(crate) const fn needs_sync(self) -> bool {
        matches!(self, Platform::PageCache | Platform::DeviceBuffer)
    }

    /// Whether the kernel writes back, from ordinary memory.
    pub(crate) const fn is_page_cache(self) -> bool {
        matches!(self, Platform::PageCache)
    }

    /// Bytes that are written back together: a cache line, or a sector of a disk (the smallest logical block, NVMe Base Specification
    /// 2.0, LBA data size).
    pub(crate) const fn unit(self) -> usize {
        match self {
            Platform::PageCache => 512,
            _ => LINE,
        }
    }

    /// Whether recovery is notified that data may be missing.
    pub const fn shuts_down_dirty(self) -> bool {
        matches!(self, Platform::FlushOnFailIncomplete)
    }
}
