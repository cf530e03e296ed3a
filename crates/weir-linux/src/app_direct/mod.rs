//! App-Direct: STREAM's arrays in a file of persistent memory that is mapped, and what durability costs there.
//!
//! [`Pool`] maps the file: a DAX device, a file of a DAX mount by `MAP_SYNC` (Linux, `mmap(2)`), or any other file, whose
//! pages are the system's. [`stream`] runs the kernels, and [`recovery`] says what an earlier run left.

mod layout;
mod pool;
pub mod recovery;
pub mod stream;

pub use pool::{Mapping, Pool, Wanted};
