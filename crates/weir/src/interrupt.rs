//! Signals. Ctrl-C: once to finish the point at hand and keep what there is, twice to leave at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::flag;

/// What a shell reports for a process that Ctrl-C ended.
const EXIT_BY_INTERRUPT: i32 = 130;

/// Signals that would end the process without a reason to end the work. What exceeds a limit on file size is an error
/// of the write.
const IGNORED: [i32; 7] = [
    SIGALRM, SIGIO, SIGPROF, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXFSZ,
];

/// Whether the user wants the work to end.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for signals from now on.
    ///
    /// # Errors
    /// The system refuses a signal handler.
    pub fn on_signals() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the shutdown sees the flag of the first signal only at the second.
            flag::register_conditional_shutdown(signal, EXIT_BY_INTERRUPT, stop.0.clone())?;
            flag::register(signal, stop.0.clone())?;
        }
        // These come more than once: the kernel and the shell both send SIGHUP when a terminal closes, and the kernel
        // sends SIGXCPU every second until the hard limit.
        for signal in [SIGHUP, SIGXCPU] {
            if !is_ignored(signal) {
                flag::register(signal, stop.0.clone())?;
            }
        }
        for signal in IGNORED {
            flag::register(signal, Arc::default())?;
        }
        Ok(stop)
    }

    /// Asks the work to end, as a signal would.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// What a signal sets, for a machine that waits.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether a signal has come.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether this process was started with a signal ignored, as `nohup` does (proc(5), `SigIgn` of `status`).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
