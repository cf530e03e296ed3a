//! `weir tier profile`: who touches which pages how often, on a model, on a host, or in a trace.
//!
//! | file | content |
//! |---|---|
//! | `document` | what a profile says |
//! | `history` | the worker: pages that were seen become the document |
//! | `times` | lengths and thresholds, with their defaults |
//! | `model` | the study of a model |
//! | `outcome` | a profile in words, tables and pictures |

mod document;
mod history;
mod model;
mod outcome;
mod times;

pub use document::{
    HeatCell, Profile, ProfileInterval, ProfileSource, Reaccess, TouchRate, TouchedWithin,
};
pub use history::{History, MOST_INTERVALS, ProfileOf};
pub use model::ProfileModel;
pub use times::{ProfileTimes, Times};
pub use weir_pages::PageKind;
