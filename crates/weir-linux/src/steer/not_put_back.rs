//! What is not as before, and why.

use std::fmt;

use serde::Serialize;

/// Why something is not as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Cause {
    /// It does not exist any more, and its value went with it.
    Gone,
    /// Another program changed it in the meantime, and it is left to that program.
    Changed {
        /// Its content.
        found: String,
    },
    /// It was being written when Weir ended, and its content may be another program's. It was restored.
    Uncertain {
        /// Its content.
        found: String,
    },
    /// Weir added a controller, which another program uses by now, and which is left to it.
    InUse {
        /// The controller.
        controller: String,
        /// A file of a group below with a value that would be lost.
        by: String,
    },
    /// Another program made the group a partition of the processors that Weir left to it, and it is left to that program.
    Partition {
        /// Its content.
        found: String,
    },
    /// It was restored, which takes processors from a partition that another program made meanwhile.
    Overlaps {
        /// The file that makes the other group a partition.
        partition: String,
    },
    /// The list of a group's processors was empty, and the kernel takes no empty list while tasks are in the group. It
    /// names all processors that the group above has.
    Widest {
        /// Its content.
        found: String,
    },
    /// The kernel refused. The journal keeps it.
    Refused {
        /// The error.
        why: String,
    },
    /// The journal cannot be written, and still names what is restored.
    Unwritten {
        /// The error.
        why: String,
    },
    /// Another program put a folder in the place of the journal.
    Supplanted,
    /// The journal names it, but it is not something that Weir steers.
    Foreign,
    /// Weir changed it, and the line of the journal with its earlier content is damaged.
    Lost,
}

impl Cause {
    /// Whether something must still be restored, or taken out of the journal; otherwise it is restored, or belongs to
    /// another program now.
    pub fn is_refused(&self) -> bool {
        matches!(
            self,
            Cause::Refused { .. } | Cause::Unwritten { .. } | Cause::Supplanted
        )
    }
}

/// Something that is not as before, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotPutBack {
    /// The file, register or folder.
    pub path: String,
    /// Its content before Weir, or the list in which threads were.
    pub before: String,
    /// Why it is different now.
    #[serde(flatten)]
    pub cause: Cause,
}

impl fmt::Display for NotPutBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, before, .. } = self;
        match &self.cause {
            Cause::Gone => write!(
                f,
                "{path} does not exist any more, so `{before}` was not restored"
            ),
            Cause::Changed { found } => write!(
                f,
                "{path} was `{before}`; another program changed it to `{found}`, so it is not changed"
            ),
            Cause::Uncertain { found } => write!(
                f,
                "{path} was being written when Weir ended and was `{found}`; it is `{before}` again"
            ),
            Cause::InUse { controller, by } => write!(
                f,
                "{path} was `{before}`; Weir added {controller}, which {by} uses now, so it is not removed"
            ),
            Cause::Partition { found } => write!(
                f,
                "{path} was `{before}`; another program made the group a partition of `{found}`, to which Weir had limited \
                 it, so it is not changed"
            ),
            Cause::Overlaps { partition } => write!(
                f,
                "{path} is `{before}` again, with processors of a partition that another program made meanwhile: see {partition}"
            ),
            Cause::Widest { found } => write!(
                f,
                "{path} was empty, which the kernel does not take again while tasks are in the group; it is `{found}`, \
                 all that the group above has now"
            ),
            Cause::Refused { why } => write!(f, "{path} was `{before}`: {why}"),
            Cause::Unwritten { why } => write!(
                f,
                "{path} cannot be written ({why}), and still names what is restored; `weir steer restore` corrects it"
            ),
            Cause::Supplanted => write!(
                f,
                "another program put a folder in the place of {path}; remove it. `weir steer restore` knows nothing of this \
                 run; restore by hand what could not be restored"
            ),
            Cause::Foreign => write!(
                f,
                "{path} is in the journal, but Weir does not steer it; it is not changed"
            ),
            Cause::Lost => write!(
                f,
                "{path} was changed by Weir, and the line of the journal with its earlier content is \
                 damaged; restore it by hand"
            ),
        }
    }
}
