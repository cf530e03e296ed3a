//! MEMO as published at MICRO 2023 (arXiv 2303.15375 v4): three cards, and a remote socket with one
//! channel, which is often used in their place.
//!
//! Efficiencies are shares of the theoretical bandwidths of the paper's Table 1. Bandwidth tests run
//! with prefetchers on, on 2 to 32 threads.

use crate::reproduce::rule::{Figure, Rule};
use weir_model::access::{Op, Pattern};
use weir_model::units::Bytes;

use crate::reproduce::figures::{
    PEAK, chase_of, curve, difference, efficiency, excess_pct, flushed, idle, ratio, shortfall_pct,
};
use crate::reproduce::points::Stream;

const REMOTE: Tier = Tier("micro23", "remote", 38.4);
const A: Tier = Tier("micro23+micro23-a", "cxl0", 38.4);
const B: Tier = Tier("micro23+micro23-b", "cxl0", 38.4);
const C: Tier = Tier("micro23+micro23-c", "cxl0", 25.6);

const THREADS: &[u32] = &[2, 4, 6, 8, 12, 16, 24, 32];

/// Platform, tier and theoretical bandwidth in GB/s.
#[derive(Clone, Copy)]
struct Tier(&'static str, &'static str, f64);

impl Tier {
    fn peak(self, op: Op) -> Figure {
        curve(Stream::new(self.0, self.1, op), THREADS, PEAK)
    }

    fn efficiency(self, op: Op) -> Figure {
        efficiency(self.peak(op), self.2)
    }

    /// Efficiency where two lines are read for each that is written, as they cross the memory
    /// interface: a load to each store, which reads its line too. The program's bytes are two thirds of
    /// what crosses.
    fn mixed_efficiency(self) -> Figure {
        let stream = Stream {
            reads: Some((1, 1)),
            ..Stream::new(self.0, self.1, Op::St)
        };
        efficiency(curve(stream, THREADS, PEAK), self.2 * 2.0 / 3.0)
    }

    /// Sixteen accesses at once on flushed lines: what MEMO calls a latency.
    fn at_once(self, op: Op) -> Figure {
        flushed(self.0, self.1, op, Pattern::FlushedBurst { lines: 16 })
    }

    /// How much less an access takes of sixteen at once than one of the chase that Intel MLC makes.
    fn below_chase(self) -> Figure {
        shortfall_pct(&self.at_once(Op::Ld), &idle(self.0, self.1))
    }

    fn stores_below_loads(self) -> Figure {
        shortfall_pct(&self.peak(Op::St), &self.peak(Op::Ld))
    }

    /// Points of efficiency by which it is above another.
    fn above(self, other: Tier, op: Op) -> Figure {
        difference(&self.efficiency(op), &other.efficiency(op))
    }
}

const OVERLAP: &str = "the idle latency of card A is assumed from MIC-001 to MIC-003; ours pays the coherence of flushed lines \
     side by side; the paper's sixteen take 3.4 to 3.8 chases together";
const FROM_IT: &str =
    "the card's idle latency is assumed from this row, as if it were one of chases";
const FROM_BOTH: &str =
    "follows from MIC-004 and MIC-005, from which both idle latencies are assumed";
const OWNERSHIP: &str = "a streaming write to the other socket asks its home for ownership first, which takes as long \
                         again and is not modelled";
const UNASKED: &str = "a streaming write to the other socket asks its home for ownership first, which is not modelled and would \
                       take bandwidth from it";
const STORES: &str = "ours is the best thread count; what makes stores to these cards so much slower than loads \
                      is not public: their controllers take reads and writes apart here";
const LOADS: &str =
    "follows from MIC-010 and MIC-011; non-temporal loads of ordinary memory are loads";

const LEAST_RECENT: &str = "a chase comes back to a line after all others; with least-recently-used replacement the 15 MB of a cluster keep none \
     of 32. 76.8 ns would be three hits in ten; the processor's replacement is not public";

const BUFFER: Bytes = Bytes::mib(32);

pub(super) fn rules() -> Vec<Rule> {
    let loads = |tier: Tier| tier.at_once(Op::Ld);
    let stores = [A, REMOTE].map(|tier| tier.at_once(Op::NtSt));
    let buffer = |platform, tier| chase_of(platform, tier, BUFFER);
    let mixed = difference(&A.mixed_efficiency(), &REMOTE.mixed_efficiency());
    vec![
        Rule::calibrated("MIC-001", REMOTE.below_chase()).noting(OVERLAP),
        Rule::calibrated("MIC-002", A.below_chase()).noting(OVERLAP),
        Rule::calibrated("MIC-003", excess_pct(&loads(A), &loads(REMOTE))).noting(OVERLAP),
        Rule::calibrated("MIC-004", ratio(&loads(B), &loads(REMOTE))).noting(FROM_IT),
        Rule::calibrated("MIC-005", ratio(&loads(C), &loads(REMOTE))).noting(FROM_IT),
        Rule::identity("MIC-006", excess_pct(&loads(C), &loads(B))).noting(FROM_BOTH),
        Rule::predicted("MIC-007", shortfall_pct(&stores[0], &stores[1])).noting(OWNERSHIP),
        Rule::calibrated("MIC-010", REMOTE.efficiency(Op::Ld)),
        Rule::calibrated("MIC-011", A.efficiency(Op::Ld)),
        Rule::calibrated("MIC-012", B.efficiency(Op::Ld)),
        Rule::calibrated("MIC-013", C.efficiency(Op::Ld)),
        Rule::predicted("MIC-014", mixed),
        Rule::predicted("MIC-020", REMOTE.stores_below_loads()),
        Rule::predicted("MIC-021", A.stores_below_loads()).noting(STORES),
        Rule::predicted("MIC-022", B.stores_below_loads()).noting(STORES),
        Rule::predicted("MIC-023", C.stores_below_loads()).noting(STORES),
        Rule::predicted("MIC-024", A.above(REMOTE, Op::St)).noting(STORES),
        Rule::predicted("MIC-025", B.above(REMOTE, Op::St)).noting(STORES),
        Rule::predicted("MIC-026", REMOTE.above(A, Op::NtSt)).noting(UNASKED),
        Rule::identity("MIC-027", REMOTE.above(A, Op::Ld)).noting(LOADS),
        Rule::predicted("MIC-030", buffer("micro23-snc4", "dram")).noting(LEAST_RECENT),
        Rule::predicted("MIC-031", buffer("micro23-snc4+micro23-a", "cxl0")),
    ]
}
