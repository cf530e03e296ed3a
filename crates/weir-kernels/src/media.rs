//! SRAM, DRAM and flash of a device.

use std::collections::HashMap;

/// Bytes of a page of flash.
pub const PAGE: usize = 4096;

/// How long media take, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// A line of staging memory (SRAM).
    pub sram: u64,
    /// The first line of DRAM.
    pub dram: u64,
    /// Each further one in order.
    pub dram_line: u64,
    /// A page of flash is read.
    pub flash_read: u64,
    /// A page of flash is programmed.
    pub flash_program: u64,
    /// Dies that do so at the same time.
    pub dies: usize,
}

/// All of a device.
#[derive(Debug)]
pub struct Media {
    /// How long they take.
    pub times: Times,
    /// Flash.
    pub flash: Flash,
}

impl Media {
    /// Empty media.
    pub fn new(times: Times) -> Self {
        let flash = Flash::new(times.flash_read, times.flash_program, times.dies);
        Self { times, flash }
    }
}

/// Flash: pages on dies that do one thing at a time.
#[derive(Debug, Clone)]
pub struct Flash {
    read: u64,
    program: u64,
    busy: Vec<u64>,
    /// Versions of a page with the time at which their program is done, oldest first.
    pages: HashMap<u64, Vec<(u64, Vec<u8>)>>,
    /// Pages that were read.
    pub reads: u64,
    /// Pages that were programmed.
    pub programs: u64,
}

impl Flash {
    /// Empty flash.
    pub fn new(read: u64, program: u64, dies: usize) -> Self {
        Self {
            read,
            program,
            busy: vec![0; dies.max(1)],
            pages: HashMap::new(),
            reads: 0,
            programs: 0,
        }
    }

    fn take(&mut self, page: u64, now: u64, time: u64) -> u64 {
        let die = (page % self.busy.len() as u64) as usize;
        self.busy[die] = self.busy[die].max(now) + time;
        self.busy[die]
    }

    /// Reads a page, of zeros where nothing was written; returns when it is done.
    pub fn read(&mut self, page: u64, now: u64) -> (u64, Vec<u8>) {
        self.reads += 1;
        let done = self.take(page, now, self.read);
        (done, self.content(page))
    }

    /// Programs a page; returns when it is done.
    pub fn program(&mut self, page: u64, bytes: Vec<u8>, now: u64) -> u64 {
        self.programs += 1;
        let done = self.take(page, now, self.program);
        let versions = self.pages.entry(page).or_default();
        // Of those that are done by now, only the last can be what a loss of power leaves.
        while versions.len() > 1 && versions[1].0 <= now {
            versions.remove(0);
        }
        versions.push((done, bytes));
        done
    }

    /// What a page holds, also as the block device of the same flash reads it.
    pub fn content(&self, page: u64) -> Vec<u8> {
        let last = self.pages.get(&page).and_then(|versions| versions.last());
        last.map_or_else(|| vec![0; PAGE], |(_, bytes)| bytes.clone())
    }

    /// Power fails: what is not programmed by then is as it was before.
    pub fn lose_power(&mut self, now: u64) {
        for versions in self.pages.values_mut() {
            versions.retain(|(done, _)| *done <= now);
        }
        self.busy.fill(now);
    }
}
