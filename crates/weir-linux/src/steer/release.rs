//! Restoring everything from another thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_model::capability::Unavailable;

use super::journalled_writes::JournalledWrites;
use super::not_put_back::NotPutBack;

/// Restores everything from another thread, such as a watchdog's.
#[derive(Debug, Clone, Default)]
pub struct Release(pub(super) Option<Arc<Mutex<JournalledWrites>>>);

impl Release {
    /// Restores everything, and returns what could not be restored. A thread that still uses the machine
    /// finds its values changed by another program, and leaves them.
    pub fn release(&self) -> Vec<NotPutBack> {
        self.0
            .as_ref()
            .map_or_else(Vec::new, |writes| lock(writes).release())
    }

    /// The same, but gives up if another thread does not release the journal for this long, because the
    /// kernel does not answer a write. Then only ending the process, and restoring, is left.
    ///
    /// # Errors
    /// The reason.
    pub fn release_within(&self, patience: Duration) -> Result<Vec<NotPutBack>, Unavailable> {
        let Some(writes) = &self.0 else {
            return Ok(Vec::new());
        };
        let began = Instant::now();
        loop {
            match writes.try_lock() {
                Ok(mut writes) => return Ok(writes.release()),
                Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                    return Ok(poisoned.into_inner().release());
                }
                Err(std::sync::TryLockError::WouldBlock) if began.elapsed() < patience => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(std::sync::TryLockError::WouldBlock) => {
                    return Err(Unavailable::because(
                        "a write to the kernel has not returned; end the process and restore",
                    ));
                }
            }
        }
    }
}

/// The journal is consistent between any two calls, also after a panic of a caller.
pub(super) fn lock(writes: &Mutex<JournalledWrites>) -> MutexGuard<'_, JournalledWrites> {
    writes.lock().unwrap_or_else(PoisonError::into_inner)
}
