//! What a program did to its pool, and what it requires of it: an event a line, as a text.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

/// What acts: a thread of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Actor {
    /// The host; caches are coherent within one.
    pub host: u16,
    /// The thread, of which fences order its own flushes only.
    pub thread: u16,
}

/// Where an event is from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The line of the trace, from 1; 0 before the first.
    pub line: u64,
    /// The line of the program, as `file:line`, where it is known.
    pub source: Option<Rc<str>>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{source}"),
            None if self.line == 0 => f.write_str("the begin of the trace"),
            None => write!(f, "line {} of the trace", self.line),
        }
    }
}

/// Bytes at an offset that have one of these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holds {
    /// Bytes from the begin of the pool.
    pub at: u64,
    /// Values, all of one length.
    pub values: Vec<Vec<u8>>,
}

/// What must hold, perhaps only if something else does: `NAME [OFFSET=HEX ->] OFFSET=HEX[|HEX]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Its name; a later one of this name replaces it.
    pub name: String,
    /// Where it is given and does not hold, nothing is required.
    pub if_holds: Option<Holds>,
    /// What must hold.
    pub then: Holds,
}

impl Requirement {
    /// Whether it is about a byte of this range.
    pub fn reads(&self, range: &Range<u64>) -> bool {
        let within = |holds: &Holds| {
            let length = holds.values.first().map_or(0, Vec::len) as u64;
            holds.at < range.end && range.start < holds.at + length
        };
        self.if_holds.iter().chain([&self.then]).any(within)
    }
}

/// An event. Offsets are bytes from the begin of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The pool has this many bytes; the first event.
    Pool(u64),
    /// The pool has these bytes before the program begins.
    Init(u64, Vec<u8>),
    /// The events that follow are of this thread.
    By(Actor),
    /// A store through the caches.
    Store(u64, Vec<u8>),
    /// A non-temporal store.
    NtStore(u64, Vec<u8>),
    /// A locked instruction that stores: a fence, then a store.
    Locked(u64, Vec<u8>),
    /// `clwb` or `clflushopt` of the lines of this many bytes: done once the thread's next fence is.
    Flush(u64, u64),
    /// `clflush` of the lines of this many bytes: done before any later store.
    Clflush(u64, u64),
    /// `msync`, `fsync` or another system call that writes this many bytes back and waits for that.
    Sync(u64, u64),
    /// `sfence`, `mfence`, or a locked instruction elsewhere.
    Fence,
    /// A point that recovery may ask for, such as `committed 3`.
    Mark(String),
    /// From here every state must meet a requirement.
    Require(Requirement),
    /// From here the requirement of this name need not be met.
    Forget(String),
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Pool(bytes) => write!(f, "pool {bytes}"),
            Event::Init(at, bytes) => write!(f, "init {at} {}", hex(bytes)),
            Event::By(actor) => write!(f, "by {}.{}", actor.host, actor.thread),
            Event::Store(at, bytes) => write!(f, "store {at} {}", hex(bytes)),
            Event::NtStore(at, bytes) => write!(f, "nt-store {at} {}", hex(bytes)),
            Event::Locked(at, bytes) => write!(f, "locked {at} {}", hex(bytes)),
            Event::Flush(at, bytes) => write!(f, "flush {at} {bytes}"),
            Event::Clflush(at, bytes) => write!(f, "clflush {at} {bytes}"),
            Event::Sync(at, bytes) => write!(f, "sync {at} {bytes}"),
            Event::Fence => f.write_str("fence"),
            Event::Mark(text) => write!(f, "mark {text}"),
            Event::Require(requirement) => write!(f, "require {requirement}"),
            Event::Forget(name) => write!(f, "forget {name}"),
        }
    }
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(|value| hex(value)).collect();
        write!(f, "{}={}", self.at, values.join("|"))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.name)?;
        if let Some(holds) = &self.if_holds {
            write!(f, "{holds} -> ")?;
        }
        write!(f, "{}", self.then)
    }
}
