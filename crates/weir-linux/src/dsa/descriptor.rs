//! The structures that the device reads and writes: descriptors of 64 bytes, completion records of 32.

use std::sync::atomic::{AtomicU8, Ordering};

/// Operations (specification, table of opcodes).
const BATCH: u32 = 1;
const MEMORY_MOVE: u32 = 3;

/// The address of the completion record is valid; write one when done.
const RECORD: u32 = 0b1100;

/// One descriptor.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// Process and privilege; filled in by the device or the instruction.
    pasid: u32,
    /// 24 bits of flags, 8 of operation.
    operation: u32,
    record: u64,
    /// The address to read: data, or the list of a batch.
    source: u64,
    target: u64,
    /// Bytes, or descriptors of a batch.
    length: u32,
    interrupt: u16,
    reserved: u16,
    special: [u64; 3],
}

impl Descriptor {
    const NOTHING: Self = Self {
        pasid: 0,
        operation: 0,
        record: 0,
        source: 0,
        target: 0,
        length: 0,
        interrupt: 0,
        reserved: 0,
        special: [0; 3],
    };

    /// Moves `bytes` bytes; writes a completion record if one is given.
    pub fn memory_move(from: *const u8, to: *mut u8, bytes: u32, record: Option<&Record>) -> Self {
        Self {
            operation: MEMORY_MOVE << 24 | if record.is_some() { RECORD } else { 0 },
            record: address(record),
            source: from as u64,
            target: to as u64,
            length: bytes,
            ..Self::NOTHING
        }
    }

    /// Processes a list of at least two descriptors.
    pub fn batch(list: &[Descriptor], record: &Record) -> Self {
        Self {
            operation: BATCH << 24 | RECORD,
            record: address(Some(record)),
            source: list.as_ptr() as u64,
            length: list.len() as u32,
            ..Self::NOTHING
        }
    }
}

fn address(record: Option<&Record>) -> u64 {
    record.map_or(0, |record| std::ptr::from_ref(record) as u64)
}

/// The record that the device writes when a descriptor is done.
#[repr(C, align(32))]
#[derive(Debug, Default)]
pub(super) struct Record {
    status: AtomicU8,
    result: u8,
    reserved: u16,
    bytes: u32,
    fault_address: u64,
    special: [u64; 2],
}

/// The result of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Pending,
    Done,
    /// The status that the device wrote.
    Failed(u8),
}

impl Record {
    /// Clears the record for the next descriptor.
    pub fn clear(&self) {
        self.status.store(0, Ordering::Release);
    }

    /// The result so far.
    pub fn outcome(&self) -> Outcome {
        // The highest bit shows whether a write caused the fault.
        match self.status.load(Ordering::Acquire) & 0x7f {
            0 => Outcome::Pending,
            1 => Outcome::Done,
            other => Outcome::Failed(other),
        }
    }
}

/// A failure in words.
pub(super) fn explain(status: u8) -> String {
    let what = match status {
        3 | 4 | 6 => "a page was not there",
        5 => "a descriptor of the batch failed",
        0x10 => "the operation is not known",
        0x11 => "the flags are not permitted",
        0x13 => "the length is not permitted",
        _ => "see the table of completion statuses",
    };
    format!("the accelerator reported status {status:#x}: {what}")
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn fields_lie_where_the_specification_puts_them() {
        assert_eq!(
            (size_of::<Descriptor>(), align_of::<Descriptor>()),
            (64, 64)
        );
        assert_eq!((size_of::<Record>(), align_of::<Record>()), (32, 32));
        let offsets = [
            (offset_of!(Descriptor, operation), 4),
            (offset_of!(Descriptor, record), 8),
            (offset_of!(Descriptor, source), 16),
            (offset_of!(Descriptor, target), 24),
            (offset_of!(Descriptor, length), 32),
            (offset_of!(Descriptor, interrupt), 36),
            (offset_of!(Descriptor, special), 40),
            (offset_of!(Record, status), 0),
            (offset_of!(Record, bytes), 4),
            (offset_of!(Record, fault_address), 8),
        ];
        for (found, expected) in offsets {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_move_and_a_batch_name_their_parts() {
        let (mut data, record) = ([0u8; 128], Record::default());
        let (from, to) = (data.as_ptr(), data.as_mut_ptr().wrapping_add(64));
        let alone = Descriptor::memory_move(from, to, 64, Some(&record));
        assert_eq!(alone.operation, 0x0300_000c);
        assert_eq!((alone.source, alone.target), (from as u64, to as u64));
        assert_eq!((alone.length, alone.record), (64, &raw const record as u64));
        let quiet = Descriptor::memory_move(from, to, 64, None);
        assert_eq!((quiet.operation, quiet.record), (0x0300_0000, 0));
        let list = [quiet, quiet, quiet];
        let batch = Descriptor::batch(&list, &record);
        assert_eq!((batch.operation, batch.length), (0x0100_000c, 3));
        assert_eq!((batch.source, batch.target), (list.as_ptr() as u64, 0));
    }

    #[test]
    fn every_status_is_read() {
        let record = Record::default();
        assert_eq!(record.outcome(), Outcome::Pending);
        for (status, outcome) in [
            (1, Outcome::Done),
            (0x81, Outcome::Done),
            (3, Outcome::Failed(3)),
            (0x83, Outcome::Failed(3)),
            (0x13, Outcome::Failed(0x13)),
        ] {
            record.status.store(status, Ordering::Release);
            assert_eq!(record.outcome(), outcome);
        }
        record.clear();
        assert_eq!(record.outcome(), Outcome::Pending);
        for status in 0..=0x7f {
            assert!(explain(status).contains("status"));
        }
    }
}
