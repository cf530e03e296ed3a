//! Ctrl-C: once to finish the point at hand and keep what there is, twice to leave at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What a shell reports for a process that Ctrl-C ended.
const EXIT_BY_INTERRUPT: i32 = 130;

/// Whether the user wants the work to end.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT and SIGTERM from now on.
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
