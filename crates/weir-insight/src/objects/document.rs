//! What is found by `weir place advise`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec};

/// Which objects of a workload may live on a slower tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceAdvice {
    /// The workload.
    pub workload: String,
    /// The tier that keeps the other objects.
    pub from: TierName,
    /// The slower tier.
    pub to: TierName,
    /// The loss that is allowed, in percent of run time; absent where memory is to be freed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_loss_pct: Option<f64>,
    /// The memory that is to be freed; absent where a loss is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<Bytes>,
    /// Its objects, those first that are worth moving most.
    pub objects: Vec<ObjectAdvice>,
    /// The placement that is advised, and others.
    pub placings: Vec<Placing>,
    /// Sets of whole objects of which none frees more for less.
    pub curve: Vec<Tradeoff>,
}

/// An object, and what to do with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectAdvice {
    /// Its name.
    pub object: String,
    /// Its size.
    pub bytes: Bytes,
    /// In which order it is touched; several where its phases differ.
    pub order: String,
    /// What it reads from memory, with everything on local memory.
    pub read_gbps: GbPerSec,
    /// What it writes to memory, likewise.
    pub write_gbps: GbPerSec,
    /// How long the cores wait for it, in percent of the run time, likewise.
    pub waits_pct: f64,
    /// How much longer the run takes with this object alone on the slower tier, in percent.
    pub alone_pct: f64,
    /// Half of the 95 % interval of that, in percent of run time, where it is expected and was not measured: by the part by
    /// which objects that were measured alone cost more or less than expected, or else as that of a placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_within_pct: Option<f64>,
    /// The share of it that is to be on the slower tier, in percent.
    pub share_pct: f64,
    /// In a word: it moves, a part moves, it stays, it never moves, or it is free to move, since the run time hardly depends on it.
    pub advice: String,
}

/// A placement of all objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Placing {
    /// The policy that places so.
    pub method: String,
    /// Which objects are on the slower tier, with their share where it is not all.
    pub moved: String,
    /// Bytes that are there.
    pub bytes: Bytes,
    /// How much longer the run is expected to take, in percent; below zero is faster.
    pub expected_pct: f64,
    /// Half of the 95 % interval of that, in percent of run time, from how far the placements that ran were from what was
    /// expected of them. Absent where the runs of both ends, or of one object alone, tell the loss, and where fewer than two others ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_pct: Option<f64>,
    /// How much longer it took; absent where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_pct: Option<f64>,
}

/// A set of objects on the slower tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tradeoff {
    /// The objects.
    pub moved: String,
    /// Bytes that are there.
    pub bytes: Bytes,
    /// The same, in percent of all objects.
    pub bytes_pct: f64,
    /// How much longer the run is expected to take, in percent.
    pub loss_pct: f64,
    /// Half of its 95 % interval, as that of a placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_pct: Option<f64>,
}
