use super::{line_of, word};
use crate::kernel::{Fault, Io, Kernel, LINE, Line};

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Below the value.
    Below,
    /// The value.
    Equal,
    /// Above it.
    Above,
}

/// Which rows qualify: those whose column of 8 bytes compares so with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predicate {
    /// The column.
    pub column: usize,
    /// How it is compared.
    pub by: Comparison,
    /// With what.
    pub value: u64,
}

impl Predicate {
    /// The line that a host writes to the beginning of the window.
    pub fn line(&self) -> Line {
        let mut line = [0; LINE];
        let words = [self.column as u64, self.by as u64, self.value];
        for (at, word) in words.into_iter().enumerate() {
            line[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        line
    }

    fn of(line: &Line) -> Self {
        let by = match word(line, 1) {
            0 => Comparison::Below,
            1 => Comparison::Equal,
            _ => Comparison::Above,
        };
        let (column, value) = (word(line, 0) as usize, word(line, 2));
        Self { column, by, value }
    }

    /// Whether a row qualifies.
    pub fn holds(&self, row: &[u8]) -> bool {
        let own = word(row, self.column);
        match self.by {
            Comparison::Below => own < self.value,
            Comparison::Equal => own == self.value,
            Comparison::Above => own > self.value,
        }
    }
}

/// A scan (section 4, query execution worker). The window's first line takes a predicate and then shows how many rows
/// qualify; the lines behind it show these rows, and no memory is behind them. The table follows.
#[derive(Debug)]
pub struct Scan {
    table: Vec<u8>,
    row: usize,
    found: Vec<u8>,
}

impl Scan {
    /// A table of rows of this many bytes, a multiple of 8.
    pub fn new(table: Vec<u8>, row: usize) -> Self {
        let row = row.max(8).next_multiple_of(8);
        Self {
            table,
            row,
            found: Vec::new(),
        }
    }
}

impl Kernel for Scan {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn len(&self) -> u64 {
        (LINE + self.table.len().next_multiple_of(LINE)) as u64
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        io.sram(64);
        if at > 0 {
            return Ok(line_of(&self.found, at - LINE as u64));
        }
        let rows = (self.found.len() / self.row) as u64;
        Ok(line_of(&rows.to_le_bytes(), 0))
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        let predicate = Predicate::of(line);
        if at > 0 || predicate.column >= self.row / 8 {
            return Err(self.unsupported(at));
        }
        io.dram(self.table.len());
        let rows = self.table.chunks_exact(self.row);
        self.found = rows
            .filter(|row| predicate.holds(row))
            .flatten()
            .copied()
            .collect();
        Ok(())
    }

    fn changes(&self, at: u64) -> Vec<u64> {
        let lines = if at == 0 { self.len() / LINE as u64 } else { 0 };
        (1..lines).map(|line| line * LINE as u64).collect()
    }

    fn sources(&self, at: u64) -> Vec<u64> {
        if at == 0 { Vec::new() } else { vec![0] }
    }
}
