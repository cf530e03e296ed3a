//! Values of keys that are words.

crate::named! {
    /// How a controller is built.
    pub enum ControllerKind {
        /// A product: deep queues, reorders for open rows.
        Asic = "asic",
        /// A prototype in programmable logic: looks over fewer requests for an open row.
        Fpga = "fpga",
    }
}

crate::named! {
    /// What limits a device's reads, and so which parameter its measured peak sets.
    pub enum ReadLimit {
        /// Slots of the link.
        Link = "link",
        /// Lines through the controller.
        Controller = "controller",
        /// The DRAM itself: the peak sets nothing.
        Media = "media",
    }
}

crate::named! {
    /// A medium slower than DRAM.
    pub enum Medium {
        /// Samsung's flash of one bit a cell with short bit lines.
        ZNand = "z-nand",
        /// Flash of three bits a cell.
        Tlc = "tlc",
        /// Intel's Optane (3D XPoint), which is written in place.
        Optane = "optane",
    }
}

crate::named! {
    /// Which page of a set leaves a cache.
    pub enum Replacement {
        /// The least recently used one.
        Lru = "lru",
        /// Any.
        Random = "random",
    }
}

crate::named! {
    /// When a written page goes to the medium.
    pub enum WritePolicy {
        /// When it leaves the cache.
        Back = "back",
        /// As soon as it is written.
        Through = "through",
    }
}
