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
    ($load:ident, $touch:ident, $setup:literal, $finish:literal, [$($clobber:tt),*]) => {{
        unsafe fn run(arrays: Arrays, rounds: usize, shape: Shape, data: &mut Data) {
            // SAFETY: touches one line of each of `shape.loads` arrays and `shape.per` lines of
            // another in each round, which the caller vouches for, and the two arrays at the start
            // of `data` (`repr(C)`); every register that it changes is declared.
            unsafe {
                asm!(
                    concat!(
                        $setup,
                        "\ntest {rounds}, {rounds}\njz 5f\n",
                        "2:\nmov {p}, {loaded}\nmov {i}, {loads}\n",
                        "3:\n", $load!("0"), "add {p}, {stride}\ndec {i}\njnz 3b\n",
                        "add {loaded}, 64\nmov {p}, {touched}\nmov {i}, {per}\n",
                        "4:\n", $touch!("0"), "add {p}, 64\ndec {i}\njnz 4b\n",
                        "mov {touched}, {p}\ndec {rounds}\njnz 2b\n5:\n",
                        $finish
                    ),
                    p = out(reg) _,
                    i = out(reg) _,
                    loaded = inout(reg) arrays.loaded => _,
                    touched = inout(reg) arrays.touched => _,
                    rounds = inout(reg) rounds => _,
                    stride = in(reg) arrays.stride,
                    loads = in(reg) shape.loads,
                    per = in(reg) shape.per,
                    data = in(reg) std::ptr::from_mut(data),
                    $(out($clobber) _,)*
                    options(nostack)
                );
            }
        }
        run
    }};
}

/// The written line is computed from the loaded ones: `{a}` and `{b}` are read, `{p}` is written.
macro_rules! flow {
    ($load:ident, $store:ident, $setup:literal, $finish:literal, [$($clobber:tt),*]) => {{
        unsafe fn run(arrays: Arrays, rounds: usize, _: Shape, _: &mut Data) {
            // SAFETY: reads one line of each loaded array and writes one line of the touched one
            // in each round, which the caller vouches for; `select` permits one loaded array or
            // two, and `{b}` is read by the flows of two alone. Every register that it changes is
            // declared.
            unsafe {
                asm!(
                    concat!(
                        "/* {factor} */\n",
                        $setup,
                        "\ntest {eights}, {eights}\njz 3f\n2:\n",
                        $load!("0"), $store!("0"), $load!("64"), $store!("64"),
                        $load!("128"), $store!("128"), $load!("192"), $store!("192"),
                        $load!("256"), $store!("256"), $load!("320"), $store!("320"),
                        $load!("384"), $store!("384"), $load!("448"), $store!("448"),
                        "add {a}, 512\nadd {b}, 512\nadd {p}, 512\ndec {eights}\njnz 2b\n3:\n",
                        "test {ones}, {ones}\njz 5f\n4:\n",
                        $load!("0"), $store!("0"),
                        "add {a}, 64\nadd {b}, 64\nadd {p}, 64\ndec {ones}\njnz 4b\n5:\n",
                        $finish
                    ),
                    a = inout(reg) arrays.loaded => _,
                    b = inout(reg) arrays.loaded.wrapping_add(arrays.stride) => _,
                    p = inout(reg) arrays.touched => _,
                    eights = inout(reg) rounds / 8 => _,
                    ones = inout(reg) rounds % 8 => _,
                    factor = in(reg) &raw const FACTOR_IN_MEMORY,
                    $(out($clobber) _,)*
                    options(nostack)
                );
            }
        }
        run
    }};
}

static FACTOR_IN_MEMORY: f64 = FACTOR;

macro_rules! mix512 {
    ($touch:ident) => {
        mix!(
            ld512,
            $touch,
            "vmovdqa64 zmm16, [{data}]\nvmovdqa64 zmm17, [{data} + 64]",
            "vmovdqa64 [{data}], zmm16",
            ["xmm16", "xmm17", "xmm18"]
        )
    };
}
macro_rules! mix256 {
    ($touch:ident) => {
        mix!(
            ld256, $touch,
            "vmovdqa ymm0, [{data}]\nvmovdqa ymm1, [{data} + 32]\nvmovdqa ymm2, [{data} + 64]\nvmovdqa ymm3, [{data} + 96]",
            "vmovdqa [{data}], ymm0\nvmovdqa [{data} + 32], ymm1\nvzeroupper",
            ["xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"]
        )
    };
}
macro_rules! mix128 {
    ($touch:ident) => {
        mix!(
            ld128, $touch,
            "movdqa xmm0, [{data}]\nmovdqa xmm1, [{data} + 16]\nmovdqa xmm2, [{data} + 32]\nmovdqa xmm3, [{data} + 48]\nmovdqa xmm4, [{data} + 64]\nmovdqa xmm5, [{data} + 96]",
            "movdqa [{data}], xmm0\nmovdqa [{data} + 16], xmm1\nmovdqa [{data} + 32], xmm2\nmovdqa [{data} + 48], xmm3",
            ["xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9"]
        )
    };
}
macro_rules! flow512 {
    ($load:ident, $store:ident) => {
        flow!(
            $load,
            $store,
            "vbroadcastsd zmm17, [{factor}]",
            "",
            ["xmm16", "xmm17"]
        )
    };
}
macro_rules! flow256 {
    ($load:ident, $store:ident) => {
        flow!(
            $load,
            $store,
            "vbroadcastsd ymm4, [{factor}]",
            "vzeroupper",
            [
                "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
            ]
        )
    };
}
macro_rules! flow128 {
    ($load:ident, $store:ident) => {
        flow!(
            $load,
            $store,
            "movsd xmm4, [{factor}]\nunpcklpd xmm4, xmm4",
            "",
            ["xmm0", "xmm1", "xmm2", "xmm3", "xmm4"]
        )
    };
}
macro_rules! flows {
    ($form:ident, $dataflow:expr, $store:ident, $copy:ident, $scale:ident, $add:ident, $triad:ident) => {
        match $dataflow {
            Dataflow::Scale => $form!($scale, $store),
            Dataflow::Add => $form!($add, $store),
            Dataflow::Triad => $form!($triad, $store),
            Dataflow::Copy | Dataflow::Apart => $form!($copy, $store),
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
        (Op::Dsa | Op::RandRead | Op::RandWrite | Op::SeqRead | Op::SeqWrite, _) => {
            return Err(no_instruction(op));
        }
        (Op::Movdir64b, _) if !apart_from => direct_copy,
        (Op::Movdir64b, Isa::Avx512) => apart::<Ld512, Movdir64b>,
        (Op::Movdir64b, Isa::Avx2) => apart::<Ld256, Movdir64b>,
        (Op::Movdir64b, _) => apart::<Ld128, Movdir64b>,
        (Op::Cas, Isa::Avx512) => apart::<Ld512, Cas>,
        (Op::Cas, Isa::Avx2) => apart::<Ld256, Cas>,
        (Op::Cas, _) => apart::<Ld128, Cas>,
        (Op::Ld, Isa::Avx512) => mix512!(ld512),
        (Op::Ld, Isa::Avx2) => mix256!(ld256),
        (Op::Ld, _) => mix128!(ld128),
        (Op::St, Isa::Avx512) if apart_from => mix512!(st512),
        (Op::St, Isa::Avx2) if apart_from => mix256!(st256),
        (Op::St, _) if apart_from => mix128!(st128),
        (Op::StClwb, Isa::Avx512) if apart_from => mix512!(clwb512),
        (Op::StClwb, Isa::Avx2) if apart_from => mix256!(clwb256),
        (Op::StClwb, _) if apart_from => mix128!(clwb128),
        (Op::NtSt, Isa::Avx512) if apart_from => mix512!(nt512),
        (Op::NtSt, Isa::Avx2) if apart_from => mix256!(nt256),
        (Op::NtSt, _) if apart_from => mix128!(nt128),
        (Op::St, Isa::Avx512) => {
            flows!(
                flow512, dataflow, put512, copy512, scale512, add512, triad512
            )
        }
        (Op::St, Isa::Avx2) => {
            flows!(
                flow256, dataflow, put256, copy256, scale256, add256, triad256
            )
        }
        (Op::St, _) => flows!(
            flow128, dataflow, put128, copy128, scale128, add128, triad128
        ),
        (Op::StClwb, Isa::Avx512) => {
            flows!(
                flow512, dataflow, putclwb512, copy512, scale512, add512, triad512
            )
        }
        (Op::StClwb, Isa::Avx2) => {
            flows!(
                flow256, dataflow, putclwb256, copy256, scale256, add256, triad256
            )
        }
        (Op::StClwb, _) => {
            flows!(
                flow128, dataflow, putclwb128, copy128, scale128, add128, triad128
            )
        }
        (Op::NtSt, Isa::Avx512) => {
            flows!(
                flow512, dataflow, putnt512, copy512, scale512, add512, triad512
            )
        }
        (Op::NtSt, Isa::Avx2) => {
            flows!(
                flow256, dataflow, putnt256, copy256, scale256, add256, triad256
            )
        }
        (Op::NtSt, _) => flows!(
            flow128, dataflow, putnt128, copy128, scale128, add128, triad128
        ),
    })
}
