//! Records of the log, as bytes: what a flush commits, together.
//!
//! A record is `magic, length, generation, sequence, checksum` and its operations. The checksum is CRC-32. Each use of an
//! area has a generation of its own, so that what an earlier one left never follows a new record.

use crate::extents::Run;

const MAGIC: u32 = 0x544c_4657;
/// Bytes before the operations.
pub const HEADER: usize = 28;

/// One change of what the medium has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A file appears, without pages.
    Create {
        /// Its number, never used again.
        id: u32,
        /// Its name.
        name: String,
    },
    /// A file and its pages disappear.
    Remove {
        /// Its number.
        id: u32,
    },
    /// A file has this many bytes.
    Size {
        /// Its number.
        id: u32,
        /// Bytes.
        bytes: u64,
    },
    /// Pages of a file are at these places.
    Map {
        /// Its number.
        id: u32,
        /// The first page of the file.
        page: u32,
        /// Where the pages are.
        run: Run,
    },
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Which use of the log it belongs to.
    pub generation: u64,
    /// Its number in that use.
    pub sequence: u64,
}

fn checksum(parts: [&[u8]; 2]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// A record.
pub fn encode(ops: &[Op], at: Position) -> Vec<u8> {
    let mut body = Vec::new();
    let mut put = |tag: u8, numbers: &[u64]| {
        body.push(tag);
        numbers
            .iter()
            .for_each(|number| body.extend(number.to_le_bytes()));
    };
    for op in ops {
        match op {
            Op::Create { id, name } => {
                put(1, &[u64::from(*id), name.len() as u64]);
                // Names have at most 255 bytes; they stand in whole words, like all else.
                for word in name.as_bytes().chunks(8) {
                    let mut padded = [0; 8];
                    padded[..word.len()].copy_from_slice(word);
                    put(0, &[u64::from_le_bytes(padded)]);
                }
            }
            Op::Remove { id } => put(2, &[u64::from(*id)]),
            Op::Size { id, bytes } => put(3, &[u64::from(*id), *bytes]),
            Op::Map { id, page, run } => {
                put(
                    4,
                    &[
                        u64::from(*id) | u64::from(*page) << 32,
                        u64::from(run.start) | u64::from(run.len) << 32,
                    ],
                );
            }
        }
    }
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(at.generation.to_le_bytes());
    bytes.extend(at.sequence.to_le_bytes());
    let sum = checksum([&bytes, &body]);
    bytes.extend(sum.to_le_bytes());
    bytes.extend(body);
    bytes
}

/// The record at the start of these bytes, and how long it is; `None` where there is none that is whole.
pub fn decode(bytes: &[u8], at: Position) -> Option<(Vec<Op>, usize)> {
    let header = bytes.get(..HEADER)?;
    let number =
        |from: usize| u32::from_le_bytes(header[from..from + 4].try_into().unwrap_or_default());
    let long = |from: usize| u64::from(number(from)) | u64::from(number(from + 4)) << 32;
    if number(0) != MAGIC || long(8) != at.generation || long(16) != at.sequence {
        return None;
    }
    let length = number(4) as usize;
    let body = bytes.get(HEADER..HEADER.checked_add(length)?)?;
    let sum = checksum([&header[..HEADER - 4], body]);
    if sum != number(HEADER - 4) {
        return None;
    }
    Some((operations(body)?, HEADER + length))
}

fn operations(mut body: &[u8]) -> Option<Vec<Op>> {
    fn tag(body: &mut &[u8]) -> Option<u8> {
        let (first, rest) = body.split_first()?;
        *body = rest;
        Some(*first)
    }
    fn word(body: &mut &[u8]) -> Option<u64> {
        let (first, rest) = body.split_first_chunk::<8>()?;
        *body = rest;
        Some(u64::from_le_bytes(*first))
    }
    let mut ops = Vec::new();
    while !body.is_empty() {
        ops.push(match tag(&mut body)? {
            1 => {
                let id = u32::try_from(word(&mut body)?).ok()?;
                let length = usize::try_from(word(&mut body)?)
                    .ok()
                    .filter(|length| *length <= 255)?;
                let mut name = Vec::new();
                while name.len() < length {
                    tag(&mut body).filter(|tag| *tag == 0)?;
                    name.extend(word(&mut body)?.to_le_bytes());
                }
                name.truncate(length);
                Op::Create {
                    id,
                    name: String::from_utf8(name).ok()?,
                }
            }
            2 => Op::Remove {
                id: u32::try_from(word(&mut body)?).ok()?,
            },
            3 => Op::Size {
                id: u32::try_from(word(&mut body)?).ok()?,
                bytes: word(&mut body)?,
            },
            4 => {
                let (first, second) = (word(&mut body)?, word(&mut body)?);
                let run = Run {
                    start: second as u32,
                    len: (second >> 32) as u32,
                };
                Op::Map {
                    id: first as u32,
                    page: (first >> 32) as u32,
                    run,
                }
            }
            _ => return None,
        });
    }
    Some(ops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn an_op() -> impl Strategy<Value = Op> {
        let run = (any::<u32>(), any::<u32>()).prop_map(|(start, len)| Run { start, len });
        prop_oneof![
            (any::<u32>(), ".{1,30}").prop_map(|(id, name)| Op::Create { id, name }),
            any::<u32>().prop_map(|id| Op::Remove { id }),
            (any::<u32>(), any::<u64>()).prop_map(|(id, bytes)| Op::Size { id, bytes }),
            (any::<u32>(), any::<u32>(), run).prop_map(|(id, page, run)| Op::Map { id, page, run }),
        ]
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written_and_not_when_a_bit_differs(
            ops in prop::collection::vec(an_op(), 0..20), bit in any::<usize>(), cut in any::<usize>()
        ) {
            let at = Position { generation: 3, sequence: 9 };
            let mut bytes = encode(&ops, at);
            prop_assert_eq!(decode(&bytes, at), Some((ops, bytes.len())));
                prop_assert_eq!(decode(&bytes, Position { generation: 4, ..at }), None);
            prop_assert_eq!(decode(&bytes[..cut % bytes.len()], at), None);
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(decode(&bytes, at), None);
        }
    }
}
