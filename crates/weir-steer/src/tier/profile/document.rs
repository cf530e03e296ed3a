//! What `weir tier profile` finds: `weir/tier-profile/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Bytes;
use weir_pages::PageKind;

/// Where a profile comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileSource {
    /// The model of pages.
    Model,
    /// Loads that the processor samples with their addresses (PEBS, IBS).
    Samples,
    /// DAMON: a page of each of the kernel's regions is looked at, many times in a second.
    Damon,
    /// The kernel's idle-page bits: each physical page is looked at once in an interval.
    IdleBits,
    /// `Referenced` of `/proc/PID/smaps`: how much of each mapping was touched.
    AccessedBits,
    /// A recorded trace of accesses.
    Trace,
}

/// Which pages are touched how often (Chameleon of TPP, ASPLOS 2023, section 3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Memory by type and interval.
    pub intervals: Vec<ProfileInterval>,
    /// Memory that was touched within some time, by type, on average (Fig. 7 and 8 of the paper).
    pub within: Vec<TouchedWithin>,
    /// How long pages were not touched before they were (Fig. 11 of the paper).
    pub reaccess: Vec<Reaccess>,
    /// How much memory is touched how often.
    pub rates: Vec<TouchRate>,
    /// How much memory has which rate of touches at a time, as far as samples tell: chance is taken off.
    #[serde(default)]
    pub bands: Vec<RegionBand>,
    /// Regions, and how their hot sets change.
    #[serde(default)]
    pub regions: Vec<ProfileRegion>,
    /// Regions in parts of the time, which are equally long but for the last.
    #[serde(default)]
    pub parts: Vec<RegionPart>,
    /// Which addresses are touched when.
    pub heat: Vec<HeatCell>,
    /// Where it comes from.
    pub source: ProfileSource,
    /// What was looked at: the workload, the processes or the file.
    pub of: String,
    /// How it was looked at, and what that leaves uncertain.
    pub how: String,
    /// Its length in seconds.
    pub seconds: f64,
    /// The length of an interval.
    pub interval_s: f64,
    /// Pages that were touched in the last this many seconds are hot.
    pub hot_s: f64,
    /// Pages that were touched in the last this many seconds, and are not hot, are warm.
    pub warm_s: f64,
    /// The least part of an address space that is distinguished.
    pub granule: Bytes,
    /// How many of them were seen.
    pub granules: u64,
    /// The most touches of a page in a second that can be distinguished; absent where nothing limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_per_s: Option<f64>,
    /// The touches that are noted at least of a page found touched: the period of sampled accesses.
    #[serde(default = "one")]
    pub each: f64,
}

fn one() -> f64 {
    1.0
}

/// Memory of a type in an interval. Hot, warm and cold add up to what is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileInterval {
    /// The end of the interval, in seconds from the start.
    pub t_s: f64,
    /// What pages hold.
    pub kind: PageKind,
    /// Allocated memory.
    pub allocated: Bytes,
    /// Memory touched in this interval.
    pub touched: Bytes,
    /// Memory touched in the last `hot_s`.
    pub hot: Bytes,
    /// Its share of allocated memory.
    #[schemars(extend("x-unit" = "%"))]
    pub hot_pct: f64,
    /// Memory touched in the last `warm_s` that is not hot.
    pub warm: Bytes,
    /// The rest. Before `warm_s` are over it is what was not touched since the start.
    pub cold: Bytes,
    /// Its share of allocated memory.
    #[schemars(extend("x-unit" = "%"))]
    pub cold_pct: f64,
}

/// Memory touched within some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TouchedWithin {
    /// What pages hold.
    pub kind: PageKind,
    /// The time, in seconds.
    pub last_s: f64,
    /// Memory that was touched in it, on average over the intervals before which it was over.
    pub touched: Bytes,
    /// Its share of the allocated memory.
    #[schemars(extend("x-unit" = "%"))]
    pub touched_pct: f64,
}

/// Touches by the time since the touch before. An interval in which a page was touched counts once, so that all rows
/// of a type add up to the memory touched in each interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reaccess {
    /// What pages hold.
    pub kind: PageKind,
    /// More than this after the touch before, in seconds; absent for the first touch of a page.
    pub after_s: Option<f64>,
    /// At most this after it.
    pub until_s: Option<f64>,
    /// Memory, once for each touch.
    pub touched: Bytes,
    /// Share of all touches of the type.
    #[schemars(extend("x-unit" = "%"))]
    pub share_pct: f64,
}

/// Memory of a region that is touched about equally often: a band.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TouchRate {
    /// The region.
    pub region: String,
    /// What its pages hold.
    pub kind: PageKind,
    /// Each page is touched at least this often in a second ...
    pub from_per_s: f64,
    /// ... and less often than this; 0 for pages that were not touched.
    pub to_per_s: f64,
    /// Touches of a page in a second, on average.
    pub mean_per_s: f64,
    /// Memory.
    pub memory: Bytes,
    /// Its share of the region.
    #[schemars(extend("x-unit" = "%"))]
    pub memory_pct: f64,
    /// Its share of the region's touches.
    #[schemars(extend("x-unit" = "%"))]
    pub touches_pct: f64,
}

/// Memory of a region with about the same rate of touches at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionBand {
    /// The region.
    pub region: String,
    /// What its pages hold.
    pub kind: PageKind,
    /// Touches of a page in a second.
    pub per_s: f64,
    /// Memory.
    pub memory: Bytes,
    /// Shares of it in equally long parts of the region's addresses, at most 256, when it was first seen; absent where nothing was touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<f64>,
}

/// A part of the address space in a part of the time. Addresses without memory are left out, and every part has the
/// same memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeatCell {
    /// Its first address, in hexadecimal digits.
    pub address: String,
    /// The end of the time, in seconds.
    pub t_s: f64,
    /// Share of its allocated memory that was touched in an interval, on average.
    #[schemars(extend("x-unit" = "%"))]
    pub touched_pct: f64,
}

/// A region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileRegion {
    /// Its name.
    pub region: String,
    /// What its pages hold.
    pub kind: PageKind,
    /// The size of its pages.
    pub page: Bytes,
    /// Memory that was ever seen.
    pub memory: Bytes,
    /// The share of its memory that became hot over the profile: pages that were touched less than half as often as the
    /// region's average page and are touched more than twice as often. A page that becomes hot twice counts twice. Absent
    /// where pages were touched too rarely to tell, or the profile was too short.
    #[schemars(extend("x-unit" = "%"))]
    pub arrived_pct: Option<f64>,
}

/// A region in a part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionPart {
    /// The region.
    pub region: String,
    /// What its pages hold.
    pub kind: PageKind,
    /// The end of the part, in seconds.
    pub t_s: f64,
    /// Memory at its end.
    pub allocated: Bytes,
    /// Memory that was allocated in it, also where other memory was freed.
    pub appeared: Bytes,
    /// Touches of all its pages in a second.
    pub touches_per_s: f64,
}
