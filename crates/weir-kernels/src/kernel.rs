//! What a kernel is.

use crate::media::Media;

/// Bytes of a line.
pub const LINE: usize = 64;
/// A line.
pub type Line = [u8; LINE];

/// Why a handler cannot serve a request. A load gets poison; other ranges are not affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Outside the range, or the range has no such function.
    #[error("offset {at} of kernel {kernel} has no such function")]
    Unsupported {
        /// The kernel.
        kernel: &'static str,
        /// Bytes from the beginning of the range.
        at: u64,
    },
    /// The kernel failed.
    #[error("kernel {kernel} failed at offset {at}: {why}")]
    Failed {
        /// The kernel.
        kernel: &'static str,
        /// Bytes from the beginning of the range.
        at: u64,
        /// Why.
        why: String,
    },
    /// No range has this address.
    #[error("no kernel has address {0:#x}")]
    NoRange(u64),
}

/// The device, as a handler sees it. A handler says how long it takes by what it uses.
#[derive(Debug)]
pub struct Io<'a> {
    /// The time at which the handler is, in nanoseconds of the device's clock.
    pub now: u64,
    /// SRAM, DRAM, flash.
    pub media: &'a mut Media,
}

impl Io<'_> {
    /// Waits until a time.
    pub fn until(&mut self, time: u64) {
        self.now = self.now.max(time);
    }

    /// Accesses this many bytes of the device's SRAM.
    pub fn sram(&mut self, bytes: usize) {
        self.now += self.media.times.sram * (bytes.div_ceil(LINE) as u64);
    }

    /// Accesses this many bytes of the device's DRAM: the first line takes its latency, others stream.
    pub fn dram(&mut self, bytes: usize) {
        let rest = (bytes.div_ceil(LINE) as u64).saturating_sub(1);
        self.now += self.media.times.dram + rest * self.media.times.dram_line;
    }

    /// Reads a page of flash.
    pub fn flash_read(&mut self, page: u64) -> Vec<u8> {
        let (done, bytes) = self.media.flash.read(page, self.now);
        self.until(done);
        bytes
    }

    /// Begins to program a page of flash; returns when that is done.
    pub fn flash_program(&mut self, page: u64, bytes: Vec<u8>) -> u64 {
        self.media.flash.program(page, bytes, self.now)
    }
}

/// An address range with a meaning.
///
/// Offsets are bytes from the beginning of the range, and multiples of a line.
pub trait Kernel: Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Bytes of its range.
    fn len(&self) -> u64;

    /// Whether the range has no line.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A line is read (MemRd).
    ///
    /// # Errors
    /// The load gets poison.
    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault>;

    /// A line is written (MemWr).
    ///
    /// # Errors
    /// The line is lost.
    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault>;

    /// A host gets the right to write a line (a snoop with SnpInv): a write will probably follow. What is begun here
    /// goes on while the host computes.
    fn write_expected(&mut self, _at: u64, _io: &mut Io<'_>) {}

    /// Moves bytes of the range to where they are durable, inside the device.
    ///
    /// # Errors
    /// The kernel has no such medium.
    fn flush(&mut self, at: u64, _len: u64, _io: &mut Io<'_>) -> Result<(), Fault> {
        Err(self.unsupported(at))
    }

    /// Other lines of the range that change when this one is written. While a host may write this one, it has no copy of
    /// them.
    fn changes(&self, _at: u64) -> Vec<u64> {
        Vec::new()
    }

    /// Other lines of the range that change this one when they are written. What a host has written to them counts
    /// for a read of this one.
    fn sources(&self, _at: u64) -> Vec<u64> {
        Vec::new()
    }

    /// The error for an offset without a function.
    fn unsupported(&self, at: u64) -> Fault {
        let kernel = self.name();
        Fault::Unsupported { kernel, at }
    }
}
