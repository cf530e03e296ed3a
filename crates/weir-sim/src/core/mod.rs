//! Cores: the limits of their outstanding accesses, and which line comes next.

mod offload;
mod ooo;
mod private;
mod program;
mod requests;
mod service;
mod thread;
mod walk;
mod window;

pub use offload::Offload;
pub use ooo::{Ahead, Ask, CacheCapacity, Flow, Law, Ooo, OooParams, Script, Tally, Use};
pub use private::{Private, Tagged};
pub use program::{Entry, Program};
pub use requests::{Requests, Task, Work};
pub use service::{Next, Service};
pub use thread::{Burst, LineSharing, Progress, Style, Thread, crossings, is_held_back, paced};
pub use walk::{Cursor, Region, Walk};
pub use window::{Limits, Window};
