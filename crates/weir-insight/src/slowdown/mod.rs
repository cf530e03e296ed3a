//! How slow a workload would be on a tier it has never touched, from one run on local memory (SupMario
//! §5).
//!
//! `S = k1 M_DRAM + k2 M_cache + k3 M_store + k4`. The [`metrics`] are read from the local run; the
//! constants belong to a pair of processor and memory and are found by [`calibrate()`] on micro-workloads
//! that ran on both. [`predict()`] puts them together; what its intervals are worth is found on workloads
//! that no constant has seen. [`rejected`] has the predictors that the paper weighs and rejects.
//!
//! [`exposed`] is a DRAM component that also knows the cycles that local memory hides, [`late`] a cache
//! component that does. They take the place of the published ones where their counters are; both are reported.
//!
//! The model is one of latency. It says so where a workload waits for bandwidth, and is not to be
//! believed there.

pub mod calibrate;
pub mod exposed;
pub mod file;
pub mod late;
pub mod metrics;
pub mod nearness;
pub mod predict;
pub mod rejected;

pub use calibrate::{Calibration, Pair, calibrate};
pub use exposed::Misses;
pub use late::Waits;
pub use metrics::Metrics;
pub use predict::{Prediction, Published, predict};
