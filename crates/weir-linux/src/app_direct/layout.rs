//! Where the parts of a pool are: a header, an undo log for each thread, and three arrays.

use weir_model::units::LINE_BYTES;

/// What a pool of Weir begins with; the last character is the version of the layout.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"WEIRAPD1");
/// Where logs begin.
const LOGS_AT: u64 = 4096;
/// Arrays begin at multiples of this, so that large pages can map them.
const ALIGN: u64 = 2 << 20;
/// Threads that may have a log.
pub(super) const LOGS: u64 = 512;

/// The header, one line. Its words are written in order of the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Header {
    pub magic: u64,
    /// Elements of an array.
    pub elements: u64,
    /// Elements of a block.
    pub block: u64,
    /// Of the three words before.
    pub checksum: u64,
    /// [`READY`] once the arrays have their first values.
    pub ready: u64,
    /// The durability of the last run, by its place in `Durable::ALL`.
    pub durable: u64,
}

pub(super) const READY: u64 = 1;

impl Header {
    pub fn new(elements: u64, block: u64) -> Self {
        Self {
            magic: MAGIC,
            elements,
            block,
            checksum: checksum([MAGIC, elements, block]),
            ready: 0,
            durable: 0,
        }
    }

    pub fn is_whole(&self) -> bool {
        self.magic == MAGIC
            && self.checksum == checksum([self.magic, self.elements, self.block])
            && self.block > 0
    }
}

/// FNV-1a over the bytes of the words.
fn checksum(words: [u64; 3]) -> u64 {
    let bytes = words.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The first line of an undo log; the old bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Log {
    /// Whether the block is to be written back as it was.
    pub valid: u64,
    /// The array, 0 to 2.
    pub array: u64,
    /// The block.
    pub block: u64,
}

/// Offsets of the parts, from elements of an array and of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub elements: u64,
    pub block: u64,
}

impl Layout {
    pub fn log_at(self, thread: u64) -> u64 {
        let stride = LINE_BYTES + (self.block * 8).next_multiple_of(LINE_BYTES);
        LOGS_AT + thread * stride
    }

    pub fn array_at(self, array: u64) -> u64 {
        let first = self.log_at(LOGS).next_multiple_of(ALIGN);
        first + array * (self.elements * 8).next_multiple_of(ALIGN)
    }

    /// Bytes of the whole pool.
    pub fn bytes(self) -> u64 {
        self.array_at(3)
    }

    pub fn blocks(self) -> u64 {
        self.elements.div_ceil(self.block)
    }

    /// The first element of a block, and how many it has.
    pub fn block(self, block: u64) -> (u64, u64) {
        let first = block * self.block;
        (first, self.block.min(self.elements - first))
    }
}
