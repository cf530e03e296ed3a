//! MEMO (arXiv 2303.15375 v1): the Sapphire Rapids box with an FPGA card, prefetchers off, as its
//! tool runs unless told otherwise; thread counts and block sizes as in its sweeps. The remote
//! socket is that of a second server, of which it populates one channel.

use weir_model::access::Op;
use weir_model::units::Bytes;

use super::Rule;
use crate::reproduce::statistic::{Feature, Side, Statistic, Stream, chase_of, flushed, idle};

const BOX: &str = "memo";
const TWO_SOCKETS: &str = "memo2s";
const THREADS: &[u32] = &[
    1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32,
];

const fn curve(tier: &'static str, op: Op, feature: Feature) -> Statistic {
    Statistic::Curve(
        Stream::new(BOX, tier, op).without_prefetch(),
        THREADS,
        feature,
    )
}

const FLUSHED_RATIO: Statistic =
    Statistic::Ratio(&[flushed(BOX, "cxl0", Op::Ld), flushed(BOX, "dram", Op::Ld)]);
const CHASE_RATIO: Statistic = Statistic::Ratio(&[idle(BOX, "cxl0"), idle(BOX, "dram")]);

/// The remote socket over local memory, one flushed line at a time, by instruction.
const fn remote_ratio<const N: usize>(ops: [Op; N]) -> [[Statistic; 2]; N] {
    let mut pairs = [[CHASE_RATIO; 2]; N];
    let mut n = 0;
    while n < N {
        pairs[n] = [
            flushed(TWO_SOCKETS, "remote", ops[n]),
            flushed(BOX, "dram", ops[n]),
        ];
        n += 1;
    }
    pairs
}

const REMOTE: [[Statistic; 2]; 3] = remote_ratio([Op::Ld, Op::StClwb, Op::NtSt]);
const REMOTE_RATIOS: &[Statistic] = &[
    Statistic::Ratio(&REMOTE[0]),
    Statistic::Ratio(&REMOTE[1]),
    Statistic::Ratio(&REMOTE[2]),
];

/// Chases over working sets of so many MiB, through the remote socket and through the card.
const fn remote_and_card(mib: u64) -> (f64, [Statistic; 2]) {
    let size = Bytes::mib(mib);
    (
        mib as f64,
        [
            chase_of(TWO_SOCKETS, "remote", size),
            chase_of(BOX, "cxl0", size),
        ],
    )
}

const WORKING_SETS: &[(f64, [Statistic; 2])] = &[
    remote_and_card(1),
    remote_and_card(2),
    remote_and_card(4),
    remote_and_card(8),
    remote_and_card(16),
    remote_and_card(32),
    remote_and_card(64),
    remote_and_card(128),
    remote_and_card(256),
];

/// Non-temporal stores in blocks of so many KiB at random places of the card.
const fn blocks<const N: usize>(threads: u32, kib: [u64; N]) -> [(f64, Statistic); N] {
    let mut steps = [(0.0, CHASE_RATIO); N];
    let mut n = 0;
    while n < N {
        let stream = Stream::new(BOX, "cxl0", Op::NtSt)
            .without_prefetch()
            .in_blocks(Bytes::kib(kib[n]));
        steps[n] = (kib[n] as f64, Statistic::Bandwidth(stream, threads));
        n += 1;
    }
    steps
}

const BLOCKS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
const TWO_THREADS: &[(f64, Statistic)] = &blocks(2, BLOCKS);
const FOUR_THREADS: &[(f64, Statistic)] = &blocks(4, BLOCKS);

const RANDOM_LOADS: Stream = Stream::new(BOX, "cxl0", Op::Ld)
    .without_prefetch()
    .in_blocks(Bytes::kib(16));

pub(super) const RULES: &[Rule] = &[
    Rule::predicted("MEM-028", FLUSHED_RATIO),
    Rule::calibrated("MEM-031", CHASE_RATIO).noting(
        "no latency is printed: the platform's is set between this row, MEM-032 and SUP-053",
    ),
    Rule::predicted("MEM-029", Statistic::Least(REMOTE_RATIOS)),
    Rule::predicted("MEM-030", Statistic::Greatest(REMOTE_RATIOS))
        .noting("the paper's text is garbled there and may mean 1.27"),
    Rule::predicted(
        "MEM-032",
        Statistic::Ratio(&[idle(BOX, "cxl0"), idle(TWO_SOCKETS, "remote")]),
    ),
    Rule::predicted("MEM-033", Statistic::Above(WORKING_SETS, Side::First, "MB")),
    Rule::predicted("MEM-034", Statistic::Above(WORKING_SETS, Side::Last, "MB")),
    Rule::predicted(
        "MEM-035",
        Statistic::Ratio(&[
            flushed(BOX, "cxl0", Op::StClwb),
            flushed(BOX, "cxl0", Op::NtSt),
        ]),
    ),
    Rule::calibrated("MEM-037", curve("dram", Op::Ld, Feature::Peak)).noting(
        "prefetchers off, 16 lines in flight a core are too few for the latency under load; with them on \
         ours is 216",
    ),
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
    Rule::predicted(
        "MEM-053",
        Statistic::Curve(RANDOM_LOADS, THREADS, Feature::GainsLittlePast),
    )
    .noting("loads from the card in blocks of 16 KiB; ours is where more threads gain less than a tenth"),
    Rule::calibrated("MEM-054", Statistic::Best(TWO_THREADS, "KB")),
    Rule::calibrated("MEM-055", Statistic::Best(FOUR_THREADS, "KB"))
        .noting("4, 8 and 16 KB give the same within 0.3 %, so that chance says which is best"),
    Rule::predicted("MEM-070", Statistic::Least(&[FLUSHED_RATIO, CHASE_RATIO])),
    Rule::predicted(
        "MEM-071",
        Statistic::Greatest(&[FLUSHED_RATIO, CHASE_RATIO]),
    ),
];
