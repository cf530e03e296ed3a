use crate::kernel::{Fault, Io, Kernel, LINE, Line};

/// A table by rows, and behind it the same table by columns (section 4, coherent virtual views). A line of one view shows
/// cells of at most 64 / w lines of the other, where cells have w bytes.
#[derive(Debug)]
pub struct Transpose {
    cells: Vec<u8>,
    rows: usize,
    columns: usize,
    width: usize,
}

impl Transpose {
    /// A table of zeros; a cell has 1 to 64 bytes, a power of two.
    pub fn new(rows: usize, columns: usize, width: usize) -> Self {
        let width = width.next_power_of_two().clamp(1, LINE);
        let cells = vec![0; rows * columns * width];
        Self {
            cells,
            rows,
            columns,
            width,
        }
    }

    /// Bytes of a view, and the address of the second one.
    pub fn view(&self) -> u64 {
        self.cells.len().next_multiple_of(LINE) as u64
    }

    /// The offsets in the rows' view, and in the other one, of the cells that a line of either shows.
    fn shown(&self, at: u64) -> impl Iterator<Item = (usize, usize)> + '_ {
        let by_row = at < self.view();
        let first = (at % self.view()) as usize / self.width;
        (first..(first + LINE / self.width).min(self.rows * self.columns)).map(move |cell| {
            let (row, column) = match by_row {
                true => (cell / self.columns, cell % self.columns),
                false => (cell % self.rows, cell / self.rows),
            };
            let (rows, columns) = (row * self.columns + column, column * self.rows + row);
            let other = if by_row {
                self.view() as usize + columns * self.width
            } else {
                rows * self.width
            };
            (rows * self.width, other)
        })
    }
}

impl Kernel for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn len(&self) -> u64 {
        2 * self.view()
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        let mut line = [0; LINE];
        for (cell, (from, _)) in self.shown(at).enumerate() {
            let cell = cell * self.width;
            line[cell..cell + self.width].copy_from_slice(&self.cells[from..from + self.width]);
        }
        io.dram(LINE * self.changes(at).len().max(1));
        Ok(line)
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        let width = self.width;
        let shown: Vec<usize> = self.shown(at).map(|(to, _)| to).collect();
        for (cell, to) in shown.into_iter().enumerate() {
            self.cells[to..to + width].copy_from_slice(&line[cell * width..(cell + 1) * width]);
        }
        io.dram(LINE * self.changes(at).len().max(1));
        Ok(())
    }

    fn changes(&self, at: u64) -> Vec<u64> {
        let lines = self
            .shown(at)
            .map(|(_, other)| (other / LINE * LINE) as u64);
        let mut lines: Vec<u64> = lines.collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    fn sources(&self, at: u64) -> Vec<u64> {
        self.changes(at)
    }
}
