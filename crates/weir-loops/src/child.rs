//! Processes that end with the thread which started them.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel kill the process of a command when the thread that starts it ends, however that happens. A run
/// starts and stops in one thread, so that it never ends before.
pub fn end_with_this_thread(command: &mut Command) {
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
