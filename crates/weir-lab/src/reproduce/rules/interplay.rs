//! CXL-Interplay (DAC 2025, arXiv 2411.18308): Table III, the cells of memory beside memory on system A
//! and of CXL beside its drive; storage beside non-temporal stores to CXL on system B.
//!
//! Each cell is the extreme over thread counts. The paper does not say which counts; these are the
//! ones that `weir interplay` takes.

use weir_model::access::Op;

use super::Rule;
use crate::reproduce::statistic::{Pair, Statistic, Stream};

const SERVER: &str = "interplay-a";
const THREADS: &[u32] = &[1, 4, 8, 16];

const fn cell(
    id: &'static str,
    victim: &'static str,
    op: Op,
    aggressor: &'static str,
    beside: Op,
) -> Rule {
    let pair = Pair {
        victim: Stream::new(SERVER, victim, op),
        aggressor: Stream::new(SERVER, aggressor, beside),
    };
    Rule::predicted(id, Statistic::ExtremeChangePct(pair, THREADS))
}

/// CXL beside the drive of system A.
const fn beside_storage(id: &'static str, op: Op, requests: Op) -> Rule {
    let pair = Pair {
        victim: Stream::new(SERVER, "cxl0", op),
        aggressor: Stream::requests(SERVER, "ssd0", requests),
    };
    Rule::predicted(id, Statistic::ExtremeChangePct(pair, THREADS))
        .noting("which of the two columns is random reads is lost; taken as the first")
}

/// The drive of system B beside non-temporal stores to CXL.
const fn storage(op: Op) -> Pair {
    Pair {
        victim: Stream::requests("interplay-b", "ssd0", op),
        aggressor: Stream::new("interplay-b", "cxl0", Op::NtSt),
    }
}

/// And the other way round, sixteen threads each (§III-C).
const CROSS_CHECK: Pair = Pair {
    victim: Stream::new("interplay-b", "cxl0", Op::NtSt),
    aggressor: Stream::requests("interplay-b", "ssd0", Op::RandWrite),
};

/// Every pair of thread counts.
const PAIRS: usize = THREADS.len() * THREADS.len();

/// The losses of a drive, pair by pair.
const fn losses(op: Op) -> [Statistic; PAIRS] {
    let mut losses = [Statistic::LossPct(storage(op), (1, 1)); PAIRS];
    let mut i = 0;
    while i < PAIRS {
        let threads = (THREADS[i / THREADS.len()], THREADS[i % THREADS.len()]);
        losses[i] = Statistic::LossPct(storage(op), threads);
        i += 1;
    }
    losses
}

const IN_ORDER: &[Statistic] = &losses(Op::SeqWrite);
const AT_RANDOM: &[Statistic] = &losses(Op::RandWrite);

const L2_MISSES: &str = "of the kernel's lines; sixteen threads each, as the paper's cross-check";

const L3_ACCESSES: &str = "of the lines that the kernel's threads touch for requests; sixteen threads each, as the paper's cross-check";

pub(super) const RULES: &[Rule] = &[
    cell("INT-025", "dram", Op::Ld, "cxl0", Op::Ld),
    cell("INT-026", "dram", Op::Ld, "cxl0", Op::St),
    cell("INT-027", "dram", Op::Ld, "cxl0", Op::NtSt),
    cell("INT-028", "dram", Op::St, "cxl0", Op::Ld),
    cell("INT-029", "dram", Op::St, "cxl0", Op::St),
    cell("INT-030", "dram", Op::St, "cxl0", Op::NtSt),
    cell("INT-031", "dram", Op::NtSt, "cxl0", Op::Ld),
    cell("INT-032", "dram", Op::NtSt, "cxl0", Op::St),
    cell("INT-033", "dram", Op::NtSt, "cxl0", Op::NtSt),
    cell("INT-034", "cxl0", Op::Ld, "dram", Op::Ld),
    cell("INT-035", "cxl0", Op::Ld, "dram", Op::St),
    cell("INT-036", "cxl0", Op::Ld, "dram", Op::NtSt),
    cell("INT-037", "cxl0", Op::St, "dram", Op::Ld),
    cell("INT-038", "cxl0", Op::St, "dram", Op::St),
    cell("INT-039", "cxl0", Op::St, "dram", Op::NtSt),
    cell("INT-040", "cxl0", Op::NtSt, "dram", Op::Ld),
    cell("INT-041", "cxl0", Op::NtSt, "dram", Op::St),
    cell("INT-042", "cxl0", Op::NtSt, "dram", Op::NtSt),
    beside_storage("INT-043", Op::Ld, Op::RandRead),
    beside_storage("INT-044", Op::Ld, Op::RandWrite),
    beside_storage("INT-045", Op::St, Op::RandRead),
    beside_storage("INT-046", Op::St, Op::RandWrite),
    beside_storage("INT-047", Op::NtSt, Op::RandRead),
    beside_storage("INT-048", Op::NtSt, Op::RandWrite),
    Rule::predicted(
        "INT-075",
        Statistic::L2MissFactor(storage(Op::RandWrite), (16, 16)),
    )
    .noting(L2_MISSES),
    Rule::predicted(
        "INT-076",
        Statistic::L3AccessFactor(storage(Op::RandWrite), (16, 16)),
    )
    .noting(L3_ACCESSES),
    Rule::predicted(
        "INT-082",
        Statistic::L2MissFactor(storage(Op::RandWrite), (16, 16)),
    )
    .noting(L2_MISSES),
    Rule::predicted("INT-087", Statistic::BandwidthBeside(CROSS_CHECK, (16, 16))),
    Rule::predicted("INT-088", Statistic::CxlWritesBeside(CROSS_CHECK, (16, 16))),
    Rule::predicted("INT-089", Statistic::Greatest(IN_ORDER)),
    Rule::predicted("INT-090", Statistic::Greatest(AT_RANDOM)),
];
