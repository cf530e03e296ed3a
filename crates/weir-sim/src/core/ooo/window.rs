//! The pace of a phase: how fast its instructions are dispatched, and how many behind a load without data.

use super::OooParams;
use super::parts::PhaseParts;

/// Share of the instructions that write a register: all but stores, a tenth, and branches, a tenth to a fifth
/// (SPEC CPU 2017, Limaye and Adegbija, ISPASS 2018). Flags share a register with the result that sets them.
const RESULTS: f64 = 0.7;

/// What does not change within a phase.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Core cycles of an instruction.
    pub cpi: f64,
    /// Mispredicted branches in the slice of a load, per instruction.
    pub mispredicts: f64,
    /// While a load has no data, the share of cycles in which nothing is executed, and the number of
    /// instructions that may be dispatched behind it.
    pub quiet: f64,
    pub window: f64,
}

impl Pace {
    /// The pace of a phase on a core.
    pub fn new(core: &OooParams, phase: &PhaseParts) -> Self {
        Self {
            cpi: phase.cpi,
            mispredicts: phase.mispredicts,
            quiet: quiet((1.0 - phase.slice) / phase.cpi),
            window: window(core, phase.slice, phase.vector),
        }
    }
}

/// The share of cycles in which no instruction is executed if the mean is `per_cycle`: for independent
/// instructions, the number in a cycle follows Poisson's law.
fn quiet(per_cycle: f64) -> f64 {
    (-per_cycle).exp()
}

/// Dispatch continues until the instructions fill the reorder buffer, until those that wait for the load (a
/// `slice` of them) fill the scheduler, or until their results take all integer registers or all vector
/// registers (a share `vector`).
fn window(core: &OooParams, slice: f64, vector: f64) -> f64 {
    let last = |entries: f64, share: f64| {
        if share > 0.0 {
            entries / share
        } else {
            f64::INFINITY
        }
    };
    (core.reorder_buffer)
        .min(last(core.scheduler, slice))
        .min(last(core.integer_renames, RESULTS - vector))
        .min(last(core.vector_renames, vector))
}
