//! Rounds: some lines are loaded, each from a different array, then some lines are accessed with the
//! instruction, and again. Mixes of reads and writes, copies and the four kernels of STREAM have this form.

use weir_model::access::{Dataflow, Op};
use weir_model::machine::MachineError;

use super::{Data, Isa, LINE, Lines, arch, widest_family};

/// The factor of STREAM's scale and triad.
pub const FACTOR: f64 = 3.0;

/// Most lines in a round, both kinds together: each array is a stream, and no processor follows more.
pub const LONGEST: usize = 64;

/// The parts of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Lines loaded, each from a different array.
    pub loads: usize,
    /// Lines that the instruction accesses, all in one array.
    pub per: usize,
    /// How the loaded data is used.
    pub dataflow: Dataflow,
}

impl Shape {
    /// Lines in a round.
    pub fn lines(self) -> usize {
        self.loads + self.per
    }
}

/// The arrays of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Arrays {
    /// The first array that is loaded.
    pub loaded: *mut u8,
    /// Bytes from each loaded array to the next one.
    pub stride: usize,
    /// The array that the instruction accesses.
    pub touched: *mut u8,
}

pub(super) type Run = unsafe fn(Arrays, usize, Shape, &mut Data);

/// Rounds of one shape with one instruction in one form, ready to run.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// The parts of a round.
    pub shape: Shape,
    run: Run,
}

impl Rounds {
    /// Runs `rounds` rounds, beginning with number `from` of the arrays.
    ///
    /// # Safety
    /// Every array is mapped, aligned to a line and not used by anything else up to round `from + rounds`; a
    /// round is one line of each loaded array and `per` lines of the other one, which is writable.
    #[inline]
    pub unsafe fn run(&self, arrays: Arrays, from: usize, rounds: usize, data: &mut Data) {
        let arrays = Arrays {
            loaded: arrays.loaded.wrapping_add(from * LINE),
            touched: arrays.touched.wrapping_add(from * self.shape.per * LINE),
            ..arrays
        };
        // SAFETY: as the caller promises; `select` only builds what the processor has.
        unsafe { (self.run)(arrays, rounds, self.shape, data) }
    }

    /// In words, around the instruction.
    pub fn describe(&self, loaded: &str, touched: &str) -> String {
        let Shape {
            loads,
            per,
            dataflow,
        } = self.shape;
        let how = match dataflow {
            Dataflow::Apart => {
                return format!("rounds of {loads} x ({loaded}), {per} x ({touched})");
            }
            Dataflow::Copy => "what was loaded is written",
            Dataflow::Scale => "times 3 in floating point",
            Dataflow::Add => "the sum of both in floating point",
            Dataflow::Triad => "the first and 3 times the second in floating point",
        };
        let plural = if loads == 1 { "" } else { "s" };
        format!(
            "{}: {loads} line{plural} loaded, {how}, by {touched}",
            dataflow.name()
        )
    }
}

/// Rounds of `shape` with `op`, in the widest form that the processor has and that `widest`
/// permits.
///
/// # Errors
/// The processor lacks the instruction or the family, or the shape makes no sense.
pub fn select(op: Op, shape: Shape, widest: Option<Isa>) -> Result<Rounds, MachineError> {
    // Refuses instructions that the processor does not have, with the kernel's message.
    super::select(op, widest)?;
    check(op, shape).map_err(MachineError::Request)?;
    let run = arch::rounds(op, widest_family(widest)?, shape.dataflow)?;
    Ok(Rounds { shape, run })
}

fn check(op: Op, shape: Shape) -> Result<(), String> {
    let Shape {
        loads,
        per,
        dataflow,
    } = shape;
    if loads == 0 || per == 0 || loads.saturating_add(per) > LONGEST {
        return Err(format!(
            "a round of {loads} lines read for {per} must have both, and at most {LONGEST} together"
        ));
    }
    let wanted = match dataflow {
        Dataflow::Apart => return Ok(()),
        Dataflow::Copy | Dataflow::Scale => (1, 1),
        Dataflow::Add | Dataflow::Triad => (2, 1),
    };
    if (loads, per) != wanted {
        return Err(format!(
            "{} reads {} for {}, not {loads} for {per}",
            dataflow.name(),
            wanted.0,
            wanted.1
        ));
    }
    let stores = matches!(op, Op::St | Op::StClwb | Op::NtSt);
    if !(stores || op == Op::Movdir64b && dataflow == Dataflow::Copy) {
        return Err(format!(
            "`{op}` cannot write what `{}` gives",
            dataflow.name()
        ));
    }
    Ok(())
}

/// Rounds of independent lines, one line at a time.
pub(super) unsafe fn apart<R: Lines, T: Lines>(
    arrays: Arrays,
    rounds: usize,
    shape: Shape,
    data: &mut Data,
) {
    let (mut loaded, mut touched) = (arrays.loaded, arrays.touched);
    for _ in 0..rounds {
        let mut line = loaded;
        for _ in 0..shape.loads {
            // SAFETY: one line of an array that the caller vouches for.
            unsafe { R::run(line, 1, data) };
            line = line.wrapping_add(arrays.stride);
        }
        // SAFETY: the round's lines of the touched array.
        unsafe { T::run(touched, shape.per, data) };
        loaded = loaded.wrapping_add(LINE);
        touched = touched.wrapping_add(shape.per * LINE);
    }
}

/// Makes floating-point numbers between 1 and 2 of the words of `lines` lines, so that no sum or product of
/// them is a slow special case of the processor.
///
/// # Safety
/// The lines are mapped, aligned, writable and not used by anything else.
pub unsafe fn make_numbers(first: *mut u8, lines: usize) {
    let (mantissa, one) = ((1 << 52) - 1, 0x3ff << 52);
    for word in 0..lines * LINE / 8 {
        // SAFETY: a word of one of the lines that the caller vouches for.
        unsafe {
            let word = first.cast::<u64>().add(word);
            word.write(word.read() & mantissa | one);
        }
    }
}
