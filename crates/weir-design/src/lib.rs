//! Design studies: a space of servers, and the designs in it that no other dominates.
//!
//! | module | content |
//! |---|---|
//! | [`silicon`] | pins, die area and power of parts |
//! | [`published`] | rows of papers that those answer |

pub mod published;
pub mod silicon;
