//! Pages of address spaces on two tiers of memory, over minutes and hours, and the policies that move them.
//!
//! A [`Simulation`] has a [`PagedWorkload`] on a [`Host`] under a [`Policy`], on a clock of its own: it goes in intervals
//! of a part of a second. In each, pages are allocated and freed, sampled, promoted and demoted, and a fixed point gives
//! the accesses, from each tier's latency at the traffic that accesses and copies cause together.
//!
//! Accesses are not simulated one by one. The pages of a [`Band`](workload::Band) are touched equally often, as a Poisson
//! process, so hint faults and accessed bits are drawn when they are needed; the cost is of pages that move or are looked
//! at. A page takes three bytes.

/// The version of what is simulated. It is raised when the same workload, machine and seed give another result.
pub const VERSION: u32 = 6;

pub mod bound;
pub mod costs;
mod counters;
pub mod described;
mod error;
mod lru;
mod order;
mod page;
pub mod policy;
pub mod population;
pub mod presets;
mod random;
mod record;
pub mod requests;
mod simulation;
pub mod tier;
mod traffic;
pub mod workload;

pub use costs::Costs;
pub use counters::Vmstat;
pub use described::{Counted, CountedRegion, described};
pub use error::PagesError;
pub use policy::{Policy, by_name};
pub use record::{Interval, Summary};
pub use simulation::{Host, Options, Sampler, Scan, Simulation};
pub use tier::{Memory, Tier, TierCurve, Watermarks};
pub use workload::{PageKind, PagedWorkload, Region};
