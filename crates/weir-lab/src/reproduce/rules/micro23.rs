//! MEMO as published at MICRO 2023 (arXiv 2303.15375 v4): three cards beside a remote socket with
//! one channel, which customarily stands in for them.
//!
//! Efficiencies are shares of the theoretical bandwidths of the paper's Table 1. Bandwidth tests run
//! with prefetchers on, on 2 to 32 threads.

use weir_model::access::Op;
use weir_model::units::Bytes;

use super::Rule;
use crate::reproduce::statistic::{Feature, Statistic, Stream, burst, chase_of, idle};

const REMOTE: Tier = Tier("micro23", "remote", 38.4);
const A: Tier = Tier("micro23+micro23-a", "cxl0", 38.4);
const B: Tier = Tier("micro23+micro23-b", "cxl0", 38.4);
const C: Tier = Tier("micro23+micro23-c", "cxl0", 25.6);

const THREADS: &[u32] = &[2, 4, 6, 8, 12, 16, 24, 32];

/// Platform, tier and theoretical bandwidth in GB/s.
#[derive(Clone, Copy)]
struct Tier(&'static str, &'static str, f64);

impl Tier {
    const fn peak(self, op: Op) -> Statistic {
        Statistic::Curve(Stream::new(self.0, self.1, op), THREADS, Feature::Peak)
    }

    /// Sixteen accesses at once on flushed lines: what MEMO calls a latency.
    const fn at_once(self, op: Op) -> Statistic {
        burst(self.0, self.1, op, 16)
    }

    /// The chase that Intel MLC makes.
    const fn chase(self) -> Statistic {
        idle(self.0, self.1)
    }

    /// Two lines read for each that is written, as they cross the memory interface: a load to each
    /// store, which reads its line too.
    const fn two_to_one(self) -> Statistic {
        let stream = Stream::new(self.0, self.1, Op::St).mixed(1, 1);
        Statistic::Curve(stream, THREADS, Feature::Peak)
    }
}

macro_rules! efficiency {
    ($tier:expr, $op:expr) => {
        Statistic::Efficiency(&$tier.peak($op), $tier.2)
    };
}

/// The program's bytes of [`Tier::two_to_one`] are two thirds of what crosses the interface.
macro_rules! mixed_efficiency {
    ($tier:expr) => {
        Statistic::Efficiency(&$tier.two_to_one(), $tier.2 * 2.0 / 3.0)
    };
}

macro_rules! store_shortfall {
    ($id:literal, $tier:expr) => {
        Rule::predicted(
            $id,
            Statistic::ShortfallPct(&[$tier.peak(Op::St), $tier.peak(Op::Ld)]),
        )
    };
}

const OVERLAP: &str = "ours pays the coherence of flushed lines side by side; the paper's sixteen \
                       take 3.4 to 3.8 chases together";
const OWNERSHIP: &str = "a streaming write to the other socket asks its home for ownership first, which takes as long \
                         again and is not modelled";
const STORES: &str = "ours is the best thread count; what makes stores to these cards so much slower than loads \
                      is not public: their controllers take reads and writes apart here";
const FROM_IT: &str =
    "the card's idle latency is assumed from this row, as if it were one of chases";

const BUFFER: Bytes = Bytes::mib(32);

pub(super) const RULES: &[Rule] = &[
    Rule::predicted(
        "MIC-001",
        Statistic::ShortfallPct(&[REMOTE.at_once(Op::Ld), REMOTE.chase()]),
    )
    .noting(OVERLAP),
    Rule::predicted(
        "MIC-002",
        Statistic::ShortfallPct(&[A.at_once(Op::Ld), A.chase()]),
    )
    .noting(OVERLAP),
    Rule::predicted(
        "MIC-003",
        Statistic::ExcessPct(&[A.at_once(Op::Ld), REMOTE.at_once(Op::Ld)]),
    ),
    Rule::predicted(
        "MIC-004",
        Statistic::Ratio(&[B.at_once(Op::Ld), REMOTE.at_once(Op::Ld)]),
    )
    .noting(FROM_IT),
    Rule::predicted(
        "MIC-005",
        Statistic::Ratio(&[C.at_once(Op::Ld), REMOTE.at_once(Op::Ld)]),
    )
    .noting(FROM_IT),
    Rule::predicted(
        "MIC-006",
        Statistic::ExcessPct(&[C.at_once(Op::Ld), B.at_once(Op::Ld)]),
    ),
    Rule::predicted(
        "MIC-007",
        Statistic::ShortfallPct(&[A.at_once(Op::NtSt), REMOTE.at_once(Op::NtSt)]),
    )
    .noting(OWNERSHIP),
    Rule::calibrated("MIC-010", efficiency!(REMOTE, Op::Ld)),
    Rule::calibrated("MIC-011", efficiency!(A, Op::Ld)),
    Rule::calibrated("MIC-012", efficiency!(B, Op::Ld)),
    Rule::calibrated("MIC-013", efficiency!(C, Op::Ld)),
    Rule::predicted(
        "MIC-014",
        Statistic::Difference(&[mixed_efficiency!(A), mixed_efficiency!(REMOTE)]),
    ),
    store_shortfall!("MIC-020", REMOTE),
    store_shortfall!("MIC-021", A).noting(STORES),
    store_shortfall!("MIC-022", B).noting(STORES),
    store_shortfall!("MIC-023", C).noting(STORES),
    Rule::predicted(
        "MIC-024",
        Statistic::Difference(&[efficiency!(A, Op::St), efficiency!(REMOTE, Op::St)]),
    )
    .noting(STORES),
    Rule::predicted(
        "MIC-025",
        Statistic::Difference(&[efficiency!(B, Op::St), efficiency!(REMOTE, Op::St)]),
    )
    .noting(STORES),
    Rule::predicted(
        "MIC-026",
        Statistic::Difference(&[efficiency!(REMOTE, Op::NtSt), efficiency!(A, Op::NtSt)]),
    ),
    Rule::predicted(
        "MIC-027",
        Statistic::Difference(&[efficiency!(REMOTE, Op::Ld), efficiency!(A, Op::Ld)]),
    )
    .noting("non-temporal loads of ordinary memory are loads"),
    Rule::predicted("MIC-030", chase_of("micro23-snc4", "dram", BUFFER)),
    Rule::predicted(
        "MIC-031",
        chase_of("micro23-snc4+micro23-a", "cxl0", BUFFER),
    ),
];
