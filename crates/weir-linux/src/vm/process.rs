//! Which process a VM is.

use std::ffi::OsString;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::process::started;
use crate::root::Root;

/// A process that cannot be taken for another one: its number with the time at which it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// When it began, in clock ticks since the host did.
    pub started: u64,
}

impl Identity {
    /// A process by its number; `None` if there is none.
    pub fn of(pid: u32) -> Option<Self> {
        let started = started(&Root::live(), pid)?;
        Some(Self { pid, started })
    }

    /// This process. A program that it executes is the same process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn own() -> io::Result<Self> {
        let pid = std::process::id();
        Self::of(pid).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat cannot be read")))
    }

    /// Whether it still runs. One that has ended and waits for its parent to notice has no memory any more.
    pub fn runs(self) -> bool {
        Self::of(self.pid) == Some(self) && !is_zombie(self.pid)
    }
}

/// Whether a process has ended and is still listed (proc(5), the third field of `stat`).
fn is_zombie(pid: u32) -> bool {
    let stat = Root::live().text(&format!("/proc/{pid}/stat"));
    let state = stat.known().and_then(|stat| {
        let (_, rest) = stat.rsplit_once(')')?;
        rest.trim_start().chars().next()
    });
    matches!(state, Some('Z' | 'X') | None)
}

/// The process that listens at the other end of a socket (unix(7), `SO_PEERCRED`).
///
/// # Errors
/// The kernel does not say, or it cannot be seen from here, since it is in a container of its own.
pub(super) fn listener(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` and `length` are valid for writes, and `length` is the size of `peer`.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    match (result, u32::try_from(peer.pid)) {
        (0, Ok(pid)) if pid > 0 => Ok(pid),
        (0, _) => Err(io::ErrorKind::NotFound.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Executes a program in place of this one. Returns only if it cannot.
pub fn become_program(words: &[OsString]) -> io::Error {
    match words {
        [program, arguments @ ..] => Command::new(program).args(arguments).exec(),
        [] => io::ErrorKind::InvalidInput.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_process_runs_until_it_has_ended_even_if_nobody_waits_for_it() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let identity = Identity::of(child.id()).unwrap();
        assert!(identity.runs());
        let later = Identity {
            started: identity.started + 1,
            ..identity
        };
        assert!(!later.runs(), "another process of this number");
        child.kill().unwrap();
        while identity.runs() {
            std::thread::yield_now();
        }
        assert!(Identity::of(child.id()).is_some(), "nobody has waited");
        child.wait().unwrap();
        assert!(!identity.runs());
    }

    #[test]
    fn the_listener_of_a_socket_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let stream = UnixStream::connect(&path).unwrap();
        assert_eq!(listener(&stream).unwrap(), std::process::id());
        assert_eq!(Identity::own().unwrap().pid, std::process::id());
    }
}
