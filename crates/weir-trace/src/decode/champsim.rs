//! ChampSim's `input_instr`: 64 bytes an instruction, little endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 7 | instruction pointer |
//! | 8, 9 | whether it is a branch, and whether it was taken |
//! | 10, 11 | registers that are written |
//! | 12 to 15 | registers that are read |
//! | 16 to 31 | addresses that are stored to, 0 for none |
//! | 32 to 63 | addresses that are loaded from, 0 for none |
//!
//! A record has no sizes of accesses; they are taken as 8 bytes.

use super::Wrong;
use crate::access::{Access, Sink};

/// Bytes of a record.
pub(super) const RECORD: usize = 64;
/// Bytes of an access, which a record lacks.
const ACCESS: u32 = 8;
/// Registers that no load gives an address by: none, the stack pointer, flags, the instruction pointer.
const PLAIN: [u8; 4] = [0, 6, 25, 26];
/// Instructions after which a loaded value is there, whether its load left L1 or not: those of a large reorder buffer.
pub(super) const FLIGHT: u64 = 512;

/// Which load each register was computed from.
#[derive(Debug)]
pub(super) struct Champsim {
    /// The instruction and the address of the load; instruction 0 for none.
    loaded: Box<[(u64, u64); 256]>,
    instructions: u64,
}

impl Default for Champsim {
    fn default() -> Self {
        Self {
            loaded: Box::new([(0, 0); 256]),
            instructions: 0,
        }
    }
}

fn word(record: &[u8; RECORD], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&record[at..at + 8]);
    u64::from_le_bytes(bytes)
}

impl Champsim {
    pub(super) fn decode<S: Sink>(
        &mut self,
        bytes: &[u8],
        at: &mut u64,
        sink: &mut S,
    ) -> Result<usize, Wrong> {
        let (records, rest) = bytes.as_chunks::<RECORD>();
        for (n, record) in records.iter().enumerate() {
            if record[8] > 1 || record[9] > 1 {
                let offset = *at + (n * RECORD) as u64;
                return Err(Wrong::Byte {
                    offset: offset + 8,
                    why: format!(
                        "record {} has {} and {} where a branch is 0 or 1; this is no ChampSim record of 64 bytes",
                        offset / RECORD as u64 + 1,
                        record[8],
                        record[9]
                    ),
                });
            }
            self.instruction(record, sink);
        }
        *at += (records.len() * RECORD) as u64;
        Ok(bytes.len() - rest.len())
    }

    #[inline(always)]
    fn instruction<S: Sink>(&mut self, record: &[u8; RECORD], sink: &mut S) {
        self.instructions += 1;
        sink.instructions(1);
        let now = self.instructions;
        let [a, b, c, d] = [record[12], record[13], record[14], record[15]];
        let mut from = (0, 0);
        if [a, b, c, d] != [0; 4] {
            for register in [a, b, c, d] {
                from = from.max(self.loaded[register as usize]);
            }
            if now - from.0 > FLIGHT {
                from = (0, 0);
            }
        }
        // What a value was computed from is known through operations, too.
        let mut gives = from;
        let address_of = (from.0 > 0).then_some(from.1);
        for at in (32..RECORD).step_by(8) {
            let address = word(record, at);
            if address == 0 {
                continue;
            }
            let left = sink.access(Access {
                address,
                bytes: ACCESS,
                store: false,
                from: address_of,
            });
            gives = if left { (now, address) } else { (0, 0) };
        }
        for at in (16..32).step_by(8) {
            let address = word(record, at);
            if address != 0 {
                sink.access(Access {
                    address,
                    bytes: ACCESS,
                    store: true,
                    from: None,
                });
            }
        }
        for &register in &record[10..12] {
            if !PLAIN.contains(&register) {
                self.loaded[register as usize] = gives;
            }
        }
    }
}

/// Whether these bytes look like records: of all that are whole, and at least one.
pub(super) fn begins(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<RECORD>();
    let looks = |record: &[u8; RECORD]| {
        record[8] <= 1
            && record[9] <= record[8]
            && word(record, 0) != 0
            && word(record, 0) >> 48 == 0
    };
    !records.is_empty() && records.iter().all(looks)
}

/// Whether they look like records of a big-endian machine. An address that ends in two zero bytes could be of either.
pub(super) fn turned(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<RECORD>();
    let looks = |record: &[u8; RECORD]| {
        record[8] <= 1 && record[9] <= 1 && word(record, 0).swap_bytes() >> 48 == 0
    };
    let mut first = records.iter().take(64);
    first.clone().all(looks) && first.any(|record| word(record, 0) >> 48 != 0)
}
