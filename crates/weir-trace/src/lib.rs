//! Traces of memory accesses, and the description of a program that follows from one.
//!
//! | module | what it does |
//! |---|---|
//! | [`decode`] | formats: bytes become accesses |
//! | [`reuse`] | how many other lines are used before a line is used again, in constant memory |
//! | [`profile`] | accesses by this number |
//! | [`segments`] | stretches in each of which the program does the same |
//! | [`watch`] | everything that is noted of a stream of accesses, by parts of the address space |
//! | [`mappings`] | the files that a process has mapped, which name parts of its memory |
//! | [`regions`] | parts of the address space that are used alike |
//! | [`fit`] | memory of which sizes is reused after the times that were seen |
//! | [`describe`] | a [`Workload`](weir_model::workload::Workload) from all of it |
//! | [`replay`] | the accesses of a described program |
//! | [`check`] | the description against its trace, as a document |
//!
//! The crate makes no system call: its caller feeds it the bytes of a trace. It is a crate because its loops
//! take each access of traces of hundreds of gigabytes, and are compiled for speed, while the crates with documents
//! are compiled for size.

pub mod access;
mod candidates;
pub mod check;
pub mod decode;
pub mod describe;
pub mod fit;
mod granule;
mod l1;
pub mod mappings;
mod order;
mod origins;
mod outcome;
pub mod profile;
pub mod regions;
pub mod replay;
pub mod reuse;
mod runs;
pub mod segments;
pub mod watch;

pub use access::{Access, Sink};
pub use decode::{Decoder, Format, Wrong};
pub use watch::Watch;
