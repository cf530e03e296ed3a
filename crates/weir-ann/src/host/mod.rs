//! The ladder on a host: searches of data in memory that the caller has placed, with threads in the place of devices.
//!
//! | file | content |
//! |---|---|
//! | `ring` | commands to devices and their results |
//! | `layout` | lists and shards as arrays, which the caller places |
//! | `timed` | a search in each variant, and what its time is spent on |
//! | `run` | all searches of a variant, with the threads of its devices |

pub mod layout;
pub mod ring;
pub mod run;
pub mod timed;
