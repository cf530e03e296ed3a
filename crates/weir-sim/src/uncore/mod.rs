//! Between the cores and memory: mesh, slices with their queues, the last-level cache.

mod llc;
mod mesh;
mod request;
mod tor;

pub use llc::{LastLevel, LlcConfig};
pub use mesh::{Mesh, slice_of};
pub use request::{Kind, Pool, Request, RequestId, Stage};
pub use tor::{Arrival, Slice};
