//! Steering this host: who presses on which tier, what holds them back, and how everything comes
//! back as it was.
//!
//! | module | is |
//! |---|---|
//! | [`scope`] | whom: a control group, a systemd unit, a container, a process |
//! | [`automatic`] | whom, where nobody was named: control groups by where their pages lie |
//! | [`group`] | the control group (version 2) behind a scope |
//! | `journal` | what was there before, on disk before anything is changed |
//! | `journalled_writes` | the only way to change anything: found, said on disk, written, read back |
//! | `release` | putting everything back from another thread |
//! | [`mod@restore`] | putting back what stands changed, or saying exactly what could not be |
//! | [`actuators`] | by what a tenant is held, a file for each |
//! | [`sensors`] | what is looked at, a file for each source |
//! | [`tenant`] | a tenant: found by its scope, seen, held |
//! | [`config`] | what is steered, and within which bounds |
//! | [`observation`] | what is seen in a window, of the machine and of each tenant |
//! | [`host`] | this host for a controller: tenants seen window by window, and held |
//! | `capabilities` | what a host lacks to be steered, and what each loss costs |
//! | [`interleaving`] | the weights of interleaving, held for a measurement |
//! | [`watchdog`] | a loop that stands still lets go |
//!
//! Nothing outside of the scopes given is changed, but for the controllers of the groups above them
//! (`cgroup.subtree_control`), which are put back too.

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
pub mod interleaving;
mod journal;
mod journalled_writes;
#[cfg(test)]
mod killed;
pub mod observation;
mod release;
pub mod restore;
pub mod scope;
pub mod sensors;
pub mod tenant;
pub mod watchdog;

pub use actuators::Actuator;
pub use automatic::Candidate;
pub use config::{HostConfig, Probing, TenantScope};
pub use host::{Host, HostError};
pub use interleaving::Interleaving;
pub use journal::Moment;
pub use journalled_writes::{JournalError, Restored, Wrote, restore};
pub use observation::{HostObservation, TenantObservation};
pub use release::Release;
pub use restore::{Cause, NotPutBack};
pub use scope::Scope;
pub use sensors::busy::Ran;
pub use sensors::residency::Residency;
pub use tenant::Tenant;
pub use watchdog::Watchdog;
