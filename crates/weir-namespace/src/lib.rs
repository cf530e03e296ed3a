//! Namespaces: named ranges of memory that processes and hosts share.
//!
//! ```
//! use weir_namespace::{Create, Make, Options, Pool};
//!
//! let folder = tempfile::tempdir()?;
//! let options = Options { host: Some("a".into()), ..Options::default() };
//! let make = Make { bytes: Some(4 << 20), ..Make::default() };
//! let pool = Pool::make(folder.path().join("pool"), &make, options)?;
//! pool.create("table", &Create::of(64 << 10))?;
//! let table = pool.map("table", true)?;
//! table.write_at(0, b"seen by every process that maps it")?;
//! table.close()?;
//! pool.destroy("table")?; // zero before it is free
//! assert_eq!(pool.first_unscrubbed()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The pool is a DAX device (`/dev/dax0.0`) or a file, and everything that is known of it is in its own memory, so that
//! hosts which share a device need nothing else. It follows the runtime of DirectCXL ("Direct Access,
//! High-Performance Memory Disaggregation with DirectCXL", USENIX ATC 2022, section 3.2): a table of segments with
//! offset, size and reference count, and a name for each, mapped by applications. That one is a driver of the kernel;
//! this is a library, and what it demands of others is agreement. `docs/namespaces.md` says what it promises, and what
//! it assumes.
//!
//! | module | content |
//! |---|---|
//! | `make`, `pool` | a pool: making it, opening it, looking at it |
//! | `shared` | the table under its lock, hosts and their signs of life |
//! | `change`, `resize` | create, change, hand over, destroy, resize |
//! | `recover` | recovery and scrubbing |
//! | `rights` | who may do what |
//! | `namespace` | a namespace that is mapped |
//! | `heap` | an allocator in a namespace, by offsets |
//! | `table` | which range is whose, without memory and time |
//! | `layout`, `table_bytes` | the bytes of header and table |
//! | `lock` | the lock of the table, on a host and between hosts |
//! | `identity` | hosts, processes, users |
//! | `mapping` | words of shared memory, and flushes of their lines |
//! | `medium` | files and devices |

mod capi;
mod change;
mod error;
mod heap;
mod identity;
mod layout;
mod lock;
mod make;
mod mapping;
mod medium;
mod namespace;
mod pool;
mod recover;
mod resize;
mod rights;
mod shared;
mod table;
mod table_bytes;

pub use change::{Change, Create, Keep};
pub use error::{NamespaceError, Result};
pub use heap::{Heap, HeapStats};
pub use identity::{Process, User};
pub use make::Make;
pub use mapping::Fault;
pub use namespace::Namespace;
pub use pool::Pool;
pub use resize::Resized;
pub use shared::{HostSeen, Options, Recovered};
pub use table::{Entry, Holder, Life, State, Table};
