use super::{line_of, put_line};
use crate::kernel::{Fault, Io, Kernel, Line};
use crate::media::PAGE;

/// Frames of a buffer manager in the device's DRAM; `flush` moves them to flash inside the device (section 4, buffer
/// manager extension). Without it the host reads the frame over the link and writes it to a drive.
#[derive(Debug)]
pub struct Buffer {
    first: u64,
    frames: Vec<u8>,
}

impl Buffer {
    /// This many frames, each of which is a page of flash from `first` on.
    pub fn new(first: u64, frames: usize) -> Self {
        let frames = vec![0; frames * PAGE];
        Self { first, frames }
    }
}

impl Kernel for Buffer {
    fn name(&self) -> &'static str {
        "buffer"
    }

    fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        io.dram(64);
        Ok(line_of(&self.frames, at))
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        io.dram(64);
        put_line(&mut self.frames, at, line);
        Ok(())
    }

    fn flush(&mut self, at: u64, len: u64, io: &mut Io<'_>) -> Result<(), Fault> {
        let pages = self.frames.len() / PAGE;
        let last = ((at + len) as usize).div_ceil(PAGE).min(pages);
        let mut done = io.now;
        for frame in at as usize / PAGE..last {
            io.dram(PAGE);
            let bytes = self.frames[frame * PAGE..(frame + 1) * PAGE].to_vec();
            done = done.max(io.flash_program(self.first + frame as u64, bytes));
        }
        io.until(done);
        Ok(())
    }
}
