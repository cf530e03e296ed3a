//! What the pages of a buffer are, in segments.

use crate::extents::Run;

/// What some pages of a buffer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Memory of the process; zeros, until the program stores there.
    Own,
    /// Frames that only this buffer has, mapped shared: a write gives them to the cache as they are.
    Fresh(u32),
    /// Frames of the cache, mapped privately: a store makes the kernel copy the page.
    Frame(u32),
    /// Pages of the medium, mapped privately.
    Medium(u32),
}

impl Kind {
    /// The same, this many pages on.
    pub(crate) fn skip(self, pages: u32) -> Self {
        match self {
            Self::Own => Self::Own,
            Self::Fresh(start) => Self::Fresh(start + pages),
            Self::Frame(start) => Self::Frame(start + pages),
            Self::Medium(start) => Self::Medium(start + pages),
        }
    }
}

/// Pages of a buffer that are of one kind and follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The first page in the buffer.
    pub first: u32,
    /// How many.
    pub pages: u32,
    /// What they are.
    pub kind: Kind,
}

impl Segment {
    /// Whether it has this page of the buffer.
    pub(crate) fn covers(&self, page: u32) -> bool {
        (self.first..self.first + self.pages).contains(&page)
    }

    /// What of it lies between these pages.
    pub(crate) fn cut(&self, from: u32, to: u32) -> Option<Self> {
        let (first, end) = (self.first.max(from), (self.first + self.pages).min(to));
        (first < end).then(|| Self {
            first,
            pages: end - first,
            kind: self.kind.skip(first - self.first),
        })
    }

    /// Its frames or pages of the medium.
    pub(crate) fn run(&self, start: u32) -> Run {
        Run {
            start,
            len: self.pages,
        }
    }
}
