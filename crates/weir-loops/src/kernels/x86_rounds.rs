//! x86-64: rounds of loads and stores, in SSE2, AVX2 and AVX-512 forms.

use std::arch::asm;

use weir_model::access::{Dataflow, Op};
use weir_model::machine::MachineError;

use super::rounds::{Arrays, FACTOR, Run, Shape, apart};
use super::x86::{Ld128, Ld256, Ld512};
use super::x86_scalar::{Cas, Movdir64b};
use super::{Data, Isa, LINE, no_instruction};

/// Independent lines: a loop over the loaded arrays and one over the other lines; the words to store stay in
/// registers.
macro_rules! mix {
    ($width:tt $touch:ident) => {{
        unsafe fn run(arrays: Arrays, rounds: usize, shape: Shape, data: &mut Data) {
            // SAFETY: touches one line of each of `shape.loads` arrays and `shape.per` lines of
            // another in each round, which the caller vouches for, and the two arrays at the start
            // of `data` (`repr(C)`); every register that it changes is declared.
            unsafe {
                vector_asm!($width
                    load_words!(st $width),
                    "test {rounds}, {rounds}\njz 5f",
                    "2:\nmov {p}, {loaded}\nmov {i}, {loads}",
                    "3:\n.irp d, 0",
                    body!(ld $width),
                    ".endr\nadd {p}, {stride}\ndec {i}\njnz 3b",
                    "add {loaded}, 64\nmov {p}, {touched}\nmov {i}, {per}",
                    "4:\n.irp d, 0",
                    body!($touch $width),
                    ".endr\nadd {p}, 64\ndec {i}\njnz 4b",
                    "mov {touched}, {p}\ndec {rounds}\njnz 2b\n5:",
                    keep_words!(st $width),
                    p = out(reg) _,
                    i = out(reg) _,
                    loaded = inout(reg) arrays.loaded => _,
                    touched = inout(reg) arrays.touched => _,
                    rounds = inout(reg) rounds => _,
                    stride = in(reg) arrays.stride,
                    loads = in(reg) shape.loads,
                    per = in(reg) shape.per,
                    data = in(reg) std::ptr::from_mut(data),
                );
            }
        }
        run
    }};
}

/// The written line is computed from the loaded ones: `{a}` and `{b}` are read, `{p}` is written.
macro_rules! flow {
    ($width:tt $load:ident $store:ident) => {{
        unsafe fn run(arrays: Arrays, rounds: usize, _: Shape, _: &mut Data) {
            // SAFETY: reads one line of each loaded array and writes one line of the touched one
            // in each round, which the caller vouches for; `select` permits one loaded array or
            // two, and `{b}` is read by the flows of two alone. Every register that it changes is
            // declared.
            unsafe {
                vector_asm!($width
                    flow!(load_factor $width),
                    loop_over_lines!(
                        concat!(body!($load $width), body!($store $width)),
                        "add {a}, \\s\nadd {b}, \\s\nadd {p}, \\s\n"
                    ),
                    flow!(finish $width),
                    a = inout(reg) arrays.loaded => _,
                    b = inout(reg) arrays.loaded.wrapping_add(arrays.stride) => _,
                    p = inout(reg) arrays.touched => _,
                    eights = inout(reg) rounds / 8 => _,
                    ones = inout(reg) rounds % 8 => _,
                    factor = in(reg) &raw const FACTOR_IN_MEMORY,
                );
            }
        }
        run
    }};
    (load_factor 512) => { "vbroadcastsd zmm17, [{factor}]" };
    (load_factor 256) => { "vbroadcastsd ymm4, [{factor}]" };
    (load_factor 128) => { "movsd xmm4, [{factor}]\nunpcklpd xmm4, xmm4" };
    (finish 256) => { "vzeroupper" };
    (finish $width:tt) => { "" };
}

static FACTOR_IN_MEMORY: f64 = FACTOR;

/// `flow!` of the instruction's store and of the dataflow.
macro_rules! flows {
    ($width:tt $store:ident $dataflow:expr) => {
        match $dataflow {
            Dataflow::Scale => flow!($width scale $store),
            Dataflow::Add => flow!($width add $store),
            Dataflow::Triad => flow!($width triad $store),
            Dataflow::Copy | Dataflow::Apart => flow!($width copy $store),
        }
    };
}

/// A loop in the width of a family.
macro_rules! wide {
    ($isa:expr, $form:ident $($arguments:tt)*) => {
        match $isa {
            Isa::Avx512 => $form!(512 $($arguments)*),
            Isa::Avx2 => $form!(256 $($arguments)*),
            _ => $form!(128 $($arguments)*),
        }
    };
}

/// Copies by 64-byte direct stores, from memory to memory.
unsafe fn direct_copy(arrays: Arrays, rounds: usize, _: Shape, _: &mut Data) {
    for round in 0..rounds {
        // SAFETY: one line read and one written, both vouched for by the caller.
        unsafe {
            asm!(
                "movdir64b {to}, [{from}]",
                to = in(reg) arrays.touched.add(round * LINE),
                from = in(reg) arrays.loaded.add(round * LINE),
                options(nostack, preserves_flags)
            );
        }
    }
}

/// The loop for an instruction in a form; the caller must know whether the processor has both.
pub(super) fn rounds(op: Op, isa: Isa, dataflow: Dataflow) -> Result<Run, MachineError> {
    let apart_from = dataflow == Dataflow::Apart;
    Ok(match (op, isa) {
        (Op::UcLd | Op::Dsa | Op::RandRead | Op::RandWrite | Op::SeqRead | Op::SeqWrite, _) => {
            return Err(no_instruction(op));
        }
        (Op::Movdir64b, _) if !apart_from => direct_copy,
        (Op::Movdir64b, Isa::Avx512) => apart::<Ld512, Movdir64b>,
        (Op::Movdir64b, Isa::Avx2) => apart::<Ld256, Movdir64b>,
        (Op::Movdir64b, _) => apart::<Ld128, Movdir64b>,
        (Op::Cas, Isa::Avx512) => apart::<Ld512, Cas>,
        (Op::Cas, Isa::Avx2) => apart::<Ld256, Cas>,
        (Op::Cas, _) => apart::<Ld128, Cas>,
        (Op::Ld, _) => wide!(isa, mix ld),
        (Op::NtLd, _) => wide!(isa, mix ntld),
        (Op::St, _) if apart_from => wide!(isa, mix st),
        (Op::StClwb, _) if apart_from => wide!(isa, mix clwb),
        (Op::NtSt, _) if apart_from => wide!(isa, mix nt),
        (Op::St, _) => wide!(isa, flows put dataflow),
        (Op::StClwb, _) => wide!(isa, flows putclwb dataflow),
        (Op::NtSt, _) => wide!(isa, flows putnt dataflow),
    })
}
