//! MEMO (arXiv 2303.15375 v1): the Sapphire Rapids server with an FPGA card, prefetchers off, as its
//! tool runs by default; thread counts and block sizes as in its sweeps. The remote socket is that of a
//! second server, which has memory on one channel.

use crate::reproduce::rule::{Figure, Rule};
use weir_model::access::{Op, Pattern};
use weir_model::units::Bytes;

use crate::reproduce::figures::{
    BEYOND_12, DECLINES_PAST, GAINS_LITTLE_PAST, PEAK, THREADS_AT_PEAK, above, bandwidth, best,
    chase_of, curve, flushed, greatest, idle, least, ratio,
};
use crate::reproduce::points::Stream;

const SERVER: &str = "memo";
const TWO_SOCKETS: &str = "memo2s";
const THREADS: &[u32] = &[
    1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32,
];

const NO_LATENCY: &str =
    "no latency is printed: the platform's is set between MEM-031, MEM-032 and SUP-053";
const GARBLED: &str = "the paper's text is garbled there and may mean 1.27";
const FEW_LINES: &str = "prefetchers off, 16 lines in flight a core are too few for the latency under load; with them on \
     ours is 216";
const FLUSHED: &str = "the time of a flushed line is assumed from this row";
const KNEE: &str = "the idle latency of local memory is assumed from this row";
const WINDOW: &str = "the reorder window of the card's controller was chosen in view of this decline; ours is the mean \
     over every count above 12 threads";
const DECLINE: &str = "the reorder window of the card's controller was chosen in view of this decline; ours is where two \
     levels fit the curve from its peak on; every count if no decline of 4 % is seen";
const SOONER: &str =
    "the stores of one core are not slowed by those of others before memory is full";
const ABOVE_MEDIA: &str =
    "above what one channel of DDR4-2666 carries, 21.3 GB/s: buffering or rounding";
const RANDOM: &str =
    "loads from the card in blocks of 16 KiB; ours is where more threads gain less than a tenth";
const ALIKE: &str = "4, 8 and 16 KB give the same within 0.3 %, so that chance says which is best";
const FLAT: &str =
    "4 and 12 threads give the same, 20.3 GB/s, so that chance says which is the peak";
const TWO_RATIOS: &str =
    "the lesser and the greater of two ratios that were set (MEM-028, MEM-031)";

/// Non-temporal stores of this many threads in blocks at random places of the card: the best block.
fn best_block(threads: u32) -> Figure {
    let blocks = [1, 2, 4, 8, 16, 32, 64].map(|kib| {
        let stream = Stream::new(SERVER, "cxl0", Op::NtSt).without_prefetch();
        let stream = stream.in_blocks(Bytes::kib(kib));
        (kib as f64, bandwidth(stream, threads))
    });
    best("KB", blocks.into())
}

pub(super) fn rules() -> Vec<Rule> {
    let of = |tier, op, feature| {
        curve(
            Stream::new(SERVER, tier, op).without_prefetch(),
            THREADS,
            feature,
        )
    };
    // One flushed line at a time.
    let line = |platform, tier, op| flushed(platform, tier, op, Pattern::FlushedLine);
    let card = |op| line(SERVER, "cxl0", op);
    let of_flushed = ratio(&card(Op::Ld), &line(SERVER, "dram", Op::Ld));
    let of_chase = ratio(&idle(SERVER, "cxl0"), &idle(SERVER, "dram"));
    let both = vec![of_flushed.clone(), of_chase.clone()];
    // The remote socket over local memory, by instruction.
    let remote = [Op::Ld, Op::StClwb, Op::NtSt];
    let remote = remote.map(|op| {
        let far = line(TWO_SOCKETS, "remote", op);
        ratio(&far, &line(SERVER, "dram", op))
    });
    let of_remote = ratio(&idle(SERVER, "cxl0"), &idle(TWO_SOCKETS, "remote"));
    // Chases through the remote socket and through the card.
    let sets = [1, 2, 4, 8, 16, 32, 64, 128, 256].map(|mib| {
        let through = |platform, tier| chase_of(platform, tier, Bytes::mib(mib));
        (
            mib as f64,
            through(TWO_SOCKETS, "remote"),
            through(SERVER, "cxl0"),
        )
    });
    let [first_set, last_set] = above("MB", &sets);
    let stores = ratio(&card(Op::StClwb), &card(Op::NtSt));
    let random = Stream::new(SERVER, "cxl0", Op::Ld).without_prefetch();
    let random = curve(random.in_blocks(Bytes::kib(16)), THREADS, GAINS_LITTLE_PAST);
    let (ld, nt_st) = (Op::Ld, Op::NtSt);
    vec![
        Rule::calibrated("MEM-028", of_flushed).noting(FLUSHED),
        Rule::calibrated("MEM-031", of_chase).noting(NO_LATENCY),
        Rule::predicted("MEM-029", least(remote.to_vec())).noting(GARBLED),
        Rule::predicted("MEM-030", greatest(remote.into())).noting(GARBLED),
        Rule::calibrated("MEM-032", of_remote).noting(NO_LATENCY),
        Rule::predicted("MEM-033", first_set),
        Rule::predicted("MEM-034", last_set),
        Rule::predicted("MEM-035", stores),
        Rule::calibrated("MEM-037", of("dram", ld, PEAK)).noting(FEW_LINES),
        Rule::calibrated("MEM-038", of("dram", ld, THREADS_AT_PEAK)).noting(KNEE),
        Rule::calibrated("MEM-039", of("dram", nt_st, PEAK)),
        Rule::predicted("MEM-040", of("dram", nt_st, THREADS_AT_PEAK)).noting(SOONER),
        Rule::predicted("MEM-042", of("cxl0", ld, THREADS_AT_PEAK)).noting(FLAT),
        Rule::calibrated("MEM-043", of("cxl0", ld, BEYOND_12)).noting(WINDOW),
        Rule::calibrated("MEM-044", of("cxl0", ld, DECLINES_PAST)).noting(DECLINE),
        Rule::predicted("MEM-045", of("cxl0", nt_st, PEAK)).noting(ABOVE_MEDIA),
        Rule::predicted("MEM-046", of("cxl0", nt_st, THREADS_AT_PEAK)),
        Rule::predicted("MEM-053", random).noting(RANDOM),
        Rule::calibrated("MEM-054", best_block(2)),
        Rule::calibrated("MEM-055", best_block(4)).noting(ALIKE),
        Rule::identity("MEM-070", least(both.clone())).noting(TWO_RATIOS),
        Rule::identity("MEM-071", greatest(both)).noting(TWO_RATIOS),
    ]
}
