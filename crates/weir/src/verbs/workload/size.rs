//! How large the data of a real application are.

use weir_linux::memory::free_memory;
use weir_loops::programs::values::{self, PER_RECORD};
use weir_model::tenant::Placement;
use weir_model::topology::Topology;
use weir_model::units::Bytes;
use weir_model::workload::RealProgram;

use crate::failure::{Failure, Result};
use crate::system::System;

/// What is left of free memory: programs need some besides their data.
pub(super) const PART_OF_FREE: u64 = 2;
/// Less would be in the caches.
const LEAST: Bytes = Bytes(1 << 20);

/// Bytes of the data, with a warning where they are fewer than the workload describes.
///
/// # Errors
/// They do not fit into the free memory.
pub fn size(
    wanted: Option<Bytes>,
    program: &RealProgram,
    host: &System,
    topology: &Topology,
    (placements, part_of_free): (&[Placement], u64),
) -> Result<(Bytes, Option<String>)> {
    let record = program.record.get().max(values::LEAST as u64);
    let described = program.bytes;
    // What the data take with all that belongs to them, in memory.
    let factor = match program.application.is_server() {
        true => (record + PER_RECORD) as f64 / record as f64,
        false => 1.0,
    };
    let mut most: Option<(Bytes, String)> = None;
    for tier in placements.iter().flat_map(Placement::tiers) {
        let node = topology.tier(tier).and_then(|tier| tier.node);
        if let Some(found) = free_memory(&host.root, node)
            && most
                .as_ref()
                .is_none_or(|(free, _)| found.free.get() < free.get())
        {
            most = Some((found.free, found.limit));
        }
    }
    let fits = |bytes: Bytes, free: u64| bytes.get() as f64 * factor <= free as f64;
    match (wanted, most) {
        (Some(wanted), _) if wanted.get() < LEAST.get() => Err(Failure::request(format!(
            "--size {wanted} is less than {LEAST}, which caches hold"
        ))),
        (Some(wanted), Some((free, limit))) if !fits(wanted, free.get()) => {
            Err(Failure::request(format!(
                "--size {wanted} takes {} with what belongs to the data, but {limit} has {free} free",
                Bytes((wanted.get() as f64 * factor) as u64)
            )))
        }
        (Some(wanted), _) => Ok((wanted, None)),
        (None, Some((free, limit))) if !fits(described, free.get() / part_of_free) => {
            let less = Bytes(((free.get() / part_of_free) as f64 / factor) as u64);
            let text = format!(
                "the data take {less} and not {described} as described: that is {} of what {limit} has free",
                if part_of_free == PART_OF_FREE {
                    "half"
                } else {
                    "a quarter"
                }
            );
            Ok((less, Some(text)))
        }
        (None, _) => Ok((described, None)),
    }
}
