//! 64-bit Arm: rounds of loads and stores.

use std::arch::asm;
use std::arch::is_aarch64_feature_detected;

use weir_model::access::{Dataflow, Op};
use weir_model::machine::MachineError;

use super::aarch64::{Casal, Exclusive, Ld, Nt, NtLd, St, StClean};
use super::rounds::{Arrays, FACTOR, Run, Shape, apart};
use super::{Data, Isa, no_instruction};

/// The written line is computed from the loaded ones, in pairs of vectors: `{a}` and `{b}` are read, `{p}` is
/// written.
macro_rules! flow {
    ($store:literal, $clean:literal, $($middle:literal),*) => {{
        unsafe fn run(arrays: Arrays, rounds: usize, _: Shape, _: &mut Data) {
            // SAFETY: reads one line of each loaded array and writes one line of the touched one
            // in each round, which the caller vouches for; `select` permits one loaded array or
            // two, and `{b}` is read by the flows of two alone. Every register that it changes is
            // declared.
            unsafe {
                asm!(
                    "dup v8.2d, {factor}",
                    "cbz {n}, 3f",
                    "2:",
                    "ldp q0, q1, [{a}]",
                    "ldp q2, q3, [{a}, #32]",
                    $($middle,)*
                    concat!($store, " q0, q1, [{p}]"),
                    concat!($store, " q2, q3, [{p}, #32]"),
                    $clean,
                    "add {a}, {a}, #64",
                    "add {b}, {b}, #64",
                    "add {p}, {p}, #64",
                    "subs {n}, {n}, #1",
                    "b.ne 2b",
                    "3:",
                    a = inout(reg) arrays.loaded => _,
                    b = inout(reg) arrays.loaded.wrapping_add(arrays.stride) => _,
                    p = inout(reg) arrays.touched => _,
                    n = inout(reg) rounds => _,
                    factor = in(reg) FACTOR.to_bits(),
                    out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _,
                    out("v5") _, out("v6") _, out("v7") _, out("v8") _,
                    options(nostack)
                );
            }
        }
        run
    }};
}

macro_rules! flows {
    ($dataflow:expr, $store:literal, $clean:literal) => {
        match $dataflow {
            Dataflow::Copy | Dataflow::Apart => flow!($store, $clean, ""),
            Dataflow::Scale => flow!(
                $store,
                $clean,
                "fmul v0.2d, v0.2d, v8.2d",
                "fmul v1.2d, v1.2d, v8.2d",
                "fmul v2.2d, v2.2d, v8.2d",
                "fmul v3.2d, v3.2d, v8.2d"
            ),
            Dataflow::Add => flow!(
                $store,
                $clean,
                "ldp q4, q5, [{b}]",
                "ldp q6, q7, [{b}, #32]",
                "fadd v0.2d, v0.2d, v4.2d",
                "fadd v1.2d, v1.2d, v5.2d",
                "fadd v2.2d, v2.2d, v6.2d",
                "fadd v3.2d, v3.2d, v7.2d"
            ),
            Dataflow::Triad => flow!(
                $store,
                $clean,
                "ldp q4, q5, [{b}]",
                "ldp q6, q7, [{b}, #32]",
                "fmul v4.2d, v4.2d, v8.2d",
                "fmul v5.2d, v5.2d, v8.2d",
                "fmul v6.2d, v6.2d, v8.2d",
                "fmul v7.2d, v7.2d, v8.2d",
                "fadd v0.2d, v0.2d, v4.2d",
                "fadd v1.2d, v1.2d, v5.2d",
                "fadd v2.2d, v2.2d, v6.2d",
                "fadd v3.2d, v3.2d, v7.2d"
            ),
        }
    };
}

/// The loop for an instruction; the caller must know whether the processor has it.
pub(super) fn rounds(op: Op, _: Isa, dataflow: Dataflow) -> Result<Run, MachineError> {
    let apart_from = dataflow == Dataflow::Apart;
    Ok(match op {
        Op::UcLd
        | Op::Movdir64b
        | Op::Dsa
        | Op::RandRead
        | Op::RandWrite
        | Op::SeqRead
        | Op::SeqWrite => {
            return Err(no_instruction(op));
        }
        Op::Ld => apart::<Ld, Ld>,
        Op::NtLd => apart::<Ld, NtLd>,
        Op::St if apart_from => apart::<Ld, St>,
        Op::St => flows!(dataflow, "stp", ""),
        Op::StClwb if apart_from => apart::<Ld, StClean>,
        Op::StClwb => flows!(dataflow, "stp", "dc cvac, {p}"),
        Op::NtSt if apart_from => apart::<Ld, Nt>,
        Op::NtSt => flows!(dataflow, "stnp", ""),
        Op::Cas if is_aarch64_feature_detected!("lse") => apart::<Ld, Casal>,
        Op::Cas => apart::<Ld, Exclusive>,
    })
}
