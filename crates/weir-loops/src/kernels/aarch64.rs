//! 64-bit Arm: pairs of 128-bit vectors, `dc` for write-back and flush, atomics of Armv8.1 if the processor
//! has them.

use std::arch::asm;
use std::arch::is_aarch64_feature_detected;

use weir_model::access::Op;
use weir_model::capability::Feature;
use weir_model::machine::MachineError;

pub(super) use super::aarch64_rounds::rounds;
use super::{Data, Isa, Kernel, Lines, missing, no_instruction};

pub(super) const NARROWEST: Isa = Isa::Neon;

pub(super) fn families() -> Vec<Isa> {
    vec![Isa::Neon]
}

/// The widest family that the processor executes at full width.
pub(super) fn whole() -> Isa {
    NARROWEST
}

pub(super) fn kernel(op: Op, isa: Isa) -> Result<Kernel, MachineError> {
    Ok(match op {
        Op::Ld => Kernel::of::<Ld>(op, isa, "2 x ldp q, q, [x]"),
        Op::NtLd => Kernel::of::<NtLd>(op, isa, "2 x ldnp q, q, [x]"),
        Op::St => Kernel::of::<St>(op, isa, "2 x stp q, q, [x]"),
        Op::StClwb => Kernel::of::<StClean>(op, isa, "2 x stp q, q, [x]; dc cvac, x"),
        Op::NtSt => Kernel::of::<Nt>(op, isa, "2 x stnp q, q, [x]"),
        Op::UcLd | Op::Dsa | Op::RandRead | Op::RandWrite | Op::SeqRead | Op::SeqWrite => {
            return Err(no_instruction(op));
        }
        Op::Movdir64b => {
            return Err(missing(
                Feature::Movdir64b,
                "movdir64b is an instruction of x86 processors".into(),
            ));
        }
        Op::Cas if is_aarch64_feature_detected!("lse") => {
            Kernel::of::<Casal>(op, isa, "ldr x, [x]; casal x, x, [x]")
        }
        Op::Cas => Kernel::of::<Exclusive>(op, isa, "ldaxr x, [x]; stlxr w, x, [x]"),
    })
}

macro_rules! vector_kernel {
    ($name:ident, $what:literal, $($body:literal),+) => {
        #[doc = $what]
        pub(super) struct $name;

        impl Lines for $name {
            #[inline(always)]
            unsafe fn run(first: *mut u8, lines: usize, data: &mut Data) {
                // SAFETY: touches exactly `lines` lines from `first` on, which the caller vouches
                // for, and the two arrays of `data`, which lie at its start (`repr(C)`); every
                // register that it changes is declared.
                unsafe {
                    asm!(
                        "ldp q0, q1, [{data}]",
                        "ldp q2, q3, [{data}, #32]",
                        "ldp q4, q5, [{data}, #64]",
                        "cbz {n}, 3f",
                        "2:",
                        $($body,)+
                        "add {p}, {p}, #64",
                        "subs {n}, {n}, #1",
                        "b.ne 2b",
                        "3:",
                        "stp q0, q1, [{data}]",
                        "stp q2, q3, [{data}, #32]",
                        p = inout(reg) first => _,
                        n = inout(reg) lines => _,
                        data = in(reg) std::ptr::from_mut(data),
                        out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _,
                        out("v5") _, out("v6") _, out("v7") _,
                        options(nostack)
                    );
                }
            }

            #[inline(always)]
            fn settle() {
                barrier();
            }
        }
    };
}

// Loads use other registers, so that the words to store are kept.
vector_kernel!(
    Ld,
    "Loads of half lines.",
    "ldp q6, q7, [{p}]",
    "ldp q6, q7, [{p}, #32]"
);
vector_kernel!(
    NtLd,
    "Loads of half lines with the hint that they will not be used again.",
    "ldnp q6, q7, [{p}]",
    "ldnp q6, q7, [{p}, #32]"
);
vector_kernel!(
    St,
    "Temporal stores.",
    "stp q0, q1, [{p}]",
    "stp q2, q3, [{p}, #32]",
    "add v0.2d, v0.2d, v4.2d",
    "add v1.2d, v1.2d, v5.2d",
    "add v2.2d, v2.2d, v4.2d",
    "add v3.2d, v3.2d, v5.2d"
);
vector_kernel!(
    StClean,
    "Temporal stores, each line written back.",
    "stp q0, q1, [{p}]",
    "stp q2, q3, [{p}, #32]",
    "dc cvac, {p}",
    "add v0.2d, v0.2d, v4.2d",
    "add v1.2d, v1.2d, v5.2d",
    "add v2.2d, v2.2d, v4.2d",
    "add v3.2d, v3.2d, v5.2d"
);
vector_kernel!(
    Nt,
    "Stores with the hint that they will not be read soon.",
    "stnp q0, q1, [{p}]",
    "stnp q2, q3, [{p}, #32]",
    "add v0.2d, v0.2d, v4.2d",
    "add v1.2d, v1.2d, v5.2d",
    "add v2.2d, v2.2d, v4.2d",
    "add v3.2d, v3.2d, v5.2d"
);

macro_rules! atomic_kernel {
    ($name:ident, $what:literal, $($body:literal),+) => {
        #[doc = $what]
        pub(super) struct $name;

        impl Lines for $name {
            #[inline(always)]
            unsafe fn run(first: *mut u8, lines: usize, data: &mut Data) {
                // SAFETY: touches one word of each line that the caller vouches for.
                unsafe {
                    asm!(
                        "cbz {n}, 3f",
                        "2:",
                        $($body,)+
                        "add {p}, {p}, #64",
                        "subs {n}, {n}, #1",
                        "b.ne 2b",
                        "3:",
                        p = inout(reg) first => _,
                        n = inout(reg) lines => _,
                        step = in(reg) data.step[0],
                        old = out(reg) _,
                        new = out(reg) _,
                        options(nostack)
                    );
                }
            }

            #[inline(always)]
            fn settle() {
                barrier();
            }
        }
    };
}

atomic_kernel!(
    Casal,
    "Read, add, compare and swap in one instruction (Armv8.1).",
    ".arch_extension lse",
    "ldr {old}, [{p}]",
    "add {new}, {old}, {step}",
    "casal {old}, {new}, [{p}]"
);
atomic_kernel!(
    Exclusive,
    "Read, add and swap with exclusive access; an interrupted one is tried again.",
    "4:",
    "ldaxr {old}, [{p}]",
    "add {new}, {old}, {step}",
    "stlxr {old:w}, {new}, [{p}]",
    "cbnz {old:w}, 4b"
);

/// Waits until every access and cache maintenance before it is complete.
#[inline(always)]
fn barrier() {
    // SAFETY: a barrier touches no memory.
    unsafe { asm!("dsb sy", "isb", options(nostack, preserves_flags)) }
}

/// Orders the stores before it before those after it.
#[inline(always)]
pub fn store_fence() {
    // SAFETY: a barrier touches no memory.
    unsafe { asm!("dmb st", options(nostack, preserves_flags)) }
}

/// Flushes a line out of every cache and waits until it is gone.
///
/// # Safety
/// `line` is mapped.
#[inline]
pub unsafe fn flush(line: *mut u8) {
    // SAFETY: cleaning and invalidating changes no data; Linux lets programs do it.
    unsafe { asm!("dc civac, {}", "dsb sy", in(reg) line, options(nostack, preserves_flags)) }
}

/// Follows `eights` times eight pointers and returns the last.
///
/// # Safety
/// `from` is a line of a closed chain of mapped lines, each starting with the next one's address.
#[inline]
pub unsafe fn hops(from: *mut u8, eights: usize) -> *mut u8 {
    let mut line = from;
    if eights > 0 {
        // SAFETY: reads only lines of the chain.
        unsafe {
            asm!(
                "2:",
                "ldr {p}, [{p}]", "ldr {p}, [{p}]", "ldr {p}, [{p}]", "ldr {p}, [{p}]",
                "ldr {p}, [{p}]", "ldr {p}, [{p}]", "ldr {p}, [{p}]", "ldr {p}, [{p}]",
                "subs {n}, {n}, #1",
                "b.ne 2b",
                p = inout(reg) line,
                n = inout(reg) eights => _,
                options(nostack, readonly)
            );
        }
    }
    line
}

/// Follows one pointer.
///
/// # Safety
/// `from` is a mapped line that starts with the next one's address.
#[inline(always)]
pub unsafe fn hop(from: *mut u8) -> *mut u8 {
    let mut line = from;
    // SAFETY: reads only that line.
    unsafe {
        asm!("ldr {p}, [{p}]", p = inout(reg) line, options(nostack, readonly, preserves_flags))
    };
    line
}
