//! The coherence protocol of CXL as a state machine, checked in every state.
//!
//! | module | content |
//! |---|---|
//! | [`message`] | messages, channels, what they take of a link |
//! | [`hdm_db`] | memory that several hosts cache: snoop filter, back-invalidation, conflicts |
//! | [`explore`] | the search over all states |

pub mod explore;
pub mod hdm_db;
mod hdm_db_rules;
pub mod message;

pub use hdm_db_rules::{LOST, NOT_COVERED, OVERFULL, STALE, TWO_WRITERS};
