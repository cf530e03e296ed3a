//! MIKU (arXiv 2503.17864): platform A, Emerald Rapids with two CXL devices.
//!
//! The paper interleaves pages over both devices; here each is measured separately. One thread
//! asks too little to notice; where threads saturate both, the devices' peaks are added.

use crate::reproduce::rule::{Figure, Rule};
use weir_model::access::Op;

use crate::reproduce::figures::{
    PEAK, bandwidth, curve, excess_pct, greatest, idle, least, loss_pct, quantile, ratio, reading,
    sum,
};
use crate::reproduce::points::{LINES, Stream, tor_residency};

const SERVER: &str = "miku-a";
/// One bandwidth test in the paper has 16 threads; peaks may need more or fewer.
const THREADS: &[u32] = &[2, 4, 8, 16, 24, 32];
/// Threads that overload a device (§4.2).
const OVERLOAD: u32 = 16;

const OPS: [Op; 3] = [Op::Ld, Op::St, Op::NtSt];

fn one(platform: &'static str, tier: &'static str, op: Op) -> Figure {
    bandwidth(Stream::new(platform, tier, op), 1)
}

fn stream(tier: &'static str, op: Op) -> Stream {
    Stream::new(SERVER, tier, op)
}

/// What one thread draws more from DRAM than from a device.
fn excess(platform: &'static str) -> Figure {
    let excess = |op| excess_pct(&one(platform, "dram", op), &one(platform, "cxl0", op));
    greatest(OPS.map(excess).into())
}

/// The peak of DRAM over those of both devices together.
fn peaks(op: Op) -> Figure {
    let peak = |tier| curve(stream(tier, op), THREADS, PEAK);
    ratio(&peak("dram"), &sum(vec![peak("cxl0"), peak("cxl1")]))
}

/// Residency under overload as a multiple of idle latency.
fn rise(op: Op) -> Figure {
    let held = reading("ns", stream("cxl0", op), OVERLOAD, None, tor_residency);
    ratio(&held, &idle(SERVER, "cxl0"))
}

/// Growth of the tail from one chasing thread to sixteen.
fn growth(tier: &'static str) -> Figure {
    let p99 = |threads| quantile((SERVER, tier), threads, LINES, 1, 0.99);
    excess_pct(&p99(16), &p99(1))
}

/// What 16 threads on DRAM lose to 16 on one device that do the same (§4.2).
fn loss(op: Op) -> Figure {
    loss_pct(stream("dram", op), stream("cxl0", op), (16, 16))
}

const ONE_DEVICE: &str = "the greatest of ld, st and nt_st, against one CXL device";
const LINK: &str = "above what the write link of a core complex carries, 28.8 GB/s: a wider link, or lines of one \
         value that the fabric does not move";
const ADDED: &str = "the peaks of the two devices are added; the paper interleaves pages over them";
const TAIL: &str =
    "p99 of a chase's hops, 16 threads over one, the greater of DRAM and one CXL device";
const LOSS: &str =
    "the greatest of ld, st and nt_st, with one device; the paper interleaves pages over two";
const RISE: &str = "residency in the Table of Requests over idle chase latency; ld, st and nt_st, 16 threads on \
     one device";

pub(super) fn rules() -> Vec<Rule> {
    let losses = greatest(OPS.map(loss).into());
    vec![
        Rule::predicted("MIK-026", excess(SERVER)).noting(ONE_DEVICE),
        Rule::predicted("MIK-027", excess("miku-b")).noting(ONE_DEVICE),
        Rule::calibrated("MIK-028", one(SERVER, "dram", Op::NtSt)),
        Rule::predicted("MIK-029", one("miku-b", "dram", Op::NtSt)).noting(LINK),
        Rule::predicted("MIK-030", greatest([Op::Ld, Op::NtSt].map(peaks).into())).noting(ADDED),
        Rule::predicted("MIK-031", greatest(["dram", "cxl0"].map(growth).into())).noting(TAIL),
        Rule::predicted("MIK-036", losses.clone()).noting(LOSS),
        Rule::predicted("MIK-037", losses).noting(LOSS),
        Rule::predicted("MIK-032", least(OPS.map(rise).into())).noting(RISE),
        Rule::predicted("MIK-033", greatest(OPS.map(rise).into())).noting(RISE),
    ]
}
