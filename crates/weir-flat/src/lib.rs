//! A file cache that attaches its pages to buffers of the program instead of copying them.
//!
//! ```
//! use weir_flat::{Options, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let store = Store::open(folder.path().join("store"), Options { create: Some(16 << 20), ..Options::default() })?;
//! let file = store.create("a")?;
//! let mut buffer = store.buffer(2 << 20)?;
//! buffer.renew()?; // frames that the next write hands over
//! buffer.bytes_mut().fill(1);
//! file.write(0, &mut buffer)?; // maps, copies nothing
//! buffer.bytes_mut()[0] = 2; // the kernel copies this page: the file keeps its own
//! file.read(0, 2 << 20, &mut buffer)?;
//! assert_eq!(buffer.bytes()[0], 1);
//! store.flush()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It follows FLAC ("Cache or Direct Access? Revitalizing Cache in Heterogeneous Memory File System", DIMES 2023),
//! which is a part of a kernel, as far as a process can: frames are pages of a file in memory (memfd_create(2)), a
//! read maps them privately (mmap(2), MAP_PRIVATE), and copy on write is the kernel's. `docs/flat.md` says what that
//! costs, and what it cannot do.
//!
//! | module | content |
//! |---|---|
//! | `store` | the store |
//! | `shared` | its options, and what its files, buffers and threads share |
//! | `recover` | the table of a store, from its log |
//! | `read`, `write` | reads and writes |
//! | `buffer`, `segment` | what is mapped at the addresses of a buffer |
//! | `table` | where each page is, and what refers to it |
//! | `flush` | the two phases of a flush; pages that are loaded behind a read |
//! | `log`, `record` | what makes a flush atomic |
//! | `frames`, `extents` | frames, and runs of free pages |
//! | `medium` | files, DAX, devices of DAX |

mod buffer;
mod capi;
mod error;
mod extents;
mod flush;
mod frames;
mod log;
mod medium;
mod read;
mod record;
mod recover;
mod segment;
mod shared;
mod stats;
mod store;
mod table;
mod write;

pub use buffer::Buffer;
pub use error::{FlatError, Result};
pub use medium::{FileMedium, Medium};
pub use shared::Options;
pub use stats::Stats;
pub use store::{File, Store};
