//! The coherence protocol of CXL as a state machine, checked in every state.
//!
//! | module | content |
//! |---|---|
//! | [`message`] | messages, channels, what they take of a link |
//! | [`hdm_db`] | memory that several hosts cache: snoop filter, back-invalidation, conflicts |
//! | [`type2`] | a line between a host and a device that caches: CXL.cache, host bias, device bias |
//! | [`rules`] | what holds in every state |
//! | [`serial`] | caches and a filter of any size, one access at a time |
//! | [`cost`] | messages, bytes and latency of a transaction |
//! | [`check`] | the checks by name, with planted mistakes |
//! | [`explore`] | the search over all states |

pub mod check;
pub mod cost;
pub mod explore;
pub mod hdm_db;
pub mod message;
pub mod rules;
pub mod serial;
pub mod type2;
