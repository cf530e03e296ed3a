//! Experiments that run on any [`Machine`](weir_model::machine::Machine), simulated or real.
//!
//! A [`study`] is a file: its arguments, what it asks of the [`lab`], its rows, what they mean, and its [`view`]s.
//! Behind an ask are these steps, with data between them:
//!
//! | step | from | to |
//! |---|---|---|
//! | [`plan`] | topology and arguments | what points to measure |
//! | [`record`] | a machine and one point | raw samples and counters |
//! | [`figure`] | the record | a figure, its interval, its limit by theory |
//! | [`verdict`] | the points | what they mean, in words |
//!
//! [`studies`] has the studies of points. [`interplay`] runs tenants together, [`mod@workload`] runs described programs,
//! [`mod@accept`] holds a server
//! against what was promised, [`offload`] has threads on two tiers that share an operator's data, [`stage`] queries whose columns are copied ahead,
//! [`levels`] kinds of objects on each tier, [`files`] reads and writes of file systems on a slower tier, [`coherence`] structures that several hosts share.
//! [`run_rounds`] measures a plan several times and says how the repetitions agree ([`steadiness`]). [`reproduce`]
//! does the same for published figures.
//!
//! The crate makes no system call, reads no clock and draws nothing at random: time passes inside
//! the machine, and chance comes from the seed that each point is given.

pub mod accept;
pub mod app_direct;
pub mod coherence;
pub mod compare;
pub mod curve;
pub mod disaggregated;
mod drift;
mod error;
pub mod figure;
pub mod files;
pub mod fit;
pub mod grouped;
pub mod import;
pub mod interplay;
pub mod lab;
pub mod levels;
mod measure;
pub mod offload;
mod part;
pub mod plan;
pub mod record;
pub mod reproduce;
mod room;
mod sourced;
pub mod stage;
pub mod steadiness;
pub mod studies;
pub mod study;
mod sweep;
pub mod theory;
mod threads;
pub mod together;
pub mod verdict;
pub mod view;
pub mod workload;

pub use studies::{bandwidth, latency, loaded, movement, nodes, random, share, stream, tail};

pub use error::LabError;
pub use lab::{Ask, Bench, Keeper, Lab, Notes};
pub use measure::{Finished, Watcher};
pub use part::Part;
pub use plan::{Load, PointSpec};
pub use study::{About, AnyStudy, Outcome, PointStudy, Points, Study};
pub use sweep::{Sweep, run, run_rounds, side_by_side};
pub use threads::Threads;
pub use verdict::{Severity, Verdict};
pub use weir_model::statistics;
pub use workload::{
    OneRegion, OneRegionRun, PhaseRun, Placed, RunAlone, WorkloadOptions, WorkloadRun,
    check_threads,
};
