//! The sensors of this host.
//!
//! | file | reading | without it |
//! |---|---|---|
//! | `uncore` | Tables of Requests, ingress queues, bytes by tier | backlog is not seen, so no tenant can be limited by it |
//! | `device` | lines across each CXL device, counted by the device | the processor's count of them, if it has one |
//! | `traffic` | bytes of each tenant (MBM), and what it fills of the last-level cache (CMT) | the bytes of tenants cannot be separated |
//! | `touched` | the memory that a tenant accesses, by samples (PEBS, IBS) | the nodes of its pages, used or not |
//! | `residency` | the nodes of a tenant's pages | the configuration says which tenants can load the slow tier |
//! | `probe` | the latency of this program's own loads from the fast tier | used if the uncore is not counted; without it no tenant is limited by readings |
//! | `offcore` | how much misses of all cores overlap | promotion cannot follow it (Alto) |
//! | `busy` | time that a tenant ran, or was stopped | always available |
//!
//! A missing sensor is a missing capability with its effect, reported at the start.

pub(super) mod busy;
pub(super) mod device;
pub(super) mod offcore;
mod open_file;
pub(super) mod probe;
pub(super) mod residency;
pub(super) mod touched;
pub(super) mod traffic;
pub(super) mod uncore;
