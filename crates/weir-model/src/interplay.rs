//! Who hurts whom: the matrix of victims and aggressors, as documents carry it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Op;
use crate::document::Steadiness;
use crate::topology::TierName;
use crate::units::{GbPerSec, Nanos};

/// A side of a pair: an instruction or request, and the tier it goes to.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(extend("x-words" = {"tier": "", "op": ":", "from": ":", "socket": "@", "host": "@host"}))]
pub struct TierOp {
    /// The tier.
    pub tier: TierName,
    /// The instruction.
    pub op: Op,
    /// Where the lines come from that the instruction writes, if it copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<TierName>,
    /// The socket that its threads are on: 0 for the one whose DRAM is tier `dram`, and absent then.
    #[serde(default, skip_serializing_if = "crate::topology::is_first")]
    pub socket: u32,
    /// The host that its threads are on, of a model of several: 0 for the first, and absent then.
    #[serde(default, skip_serializing_if = "crate::topology::is_first")]
    pub host: u32,
}

/// `dram:nt_st`, or `dram:movdir64b:cxl0` for a copy from `cxl0`; `remote:nt_st@1` for threads on the
/// other socket, `cxl0:nt_st@host1` for threads of the next host.
impl fmt::Display for TierOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{}:{}", self.tier, self.op);
        if let Some(from) = &self.from {
            text.push_str(&format!(":{from}"));
        }
        if self.socket > 0 {
            text.push_str(&format!("@{}", self.socket));
        }
        if self.host > 0 {
            text.push_str(&format!("@host{}", self.host));
        }
        f.pad(&text)
    }
}

impl FromStr for TierOp {
    type Err = String;

    /// Reads `TIER:OP` and `TIER:OP:SOURCE`, either with `@SOCKET` or `@hostN` behind.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no tenant: write TIER:OP, such as dram:ld, or TIER:OP:SOURCE for a copy"
            )
        };
        let (text, Seat { socket, host }) = split_seat(text)?;
        let parts: Vec<&str> = text.split(':').collect();
        let (tier, op, from) = match parts[..] {
            [tier, op] => (tier, op, None),
            [tier, op, from] if !from.is_empty() => (tier, op, Some(TierName::named(from))),
            _ => return Err(wrong()),
        };
        if tier.is_empty() {
            return Err(wrong());
        }
        let op = op.parse().map_err(|error| format!("{error}"))?;
        let tier = TierName::named(tier);
        Ok(Self {
            tier,
            op,
            from,
            socket,
            host,
        })
    }
}

/// Which cores a tenant has: those of a socket of the first host, or those of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seat {
    /// The socket.
    pub socket: u32,
    /// The host.
    pub host: u32,
}

/// Takes `@SOCKET` or `@hostN` off the end of a tenant's name; without it the tenant is on the first.
///
/// # Errors
/// What stands there is neither.
pub fn split_seat(text: &str) -> Result<(&str, Seat), String> {
    let Some((name, place)) = text.split_once('@') else {
        return Ok((text, Seat::default()));
    };
    let host = place.strip_prefix("host").and_then(|n| n.parse().ok());
    let seat = match (place, host) {
        ("0" | "1", _) => Seat {
            socket: u32::from(place == "1"),
            host: 0,
        },
        (_, Some(host)) => Seat { socket: 0, host },
        _ => {
            return Err(format!(
                "`@{place}` of `{text}` is no socket and no host: tenants are on socket 0, whose DRAM is tier dram, \
                 on @1, or on @host1 of a model of several hosts"
            ));
        }
    };
    Ok((name, seat))
}

crate::named! {
    /// How far a bandwidth moved, in the classes of CXL-Interplay (Table III): suppression is a loss of
    /// more than 40 % (deep), 10 to 40 % (moderate) or 5 to 10 % (mild); promotion is the same upwards.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ChangeClass {
        /// Below -40 %.
        DeepSuppression = "deep suppression",
        /// -40 to -10 %.
        ModerateSuppression = "moderate suppression",
        /// -10 to -5 %.
        MildSuppression = "mild suppression",
        /// Within 5 %.
        None = "none",
        /// 5 to 10 %.
        MildPromotion = "mild promotion",
        /// 10 to 40 %.
        ModeratePromotion = "moderate promotion",
        /// Above 40 %.
        DeepPromotion = "deep promotion",
    }
}

impl ChangeClass {
    /// The class of a change in percent. A boundary belongs to the class nearer to none.
    pub fn of(change_pct: f64) -> Self {
        let (mild, moderate, deep) = match change_pct {
            c if c < 0.0 => (
                ChangeClass::MildSuppression,
                ChangeClass::ModerateSuppression,
                ChangeClass::DeepSuppression,
            ),
            _ => (
                ChangeClass::MildPromotion,
                ChangeClass::ModeratePromotion,
                ChangeClass::DeepPromotion,
            ),
        };
        match change_pct.abs() {
            size if size > 40.0 => deep,
            size if size > 10.0 => moderate,
            size if size > 5.0 => mild,
            _ => ChangeClass::None,
        }
    }

    /// How many classes lie between two, 0 if they are the same.
    pub fn distance(self, other: Self) -> u32 {
        (self as u32).abs_diff(other as u32)
    }
}

/// Thread counts of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct At {
    /// Threads of the victim.
    pub victim_threads: u32,
    /// Threads of the aggressor.
    pub aggressor_threads: u32,
    /// How long each of its threads pauses between two lines, in ns.
    #[serde(default)]
    pub aggressor_pause_ns: Nanos,
    /// Ways of the last-level cache that the victim's lines could fill, a bit each; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victim_ways: Option<u32>,
    /// Those of the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressor_ways: Option<u32>,
}

/// What an aggressor does to a victim: the change of largest magnitude over all thread counts, which
/// is the paper's rule (CXL-Interplay §III-B).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-intervals" = {"change_pct": "change_ci95"}))]
pub struct Cell {
    /// Whose bandwidth it is about.
    pub victim: TierOp,
    /// What runs with it.
    pub aggressor: TierOp,
    /// The victim's bandwidth alone, in GB/s, with as many threads as with the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solo_gbps: Option<GbPerSec>,
    /// With the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corun_gbps: Option<GbPerSec>,
    /// (corun - solo) / solo, in percent; from six repetitions on the median over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_pct: Option<f64>,
    /// How far the change's 95 % interval reaches to the side where it is wider, in percentage points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_ci95: Option<f64>,
    /// Its class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ChangeClass>,
    /// Whether repetitions leave one class only: the intervals of all thread counts at which the change may be
    /// the largest stay in it. It is false where nothing was repeated.
    #[serde(default)]
    pub certain: bool,
    /// How often both sides were measured at the thread counts of the cell, the lesser of both.
    #[serde(default)]
    pub repetitions: u32,
    /// The classes that these intervals reach, from loss to gain, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ChangeClass>,
    /// The thread counts at which the change is largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
    /// What the aggressor drew there, in GB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressor_gbps: Option<GbPerSec>,
    /// How far that is from what it draws alone, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressor_change_pct: Option<f64>,
    /// What a request to the victim's tier takes meanwhile: a hop of a chase in memory; to a storage
    /// device one of the victim's own requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<CellLatency>,
    /// How the repetitions of the victim's figures agree, the worse of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadiness: Option<Steadiness>,
    /// What counters say, alone and together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// Where requests wait, alone and together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueFill>,
    /// Why, as far as the counters tell.
    pub verdict: Reason,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Cell {
    /// Whether repetitions disagree so much that the change is no figure to rely on.
    pub fn is_unstable(&self) -> bool {
        matches!(
            self.steadiness,
            Some(Steadiness::Noisy | Steadiness::Bimodal | Steadiness::Drifting)
        )
    }

    /// Whether it has a change whose class repetitions leave open.
    pub fn is_uncertain(&self) -> bool {
        self.change_pct.is_some() && !self.certain
    }

    /// Its class in words: `none`, `uncertain between mild suppression and none`, or `uncertain` where nothing
    /// was repeated.
    pub fn describe_class(&self) -> String {
        match (self.classes.first(), self.classes.last()) {
            (Some(low), Some(high)) if self.is_uncertain() => {
                format!("uncertain between {low} and {high}")
            }
            _ if self.is_uncertain() => "uncertain: measured once".to_owned(),
            _ => self
                .class
                .map_or_else(String::new, |class| class.to_string()),
        }
    }
}

/// Latency of timed accesses. In a cell that of a lone pointer chase in the victim's tier, which is what
/// a service that waits for memory feels; of a storage device that of the victim's requests, from submission
/// to completion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellLatency {
    /// Mean with nothing else on the machine.
    pub solo_mean: Nanos,
    /// 99th percentile with nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solo_p99: Option<Nanos>,
    /// Mean with the aggressor.
    pub corun_mean: Nanos,
    /// 99th percentile with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corun_p99: Option<Nanos>,
}

/// One pair of thread counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SurfacePoint {
    /// Whose bandwidth it is about.
    pub victim: TierOp,
    /// What runs with it.
    pub aggressor: TierOp,
    /// Their threads.
    pub at: At,
    /// The victim's bandwidth alone, in GB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solo_gbps: Option<GbPerSec>,
    /// With the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corun_gbps: Option<GbPerSec>,
    /// (corun - solo) / solo, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_pct: Option<f64>,
    /// The aggressor's bandwidth alone, in GB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressor_solo_gbps: Option<GbPerSec>,
    /// With the victim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressor_gbps: Option<GbPerSec>,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What timed accesses take with one aggressor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimedPoint {
    /// The tier that is timed.
    pub tier: TierName,
    /// What is timed: `chase_tlb_friendly`, one thread that chases pointers; `shared_line`, two cores that
    /// take turns on one line by compare-and-swap, one way.
    pub pattern: String,
    /// The socket of the accesses that are timed; absent for the first.
    #[serde(default, skip_serializing_if = "crate::topology::is_first")]
    pub socket: u32,
    /// Their host; absent for the first.
    #[serde(default, skip_serializing_if = "crate::topology::is_first")]
    pub host: u32,
    /// Whether the line is handed over between cores of two sockets; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub across: bool,
    /// What runs with it.
    pub aggressor: TierOp,
    /// The aggressor's threads.
    pub aggressor_threads: u32,
    /// How long each of them pauses between two lines, in ns.
    #[serde(default)]
    pub aggressor_pause_ns: Nanos,
    /// Alone and together.
    pub ns: CellLatency,
}

/// One quantity alone and together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// A counter's portable name, per second, or the name of a quantity made from some.
    pub name: String,
    /// Alone, in `unit`.
    pub solo: f64,
    /// With the aggressor.
    pub corun: f64,
    /// corun / solo; absent where solo is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// `1/us`, `ns`, `GB/s`, `share`, `B` of the last-level cache.
    pub unit: String,
}

/// How many requests are in one place on average. A place lies within those before it: what a memory
/// holds has its entry in a table, and what is no posted write its buffer at a core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFill {
    /// The place: `LFB victim` and `LFB aggressor` (buffers of their cores), `IRQ`; `ToR hit`, `ToR dram`,
    /// `ToR cxl`, `ToR remote` (entries by what they wait for); `memory dram` (queues of its channels),
    /// `memory cxl` (inside devices).
    pub place: String,
    /// Requests there while the victim is alone.
    pub solo: f64,
    /// Requests there with the aggressor.
    pub corun: f64,
}

crate::named! {
    /// Where in the machine a change comes from.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Cause {
        /// The victim is as well off as alone.
        Unharmed = "unharmed",
        /// Repetitions leave open whether the victim loses.
        Uncertain = "uncertain",
        /// Slow requests fill the Table of Requests and the ingress queues before it.
        TorCongestion = "ToR/IRQ congestion",
        /// The device that both use has no more to give.
        DeviceSaturation = "device saturation",
        /// DRAM channels have no more to give.
        DdrSaturation = "DDR saturation",
        /// The victim lost its lines in the last-level cache.
        LlcCapacity = "LLC capacity",
        /// A link is full.
        Link = "link saturation",
        /// Kernel copies, or the storage device.
        StoragePath = "storage path",
        /// The evidence fits no rule, or there is none.
        Undetermined = "undetermined",
    }
}

impl Cause {
    /// Whether it says where a change comes from.
    pub const fn is_one(self) -> bool {
        !matches!(
            self,
            Cause::Unharmed | Cause::Uncertain | Cause::Undetermined
        )
    }
}

/// Why a victim is slower, with what speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The cause.
    pub cause: Cause,
    /// What was seen, a sentence each.
    pub evidence: Vec<String>,
    /// What could not be seen, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_larger_change_is_never_in_a_lower_class(a in -100.0f64..300.0, b in -100.0f64..300.0) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(ChangeClass::of(low) <= ChangeClass::of(high));
        }
    }

    #[test]
    fn classes_are_the_papers() {
        let classes = [-92.9, -40.0, -20.2, -7.0, -3.1, 0.3, 7.3, 14.8, 60.0].map(ChangeClass::of);
        assert_eq!(
            classes,
            [
                ChangeClass::DeepSuppression,
                ChangeClass::ModerateSuppression,
                ChangeClass::ModerateSuppression,
                ChangeClass::MildSuppression,
                ChangeClass::None,
                ChangeClass::None,
                ChangeClass::MildPromotion,
                ChangeClass::ModeratePromotion,
                ChangeClass::DeepPromotion,
            ]
        );
        // A boundary belongs to the class nearer to none.
        for (boundary, class) in [
            (5.0, ChangeClass::None),
            (10.0, ChangeClass::MildPromotion),
            (40.0, ChangeClass::ModeratePromotion),
        ] {
            assert_eq!(ChangeClass::of(boundary), class);
            assert_eq!(ChangeClass::of(-boundary) as u32, 6 - class as u32);
        }
        for (at, class) in ChangeClass::ALL.into_iter().enumerate() {
            assert_eq!(class.distance(ChangeClass::DeepSuppression), at as u32);
        }
    }

    #[test]
    fn a_participant_is_a_tier_and_an_instruction() {
        let tier_op: TierOp = "cxl0:nt-st".parse().unwrap();
        assert_eq!(tier_op.to_string(), "cxl0:nt_st");
        let copy: TierOp = "dram:movdir64b:cxl0".parse().unwrap();
        assert_eq!(copy.to_string().parse(), Ok(copy));
        let beyond: TierOp = "cxl1:nt_st@1".parse().unwrap();
        assert_eq!((beyond.socket, beyond.to_string().parse()), (1, Ok(beyond)));
        let neighbour: TierOp = "cxl0:nt_st@host3".parse().unwrap();
        assert_eq!((neighbour.socket, neighbour.host), (0, 3));
        assert_eq!(neighbour.to_string().parse(), Ok(neighbour));
        for text in [
            "a:ld@2",
            "a:ld@host",
            "a:ld@host-1",
            "a:ld@",
            "a:ld@1@1",
            "cxl0",
            ":ld",
            "cxl0:",
            "cxl0:jump",
            "a:ld:",
            "a:ld:b:c",
        ] {
            assert!(text.parse::<TierOp>().is_err(), "{text}");
        }
    }
}
