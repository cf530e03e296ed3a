//! x86-64: the instructions that have no vector form.

use std::arch::asm;
use std::arch::x86_64::_mm_mfence;

use super::{Data, LINE, Lines, SOURCE_LINES};

/// 64-byte direct stores from a small ring of source lines that stays in the first-level cache.
pub(super) struct Movdir64b;

impl Lines for Movdir64b {
    #[inline(always)]
    unsafe fn run(first: *mut u8, lines: usize, data: &mut Data) {
        let source = data.source.as_ptr();
        for line in 0..lines {
            // SAFETY: writes one line that the caller vouches for, from one line of the ring.
            unsafe {
                asm!(
                    "movdir64b {to}, [{from}]",
                    to = in(reg) first.add(line * LINE),
                    from = in(reg) source.add((data.now[0] as usize).wrapping_add(line) % SOURCE_LINES),
                    options(nostack, preserves_flags)
                );
            }
        }
        // The next run starts elsewhere in the ring, so that no line receives the content that it already
        // has.
        data.now[0] = data.now[0].wrapping_add(lines as u64 | 1);
    }

    #[inline(always)]
    fn settle() {
        // SAFETY: mfence is in every x86-64 processor and touches no memory.
        unsafe { _mm_mfence() }
    }
}

/// Read, add, compare and swap the first word of the line, as a lock-free program does: the swap always
/// succeeds, and hits the line that the read has fetched.
pub(super) struct Cas;

impl Lines for Cas {
    #[inline(always)]
    unsafe fn run(first: *mut u8, lines: usize, data: &mut Data) {
        // SAFETY: touches one word of each line that the caller vouches for; rax and the flags are
        // declared.
        unsafe {
            asm!(
                "test {n}, {n}",
                "jz 3f",
                "2:",
                "mov rax, [{p}]",
                "lea {new}, [rax + {step}]",
                "lock cmpxchg [{p}], {new}",
                "add {p}, 64",
                "dec {n}",
                "jnz 2b",
                "3:",
                p = inout(reg) first => _,
                n = inout(reg) lines => _,
                step = in(reg) data.step[0],
                new = out(reg) _,
                out("rax") _,
                options(nostack)
            );
        }
    }

    #[inline(always)]
    fn settle() {
        // SAFETY: mfence is in every x86-64 processor and touches no memory.
        unsafe { _mm_mfence() }
    }
}
