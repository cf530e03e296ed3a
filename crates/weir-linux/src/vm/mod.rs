//! Virtual machines of this host, and the memory that they share.
//!
//! | file | content |
//! |---|---|
//! | `qmp` | commands to a QEMU, and its events |
//! | `process` | which process a QEMU is, and whether it still runs |
//! | `pool_file` | a file or device whose slices are the memory of VMs |

mod pool_file;
mod process;
pub mod qmp;

pub use pool_file::PoolFile;
pub use process::{Identity, become_program};
