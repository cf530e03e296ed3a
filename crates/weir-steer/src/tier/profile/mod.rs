//! `weir tier profile`: which pages are touched how often, on a model, on a host, or in a trace.
//!
//! | file | content |
//! |---|---|
//! | `document` | what a profile says |
//! | `history` | the worker: pages that were seen become the document |
//! | `bands` | rates of touches, without the chance of samples |
//! | `parts` | how regions change while they are looked at |
//! | `times` | lengths and thresholds, with their defaults |
//! | `model` | the study of a model |
//! | `outcome` | a profile in words, tables and pictures |

mod bands;
mod document;
mod history;
mod model;
pub(in crate::tier) mod outcome;
mod parts;
mod times;

pub(crate) use bands::SATURATED;
pub use document::{
    HeatCell, Profile, ProfileInterval, ProfileRegion, ProfileSource, Reaccess, RegionBand,
    RegionPart, TouchRate, TouchedWithin,
};
pub use history::{History, MOST_INTERVALS, ProfileOf};
pub use model::{Looked, ProfileModel, SamplerName};
pub use times::{ProfileTimes, Times};
pub use weir_pages::PageKind;
