//! Constants of a tier and of its devices.

use crate::clock::Ps;
use crate::memory::backing::BackingConfig;
use crate::memory::channel::ChannelConfig;
use crate::memory::far::FarGaps;
use crate::memory::link::LinkConfig;
use crate::rng;

/// Later than any time of a run.
pub const NEVER: Ps = Ps::MAX;

/// Constants of a tier.
#[derive(Debug, Clone)]
pub struct TierConfig {
    /// Fixed time from the home agent to the first queue of the tier.
    pub way_out: Ps,
    /// Fixed time back.
    pub way_back: Ps,
    /// The socket link, for tiers of another socket.
    pub socket_link: Option<LinkConfig>,
    /// Share of the lines read for ownership that the other socket writes again, for its memory directory;
    /// zero for tiers of this socket.
    pub directory_write: f64,
    /// The limit for lines of the other socket.
    pub far: FarGaps,
    /// The upstream link of the CXL switch, for devices behind a switch.
    pub upstream: Option<LinkConfig>,
    /// The CXL link and controller, for CXL tiers.
    pub device: Option<DeviceConfig>,
    /// Devices over which lines are interleaved; 1 for other tiers.
    pub ways: u32,
    /// Consecutive lines that one device holds.
    pub stripe: u64,
    /// How hosts share it; `None` if it is one host's.
    pub sharing: Option<Sharing>,
    /// When its devices disappear; [`NEVER`] as a rule.
    pub fails_at: Ps,
    /// Channels, all equal; for several devices, those of one device.
    pub channels: u32,
    /// Constants of one channel.
    pub channel: ChannelConfig,
}

/// How hosts share the devices of a tier. Everything behind their ports is common to all: credits, the controller,
/// buffers, DRAM. Before them every host has its own links, and of their lines a range.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// Hosts.
    pub hosts: u32,
    /// Whether a device has a port for each host.
    pub is_multi_headed: bool,
    /// Lines of a host's range.
    pub range: u64,
}

/// Constants of a CXL device.
#[derive(Debug, Clone)]
pub struct DeviceConfig {
    /// The link.
    pub link: LinkConfig,
    /// Fixed time through the controller, each way.
    pub pass: Ps,
    /// Least time between lines that the controller passes in one direction; zero if it is no limit.
    pub gap: Ps,
    /// The same of both directions together.
    pub total_gap: Ps,
    /// Reads that it takes before it has answered, and the same of written lines: in CXL.mem the two have
    /// credits of their own (M2S Req and RwD).
    pub queue: u32,
    /// Lines of its write buffer.
    pub write_buffer: u32,
    /// Rare long reads.
    pub tail: Option<TailConfig>,
    /// The medium of which its DRAM is a cache, if it is one.
    pub backing: Option<BackingConfig>,
}

/// A rare delay.
#[derive(Debug, Clone, Copy)]
pub struct TailConfig {
    /// Share of reads.
    pub share: f64,
    /// Mean of the delay.
    pub mean: Ps,
    /// Share of it that is exponential.
    pub spread: f64,
}

impl TailConfig {
    /// The delay of the `n`th read.
    #[inline]
    pub fn delay(&self, seed: u64, n: u64) -> Ps {
        if rng::unit(seed, n) >= self.share {
            return 0;
        }
        let length = -(1.0 - rng::unit(seed ^ 1, n)).ln();
        ((1.0 + self.spread * (length - 1.0)) * self.mean as f64) as Ps
    }
}
