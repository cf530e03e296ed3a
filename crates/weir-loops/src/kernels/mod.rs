//! The measuring loops: one memory instruction each, in the widest form that the processor has.
//!
//! A [`Kernel`] is one instruction on runs of whole lines, in order or in scattered blocks. It is written in
//! assembly, so that no compiler widens, narrows, hoists or drops an access. The stored words differ from
//! word to word and from line to line and are never zero: processors and devices that recognise uniform lines
//! move them faster than other data.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
mod aarch64_rounds;
pub mod chase;
pub mod durable;
pub mod rounds;
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod x86_bodies;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_rounds;
#[cfg(target_arch = "x86_64")]
mod x86_scalar;

use std::fmt;

use weir_model::access::Op;
use weir_model::capability::Feature;
use weir_model::machine::MachineError;
use weir_model::units::LINE_BYTES;

#[cfg(target_arch = "aarch64")]
use aarch64 as arch;
#[cfg(target_arch = "x86_64")]
use x86 as arch;

pub use arch::{flush, hop, hops, store_fence};

/// Bytes in a line, as a count of bytes in memory.
pub const LINE: usize = LINE_BYTES as usize;

/// A family of vector instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// 128-bit vectors that every x86-64 processor has.
    Sse2,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors: a line in one instruction.
    Avx512,
    /// 128-bit vectors, in pairs, that every 64-bit Arm processor has.
    Neon,
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Isa::Sse2 => "SSE2",
            Isa::Avx2 => "AVX2",
            Isa::Avx512 => "AVX-512",
            Isa::Neon => "NEON",
        })
    }
}

/// The families that this processor and its kernel support, narrowest first.
pub fn families() -> Vec<Isa> {
    arch::families()
}

/// The words to store: eight words that change by eight odd steps with every line.
#[repr(C, align(64))]
#[derive(Debug, Clone)]
pub struct Data {
    now: [u64; 8],
    step: [u64; 8],
    /// Lines of random words, as the source of copy instructions.
    source: Box<[SourceLine; SOURCE_LINES]>,
}

const SOURCE_LINES: usize = 64;

#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
struct SourceLine([u64; 8]);

impl Data {
    /// Words drawn from `seed`, none of them zero.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut words = || std::array::from_fn(|_| random.word() | 1);
        let (now, step) = (words(), words());
        let mut source = Box::new([SourceLine([0; 8]); SOURCE_LINES]);
        for line in source.iter_mut() {
            *line = SourceLine(words());
        }
        Self { now, step, source }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a few cycles for a well-mixed word.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A different sequence for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next word.
    #[inline(always)]
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    #[inline(always)]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.word()) * bound as u128) >> 64) as usize
    }
}

/// Blocks from which scattered runs are drawn: `count` adjacent blocks of `lines` lines.
#[derive(Debug, Clone, Copy)]
pub struct Blocks {
    /// Lines in a block.
    pub lines: usize,
    /// Blocks in the working set.
    pub count: usize,
}

/// The instruction, once for each form, and the drivers that the compiler makes from it.
trait Lines {
    /// Accesses `lines` lines from `first` on, ascending.
    ///
    /// # Safety
    /// The lines are mapped, aligned, writable, and not used by anything else; the processor has the
    /// instruction.
    unsafe fn run(first: *mut u8, lines: usize, data: &mut Data);

    /// Waits until everything that `run` did is complete: loads have their data, stores are visible to every
    /// other agent, and streaming stores and write-backs were accepted.
    fn settle();
}

type Run = unsafe fn(*mut u8, usize, &mut Data);
type Burst = unsafe fn(&[*mut u8], &mut Data);
type Scatter = unsafe fn(*mut u8, Blocks, usize, &mut Random, &mut Data);

/// One instruction in one form, ready to run.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// The instruction.
    pub op: Op,
    /// The family of its form; the narrowest if the instruction has no vector form.
    pub isa: Isa,
    /// The instructions for a line, in assembly.
    pub mnemonic: &'static str,
    run: Run,
    run_settled: Run,
    burst_settled: Burst,
    scatter: Scatter,
    scatter_fenced: Scatter,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}: {})", self.op, self.isa, self.mnemonic)
    }
}

impl Kernel {
    fn of<L: Lines>(op: Op, isa: Isa, mnemonic: &'static str) -> Self {
        Self {
            op,
            isa,
            mnemonic,
            run: L::run,
            run_settled: run_settled::<L>,
            burst_settled: burst_settled::<L>,
            scatter: scatter::<L>,
            scatter_fenced: scatter_fenced::<L>,
        }
    }

    /// A placeholder for work of an accelerator: nothing runs.
    pub fn offloaded() -> Self {
        unsafe fn nothing(_: *mut u8, _: usize, _: &mut Data) {}
        unsafe fn none_at_once(_: &[*mut u8], _: &mut Data) {}
        unsafe fn nowhere(_: *mut u8, _: Blocks, _: usize, _: &mut Random, _: &mut Data) {}
        Self {
            op: Op::Dsa,
            isa: arch::NARROWEST,
            mnemonic: "memory-move descriptors",
            run: nothing,
            run_settled: nothing,
            burst_settled: none_at_once,
            scatter: nowhere,
            scatter_fenced: nowhere,
        }
    }

    /// The same instruction on a thread that it kills, to test the effect on the others.
    #[doc(hidden)]
    pub fn deadly(self) -> Self {
        unsafe fn die(_: *mut u8, _: usize, _: &mut Data) {
            panic!("this thread was to die");
        }
        unsafe fn die_at_once(_: &[*mut u8], _: &mut Data) {
            panic!("this thread was to die");
        }
        Self {
            run: die,
            run_settled: die,
            burst_settled: die_at_once,
            ..self
        }
    }

    /// Accesses `lines` lines from `first` on, ascending.
    ///
    /// # Safety
    /// The lines are mapped, aligned to a line, writable, and not used by anything else at the same time.
    #[inline]
    pub unsafe fn run(&self, first: *mut u8, lines: usize, data: &mut Data) {
        // SAFETY: as the caller promises; `select` only builds kernels that the processor has.
        unsafe { (self.run)(first, lines, data) }
    }

    /// The same, and waits until it is complete. With no lines it is the wait alone, with everything that
    /// surrounds an access: the cost of a timed access without the access.
    ///
    /// # Safety
    /// As for [`Kernel::run`].
    #[inline]
    pub unsafe fn run_settled(&self, first: *mut u8, lines: usize, data: &mut Data) {
        // SAFETY: as the caller promises; `select` only builds kernels that the processor has.
        unsafe { (self.run_settled)(first, lines, data) }
    }

    /// Accesses these lines one after the other without waiting for any of them, and then waits for all. With
    /// no lines it is the wait alone.
    ///
    /// # Safety
    /// As for [`Kernel::run`], for each of the lines.
    #[inline]
    pub unsafe fn burst_settled(&self, lines: &[*mut u8], data: &mut Data) {
        // SAFETY: as the caller promises; `select` only builds kernels that the processor has.
        unsafe { (self.burst_settled)(lines, data) }
    }

    /// Accesses `times` blocks drawn at random, each in ascending order. If `fenced`, each ends with a store
    /// fence, like a program that passes the block on.
    ///
    /// # Safety
    /// As for [`Kernel::run`], for every line of every block from `base` on.
    pub unsafe fn scatter(
        &self,
        base: *mut u8,
        blocks: Blocks,
        times: usize,
        fenced: bool,
        random: &mut Random,
        data: &mut Data,
    ) {
        let scatter = if fenced {
            self.scatter_fenced
        } else {
            self.scatter
        };
        // SAFETY: as the caller promises; `select` only builds kernels that the processor has.
        unsafe { scatter(base, blocks, times, random, data) }
    }
}

unsafe fn run_settled<L: Lines>(first: *mut u8, lines: usize, data: &mut Data) {
    // SAFETY: the promise of this function is that of `run`.
    unsafe { L::run(first, lines, data) };
    L::settle();
}

unsafe fn burst_settled<L: Lines>(lines: &[*mut u8], data: &mut Data) {
    for &line in lines {
        // SAFETY: the caller vouches for each of the lines.
        unsafe { L::run(line, 1, data) };
    }
    L::settle();
}

unsafe fn scatter<L: Lines>(
    base: *mut u8,
    blocks: Blocks,
    times: usize,
    random: &mut Random,
    data: &mut Data,
) {
    for _ in 0..times {
        let offset = random.below(blocks.count) * blocks.lines * LINE;
        // SAFETY: the offset is that of one of the blocks that the caller vouches for.
        unsafe { L::run(base.add(offset), blocks.lines, data) };
    }
}

unsafe fn scatter_fenced<L: Lines>(
    base: *mut u8,
    blocks: Blocks,
    times: usize,
    random: &mut Random,
    data: &mut Data,
) {
    for _ in 0..times {
        let offset = random.below(blocks.count) * blocks.lines * LINE;
        // SAFETY: the offset is that of one of the blocks that the caller vouches for.
        unsafe { L::run(base.add(offset), blocks.lines, data) };
        arch::store_fence();
    }
}

/// The kernel of an instruction, in the widest form that `widest` permits; without `widest`, in the widest
/// that the processor executes at full width.
///
/// # Errors
/// The processor lacks the instruction, or the family that `widest` names.
pub fn select(op: Op, widest: Option<Isa>) -> Result<Kernel, MachineError> {
    arch::kernel(op, widest_family(widest)?)
}

fn widest_family(widest: Option<Isa>) -> Result<Isa, MachineError> {
    let have = families();
    if let Some(wanted) = widest.filter(|isa| !have.contains(isa)) {
        let reason = format!("{wanted} was requested, but this processor has {have:?}");
        return Err(match wanted {
            Isa::Avx512 => missing(Feature::Avx512, reason),
            Isa::Avx2 => missing(Feature::Avx2, reason),
            Isa::Sse2 | Isa::Neon => MachineError::Request(reason),
        });
    }
    Ok(widest.unwrap_or_else(arch::whole))
}

fn no_instruction(op: Op) -> MachineError {
    MachineError::Request(match op {
        Op::UcLd => {
            "programs of a host have no memory that no cache keeps; `uc_ld` is for models".into()
        }
        _ => format!("`{op}` is not an instruction of the core"),
    })
}

fn missing(feature: Feature, reason: String) -> MachineError {
    MachineError::Missing { feature, reason }
}

#[cfg(test)]
mod rounds_tests;
#[cfg(test)]
mod tests;
