//! What goes wrong, with the pool, the name and the sizes that matter.

use std::io;
use std::path::PathBuf;

/// A size in the largest unit that it is a whole number of.
fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units
        .into_iter()
        .find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match whole {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

/// Why an operation failed. Sizes are bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The kernel refused a call.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The file has no pool, and may hold something else.
    #[error("{path} has no pool of namespaces: {why}")]
    NoPool {
        /// The file or device.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The header or the table contradicts itself.
    #[error("the pool in {path} is damaged: {why}")]
    Damaged {
        /// The file or device.
        path: PathBuf,
        /// What contradicts, and where.
        why: String,
    },
    /// A pool cannot be made here.
    #[error("{path} cannot become a pool: {why}")]
    Unfit {
        /// The file or device.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The processes that have the device open.
    #[error("{path} is in use: {who}")]
    InUse {
        /// The file or device.
        path: PathBuf,
        /// Processes by number and name.
        who: String,
    },
    /// A name, size, alignment or mode that cannot be.
    #[error("{0}")]
    Request(String),
    /// There is no such namespace.
    #[error("there is no namespace {name:?} in {path}")]
    Missing {
        /// Its name.
        name: String,
        /// The pool.
        path: PathBuf,
    },
    /// There is such a namespace.
    #[error("{path} has a namespace {name:?} already, of host {owner}")]
    Exists {
        /// Its name.
        name: String,
        /// The pool.
        path: PathBuf,
        /// The host that owns it.
        owner: String,
    },
    /// No free range is large enough.
    #[error("no free range has {}: the largest has {}, all together {}", size(*asked), size(*largest), size(*free))]
    Full {
        /// What was asked for, rounded to the pool's unit.
        asked: u64,
        /// The largest free range at this alignment.
        largest: u64,
        /// All free bytes.
        free: u64,
    },
    /// A user would have more than each may.
    #[error("user {uid} would have {}, and the quota of the pool is {}", size(*asked), size(*quota))]
    Quota {
        /// The user.
        uid: u32,
        /// What it would have.
        asked: u64,
        /// What it may have.
        quota: u64,
    },
    /// The table has no room for one more.
    #[error("the table has room for {most} {what}, and all are taken")]
    TableFull {
        /// `namespaces` or `handles`.
        what: &'static str,
        /// How many it has room for.
        most: usize,
    },
    /// The mode does not permit it.
    #[error("user {uid} may not {what} {name:?}, which is of user {owner} with mode {mode:03o}")]
    Permission {
        /// What was tried.
        what: &'static str,
        /// The namespace.
        name: String,
        /// The host or process that tried.
        uid: u32,
        /// Whose it is.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to another host.
    #[error("{name:?} is owned by host {owner}, and host {host} may not {what} it")]
    NotOwner {
        /// What was tried.
        what: &'static str,
        /// The namespace.
        name: String,
        /// The host that owns it.
        owner: String,
        /// This host.
        host: String,
    },
    /// Processes have it open.
    #[error("{name:?} is in use by {who}")]
    Held {
        /// The namespace.
        name: String,
        /// Processes and hosts.
        who: String,
    },
    /// It has changed hands, or was released, after this handle was made.
    #[error("the handle of {name:?} is of generation {had}, {now}")]
    Stale {
        /// The namespace.
        name: String,
        /// The generation of the handle.
        had: u64,
        /// What is there now.
        now: String,
    },
    /// The pool does not admit this host.
    #[error(
        "{path} does not admit a host {host:?}; it admits {admitted} (`weir namespace admit` adds one)"
    )]
    HostUnknown {
        /// The pool.
        path: PathBuf,
        /// The name that this host has.
        host: String,
        /// Those that it admits.
        admitted: String,
    },
    /// Another running machine, or another container, has the name of this host.
    #[error(
        "another machine or container that calls itself {host:?} used {path} {age_ms} ms ago; give each its own name"
    )]
    HostTwice {
        /// The pool.
        path: PathBuf,
        /// The name of both.
        host: String,
        /// Age of its last sign of life.
        age_ms: u64,
    },
    /// The table stays locked.
    #[error("the table of {path} has been locked for {waited_ms} ms by {who}")]
    Busy {
        /// The pool.
        path: PathBuf,
        /// How long this process has waited.
        waited_ms: u64,
        /// The process that has the lock.
        who: String,
    },
    /// Another host took the lock away, since this one did not move for too long.
    #[error(
        "host {host} lost the lock of {path} while it was stopped: see whether its change is there"
    )]
    LockLost {
        /// The pool.
        path: PathBuf,
        /// This host.
        host: String,
    },
    /// The memory below a mapping is gone, or has an error.
    #[error("the memory of {name:?} at byte {at} cannot be accessed: {source}")]
    Gone {
        /// The namespace.
        name: String,
        /// Where.
        at: u64,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The memory of a pool is gone, or has an error.
    #[error("the memory of {path} cannot be accessed: {source}")]
    Lost {
        /// The pool.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Beyond the end.
    #[error("bytes {at} to {end} are not in {name:?}, which has {size}")]
    Bounds {
        /// The namespace.
        name: String,
        /// The first byte.
        at: u64,
        /// The byte after the last.
        end: u64,
        /// Its size when it was mapped.
        size: u64,
    },
    /// It was mapped to be read only.
    #[error("{0:?} was opened to be read only")]
    ReadOnly(String),
    /// The heap in a namespace contradicts itself, or there is none.
    #[error("the heap: {0}")]
    Heap(String),
}

/// What operations return.
pub type Result<T> = std::result::Result<T, NamespaceError>;
