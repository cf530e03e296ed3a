use super::{line_of, put_line};
use crate::kernel::{Fault, Io, Kernel, Line};

/// Columns of a table without the others (section 4, query execution worker): the range shows the chosen columns of all
/// rows, packed; no memory is behind it.
#[derive(Debug)]
pub struct Project {
    table: Vec<u8>,
    row: usize,
    columns: Vec<usize>,
}

impl Project {
    /// Columns of 8 bytes of a table of rows of this many bytes; columns that no row has are left out.
    pub fn new(table: Vec<u8>, row: usize, columns: &[usize]) -> Self {
        let row = row.max(8).next_multiple_of(8);
        let columns = columns
            .iter()
            .copied()
            .filter(|&column| column < row / 8)
            .collect();
        Self {
            table,
            row,
            columns,
        }
    }
}

impl Kernel for Project {
    fn name(&self) -> &'static str {
        "project"
    }

    fn len(&self) -> u64 {
        (self.table.len() / self.row * self.columns.len() * 8).next_multiple_of(64) as u64
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        let (width, rows) = (self.columns.len().max(1), self.table.len() / self.row);
        let mut line = [0; 64];
        for cell in 0..8 {
            let (row, column) = (
                (at as usize / 8 + cell) / width,
                (at as usize / 8 + cell) % width,
            );
            if row < rows {
                let from = row * self.row + 8 * self.columns[column];
                let part = line_of(&self.table[from..from + 8], 0);
                put_line(&mut line[8 * cell..8 * cell + 8], 0, &part);
            }
        }
        // Whole rows are read for the cells of a line.
        io.dram((8usize.div_ceil(width) + 1) * self.row);
        Ok(line)
    }

    fn write(&mut self, at: u64, _: &Line, _: &mut Io<'_>) -> Result<(), Fault> {
        Err(self.unsupported(at))
    }
}
