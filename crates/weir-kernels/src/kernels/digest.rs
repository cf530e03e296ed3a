use super::{line_of, put_line, word};
use crate::kernel::{Fault, Io, Kernel, LINE, Line};

/// Lines, and behind them a view that computes: a sum for each line, eight to a line of the view, with no memory behind them
/// (section 3, non-backed addressing). A host that reads sums never sees those of lines that were stored to since.
#[derive(Debug)]
pub struct Digest(Vec<u8>);

/// The sum of the words of a line.
pub fn digest(line: &Line) -> u64 {
    (0..8).fold(0, |sum, at| sum.wrapping_add(word(line, at)))
}

impl Digest {
    /// This many lines of zeros, rounded up to eight.
    pub fn new(lines: usize) -> Self {
        Self(vec![0; lines.next_multiple_of(8) * LINE])
    }

    fn base(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Kernel for Digest {
    fn name(&self) -> &'static str {
        "view"
    }

    fn len(&self) -> u64 {
        self.base() + self.base() / 8
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        let Some(view) = at.checked_sub(self.base()) else {
            io.dram(LINE);
            return Ok(line_of(&self.0, at));
        };
        io.dram(8 * LINE);
        let mut line = [0; LINE];
        for own in 0..8 {
            let sum = digest(&line_of(&self.0, 8 * view + own * LINE as u64));
            put_line(
                &mut line[8 * own as usize..][..8],
                0,
                &line_of(&sum.to_le_bytes(), 0),
            );
        }
        Ok(line)
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        if at >= self.base() {
            return Err(self.unsupported(at));
        }
        io.dram(LINE);
        put_line(&mut self.0, at, line);
        Ok(())
    }

    fn changes(&self, at: u64) -> Vec<u64> {
        let base = self.base();
        let view = base + at / 8 / LINE as u64 * LINE as u64;
        (at < base).then_some(view).into_iter().collect()
    }

    fn sources(&self, at: u64) -> Vec<u64> {
        let view = at.checked_sub(self.base());
        let lines = view.map(|view| (0..8).map(move |own| 8 * view + own * LINE as u64));
        lines.into_iter().flatten().collect()
    }
}
