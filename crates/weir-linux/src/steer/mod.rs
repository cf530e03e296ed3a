//! Steering this host: which tenants load which tier, how they are limited, and how everything is restored.
//!
//! | module | content |
//! |---|---|
//! | [`scope`] | a tenant's processes: a control group, a systemd unit, a container, a process |
//! | [`automatic`] | automatic tenants: control groups, chosen by the nodes of their pages |
//! | [`group`] | the control group (version 2) behind a scope |
//! | `quota` | the content of its `cpu.max` |
//! | `journal` | the earlier values, on disk before anything is changed |
//! | `journalled_writes` | the only way to change anything: read, record on disk, write, read back |
//! | `release` | restoring everything from another thread |
//! | `restore` | restoring the changes in force |
//! | `not_put_back` | what could not be restored, and why |
//! | `replay` | restoring what an earlier process left, by its journal |
//! | [`actuators`] | the actuators, a file for each |
//! | [`sensors`] | the sensors, a file for each source |
//! | [`tenant`] | a tenant: found by its scope, observed, limited |
//! | [`config`] | the tenants, and the bounds of steering |
//! | [`observation`] | the observation of a window, of the machine and of each tenant |
//! | [`host`] | this host as a machine whose tenants are scopes |
//! | `capabilities` | what a host lacks for steering, and the effect of each loss |
//! | [`settings`] | settings that a measurement changes |
//! | [`tier`] | the kernel's tiering under a daemon |
//! | [`watchdog`] | removes all limits if the loop stops |
//!
//! Nothing outside of the given scopes is changed, except the controllers of the groups above them
//! (`cgroup.subtree_control`), which are restored too.

pub mod actuators;
pub mod automatic;
mod capabilities;
pub mod config;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod faults;
pub mod group;
pub mod host;
#[cfg(test)]
mod host_tests;
mod journal;
pub(crate) mod journalled_writes;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod measured_tests;
mod not_put_back;
pub mod observation;
#[cfg(test)]
mod others_tests;
mod quota;
mod release;
mod replay;
mod restore;
pub mod scope;
pub mod sensors;
pub mod settings;
pub mod tenant;
pub mod tier;
pub mod watchdog;

pub use actuators::Actuator;
pub use automatic::Candidate;
pub use config::{HostConfig, Probing, TenantScope};
pub use host::{Host, HostError};
pub use journal::{Extent, Moment};
pub use not_put_back::{Cause, NotPutBack};
pub use observation::{HostObservation, TenantObservation};
pub use release::Release;
pub use replay::{JournalError, Restored, restore};
pub use scope::Scope;
pub use sensors::busy::Ran;
pub use sensors::residency::Residency;
pub use settings::{RUN_JOURNAL, SystemSettings};
pub use tenant::Tenant;
pub use tier::{AmortisedSource, SteeredWindow, TierLoop, TierSettings};
pub use watchdog::Watchdog;
