//! What can be wrong with vectors, graphs and searches.

/// Why something cannot be done.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnnError {
    /// A file cannot be read.
    #[error("{file}: {why}")]
    File {
        /// Its name.
        file: String,
        /// The reason.
        why: String,
    },
    /// A record of a file is wrong.
    #[error("{file}, record {record}: {why}")]
    Record {
        /// Its name.
        file: String,
        /// The record, from 0.
        record: usize,
        /// The reason.
        why: String,
    },
    /// Vectors of different lengths meet.
    #[error("{what} has {found} dimensions, and the data have {wanted}")]
    Dimensions {
        /// What has another number.
        what: String,
        /// How many it has.
        found: usize,
        /// How many it should have.
        wanted: usize,
    },
    /// A number is out of its bounds.
    #[error("{0}")]
    Bounds(String),
    /// Nodes that no path leads to.
    #[error(
        "node {entry}, at which searches begin, reaches none of {unreachable} other nodes; the graph needs another entry"
    )]
    Isolated {
        /// The entry.
        entry: u32,
        /// Nodes that it does not reach.
        unreachable: usize,
    },
    /// An arena is full.
    #[error(
        "arena {arena} has no room for {wanted} B: {free} B are between its vectors and its lists"
    )]
    Full {
        /// The arena.
        arena: usize,
        /// What was asked for.
        wanted: u64,
        /// What is left.
        free: u64,
    },
}
