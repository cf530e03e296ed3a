//! CXL-Interplay (DAC 2025, arXiv 2411.18308): Table III, the cells of memory with memory on system A
//! and of CXL with its drive; storage with non-temporal stores to CXL on system B.
//!
//! Each cell is the extreme over thread counts. The paper does not say which counts; sixteen threads are the most that it
//! names.

use crate::reproduce::rule::{Figure, Rule};
use weir_model::access::Op;

use crate::reproduce::figures::{change_pct, extreme, factor, greatest, loss_pct, reading};
use crate::reproduce::points::{Stream, cxl_writes, gbps, l2_miss, l3_accesses};

const THREADS: [u32; 4] = [1, 4, 8, 16];

/// A figure for every pair of thread counts.
fn pairs(
    victim: Stream,
    aggressor: Stream,
    of: fn(Stream, Stream, (u32, u32)) -> Figure,
) -> Vec<Figure> {
    let counts = THREADS.into_iter().flat_map(|n| THREADS.map(|m| (n, m)));
    counts.map(|pair| of(victim, aggressor, pair)).collect()
}

fn cell(id: String, victim: Stream, aggressor: Stream) -> Rule {
    let extreme = extreme(pairs(victim, aggressor, change_pct));
    Rule {
        is_change: true,
        ..Rule::predicted(id, extreme)
    }
}

const COLUMNS: &str = "which of the two columns is random reads is lost; taken as the first";
const L2_MISSES: &str = "of the kernel's lines; sixteen threads each, as the paper's cross-check";
const L3_ACCESSES: &str = "of the lines that the kernel's threads touch for requests; sixteen threads each, as the paper's cross-check";

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = Vec::new();
    let ops = [Op::Ld, Op::St, Op::NtSt];
    let on = |tier, op| Stream::new("interplay-a", tier, op);
    let mut ids = (25..).map(|number| format!("INT-{number:03}"));
    for (victim, aggressor) in [("dram", "cxl0"), ("cxl0", "dram")] {
        for (op, with) in ops.into_iter().flat_map(|op| ops.map(|with| (op, with))) {
            let id = ids.next().unwrap_or_default();
            rules.push(cell(id, on(victim, op), on(aggressor, with)));
        }
    }
    for op in ops {
        for requests in [Op::RandRead, Op::RandWrite] {
            let drive = Stream::requests("interplay-a", "ssd0", requests);
            let id = ids.next().unwrap_or_default();
            rules.push(cell(id, on("cxl0", op), drive).noting(COLUMNS));
        }
    }

    let drive = |op| Stream::requests("interplay-b", "ssd0", op);
    let stores = Stream::new("interplay-b", "cxl0", Op::NtSt);
    let random = drive(Op::RandWrite);
    // Sixteen threads each, as in §III-C.
    let both = (16, 16);
    let l2 = factor(random, stores, both, l2_miss);
    let l3 = factor(random, stores, both, l3_accesses);
    let stored = reading("MB/s", stores, 16, Some((random, 16)), |done| {
        Ok(gbps(done)? * 1e3)
    });
    let written = reading("MB/s", stores, 16, Some((random, 16)), cxl_writes);
    let losses = |op| greatest(pairs(drive(op), stores, loss_pct));
    rules.extend([
        Rule::predicted("INT-075", l2.clone()).noting(L2_MISSES),
        Rule::predicted("INT-076", l3).noting(L3_ACCESSES),
        Rule::predicted("INT-082", l2).noting(L2_MISSES),
        Rule::predicted("INT-087", stored),
        Rule::predicted("INT-088", written),
        Rule::predicted("INT-089", losses(Op::SeqWrite)),
        Rule::predicted("INT-090", losses(Op::RandWrite)),
    ]);
    rules
}
