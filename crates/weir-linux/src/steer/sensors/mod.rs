//! What is seen of this host in a window.
//!
//! | file | what is seen | where it is not had |
//! |---|---|---|
//! | `uncore` | Tables of Requests, ingress queues, bytes by tier | backlog is not seen: nobody can be held by it |
//! | `device` | lines across each CXL device, by itself | the processor's count of them, if it has one |
//! | `traffic` | bytes of each tenant (MBM) | whose bytes they are is not told |
//! | `touched` | which memory a tenant touches, by samples (PEBS, IBS) | where its pages lie, used or not |
//! | `residency` | on which nodes a tenant's pages lie | who can press on the slow tier is what was configured |
//! | `probe` | how long loads of this program's own from the fast tier take | it is opened where the uncore is not counted; without it nobody is held by what is seen |
//! | `busy` | time that a tenant ran, or was kept from it | nothing: every kernel tells |
//!
//! What is not had is a capability with its cost, said at the start.

pub(super) mod busy;
pub(super) mod device;
mod open_file;
pub(super) mod probe;
pub(super) mod residency;
pub(super) mod touched;
pub(super) mod traffic;
pub(super) mod uncore;
