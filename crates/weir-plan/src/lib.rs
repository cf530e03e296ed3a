//! Pools of memory that servers share: what a load from one costs, what a pool saves, and when it pays.
//!
//! | module | question |
//! |---|---|
//! | [`latency`] | how long a load from a pool takes, by components |
//! | [`prices`] | what parts cost, with source and date |
//! | [`cost`] | how large a pool must be before it pays, and what would change the answer |
//! | [`packing`] | how much better VMs fit into pools of machines, between bounds |
//! | [`pool`] | how much memory pools save when a trace is replayed |
//! | [`failures`] | what the failure of a part takes down, and what a second copy costs |
//! | [`predict`] | the two predictors that split VMs between local memory and a pool, and what is decided with them |
//! | [`coherence`] | whether the protocol of CXL keeps caches coherent, and what it takes |
//! | [`kernels`] | what address ranges with a meaning save |
//! | [`trace`] | virtual machines over time: read, generated |
//! | [`published`] | rows of papers that the above answers |
//!
//! Nothing here reads a file, a clock or a machine.

pub mod coherence;
pub mod cost;
pub mod error;
pub mod failures;
pub mod kernels;
pub mod latency;
pub mod packing;
pub mod pool;
pub mod predict;
pub mod prices;
pub mod published;
pub mod trace;

pub use error::PlanError;
