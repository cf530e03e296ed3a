//! A connection to a server, which does not block.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::Trouble;

/// A request that is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub due: Duration,
    pub key: u64,
    /// The version which it writes, the oldest which it may read, or the most keys of a scan.
    pub version: u32,
    pub what: What,
}

/// What a request is to its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Read,
    Write,
    /// A read whose answer is written back.
    Modify,
    /// Keys in a row, which are then read.
    Scan,
    /// A write or a read that others of the same operation follow.
    Part,
    PartRead,
    /// A new key in the set that scans read.
    Index,
}

/// A connection, and the requests that it has under way.
#[derive(Debug)]
pub(super) struct Connection {
    pub stream: UnixStream,
    pub out: Vec<u8>,
    pub sent: usize,
    pub read: Vec<u8>,
    pub under_way: VecDeque<Request>,
}

impl Connection {
    /// Sends what the server takes now.
    ///
    /// # Errors
    /// The server is gone.
    pub fn flush(&mut self) -> Result<(), Trouble> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if may_come(&error) => break,
                Err(error) => return Err(gone(error)),
            }
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        Ok(())
    }
}

/// The server is gone.
pub(super) fn gone(cause: impl std::fmt::Display) -> Trouble {
    Trouble::Failed(format!("the server ended during the run: {cause}"))
}

/// Whether the same call may succeed later.
pub(super) fn may_come(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
