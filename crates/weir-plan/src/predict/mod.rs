//! The two predictors of Pond (section 4.4), and what is decided with them.
//!
//! | module | content |
//! |---|---|
//! | [`tree`] | regression trees over columns, as both learners grow them |
//! | [`forest`] | a random forest with the votes of trees that did not see a row |
//! | [`boost`] | gradient boosting for a quantile |
//! | [`risk`] | how far a prediction must be turned down so that errors stay below a target |
//! | [`features`] | counters of a program as columns |
//! | [`insensitive`] | which programs may be in a pool as a whole |
//! | [`untouched`] | how much memory of a VM is never touched |
//! | [`monitor`] | VMs whose split was wrong are found and repaired once |
//! | [`published`] | rows of Pond that the above answers |
//! | [`balance`] | how the errors that are allowed are shared out between the two (Equation 1) |

pub mod balance;
pub mod boost;
pub mod features;
pub mod forest;
pub mod insensitive;
pub mod monitor;
pub mod published;
pub mod risk;
pub mod tree;
pub mod untouched;
