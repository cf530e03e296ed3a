//! Which objects of a program may live on a slower tier.
//!
//! A program runs twice, with everything on local memory and with everything on the slower tier. Both runs say for each
//! object how long the cores waited for its lines, and how many lines it read and wrote. From this follows the run time of
//! every placement ([`ends`]), and so the best one ([`choose`]).

pub mod choose;
mod document;
pub mod ends;
pub mod policy;

pub use document::{ObjectAdvice, PlaceAdvice, Placing, Tradeoff};
