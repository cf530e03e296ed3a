use std::collections::HashMap;

use super::word;
use crate::kernel::{Fault, Io, Kernel, LINE, Line};

/// A range that keeps lines compressed (section 4, coherent virtual views): they are packed on a write, unpacked on a read.
#[derive(Debug, Default)]
pub struct Compress {
    bytes: u64,
    lines: HashMap<u64, Vec<u8>>,
}

impl Compress {
    /// A range of this many bytes.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            lines: HashMap::new(),
        }
    }

    /// What its lines take.
    pub fn stored(&self) -> usize {
        self.lines.values().map(Vec::len).sum()
    }
}

/// Packs a line: a byte that says how wide differences are, the first word, and the difference of each of the others to it,
/// as in base-delta-immediate compression (Pekhimenko et al., PACT 2012) with one base of 8 bytes.
pub fn pack(line: &Line) -> Vec<u8> {
    let base = word(line, 0);
    let deltas: [i64; 8] = std::array::from_fn(|at| word(line, at).wrapping_sub(base) as i64);
    let fits = |width: &usize| {
        let low = -(1_i64 << (8 * width - 1));
        deltas.iter().all(|delta| (low..-low).contains(delta))
    };
    let width = [1, 2, 4].into_iter().find(fits).unwrap_or(8);
    let width = if deltas == [0; 8] { 0 } else { width };
    let mut packed = vec![width as u8];
    packed.extend(base.to_le_bytes());
    for delta in &deltas[1..] {
        packed.extend(&delta.to_le_bytes()[..width]);
    }
    packed
}

/// The line that was packed.
pub fn unpack(packed: &[u8]) -> Line {
    let width = usize::from(packed[0]);
    let base = word(&packed[1..], 0);
    let mut line = [0; LINE];
    for at in 0..8 {
        let mut delta = [0; 8];
        if at > 0 && width > 0 {
            let from = 9 + (at - 1) * width;
            delta[..width].copy_from_slice(&packed[from..from + width]);
        }
        let shift = 64 - 8 * width.max(1) as u32;
        let delta = i64::from_le_bytes(delta) << shift >> shift;
        line[8 * at..8 * at + 8].copy_from_slice(&base.wrapping_add(delta as u64).to_le_bytes());
    }
    line
}

impl Kernel for Compress {
    fn name(&self) -> &'static str {
        "compress"
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        io.dram(64);
        Ok(self
            .lines
            .get(&at)
            .map_or([0; LINE], |packed| unpack(packed)))
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        io.dram(64);
        self.lines.insert(at, pack(line));
        Ok(())
    }
}
