//! Plain Linux without NUMA balancing: pages stay where they were allocated.

use super::Policy;

/// The fast node first; then the slow one; then reclaim to swap.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstTouch;

impl Policy for FirstTouch {}
