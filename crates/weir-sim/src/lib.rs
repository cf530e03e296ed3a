//! A server made of queues.
//!
//! One request is one 64-byte line. A request leaves a core that has a buffer for it, crosses the
//! mesh to the slice its address hashes to, waits in the slice's ingress queue for an entry of the
//! Table of Requests, holds that entry until its tier has answered, and lets the core go on. All
//! interference between tenants comes from sharing these queues; none of it is written down.
//!
//! Read in the order of that journey: [`machine`] puts tenants on (`check`, `layout`, `warm`) and
//! holds them back (`regulate`), `sampling` says how much of a long window is simulated,
//! `core` issues, `uncore` admits,
//! `memory` and `storage` answer, `engine` moves time. `docs/physics.md` says what is modelled, from which
//! source, and what is left out.

mod alone;
mod check;
mod clock;
mod core;
mod divide;
mod engine;
mod layout;
pub mod machine;
mod memory;
mod params;
mod pmu;
mod regulate;
mod rng;
mod sampling;
mod storage;
mod uncore;
mod warm;
mod wheel;

pub use alone::{AloneError, MemoryAlone};
pub use machine::{SimMachine, SimTestbed};
pub use params::SimError;
pub use sampling::Sampling;
