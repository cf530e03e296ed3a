use std::collections::VecDeque;

use super::{line_of, put_line};
use crate::kernel::{Fault, Io, Kernel, Line};
use crate::media::PAGE;

/// Flash behind staging memory: the fixed kernel of SSD semantics (Figure 3), by lines.
#[derive(Debug)]
pub struct Ssd {
    first: u64,
    pages: u64,
    room: usize,
    /// Pages in staging memory, the last used one last, and whether each is newer than flash.
    staged: VecDeque<(u64, Vec<u8>, bool)>,
}

impl Ssd {
    /// Pages of flash from `first` on, with room for this many of them in staging memory.
    pub fn new(first: u64, pages: u64, room: usize) -> Self {
        let room = room.max(1);
        Self {
            first,
            pages,
            room,
            staged: VecDeque::new(),
        }
    }

    fn stage(&mut self, at: u64, io: &mut Io<'_>) -> &mut (u64, Vec<u8>, bool) {
        let page = self.first + at / PAGE as u64;
        let found = self.staged.iter().position(|staged| staged.0 == page);
        if found.is_none() && self.staged.len() >= self.room {
            self.evict(io);
        }
        let staged = match found.and_then(|at| self.staged.remove(at)) {
            Some(staged) => staged,
            None => (page, io.flash_read(page), false),
        };
        io.sram(64);
        self.staged.push_back(staged);
        let last = self.staged.len() - 1;
        &mut self.staged[last]
    }

    fn evict(&mut self, io: &mut Io<'_>) {
        if let Some((page, bytes, true)) = self.staged.pop_front() {
            let done = io.flash_program(page, bytes);
            io.until(done);
        }
    }
}

impl Kernel for Ssd {
    fn name(&self) -> &'static str {
        "ssd"
    }

    fn len(&self) -> u64 {
        self.pages * PAGE as u64
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        Ok(line_of(&self.stage(at, io).1, at % PAGE as u64))
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        let staged = self.stage(at, io);
        put_line(&mut staged.1, at % PAGE as u64, line);
        staged.2 = true;
        Ok(())
    }

    fn write_expected(&mut self, at: u64, io: &mut Io<'_>) {
        self.stage(at, io);
    }

    fn flush(&mut self, at: u64, len: u64, io: &mut Io<'_>) -> Result<(), Fault> {
        let pages = self.first + at / PAGE as u64..self.first + (at + len).div_ceil(PAGE as u64);
        for (page, bytes, dirty) in self.staged.iter_mut().filter(|staged| staged.2) {
            if pages.contains(page) {
                let done = io.flash_program(*page, bytes.clone());
                io.until(done);
                *dirty = false;
            }
        }
        Ok(())
    }
}
