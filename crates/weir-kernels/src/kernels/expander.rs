use super::{line_of, put_line};
use crate::kernel::{Fault, Io, Kernel, Line};

/// Memory of the device as it is: the fixed kernel of a memory expander (Figure 3).
#[derive(Debug)]
pub struct Expander(Vec<u8>);

impl Expander {
    /// This many bytes of zeros.
    pub fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }
}

impl Kernel for Expander {
    fn name(&self) -> &'static str {
        "expander"
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        io.dram(64);
        Ok(line_of(&self.0, at))
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        io.dram(64);
        put_line(&mut self.0, at, line);
        Ok(())
    }
}
