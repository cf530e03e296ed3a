//! One event of the kernel: opened, read, closed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use super::attributes::{
    Attributes, DISABLED, ENABLE_ON_EXEC, EXCLUDE_HV, EXCLUDE_KERNEL, Encoded, INHERIT,
};

/// Closed when a program is executed (PERF_FLAG_FD_CLOEXEC).
const CLOSE_ON_EXEC: u64 = 1 << 3;

/// The target of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// This thread, from now on.
    ThisThread,
    /// The programs that this thread executes in children from now on, and all their descendants; not the
    /// thread itself.
    Children,
    /// A task, by its thread's number, and everything that it starts from now on.
    Task(u32),
    /// A processor, with every program that runs there.
    Cpu(u32),
}

/// The mode in which events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every mode.
    All,
    /// Not kernel mode, which unprivileged programs may not count.
    User,
}

/// An open event.
#[derive(Debug)]
pub struct Open(File);

/// The count of an event at some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Occurrences while it was on a counter.
    pub value: u64,
    /// Nanoseconds in which it was enabled.
    pub enabled: u64,
    /// Nanoseconds in which it was on a counter.
    pub running: u64,
}

impl Open {
    /// Opens an event, in the group of a leader if one is given.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn one(
        encoded: Encoded,
        target: Target,
        leader: Option<&Open>,
        scope: Scope,
    ) -> io::Result<Self> {
        let mut flags = match scope {
            Scope::All => 0,
            Scope::User => EXCLUDE_KERNEL | EXCLUDE_HV,
        };
        let (pid, cpu) = match target {
            Target::ThisThread => (0, -1),
            Target::Children => {
                // A member of a group runs with its leader.
                if leader.is_none() {
                    flags |= DISABLED | ENABLE_ON_EXEC;
                }
                flags |= INHERIT;
                (0, -1)
            }
            Target::Task(pid) => {
                flags |= INHERIT;
                (i64::from(pid), -1)
            }
            Target::Cpu(cpu) => (-1, i64::from(cpu)),
        };
        let attributes = Attributes::new(encoded, flags);
        Self::with(&attributes, (pid, cpu), leader)
    }

    /// Opens an event of these attributes for a process and a processor.
    pub(super) fn with(
        attributes: &Attributes,
        (pid, cpu): (i64, i64),
        leader: Option<&Open>,
    ) -> io::Result<Self> {
        let group = leader.map_or(-1, |leader| i64::from(leader.0.as_raw_fd()));
        // SAFETY: the pointer is to an attribute block of the size that it states, which lives
        // until the call returns; the call keeps no reference to it. The other arguments are
        // numbers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(attributes),
                pid,
                cpu,
                group,
                CLOSE_ON_EXEC,
            )
        };
        let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0);
        match fd {
            // SAFETY: the kernel just gave this descriptor to us, and nothing else knows it.
            Some(fd) => Ok(Self(unsafe { File::from_raw_fd(fd) })),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Its count until now, including inherited counts.
    ///
    /// # Errors
    /// As reading does.
    pub fn read(&self) -> io::Result<Reading> {
        let mut bytes = [0; 24];
        (&self.0).read_exact(&mut bytes)?;
        let word = |n: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[n * 8..n * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        Ok(Reading {
            value: word(0),
            enabled: word(1),
            running: word(2),
        })
    }
}

impl From<Open> for File {
    fn from(open: Open) -> Self {
        open.0
    }
}
