//! Between the cores and memory: mesh, slices with their queues, the last-level cache.

mod agents;
mod llc;
mod request;
mod tor;

pub use agents::{Io, Taken, Uncore};
pub use llc::{ALL_WAYS, Class, LastLevel};
pub use request::{Data, Request, Residence, Sender, Stage};
