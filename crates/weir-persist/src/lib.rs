//! Whether memory is consistent after a crash: the states that stores, flushes and fences of a program may leave, and a check of
//! each.
//!
//! | module | content |
//! |---|---|
//! | [`event`] | what a program did to its pool, and what it requires of it, an event a line |
//! | [`read`] | traces of events, line by line |
//! | [`platform`] | by which rules stores arrive in the pool |
//! | [`class`] | kinds of memory by their features, and the platforms on which each is checked |
//! | [`mod@line`] | one cache line: which of its stores may be missing together |
//! | [`recovered`] | a state, as recovery reads it |
//! | [`checker`] | crash points, their states, and the first that is illegal |
//! | [`outcome`] | what was found, as a document |
//! | [`published`] | what a position paper counts |
//!
//! The rules are those of Px86 (Raad, Wickerson, Neiger and Vafeiadis, "Persistency semantics of the Intel-x86 architecture", POPL
//! 2020). Only lines that recovery reads multiply states, as in Jaaru (Gorjiara, Xu and Demsky, ASPLOS 2021).

pub mod checker;
pub mod class;
pub mod event;
pub mod line;
pub mod outcome;
pub mod platform;
pub mod published;
pub mod read;
pub mod recovered;

pub use checker::{Checker, CounterExample};
pub use class::Class;
pub use event::{Actor, Event, Place};
pub use platform::Platform;
pub use read::{Reader, TraceError};
pub use recovered::{Answer, Recovered};
