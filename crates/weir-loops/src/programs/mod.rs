//! Weir's own programs, and the client that sends requests to servers.
//!
//! A program is a function of what it is given and of where it tells its figures ([`report`]): [`columns`] has queries,
//! [`graph`] the kernels of a graph, [`neighbours`] a search of vectors, [`embedding`] look-ups, [`shuffle`] a sort and
//! [`services`] a chain of processes. [`client`] sends requests ([`mix`] and [`keys`] draw them, [`values`] makes answers
//! that can be checked, [`protocol`] writes and reads the protocols of Redis and memcached).

pub mod client;
#[cfg(test)]
mod client_tests;
pub mod columns;
mod connection;
pub mod embedding;
pub mod graph;
pub mod keys;
mod ledger;
pub mod mix;
pub mod neighbours;
pub mod protocol;
pub mod report;
pub mod services;
pub mod shuffle;
mod stretch;
mod threads;
pub mod values;
mod waiting;

/// Why an application has no figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It is not installed, or something else is missing here.
    #[error("{0}")]
    Lacks(String),
    /// The request does not fit it.
    #[error("{0}")]
    Request(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

impl Trouble {
    /// A failed system call, with what was done.
    pub fn system(what: impl std::fmt::Display, cause: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{what}: {cause}"))
    }
}
