//! Policies of page placement side by side: `weir tier simulate`, and the published figures of TPP; on workloads drawn
//! at random: `weir tier population`; which pages are touched how often: `weir tier profile`; and what follows from that:
//! `weir tier advise`.
//!
//! Latency under load comes from the machine, as `weir bench loaded` measures it; pages are simulated by `weir-pages`.

pub mod advise;
mod alto;
mod curves;
pub mod described;
mod document;
pub mod population;
pub mod profile;
pub mod published;
mod replay;
mod study;
mod trial;

pub use curves::curves;
use curves::thresholds;
pub use document::{PolicyAt, PolicyOutcome, Simulated};
pub use replay::{Replay, Replayed};
pub use study::Simulate;
pub use trial::{Ratio, Trial, TrialResult, shapes};
