//! A server made of queues.
//!
//! One request is one 64-byte line. A request leaves a core when a buffer is free, crosses the mesh to the
//! slice that its address hashes to, and waits in the slice's ingress queue for an entry of the Table of
//! Requests. It holds the entry until its tier has answered. Then the core continues. All interference
//! between tenants comes from sharing these queues; no rule states it.
//!
//! The modules follow that path: [`machine`] places tenants (`check`, `layout`, `warm`), keeps their
//! `pages`, and limits them (`regulate`), `sampling` decides which part of a long window is simulated, `core` issues, `uncore` admits,
//! `memory` and `storage` answer, `engine` advances time. `docs/physics.md` lists what is modelled, from
//! which source, and what is left out.

mod alone;
mod check;
mod clock;
mod core;
mod divide;
mod engine;
mod layout;
mod line;
pub mod machine;
mod memory;
mod pages;
mod params;
mod pmu;
mod regulate;
pub mod rng;
mod sampling;
mod storage;
mod uncore;
mod warm;
mod wheel;

pub use alone::{AloneError, MemoryAlone};
pub use machine::{PHYSICS, SimMachine, SimTestbed};
pub use params::SimError;
pub use sampling::Sampling;
