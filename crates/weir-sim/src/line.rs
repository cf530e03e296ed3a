//! A line: its place, how it is requested, and which private cache has it.

use crate::memory::Crossing;

/// The place of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Tier, as a position in the machine's list.
    pub tier: u8,
    /// The line's number within the tier.
    pub line: u64,
}

impl Place {
    const TIER_SHIFT: u32 = 48;

    /// Tier and line as one number.
    #[inline]
    pub fn key(self) -> u64 {
        (u64::from(self.tier) << Self::TIER_SHIFT) | self.line
    }

    /// The place of a key.
    #[inline]
    pub fn from_key(key: u64) -> Self {
        let line = key & ((1 << Self::TIER_SHIFT) - 1);
        Self {
            tier: (key >> Self::TIER_SHIFT) as u8,
            line,
        }
    }
}

/// The kind of a request, with the hardware's opcode name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Data read on demand (DRd).
    Drd,
    /// Data read by an L1 prefetcher.
    DrdL1Pref,
    /// Data read by the L2 prefetcher (DRd_Pref).
    DrdL2Pref,
    /// Read for ownership on demand (RFO).
    Rfo,
    /// Read for ownership by the L2 prefetcher (RFO_Pref).
    RfoPref,
    /// Data read by the L2 prefetcher into the last-level cache alone (LLCPrefData, LLCPrefRFO).
    LlcPref,
    /// Read for ownership of a line that another core has modified: that core's L2 is snooped. The last of
    /// the kinds that bring a line to a core.
    RfoSnoop,
    /// Full-line streaming write (WCiLF).
    Wcilf,
    /// Write-back of a modified line from L2 (WbMtoI).
    WbMtoI,
    /// A modified line that the last-level cache evicts (TOR_INSERTS.EVICT).
    LlcEvict,
    /// Write-back requested by `clwb`: through to memory, the line stays in the cache (WbMtoE).
    Clwb,
    /// Read by a device on the socket (PCIRdCur).
    PciRdCur,
    /// Full-line write by a device on the socket (ItoM).
    ItoM,
    /// Read and write by a device on a port (TOR_INSERTS.IO_PCIRDCUR and IO_ITOM): the line that it reads may
    /// be in a cache, and the line that it writes goes into the cache.
    IoRead,
    IoWrite,
    /// A request from the other socket's slice to a slice here (RRQ); `index` names the original request.
    Remote,
}

impl Kind {
    /// Whether it is a posted write, past the caches.
    pub const fn is_posted(self) -> bool {
        matches!(self, Kind::Wcilf)
    }

    /// Whether it is a line that leaves a cache, so that a core's buffer holds it until memory can accept it.
    pub const fn holds_buffer(self) -> bool {
        matches!(self, Kind::WbMtoI | Kind::Clwb | Kind::LlcEvict)
    }

    /// What it does to the snoop filter of another socket whose memory it writes.
    pub const fn crossing(self) -> Crossing {
        match self.holds_buffer() {
            true => Crossing::WriteBack,
            false => Crossing::Posted,
        }
    }

    /// The number of kinds that cores and devices send.
    pub const COUNT: usize = Kind::IoWrite as usize + 1;

    /// The kinds that leave cores, and not the last-level cache or a device.
    pub const OF_CORES: [Kind; 9] = [
        Kind::Drd,
        Kind::DrdL1Pref,
        Kind::DrdL2Pref,
        Kind::Rfo,
        Kind::RfoPref,
        Kind::RfoSnoop,
        Kind::Wcilf,
        Kind::WbMtoI,
        Kind::Clwb,
    ];

    /// The kinds that demand, the L1 prefetchers and the L2 prefetcher send if lines are loaded.
    pub const LOADS: [Kind; 3] = [Kind::Drd, Kind::DrdL1Pref, Kind::DrdL2Pref];

    /// The same if lines are stored to.
    pub const STORES: [Kind; 3] = [Kind::Rfo, Kind::RfoPref, Kind::RfoPref];

    /// Whether it brings a line from memory to the core that requests it.
    #[inline]
    pub const fn fills(self) -> bool {
        (self as u8) < Kind::RfoSnoop as u8
    }

    /// Whether demand or a prefetcher of L1 requests the line.
    #[inline(always)]
    pub const fn is_of_l1(self) -> bool {
        matches!(self, Kind::Drd | Kind::DrdL1Pref | Kind::Rfo)
    }

    /// Whether it makes the core the only owner of the line.
    #[inline]
    pub const fn owns(self) -> bool {
        matches!(self, Kind::Rfo | Kind::RfoPref)
    }

    /// Whether it brings a line to the core.
    pub const fn is_read(self) -> bool {
        self as u8 <= Kind::RfoSnoop as u8
    }
}

/// Where a line was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// First-level cache.
    L1,
    /// Second-level cache.
    L2,
}
