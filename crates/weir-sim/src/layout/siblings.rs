//! Two threads on one core.

use std::collections::HashSet;

use weir_model::tenant::{Stream, Tenant};

use super::limits;
use crate::core::{Limits, Style, Thread};
use crate::params::Params;

/// The cores that have two threads.
pub fn cores(tenants: &[Tenant]) -> HashSet<u32> {
    let of = |second: bool| {
        let tenants = tenants.iter().filter(move |t| t.second_threads == second);
        tenants.flat_map(|t| t.cores.iter().copied())
    };
    let first: HashSet<u32> = of(false).collect();
    of(true).filter(|core| first.contains(core)).collect()
}

/// Lets the two streams of each core share its buffers: each may have those that the other one has not.
pub fn pair(threads: &mut [Thread]) {
    for t in 0..threads.len() {
        let is_stream = |thread: &Thread| thread.is_halved && thread.style == Style::Stream;
        let core = threads[t].core;
        let mut others = (t + 1..threads.len()).filter(|&other| threads[other].core == core);
        let Some(other) = others.next() else {
            continue;
        };
        if is_stream(&threads[t]) && is_stream(&threads[other]) {
            for (one, beside) in [(t, other), (other, t)] {
                threads[one].beside = Some(beside as u16);
                threads[one].limits.outstanding *= 2;
            }
        }
    }
}

/// The limits of a thread's outstanding accesses, with its L1 and L2 prefetchers switched.
pub fn limits_of(thread: &Thread, params: &Params, stream: &Stream, l1: bool, l2: bool) -> Limits {
    let mut limits = limits(&params.core_of(thread.is_halved), stream, l1, l2);
    if thread.beside.is_some() {
        limits.outstanding *= 2;
    }
    limits
}
