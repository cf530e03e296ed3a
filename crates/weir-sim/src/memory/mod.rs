//! Memory: tiers, the links to them, and DRAM channels.

mod backing;
mod bank;
mod calendar;
mod channel;
mod credits;
mod far;
mod link;
mod rows;
mod stripes;
mod tier;

pub use backing::{
    BackingConfig, BlockConfig, FlashConfig, Footprint, PageCacheConfig, Reuse, WearConfig,
};
pub use bank::BankTiming;
pub use channel::ChannelConfig;
pub use far::{Crossing, FarGaps, FarLimit};
pub use link::{Link, LinkConfig, Peers};
pub use tier::{
    DeviceConfig, NEVER, Resumed, Sent, Shared, Sharing, TailConfig, Tier, TierConfig, TierCounts,
    Written,
};
