//! MEMO (arXiv 2303.15375 v1): the Sapphire Rapids box with an FPGA card, prefetchers off, as its
//! tool runs unless told otherwise; thread counts as in its sweeps.

use weir_model::access::Op;

use super::Rule;
use crate::reproduce::statistic::{Feature, Statistic, Stream, flushed, idle};

const BOX: &str = "memo";
const THREADS: &[u32] = &[
    1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32,
];

const fn curve(tier: &'static str, op: Op, feature: Feature) -> Statistic {
    Statistic::Curve(
        Stream {
            platform: BOX,
            tier,
            op,
            prefetch: false,
        },
        THREADS,
        feature,
    )
}

const FLUSHED_RATIO: Statistic =
    Statistic::Ratio(&[flushed(BOX, "cxl0", Op::Ld), flushed(BOX, "dram", Op::Ld)]);
const CHASE_RATIO: Statistic = Statistic::Ratio(&[idle(BOX, "cxl0"), idle(BOX, "dram")]);

pub(super) const RULES: &[Rule] = &[
    Rule::predicted("MEM-028", FLUSHED_RATIO),
    Rule::calibrated("MEM-031", CHASE_RATIO).noting(
        "no latency is printed: the platform's is set between this row, MEM-032 and SUP-053",
    ),
    Rule::predicted(
        "MEM-035",
        Statistic::Ratio(&[
            flushed(BOX, "cxl0", Op::StClwb),
            flushed(BOX, "cxl0", Op::NtSt),
        ]),
    ),
    Rule::calibrated("MEM-037", curve("dram", Op::Ld, Feature::Peak)),
    Rule::predicted("MEM-038", curve("dram", Op::Ld, Feature::ThreadsAtPeak)),
    Rule::calibrated("MEM-039", curve("dram", Op::NtSt, Feature::Peak)),
    Rule::predicted("MEM-040", curve("dram", Op::NtSt, Feature::ThreadsAtPeak)),
    Rule::predicted("MEM-042", curve("cxl0", Op::Ld, Feature::ThreadsAtPeak)),
    Rule::predicted("MEM-043", curve("cxl0", Op::Ld, Feature::Beyond(12)))
        .noting("ours is the mean over every count above 12 threads"),
    Rule::predicted("MEM-044", curve("cxl0", Op::Ld, Feature::DeclinesPast))
        .noting("ours is where two levels fit the curve from its peak on; every count if no decline of 4 % is seen"),
    Rule::predicted("MEM-045", curve("cxl0", Op::NtSt, Feature::Peak))
        .noting("above what one channel of DDR4-2666 carries, 21.3 GB/s: buffering or rounding"),
    Rule::predicted("MEM-046", curve("cxl0", Op::NtSt, Feature::ThreadsAtPeak)),
    Rule::predicted("MEM-070", Statistic::Least(&[FLUSHED_RATIO, CHASE_RATIO])),
    Rule::predicted(
        "MEM-071",
        Statistic::Greatest(&[FLUSHED_RATIO, CHASE_RATIO]),
    ),
];
