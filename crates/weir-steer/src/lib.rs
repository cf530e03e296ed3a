//! Controllers that protect the fast tier: they see one window after another and decide the limit of each
//! tenant.
//!
//! | module | content |
//! |---|---|
//! | [`readings`] | the readings of a window: Little's law at the Table of Requests, bytes by tier |
//! | [`limit`] | the limits of a tenant: cores, processor time, bandwidth allocation, clock |
//! | [`knee`] | the load at which the slow tier is busy and has no queue yet, measured alone |
//! | [`controller`] | the trait: readings in, decision out; no clock, no I/O, no chance |
//! | [`controllers`] | one file each: `miku`, `quota`, `frequency`, `isolation`, `allocation`, `weir` |
//! | [`guard`] | bounds for every controller: floors, one change at a time, silence removes all limits |
//! | [`steered`] | tenants of a machine under limits: of a model, or of this host |
//! | [`control_loop`] | a controller that regulates tenants, window by window |
//! | [`scenario`] | which tenants run at the same time, and for how long |
//! | [`calibrate`], [`registry`] | the values that controllers need, and controllers by name |
//! | [`scenario_run`] | a scenario under a controller, without control, and each side alone |
//! | [`record`], [`document`] | the record of a window and of a scenario |
//! | [`study`] | a scenario run as `weir steer run` gives it: rows, answer, tables and pictures |
//! | [`published`] | published figures of regulation, from the same experiments |
//! | [`daemon`] | the loop of the daemon, which restores everything however it ends |
//! | [`settled`] | tenants once a controller has settled, for studies that ask for no more |
//! | [`config`] | the steering file |
//! | [`tier`] | policies of page placement side by side, on pages that are simulated |
//! | [`place`] | which objects of a process go to the slow tier, and which come back |
//! | [`log`], [`status`] | the decision log, a decision in words, and the status document |
//!
//! Time passes in the machine, and this crate writes nothing: the caller of a controller turns a decision
//! into actions, and reads back their result.

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
pub mod own;
pub mod place;
pub mod published;
pub mod readings;
pub mod record;
pub mod registry;
pub mod scenario;
pub mod scenario_run;
pub mod settled;
pub mod status;
pub mod steered;
pub mod study;
pub mod tier;
mod tuning;

pub use controller::{Controller, Decision, Why};
pub use limit::{AppliedLimit, Grain, Limit, Share};
pub use readings::{Readings, Residency, Role, TenantReadings, Traffic};
pub use steered::{Actuators, Steered, TenantOf};
pub use weir_model::scope;
