//! `weir tier profile`: who touches which pages how often, on a model, on a host, or in a trace.
//!
//! | file | content |
//! |---|---|
//! | `document` | what a profile says |
//! | `history` | the worker: pages that were seen become the document |
//! | `parts` | how regions change while they are looked at |
//! | `times` | lengths and thresholds, with their defaults |
//! | `model` | the study of a model |
//! | `outcome` | a profile in words, tables and pictures |

mod document;
mod history;
mod model;
mod outcome;
mod parts;
mod times;

pub use document::{
    HeatCell, Profile, ProfileInterval, ProfileRegion, ProfileSource, Reaccess, RegionPart,
    TouchRate, TouchedWithin,
};
pub use history::{History, MOST_INTERVALS, ProfileOf};
pub use model::ProfileModel;
pub use times::{ProfileTimes, Times};
pub use weir_pages::PageKind;
