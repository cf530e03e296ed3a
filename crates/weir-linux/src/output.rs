//! Whether this process was given a standard output.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Refuses a standard output that was closed when the process began. What is written to it is lost without an error: before
/// `main` the runtime opens `/dev/null` in its place, so that no other file gets its number.
///
/// # Errors
/// It was closed.
pub fn check() -> io::Result<()> {
    match CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        false => Ok(()),
    }
}

/// Before the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        // SAFETY: it reads the flags of a number that may have no file.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        CLOSED.store(flags == -1, Ordering::Relaxed);
    }
    at_start
};
