//! MIKU (arXiv 2503.17864): platform A, Emerald Rapids with two CXL devices.
//!
//! The paper interleaves pages over both devices; here each is measured by itself. One thread
//! asks too little to notice; where threads saturate both, the devices' peaks are added.

use weir_model::access::Op;

use super::Rule;
use crate::reproduce::statistic::{Feature, Pair, Statistic, Stream, idle, tail};

const SERVER: &str = "miku-a";
/// Threads of one bandwidth test in the paper are 16; peaks may need more or fewer.
const THREADS: &[u32] = &[2, 4, 8, 16, 24, 32];
/// Threads that overload a device (§4.2).
const OVERLOAD: u32 = 16;

const fn stream(tier: &'static str, op: Op) -> Stream {
    Stream::new(SERVER, tier, op)
}

const fn one(tier: &'static str, op: Op) -> Statistic {
    Statistic::Bandwidth(stream(tier, op), 1)
}

/// One thread on platform B.
const fn genoa(tier: &'static str, op: Op) -> Statistic {
    Statistic::Bandwidth(Stream::new("miku-b", tier, op), 1)
}

const fn peak(tier: &'static str, op: Op) -> Statistic {
    Statistic::Curve(stream(tier, op), THREADS, Feature::Peak)
}

const fn held(op: Op) -> Statistic {
    Statistic::TorResidencyCxl(stream("cxl0", op), OVERLOAD)
}

const IDLE: Statistic = idle(SERVER, "cxl0");

/// Residency under overload as a multiple of idle latency.
const RISE: &[Statistic] = &[
    Statistic::Ratio(&[held(Op::Ld), IDLE]),
    Statistic::Ratio(&[held(Op::St), IDLE]),
    Statistic::Ratio(&[held(Op::NtSt), IDLE]),
];

/// What 16 threads on DRAM lose to 16 on one device that do the same (§4.2).
const fn loss(op: Op) -> Statistic {
    let pair = Pair {
        victim: stream("dram", op),
        aggressor: stream("cxl0", op),
    };
    Statistic::LossPct(pair, (16, 16))
}

const LOSSES: &[Statistic] = &[loss(Op::Ld), loss(Op::St), loss(Op::NtSt)];

const LOSS_NOTE: &str =
    "the greatest of ld, st and nt_st, beside one device; the paper interleaves pages over two";

const RISE_NOTE: &str = "residency in the Table of Requests over idle chase latency; ld, st and nt_st, 16 threads on \
     one device";

/// Growth of the tail from one chasing thread to sixteen.
const fn growth(tails: &'static [Statistic; 2]) -> Statistic {
    Statistic::ExcessPct(tails)
}

pub(super) const RULES: &[Rule] = &[
    Rule::predicted(
        "MIK-026",
        Statistic::Greatest(&[
            Statistic::ExcessPct(&[one("dram", Op::Ld), one("cxl0", Op::Ld)]),
            Statistic::ExcessPct(&[one("dram", Op::St), one("cxl0", Op::St)]),
            Statistic::ExcessPct(&[one("dram", Op::NtSt), one("cxl0", Op::NtSt)]),
        ]),
    )
    .noting("the greatest of ld, st and nt_st, against one CXL device"),
    Rule::predicted(
        "MIK-027",
        Statistic::Greatest(&[
            Statistic::ExcessPct(&[genoa("dram", Op::Ld), genoa("cxl0", Op::Ld)]),
            Statistic::ExcessPct(&[genoa("dram", Op::St), genoa("cxl0", Op::St)]),
            Statistic::ExcessPct(&[genoa("dram", Op::NtSt), genoa("cxl0", Op::NtSt)]),
        ]),
    )
    .noting("the greatest of ld, st and nt_st, against one CXL device"),
    Rule::calibrated("MIK-028", one("dram", Op::NtSt)),
    Rule::predicted("MIK-029", genoa("dram", Op::NtSt)).noting(
        "above what the write link of a core complex carries, 28.8 GB/s: a wider link, or lines of one \
         value that the fabric does not move",
    ),
    Rule::predicted(
        "MIK-030",
        Statistic::Greatest(&[
            Statistic::Ratio(&[
                peak("dram", Op::Ld),
                Statistic::Sum(&[peak("cxl0", Op::Ld), peak("cxl1", Op::Ld)]),
            ]),
            Statistic::Ratio(&[
                peak("dram", Op::NtSt),
                Statistic::Sum(&[peak("cxl0", Op::NtSt), peak("cxl1", Op::NtSt)]),
            ]),
        ]),
    )
    .noting("the peaks of the two devices are added; the paper interleaves pages over them"),
    Rule::predicted(
        "MIK-031",
        Statistic::Greatest(&[
            growth(&[tail(SERVER, "dram", 16, 0.99), tail(SERVER, "dram", 1, 0.99)]),
            growth(&[tail(SERVER, "cxl0", 16, 0.99), tail(SERVER, "cxl0", 1, 0.99)]),
        ]),
    )
    .noting("p99 of a chase's hops, 16 threads over one, the greater of DRAM and one CXL device"),
    Rule::predicted("MIK-036", Statistic::Greatest(LOSSES)).noting(LOSS_NOTE),
    Rule::predicted("MIK-037", Statistic::Greatest(LOSSES)).noting(LOSS_NOTE),
    Rule::predicted("MIK-032", Statistic::Least(RISE)).noting(RISE_NOTE),
    Rule::predicted("MIK-033", Statistic::Greatest(RISE)).noting(RISE_NOTE),
];
