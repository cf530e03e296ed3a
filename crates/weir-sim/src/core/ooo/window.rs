//! How many instructions are dispatched behind a load without data.

use super::OooParams;

/// Share of the instructions that write a register: all but stores, a tenth, and branches, a tenth to a fifth
/// (SPEC CPU 2017, Limaye and Adegbija, ISPASS 2018). Flags share a register with the result that sets them.
const RESULTS: f64 = 0.7;

/// Dispatch continues until the instructions fill the reorder buffer, until those that wait for the load (a
/// `slice` of them) fill the scheduler, or until their results take all integer registers or all vector
/// registers (a share `vector`).
pub fn window(core: &OooParams, slice: f64, vector: f64) -> f64 {
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
