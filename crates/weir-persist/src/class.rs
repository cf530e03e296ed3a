//! Kinds of memory by three features, each of which a vendor may leave out (*Persistent Memory Research in the Post-Optane
//! Era*, DIMES 2023, table 1), and the platforms on which programs for them are checked.

use crate::platform::Platform;

weir_model::named! {
    /// A kind of memory, by its example.
    pub enum Class {
        /// A volatile disk in memory.
        RamDisk = "ram disk",
        /// Hard disks and SSDs.
        Disk = "disk, SSD",
        /// Loads and stores of PCIe memory that no cache keeps coherent; RDMA to volatile memory.
        PcieMemory = "PCIe memory, RDMA",
        /// Persistent memory of another server by RDMA; object storage.
        RemotePmem = "RDMA to remote PMem",
        /// Volatile memory that hosts share over CXL.
        VolatilePool = "CXL pool of RAM",
        /// NVDIMMs, Optane.
        Pmem = "NVDIMM, Optane",
    }
}

impl Class {
    /// Whether reads see what other processors and hosts wrote.
    pub const fn is_coherent(self) -> bool {
        matches!(self, Class::VolatilePool | Class::Pmem)
    }

    /// Whether an access may be smaller than a sector of 512 bytes.
    pub const fn is_byte_addressable(self) -> bool {
        !matches!(self, Class::RamDisk | Class::Disk)
    }

    /// Whether data outlive a loss of power.
    pub const fn is_persistent(self) -> bool {
        matches!(self, Class::Disk | Class::RemotePmem | Class::Pmem)
    }

    /// Whether the paper knows products of it.
    pub const fn exists(self) -> bool {
        matches!(self, Class::RamDisk | Class::Disk | Class::Pmem)
    }

    /// The platforms on which a crash is checked; none where nothing outlives one. Without coherence a host that lives reads
    /// what was written back, as from a coherent pool after a crash; what RDMA sent is certain once it was flushed there.
    pub const fn platforms(self) -> &'static [Platform] {
        match self {
            Class::RamDisk => &[],
            Class::Disk => &[Platform::PageCache],
            Class::RemotePmem => &[Platform::DeviceBuffer],
            Class::PcieMemory | Class::VolatilePool => &[Platform::SharedPool],
            Class::Pmem => &[
                Platform::Adr,
                Platform::Eadr,
                Platform::FlushOnFail,
                Platform::FlushOnFailIncomplete,
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_classes_have_the_same_features_and_none_is_coherent_in_blocks() {
        let features = |class: Class| {
            (
                class.is_coherent(),
                class.is_byte_addressable(),
                class.is_persistent(),
            )
        };
        let all: BTreeSet<_> = Class::ALL.into_iter().map(features).collect();
        assert_eq!(all.len(), Class::ALL.len());
        assert!(all.iter().all(|&(coherent, bytes, _)| bytes || !coherent));
    }

    #[test]
    fn every_platform_checks_a_class_and_what_is_lost_needs_no_check() {
        for platform in Platform::ALL {
            let of = |class: &&Class| class.platforms().contains(&platform);
            assert!(Class::ALL.iter().find(of).is_some(), "{platform}");
        }
        assert!(Class::RamDisk.platforms().is_empty());
    }
}
