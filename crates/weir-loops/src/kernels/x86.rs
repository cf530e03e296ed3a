//! x86-64: SSE2, AVX2 and AVX-512 forms.
//!
//! A timed access ends with `lfence` (loads) or `mfence` (everything else): `sfence` orders stores, but does
//! not wait for them on every processor. On a Zen 4, a non-temporal store and `sfence` take no longer than
//! the fence alone; with `mfence` they take the 95 ns of the store.
//!
//! AVX-512 code uses only registers 16 to 31, which older code cannot see, so that no `vzeroupper` is needed
//! around single lines; AVX2 code ends with one.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _mm_lfence, _mm_mfence, _mm_sfence};

use weir_model::access::Op;
use weir_model::capability::Feature;
use weir_model::machine::MachineError;

pub(super) use super::x86_rounds::rounds;
use super::x86_scalar::{Cas, Movdir64b};
use super::{Data, Isa, Kernel, Lines, missing, no_instruction};

pub(super) const NARROWEST: Isa = Isa::Sse2;

/// The features that the operating system saves and the processor has.
pub(super) fn families() -> Vec<Isa> {
    let mut families = vec![Isa::Sse2];
    if is_x86_feature_detected!("avx2") {
        families.push(Isa::Avx2);
        if is_x86_feature_detected!("avx512f") {
            families.push(Isa::Avx512);
        }
    }
    families
}

/// The widest family that the processor executes at full width.
///
/// AMD processors report the width of their data path (APM volume 3, CPUID 8000_001A, EAX: bit 2 for 256
/// bits, bit 3 for 512). Zen 4 executes AVX-512 in halves; a thread that streams through memory moves 7 %
/// less with it than with AVX2.
pub(super) fn whole() -> Isa {
    const OPTIMISATIONS: u32 = 0x8000_001a;
    let widest = families().into_iter().max().unwrap_or(NARROWEST);
    if __cpuid(0x8000_0000).eax < OPTIMISATIONS {
        return widest;
    }
    let width_bits = __cpuid(OPTIMISATIONS).eax;
    let halves = width_bits >> 2 & 1 == 1 && width_bits >> 3 & 1 == 0;
    if halves {
        widest.min(Isa::Avx2)
    } else {
        widest
    }
}

/// Features of leaf 7 that the standard library does not name (Intel SDM volume 2, CPUID).
enum Leaf7 {
    Clflushopt,
    Clwb,
    Movdir64b,
}

fn has(feature: Leaf7) -> bool {
    if __cpuid(0).eax < 7 {
        return false;
    }
    let leaf = __cpuid_count(7, 0);
    match feature {
        Leaf7::Clflushopt => leaf.ebx >> 23 & 1 == 1,
        Leaf7::Clwb => leaf.ebx >> 24 & 1 == 1,
        Leaf7::Movdir64b => leaf.ecx >> 28 & 1 == 1,
    }
}

pub(super) fn kernel(op: Op, isa: Isa) -> Result<Kernel, MachineError> {
    Ok(match (op, isa) {
        (Op::UcLd | Op::Dsa | Op::RandRead | Op::RandWrite | Op::SeqRead | Op::SeqWrite, _) => {
            return Err(no_instruction(op));
        }
        (Op::Ld, Isa::Avx512) => Kernel::of::<Ld512>(op, isa, "vmovdqa64 zmm, [m]"),
        (Op::Ld, Isa::Avx2) => Kernel::of::<Ld256>(op, isa, "2 x vmovdqa ymm, [m]"),
        (Op::Ld, _) => Kernel::of::<Ld128>(op, NARROWEST, "4 x movdqa xmm, [m]"),
        (Op::NtLd, Isa::Avx512) => Kernel::of::<NtLd512>(op, isa, "vmovntdqa zmm, [m]"),
        (Op::NtLd, Isa::Avx2) => Kernel::of::<NtLd256>(op, isa, "2 x vmovntdqa ymm, [m]"),
        (Op::NtLd, _) if !is_x86_feature_detected!("sse4.1") => {
            return Err(MachineError::Request(
                "this processor does not have movntdqa (SSE4.1), which `nt_ld` needs".into(),
            ));
        }
        (Op::NtLd, _) => Kernel::of::<NtLd128>(op, NARROWEST, "4 x movntdqa xmm, [m]"),
        (Op::St, Isa::Avx512) => Kernel::of::<St512>(op, isa, "vmovdqa64 [m], zmm"),
        (Op::St, Isa::Avx2) => Kernel::of::<St256>(op, isa, "2 x vmovdqa [m], ymm"),
        (Op::St, _) => Kernel::of::<St128>(op, NARROWEST, "4 x movdqa [m], xmm"),
        (Op::StClwb, _) if !has(Leaf7::Clwb) => {
            return Err(missing(
                Feature::Clwb,
                "this processor does not have clwb (CPUID 7, EBX bit 24)".into(),
            ));
        }
        (Op::StClwb, Isa::Avx512) => {
            Kernel::of::<StClwb512>(op, isa, "vmovdqa64 [m], zmm; clwb [m]")
        }
        (Op::StClwb, Isa::Avx2) => {
            Kernel::of::<StClwb256>(op, isa, "2 x vmovdqa [m], ymm; clwb [m]")
        }
        (Op::StClwb, _) => Kernel::of::<StClwb128>(op, NARROWEST, "4 x movdqa [m], xmm; clwb [m]"),
        (Op::NtSt, Isa::Avx512) => Kernel::of::<Nt512>(op, isa, "vmovntdq [m], zmm"),
        (Op::NtSt, Isa::Avx2) => Kernel::of::<Nt256>(op, isa, "2 x vmovntdq [m], ymm"),
        (Op::NtSt, _) => Kernel::of::<Nt128>(op, NARROWEST, "4 x movntdq [m], xmm"),
        (Op::Movdir64b, _) if !has(Leaf7::Movdir64b) => {
            return Err(missing(
                Feature::Movdir64b,
                "this processor does not have movdir64b (CPUID 7, ECX bit 28)".into(),
            ));
        }
        (Op::Movdir64b, _) => Kernel::of::<Movdir64b>(op, NARROWEST, "movdir64b [m], [source]"),
        (Op::Cas, _) => Kernel::of::<Cas>(op, NARROWEST, "mov rax, [m]; lock cmpxchg [m], r"),
    })
}

/// Implements [`Lines`] for vector forms. `{data}` points at the words to store, which are kept for the next
/// run.
macro_rules! vector_kernels {
    ($($name:ident: $op:ident $width:tt, $settle:ident;)+) => {$(
        /// A form of `body!`.
        pub(super) struct $name;

        impl Lines for $name {
            #[inline(always)]
            unsafe fn run(first: *mut u8, lines: usize, data: &mut Data) {
                // SAFETY: touches exactly `lines` lines from `first` on, which the caller vouches
                // for, and the two arrays of `data`, which are at its start (`repr(C)`); every
                // register that it changes is declared.
                unsafe {
                    vector_asm!($width
                        load_words!($op $width),
                        loop_over_lines!(body!($op $width), "add {p}, \\s\n"),
                        keep_words!($op $width),
                        p = inout(reg) first => _,
                        eights = inout(reg) lines / 8 => _,
                        ones = inout(reg) lines % 8 => _,
                        data = in(reg) std::ptr::from_mut(data),
                    );
                }
            }

            #[inline(always)]
            fn settle() {
                // SAFETY: fences are in every x86-64 processor and touch no memory.
                unsafe { $settle() }
            }
        }
    )+};
}

vector_kernels! {
    Ld512: ld 512, _mm_lfence;
    Ld256: ld 256, _mm_lfence;
    Ld128: ld 128, _mm_lfence;
    NtLd512: ntld 512, _mm_lfence;
    NtLd256: ntld 256, _mm_lfence;
    NtLd128: ntld 128, _mm_lfence;
    St512: st 512, _mm_mfence;
    St256: st 256, _mm_mfence;
    St128: st 128, _mm_mfence;
    StClwb512: clwb 512, _mm_mfence;
    StClwb256: clwb 256, _mm_mfence;
    StClwb128: clwb 128, _mm_mfence;
    Nt512: nt 512, _mm_mfence;
    Nt256: nt 256, _mm_mfence;
    Nt128: nt 128, _mm_mfence;
}

/// Orders the stores before it before those after it, non-temporal ones too.
#[inline(always)]
pub fn store_fence() {
    // SAFETY: sfence is in every x86-64 processor and touches no memory.
    unsafe { _mm_sfence() }
}

/// Whether this processor has `clwb`, and whether it has `clflushopt`.
pub(super) fn writes_back() -> (bool, bool) {
    (has(Leaf7::Clwb), has(Leaf7::Clflushopt))
}

/// Flushes a line out of every cache and waits until it is gone.
///
/// # Safety
/// `line` is mapped.
#[inline]
pub unsafe fn flush(line: *mut u8) {
    static OPTIMISED: std::sync::LazyLock<bool> =
        std::sync::LazyLock::new(|| has(Leaf7::Clflushopt));
    // SAFETY: flushing changes no data; the instruction is chosen by what the processor has.
    unsafe {
        if *OPTIMISED {
            asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
        } else {
            asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags));
        }
        _mm_mfence();
    }
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
                "mov {p}, [{p}]", "mov {p}, [{p}]", "mov {p}, [{p}]", "mov {p}, [{p}]",
                "mov {p}, [{p}]", "mov {p}, [{p}]", "mov {p}, [{p}]", "mov {p}, [{p}]",
                "dec {n}",
                "jnz 2b",
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
        asm!("mov {p}, [{p}]", p = inout(reg) line, options(nostack, readonly, preserves_flags))
    };
    line
}
