//! What counters mean.
//!
//! | question | module |
//! |---|---|
//! | Can these counts be of one run? | [`run`] |
//! | Where are cycles lost, and where does a slower tier lose more? | [`breakdown`] |
//! | Do the prefetchers still come in time? | [`prefetch`] |
//! | Does it wait for latency or for bandwidth? | [`bound`] |
//! | How slow would it be on a tier it has never touched? | [`slowdown`] |
//! | What share of its pages should lie there? | [`interleave`] |
//! | Which of its objects may? | [`objects`] |
//!
//! [`explain`] and [`forecast`] put answers into documents.
//!
//! [`micro`] has the workloads that calibration runs, and [`two_tiers`] runs them and others on two tiers
//! of any machine.
//!
//! Everything else comes from [`CounterSet`](weir_model::counters::CounterSet)s, whatever counted: the model's
//! cores, this host's, or a file. The crate makes no system call, reads no clock and draws nothing at
//! random. A counter that is missing is named, with what it would have shown; none becomes a zero.
//!
//! The breakdown, the models and best-shot are those of SupMario (arXiv 2409.14317), and the tuner is
//! Caption (MICRO 2023, arXiv 2303.15375).

pub mod best_shot;
pub mod bound;
pub mod breakdown;
pub mod coaxial;
pub mod documents;
mod error;
pub mod explain;
pub mod forecast;
pub mod interleave;
mod least_squares;
pub mod micro;
pub mod objects;
pub mod prefetch;
pub mod published;
pub mod run;
pub mod score;
pub mod slowdown;
pub mod studies;
pub mod tune;
pub mod two_tiers;

pub use error::InsightError;
pub use run::Run;
