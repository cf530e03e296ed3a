//! Facts about processes and threads from the kernel.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::root::Root;

/// Has the kernel kill the process of a command when the thread that starts it ends, however that happens. A run
/// starts and stops in one thread, so that it never ends before.
pub(crate) fn end_with_this_thread(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || die_with(parent));
    }
}

/// Has the kernel kill the calling process when the thread that made it ends (prctl(2)).
fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: neither call takes a pointer.
    let (result, now) = unsafe {
        (
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
            libc::getppid(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // If the parent died before the call, the call does not notice.
    if u32::try_from(now) != Ok(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

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
