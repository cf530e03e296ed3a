//! Writes back the lines of persistent memory, and STREAM's kernels on blocks of it.
//!
//! A store to persistent memory is durable once its line was written back and a fence waited for that (Intel's manual,
//! volume 1, section 11.12 on CLWB; the Arm manual, D7.4.8 on the point of persistence).

use std::arch::asm;

use weir_model::access::Dataflow;

use super::LINE;

/// The instruction that writes a line back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBack {
    /// Keeps the line in the caches.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// Takes it out of the caches.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// The same, one line after the other.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    /// To the point of persistence.
    #[cfg(target_arch = "aarch64")]
    Cvap,
    /// To the point of coherence, which is that of persistence where there is no other.
    #[cfg(target_arch = "aarch64")]
    Cvac,
}

impl WriteBack {
    /// The best that this processor has.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        match super::x86::writes_back() {
            (true, _) => Self::Clwb,
            (false, true) => Self::ClflushOpt,
            (false, false) => Self::Clflush,
        }
        #[cfg(target_arch = "aarch64")]
        match std::arch::is_aarch64_feature_detected!("dpb") {
            true => Self::Cvap,
            false => Self::Cvac,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Clwb => "clwb",
            #[cfg(target_arch = "x86_64")]
            Self::ClflushOpt => "clflushopt",
            #[cfg(target_arch = "x86_64")]
            Self::Clflush => "clflush",
            #[cfg(target_arch = "aarch64")]
            Self::Cvap => "dc cvap",
            #[cfg(target_arch = "aarch64")]
            Self::Cvac => "dc cvac",
        }
    }

    /// Writes back every line of a range and waits until that is done.
    ///
    /// # Safety
    /// The range is mapped.
    pub unsafe fn persist(self, first: *const u8, bytes: usize) {
        let ahead = first.addr() % LINE;
        let mut line = first.wrapping_sub(ahead);
        let end = first.wrapping_add(bytes);
        while line < end {
            // SAFETY: the line has a byte of the range, and no data changes; the processor has the instruction.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                match self {
                    Self::Clwb => asm!("clwb [{}]", in(reg) line, options(nostack)),
                    Self::ClflushOpt => asm!("clflushopt [{}]", in(reg) line, options(nostack)),
                    Self::Clflush => asm!("clflush [{}]", in(reg) line, options(nostack)),
                }
                #[cfg(target_arch = "aarch64")]
                match self {
                    // dc cvap, which older assemblers do not know by name.
                    Self::Cvap => asm!("sys #3, c7, c12, #1, {}", in(reg) line, options(nostack)),
                    Self::Cvac => asm!("dc cvac, {}", in(reg) line, options(nostack)),
                }
            }
            line = line.wrapping_add(LINE);
        }
        // SAFETY: a fence.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!("sfence", options(nostack));
            #[cfg(target_arch = "aarch64")]
            asm!("dsb sy", options(nostack));
        }
    }
}

/// Numbers in a line.
const LINE_NUMBERS: usize = LINE / size_of::<f64>();

/// The factor of Scale and Triad.
pub const SCALAR: f64 = 3.0;

/// What a kernel makes of an element of each source; copy and scale have one source.
#[inline(always)]
pub fn of(kernel: Dataflow, first: f64, second: f64) -> f64 {
    match kernel {
        Dataflow::Scale => SCALAR * first,
        Dataflow::Add => first + second,
        Dataflow::Triad => first + SCALAR * second,
        Dataflow::Copy | Dataflow::Apart => first,
    }
}

/// Writes a block: `to[i]` from `first[i]` and `second[i]`.
///
/// # Safety
/// The arrays have this many elements; no other thread writes them, or reads `to`.
pub unsafe fn block(
    kernel: Dataflow,
    to: *mut f64,
    first: *const f64,
    second: *const f64,
    count: usize,
) {
    // A loop for each kernel, so that the compiler makes vectors of it. SAFETY: as the caller promises.
    macro_rules! each {
        ($kernel:expr) => {
            for i in 0..count {
                unsafe { *to.add(i) = of($kernel, *first.add(i), *second.add(i)) }
            }
        };
    }
    match kernel {
        Dataflow::Scale => each!(Dataflow::Scale),
        Dataflow::Add => each!(Dataflow::Add),
        Dataflow::Triad => each!(Dataflow::Triad),
        Dataflow::Copy | Dataflow::Apart => {
            // A compiler would make a call of memcpy of the loop, which may store past the caches.
            let lines = count / LINE_NUMBERS;
            for line in 0..lines {
                let at = line * LINE_NUMBERS;
                // SAFETY: the line is inside the arrays; the empty assembly changes nothing.
                unsafe {
                    let numbers = first.add(at).cast::<[f64; LINE_NUMBERS]>().read();
                    to.add(at).cast::<[f64; LINE_NUMBERS]>().write(numbers);
                    asm!("", options(nostack, preserves_flags));
                }
            }
            for i in lines * LINE_NUMBERS..count {
                // SAFETY: as the caller promises.
                unsafe { *to.add(i) = *first.add(i) }
            }
        }
    }
}
