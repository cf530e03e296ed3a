//! What uses a pool: hosts, processes and users.

use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A process of a host, which no later process is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Process {
    /// The place of its host in the pool.
    pub host: u16,
    /// Its number.
    pub pid: u32,
    /// When it began, in ticks after the boot (proc(5), stat, field 22).
    pub start: u64,
    /// Which boot of the host, and which namespace of process numbers.
    pub boot: u64,
}

/// Who asks, for permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user.
    pub uid: u32,
    /// The group, and those besides.
    pub groups: Vec<u32>,
}

impl User {
    /// The effective user of this process.
    pub fn own() -> Self {
        let mut groups = vec![0; 256];
        // SAFETY: calls without arguments, and one that fills at most the length that it is given.
        let (uid, gid, count) = unsafe {
            let count = libc::getgroups(groups.len() as i32, groups.as_mut_ptr());
            (libc::geteuid(), libc::getegid(), count)
        };
        groups.truncate(usize::try_from(count).unwrap_or(0));
        groups.insert(0, gid);
        Self { uid, groups }
    }
}

/// This boot of this host, as one number. Containers count processes by themselves, so the namespace of process numbers
/// is in it: a process of another one can then never be taken for a dead one.
pub(crate) fn boot() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let numbers = std::fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino());
    // FNV-1a: every build of this crate must make the same number.
    let bytes = text.trim().bytes().chain(numbers.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // 0 is a host that has never come.
    hash.max(1)
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    text.trim().to_owned()
}

/// When a process began; `None` if there is none, or it has ended and waits for its parent.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name, which may have blanks and brackets.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// A process by number and name.
pub(crate) fn described(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim() {
        "" => format!("process {pid}"),
        name => format!("process {pid} ({name})"),
    }
}

/// Milliseconds of the clock that hosts agree on.
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Whether a text may be the name of a host or a namespace: 1 to `most` letters, digits and `.`, `_`, `-`, and neither
/// `.` nor `..`.
pub(crate) fn check_name(what: &str, name: &str, most: usize) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty()
        || name.len() > most
        || !name.chars().all(fits)
        || name == "."
        || name == ".."
    {
        return Err(format!(
            "{what} {name:?} cannot be: it has 1 to {most} letters, digits and . _ -"
        ));
    }
    Ok(())
}
