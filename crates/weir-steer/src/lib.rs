//! Keeping the fast tier fast: controllers that see one window after another and say to what each tenant
//! is held.
//!
//! | module | is |
//! |---|---|
//! | [`readings`] | what is seen of a window: Little's law at the Table of Requests, bytes by tier |
//! | [`limit`] | what a tenant may be held to: cores, processor time, bandwidth allocation, clock |
//! | [`knee`] | what was measured of the slow tier alone: where it is busy and has no queue yet |
//! | [`controller`] | the trait: sight in, decision out; no clock, no I/O, no chance |
//! | [`controllers`] | one file each: `miku`, `quota`, `frequency`, `isolation`, `allocation`, `weir` |
//! | [`guard`] | what holds of every controller: floors, one change at a time, silence lets go |
//! | [`plant`] | what is regulated: a model, or this host |
//! | [`control_loop`] | a controller at the wheel of a plant, window by window |
//! | [`scenario`] | who runs beside whom, and for how long |
//! | [`calibrate`], [`registry`] | what controllers are told of a machine, and controllers by name |
//! | [`scenario_run`] | a scenario under a controller, beside no control and beside each side alone |
//! | [`record`], [`document`] | a window and a scenario as they are written down |
//! | [`published`] | published figures of regulation, from the same experiments |
//! | [`daemon`] | the loop that one leaves running, which puts everything back whatever ends it |
//! | [`config`], [`scope`] | the file that says what is steered, and what a tenant is on a host |
//! | [`log`], [`status`] | the decision log, a decision in words, and how it is |
//!
//! Time passes in the machine, and nothing is written here: who calls a controller turns a decision into
//! actions, and reads back what became of them.

pub mod calibrate;
pub mod config;
pub mod control_loop;
pub mod controller;
pub mod controllers;
pub mod daemon;
pub mod document;
pub mod guard;
pub mod knee;
pub mod limit;
pub mod log;
pub mod plant;
pub mod published;
pub mod readings;
pub mod record;
pub mod registry;
pub mod scenario;
pub mod scenario_run;
pub mod status;

pub use controller::{Controller, Decision, Why};
pub use limit::{Grain, Limit, Share};
pub use plant::{Plant, PlantError};
pub use readings::{Readings, Residency, Role, TenantReadings, Traffic};
pub use weir_model::scope;
