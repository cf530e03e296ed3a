//! The user's request to stop: one for the whole process, which long work of any machine looks at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// What a signal sets.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(&REQUESTED)
}

/// Whether a stop was requested. A machine then gives up what it does with
/// [`Interrupted`](crate::machine::MachineError::Interrupted).
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
