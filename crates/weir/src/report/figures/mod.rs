//! From figures to charts: which line is drawn from which points.
//!
//! One module an experiment. Each makes the charts that a section has points for, and none where it
//! has none.

mod interplay;
mod loaded;
mod overview;
mod tail;
pub(super) mod words;

use weir_model::access::Op;
use weir_model::topology::{TierName, Topology};

use super::chart::Look;
use super::{Insight, Section};
use crate::output::distinct;

pub use interplay::{behind_cells, interplay};
pub use overview::{idle_latencies, loaded_side_by_side, peak_bandwidths, tails_side_by_side};
pub use tail::tails;
pub use words::sign;

/// The tiers of all machines of the page, each once: the place of a tier is its colour.
pub(super) fn tier_names(sections: &[Section], insights: &[Insight]) -> Vec<String> {
    let of_sections = sections.iter().map(|own| &own.document.header.topology);
    let all = of_sections.chain(insights.iter().map(|own| &own.shown.header.topology));
    distinct(all.flat_map(|own: &Topology| own.tiers.iter().map(|tier| tier.name.to_string())))
}

/// The colour of a tier, the same in every chart of a page and for every machine: local DRAM is always the first.
fn tier_look(all: &[Section], tier: &TierName) -> Look {
    let names = tier_names(all, &[]);
    let at = names.iter().position(|name| *name == tier.to_string());
    Look::solid(at.unwrap_or(0))
}

/// The colour of an instruction, the same in every chart.
fn op_look(op: Op) -> Look {
    let at = Op::ALL.iter().position(|o| *o == op);
    Look::solid(at.unwrap_or(Op::ALL.len()))
}

/// The tiers of a section in the machine's order.
fn tiers(section: &Section) -> impl Iterator<Item = &TierName> {
    let topology = &section.document.header.topology;
    topology.tiers.iter().map(|t| &t.name)
}

/// The name of a run in charts of several: the machine's, and the run's where a machine has two.
fn run_name(section: &Section, all: &[Section]) -> String {
    let same = all
        .iter()
        .filter(|s| s.machine() == section.machine())
        .count()
        > 1;
    if same {
        format!("{} (run {})", section.machine(), section.run)
    } else {
        section.machine().to_owned()
    }
}
