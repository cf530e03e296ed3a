//! The limit that reads and writes of a device from the other socket share. What it is, is not public: it is
//! far below both links, and a log of one card shows the time of a line the same in every mix of reads and
//! writes (docs/physics.md).

use crate::clock::Ps;

/// The time for which a line that crosses between sockets occupies the one limit that reads and writes of a
/// device from the other socket were measured to share; zero if there is no such limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct FarGaps {
    /// A line that is read.
    pub read: Ps,
    /// A line that is written.
    pub write: Ps,
}

/// The limit in use: lines pass one by one.
#[derive(Debug, Default)]
pub struct FarLimit {
    gaps: FarGaps,
    next: Ps,
}

impl FarLimit {
    /// An idle one.
    pub fn new(gaps: FarGaps) -> Self {
        Self { gaps, next: 0 }
    }

    /// Whether there is no such limit.
    pub fn is_none(&self) -> bool {
        self.gaps.read == 0
    }

    /// When a line that is ready at `at` passes.
    #[inline]
    pub fn pass(&mut self, is_write: bool, at: Ps) -> Ps {
        let gap = match is_write {
            true => self.gaps.write,
            false => self.gaps.read,
        };
        if gap == 0 {
            return at;
        }
        let at = at.max(self.next);
        self.next = at + gap;
        at
    }
}
