//! Experiments that run on any [`Machine`](weir_model::machine::Machine), simulated or real.
//!
//! An experiment is four steps with data between them, one module each:
//!
//! | step | from | to |
//! |---|---|---|
//! | [`plan`] | topology and options | what points to measure |
//! | [`record`] | a machine and one point | raw samples and counters |
//! | [`study`] | the record | a figure, its interval, theory beside it |
//! | [`verdict`] | the points | what they mean, in words |
//!
//! Each experiment plans its own points: [`latency`], [`tail`], [`bandwidth`], [`loaded`], [`random`],
//! [`stream`], [`movement`], [`share`]; [`all`] is every one of them. [`interplay`] sets tenants beside each other,
//! [`mod@workload`] runs described programs.
//!
//! [`run`] takes a plan through the first three, points side by side where the testbed allows it;
//! [`run_rounds`] does so several times over, and says how the repetitions agree ([`steadiness`]).
//! [`reproduce`] does the same for published figures.
//!
//! The crate makes no system call, reads no clock and draws nothing at random: time passes inside
//! the machine, and chance comes from the seed that each point is given.

pub mod compare;
pub mod curve;
mod drift;
mod error;
pub mod figure;
pub mod grouped;
pub mod interplay;
pub mod lab;
pub mod plan;
pub mod record;
pub mod reproduce;
pub mod statistics;
pub mod steadiness;
pub mod studies;
pub mod study;
mod sweep;
pub mod theory;
mod threads;
pub mod verdict;
pub mod view;
pub mod workload;

pub use studies::{bandwidth, latency, loaded, movement, nodes, random, share, stream, tail};

pub use error::LabError;
pub use lab::{Ask, Bench, Keeper, Lab, Notes};
pub use plan::{Load, PointSpec};
pub use study::{About, PointStudy, Points, Study};
pub use sweep::{Finished, Sweep, Watcher, run, run_rounds, side_by_side};
pub use threads::Threads;
pub use verdict::{Severity, Verdict};
pub use workload::{PhaseRun, WorkloadOptions, WorkloadRun, run_workload};
