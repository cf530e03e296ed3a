use std::collections::VecDeque;

use crate::kernel::{Fault, Io, Kernel, LINE, Line};
use crate::media::{Media, PAGE};

/// A transaction log (section 4): lines are written in order, are durable in SRAM with a battery, and go to flash a page at a
/// time while the host works. A notice of a write frees room in SRAM before the line comes.
#[derive(Debug)]
pub struct Log {
    first: u64,
    lines: u64,
    room: usize,
    /// Where the next line belongs.
    next: u64,
    /// Lines in SRAM with their offsets, the oldest first.
    sram: VecDeque<(u64, Line)>,
    /// Lines of `sram` whose page is being programmed, and when that is done.
    leaving: Option<(usize, u64)>,
}

/// Lines of a page.
const PER_PAGE: usize = PAGE / LINE;

impl Log {
    /// A log of this many lines on flash from page `first` on, with room for at least a page of lines in SRAM.
    pub fn new(first: u64, lines: u64, room: usize) -> Self {
        let room = room.max(PER_PAGE);
        Self {
            first,
            lines,
            room,
            next: 0,
            sram: VecDeque::new(),
            leaving: None,
        }
    }

    /// A page of lines goes to flash, if there is one and none is on the way.
    fn destage(&mut self, io: &mut Io<'_>) {
        // Room is free when the program is done, not before: power may fail until then.
        if let Some((lines, _)) = self.leaving.filter(|(_, done)| *done <= io.now) {
            self.sram.drain(..lines);
            self.leaving = None;
        }
        if self.leaving.is_none() && self.sram.len() >= PER_PAGE {
            let page = self.first + self.sram[0].0 / PAGE as u64;
            let bytes = self
                .sram
                .iter()
                .take(PER_PAGE)
                .flat_map(|(_, line)| *line)
                .collect();
            self.leaving = Some((PER_PAGE, io.flash_program(page, bytes)));
        }
    }

    /// What recovery finds, in order: whole pages of flash, then SRAM.
    pub fn recover(&self, media: &Media) -> Vec<Line> {
        let staged = self.sram.front().map_or(self.next, |(at, _)| *at) / PAGE as u64;
        let pages = (0..staged).map(|page| media.flash.content(self.first + page));
        let lines = pages.flat_map(|bytes| {
            bytes
                .chunks(LINE)
                .map(|line| super::line_of(line, 0))
                .collect::<Vec<_>>()
        });
        lines
            .chain(self.sram.iter().map(|(_, line)| *line))
            .collect()
    }
}

impl Kernel for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn len(&self) -> u64 {
        self.lines * LINE as u64
    }

    fn read(&mut self, _: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        // A log is read by recovery; a store's read for ownership gets zeros.
        io.sram(64);
        Ok([0; LINE])
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        if at != self.next {
            return Err(self.unsupported(at));
        }
        while self.sram.len() >= self.room {
            self.destage(io);
            if let Some((_, done)) = self.leaving.filter(|_| self.sram.len() >= self.room) {
                io.until(done);
            }
        }
        io.sram(64);
        self.sram.push_back((at, *line));
        self.next += LINE as u64;
        Ok(())
    }

    fn write_expected(&mut self, _: u64, io: &mut Io<'_>) {
        if self.sram.len() >= self.room {
            self.destage(io);
        }
    }
}
