//! By which rules stores arrive in the pool, and what a failure leaves.

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

    /// Whether recovery is told that data may be missing.
    pub const fn shuts_down_dirty(self) -> bool {
        matches!(self, Platform::FlushOnFailIncomplete)
    }
}
