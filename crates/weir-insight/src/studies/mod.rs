//! Studies of what counters mean.

pub mod tune;
