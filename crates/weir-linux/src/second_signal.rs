//! The end of a process at a second signal, with a last line.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What the handler of a signal knows and notes.
#[derive(Debug, Clone, Default)]
pub struct Noted {
    /// Whether a signal has come that asks the process to end.
    pub requested: Arc<AtomicBool>,
    /// Whether it was typed at the terminal, which sends it to all processes in the foreground.
    pub typed: Arc<AtomicBool>,
    /// What is said on standard error at an end that does not wait, if anything.
    pub then: Arc<OnceLock<&'static str>>,
}

/// From now on a signal ends the process with this code, where the end was requested before. Who requests it does so after this.
///
/// # Errors
/// The system refuses a signal handler.
pub fn end_at_second(signal: i32, code: i32, noted: Noted) -> io::Result<()> {
    let handler = move |info: &libc::siginfo_t| {
        if !noted.requested.load(Ordering::SeqCst) {
            (noted.typed).store(info.si_code == libc::SI_KERNEL, Ordering::SeqCst);
            return;
        }
        if let Some(then) = noted.then.get() {
            for part in ["weir: ended at once; ", then, "\n"] {
                write(part);
            }
        }
        // SAFETY: the call takes no pointer, and is safe in a handler.
        unsafe { libc::_exit(code) }
    };
    // SAFETY: the handler uses atomics, and calls poll, write and _exit, which are safe there (signal-safety(7)).
    unsafe { signal_hook_registry::register_sigaction(signal, handler) }.map(drop)
}

/// Writes to standard error, unless that would block.
fn write(text: &str) {
    let mut to = libc::pollfd {
        fd: libc::STDERR_FILENO,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: both calls get memory that lives until they return.
    unsafe {
        if libc::poll(&raw mut to, 1, 0) == 1 {
            libc::write(to.fd, text.as_ptr().cast(), text.len());
        }
    }
}
