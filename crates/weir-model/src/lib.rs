//! The vocabulary of Weir.
//!
//! Everything above and below the [`Machine`](machine::Machine) trait speaks in these types and in
//! nothing else: units that cannot be mixed up, the tiers of a server, tenants that load it,
//! counters that mean what the hardware's mean, and the record of an experiment.
//!
//! The crate does no I/O. Its parsers read platform files, tables of events, files of counters and
//! published figures, from text that the caller supplies.

pub mod access;
pub mod action;
pub mod capability;
pub mod counter_file;
pub mod counters;
pub mod diagnosis;
pub mod diagnostic;
pub mod document;
pub mod events;
pub mod frame;
pub mod insight;
pub mod interplay;
pub mod latency;
pub mod machine;
pub mod number;
pub mod platform;
pub mod published;
pub mod region;
pub mod scope;
pub mod tenant;
pub mod toml;
pub mod topology;
pub mod units;
pub mod workload;
