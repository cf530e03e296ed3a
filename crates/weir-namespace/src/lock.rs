//! The lock of the table, which needs no atomic operation between hosts.
//!
//! On a host, flock(2): the kernel frees it when its owner dies. Between hosts, Lamport's bakery ("A New Solution of
//! Dijkstra's Concurrent Programming Problem", CACM 1974): each host writes only its own line, and reads those of the
//! others from memory. A host whose line shows a wish for the lock and does not change for [`PATIENCE`], by the clock of
//! the one that waits, counts as dead, and its wish is withdrawn. It notices that before it commits a change, which is
//! older than what others committed meanwhile, and in copies of the table that only it writes.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{NamespaceError, Result};
use crate::identity::described;
use crate::layout::{HOSTS, HostLines};
use crate::mapping::Mapping;
use crate::medium::Medium;

/// How long a host may stand still while it holds the lock, which it does for some milliseconds. Its processor may be
/// taken away meanwhile.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long another process of this host is waited for: it may wait for a host that has died.
const LONGEST: Duration = Duration::from_secs(20);
/// The interval at which it is looked again.
const LOOK: Duration = Duration::from_micros(200);

/// The lock of this host's processes.
pub(crate) struct HostLock<'a>(Option<&'a Medium>);

impl<'a> HostLock<'a> {
    /// Waits for it. A host that is simulated for a test is the only process of its kind, and has none.
    pub fn of(medium: &'a Medium, simulated: bool) -> Result<Self> {
        if simulated {
            return Ok(Self(None));
        }
        let began = Instant::now();
        loop {
            // SAFETY: a call on our own descriptor.
            if unsafe { libc::flock(medium.file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(Self(Some(medium)));
            }
            let source = std::io::Error::last_os_error();
            if !matches!(source.raw_os_error(), Some(libc::EWOULDBLOCK | libc::EINTR)) {
                return Err(NamespaceError::Io {
                    what: "lock",
                    path: medium.path.clone(),
                    source,
                });
            }
            if began.elapsed() > LONGEST {
                return Err(NamespaceError::Busy {
                    path: medium.path.clone(),
                    waited_ms: began.elapsed().as_millis() as u64,
                    who: flock_owner(medium).unwrap_or("a process of this host".into()),
                });
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for HostLock<'_> {
    fn drop(&mut self) {
        if let Some(medium) = self.0 {
            // SAFETY: a call on our own descriptor. Closing would not do: a child that was just forked has it too.
            unsafe { libc::flock(medium.file.as_raw_fd(), libc::LOCK_UN) };
        }
    }
}

/// The process that has the flock, by /proc/locks (proc(5)).
fn flock_owner(medium: &Medium) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let inode = medium.file.metadata().ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let line = locks.lines().find(|line| {
        line.contains("FLOCK") && line.split([' ', ':']).any(|w| w == inode.to_string())
    })?;
    let pid = line.split_ascii_whitespace().nth(4)?.parse().ok()?;
    Some(described(pid))
}

/// The lock among hosts.
pub(crate) struct Bakery<'a> {
    map: &'a Mapping,
    lines: HostLines,
    number: u64,
    /// Hosts that stood still, and whose wish is to be withdrawn.
    dead: Vec<usize>,
}

impl<'a> Bakery<'a> {
    /// Waits for it, as the host at this place. The caller has the host's own lock.
    pub fn enter(map: &'a Mapping, me: usize, path: &Path, host: &str) -> Result<Self> {
        let began = Instant::now();
        loop {
            let lock = Self::wait(map, me);
            // A host that did not get a processor while it waited has lost its place in the queue, and no more.
            match lock.check(path, host) {
                Err(NamespaceError::LockLost { .. }) if began.elapsed() < LONGEST => {}
                done => return done.map(|()| lock),
            }
        }
    }

    fn wait(map: &'a Mapping, me: usize) -> Self {
        let lines = HostLines::of(me);
        let others = || {
            let places = (0..HOSTS).filter(|host| *host != me);
            places.filter(|host| map.load_fresh(HostLines::of(*host).boot()) != 0)
        };
        step(map, lines);
        map.publish(lines.choosing(), 1);
        let numbers = others().map(|host| map.load_fresh(HostLines::of(host).number()));
        // A damaged line must not make the largest number overflow.
        let number = numbers
            .max()
            .unwrap_or(0)
            .saturating_add(1)
            .min(u64::MAX - 1);
        map.publish(lines.number(), number);
        map.publish(lines.choosing(), 0);
        let mut lock = Self {
            map,
            lines,
            number,
            dead: Vec::new(),
        };
        // Listed again: a host that comes after this draws its number with ours in sight.
        for host in others() {
            lock.wait_for(host, me);
        }
        lock
    }

    fn wait_for(&mut self, host: usize, me: usize) {
        let theirs = HostLines::of(host);
        let state = || {
            let [number, choosing, steps] = [theirs.number(), theirs.choosing(), theirs.steps()]
                .map(|at| self.map.load_fresh(at));
            (number, choosing, steps)
        };
        let mut seen = state();
        let mut since = Instant::now();
        let mut showed = since;
        loop {
            let now = state();
            let before = now.1 != 0 || (now.0 != 0 && (now.0, host) < (self.number, me));
            if !before {
                return;
            }
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                self.dead.push(host);
                return;
            }
            // Others see that this host still waits, and is not dead.
            if showed.elapsed() > PATIENCE / 8 {
                step(self.map, self.lines);
                showed = Instant::now();
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Shows others that this host goes on.
    pub fn step(&self) {
        step(self.map, self.lines);
    }

    /// Whether a host was passed that stood still.
    pub fn found_dead(&self) -> bool {
        !self.dead.is_empty()
    }

    /// Withdraws the wishes of hosts that stood still, so that no host waits for them again.
    pub fn withdraw(&mut self) {
        for host in self.dead.drain(..) {
            let lines = HostLines::of(host);
            self.map.publish(lines.choosing(), 0);
            self.map.publish(lines.number(), 0);
        }
    }

    /// Whether the lock is still this host's. Another host may have withdrawn its wish while it stood still.
    pub fn check(&self, path: &Path, host: &str) -> Result<()> {
        step(self.map, self.lines);
        match self.map.load_fresh(self.lines.number()) == self.number {
            true => Ok(()),
            false => Err(NamespaceError::LockLost {
                path: path.to_owned(),
                host: host.to_owned(),
            }),
        }
    }
}

/// Shows others that this host goes on.
fn step(map: &Mapping, lines: HostLines) {
    map.publish(lines.steps(), map.load(lines.steps()).wrapping_add(1));
}

impl Drop for Bakery<'_> {
    fn drop(&mut self) {
        // A wish that was withdrawn is not this host's to change: another process of it cannot have a new one, since
        // the host's own lock is still held.
        self.map.publish(self.lines.number(), 0);
    }
}
