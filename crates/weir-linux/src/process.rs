//! Facts about processes and threads from the kernel.

use crate::root::Root;

/// When a process or thread began, in clock ticks since the machine started (proc(5), field 22 of `stat`);
/// `None` if there is none. The second field may contain anything in its brackets.
pub(crate) fn started(root: &Root, id: u32) -> Option<u64> {
    let stat = root.text(&format!("/proc/{id}/stat"));
    let (_, rest) = stat.known()?.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// The process of a thread.
pub(crate) fn leader(root: &Root, id: u32) -> Option<u32> {
    let status = root.text(&format!("/proc/{id}/status"));
    let line = status
        .known()?
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}
