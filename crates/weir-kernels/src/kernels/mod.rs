//! The kernels. Sections are those of the paper; what it leaves open is ours.

mod buffer;
mod compress;
mod digest;
mod expander;
mod log;
mod placement;
mod project;
mod scan;
mod ssd;
mod transpose;

pub use buffer::Buffer;
pub use compress::{Compress, pack, unpack};
pub use digest::{Digest, digest};
pub use expander::Expander;
pub use log::Log;
pub use placement::Placement;
pub use project::Project;
pub use scan::{Comparison, Predicate, Scan};
pub use ssd::Ssd;
pub use transpose::Transpose;

use crate::kernel::{LINE, Line};

/// The line at an offset of bytes; zeros beyond their end.
fn line_of(bytes: &[u8], at: u64) -> Line {
    let mut line = [0; LINE];
    let from = (at as usize).min(bytes.len());
    let part = &bytes[from..(from + LINE).min(bytes.len())];
    line[..part.len()].copy_from_slice(part);
    line
}

/// Writes a line at an offset of bytes; what is beyond their end is dropped.
fn put_line(bytes: &mut [u8], at: u64, line: &Line) {
    let from = (at as usize).min(bytes.len());
    let to = (from + LINE).min(bytes.len());
    bytes[from..to].copy_from_slice(&line[..to - from]);
}

/// A word of a line, little-endian.
fn word(line: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&line[8 * at..8 * at + 8]);
    u64::from_le_bytes(word)
}
