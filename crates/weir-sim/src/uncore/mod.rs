//! Between the cores and memory: mesh, slices with their queues, the last-level cache.

mod agents;
mod llc;
mod mesh;
mod request;
mod tor;

pub use agents::{Io, Uncore};
pub use llc::{ALL_WAYS, LastLevel, LlcConfig};
pub use mesh::Mesh;
pub use request::{Kind, Request, Residence, Sender, Stage};
