//! CXL-Interplay (DAC 2025, arXiv 2411.18308): Table III, the cells of memory beside memory on system A.
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
];
