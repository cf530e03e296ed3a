//! One line of the journal: a checksum, and what will happen or has happened.

use serde::{Deserialize, Serialize};

/// The form of the records below. A journal of another form is not replayed, and this is reported. The first form is this
/// one without registers.
pub(crate) const FORM: u32 = 2;
pub(crate) const FIRST_FORM: u32 = 1;

/// A thread, and when it began: numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Its number.
    pub id: u32,
    /// When it began, in clock ticks since the machine started (proc(5), field 22 of `stat`).
    pub start: u64,
}

/// A coming change of the machine, or its result. A coming change is on disk before it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    /// A process took ownership of this journal.
    Began {
        /// [`FORM`].
        form: u32,
        /// The kernel's id of this boot.
        boot: String,
        /// The process, and when it began.
        owner: Task,
    },
    /// A value will be written.
    Writing {
        /// The file, or the register of a processor as `/dev/cpu/N/msr:0xR`.
        path: String,
        /// The inode number of the file's folder: another folder of the same name is another thing.
        folder: Option<u64>,
        /// Its content before the first write.
        before: String,
        /// The text to write.
        text: String,
    },
    /// It was written.
    Wrote {
        /// The file or register.
        path: String,
        /// Its content now.
        found: String,
    },
    /// It was not written; the kernel refused.
    Refused {
        /// The file or register.
        path: String,
    },
    /// A folder in a file system of the kernel will be made.
    Making {
        /// Its path; no other process makes a folder of this name.
        path: String,
        /// The file in it that lists its members.
        members: String,
    },
    /// Threads will be moved into a folder that was made.
    Moving {
        /// The folder.
        to: String,
        /// The file that lists them now.
        from: String,
        /// The threads.
        tasks: Vec<Task>,
    },
    /// A value or folder is restored.
    Back {
        /// Its path.
        path: String,
    },
}

impl Record {
    /// The file, register or folder that it is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            Record::Began { .. } => None,
            Record::Writing { path, .. }
            | Record::Wrote { path, .. }
            | Record::Refused { path }
            | Record::Making { path, .. }
            | Record::Moving { to: path, .. }
            | Record::Back { path } => Some(path),
        }
    }

    /// The record as a line, with its end.
    pub fn line(&self) -> String {
        // A record is strings and numbers; nothing in it can fail to become JSON.
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:08x} {text}\n", checksum(text.as_bytes()))
    }

    /// The record of a line without its end; `None` if it is torn or damaged.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let (sum, text) = line.split_at_checked(8)?;
        let text = text.strip_prefix(' ')?;
        if u32::from_str_radix(sum, 16).ok()? != checksum(text.as_bytes()) {
            return None;
        }
        serde_json::from_str(text).ok()
    }
}

/// The records in a journal's bytes, and the lines that are damaged.
pub(crate) fn parse(bytes: &[u8]) -> (Vec<Record>, Vec<usize>) {
    let (mut records, mut damaged) = (Vec::new(), Vec::new());
    let mut lines = bytes.split(|&b| b == b'\n').enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        // Bytes after the last end of a line were being written when the writer ended, before the change was
        // made.
        if lines.peek().is_none() {
            break;
        }
        match Record::of_line(line) {
            Some(record) => records.push(record),
            None => damaged.push(number + 1),
        }
    }
    (records, damaged)
}

/// CRC-32 as in IEEE 802.3, bit by bit: a journal is short.
fn checksum(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, &byte: &u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record() -> impl Strategy<Value = Record> {
        let text = || "[ -~\\n\u{e4}]{0,20}";
        prop_oneof![
            (text(), any::<Option<u64>>(), text(), text()).prop_map(
                |(path, folder, before, text)| Record::Writing {
                    path,
                    folder,
                    before,
                    text
                }
            ),
            (text(), text()).prop_map(|(path, found)| Record::Wrote { path, found }),
            (
                text(),
                text(),
                prop::collection::vec(any::<(u32, u64)>(), 0..4)
            )
                .prop_map(|(to, from, tasks)| {
                    let tasks = tasks.into_iter().map(|(id, start)| Task { id, start });
                    let tasks = tasks.collect();
                    Record::Moving { to, from, tasks }
                }),
            text().prop_map(|path| Record::Back { path }),
        ]
    }

    #[test]
    fn the_checksum_is_the_standards() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_a_torn_tail_takes_nothing_with_it(
            records in prop::collection::vec(record(), 0..8),
            cut: prop::sample::Index,
        ) {
            let text: String = records.iter().map(Record::line).collect();
            prop_assert_eq!(parse(text.as_bytes()), (records.clone(), vec![]));
            let cut = cut.index(text.len() + 1);
            let (kept, damaged) = parse(&text.as_bytes()[..cut]);
            prop_assert!(damaged.is_empty());
            let whole = text.as_bytes()[..cut].iter().filter(|&&b| b == b'\n').count();
            prop_assert_eq!(&kept[..], &records[..whole]);
        }

        #[test]
        fn one_byte_that_changed_is_noticed(record in record(), place: prop::sample::Index, bit in 0_u8..8) {
            let mut bytes = record.line().into_bytes();
            let place = place.index(bytes.len() - 1);
            bytes[place] ^= 1_u8 << bit;
            let (records, damaged) = parse(&bytes);
            // The other spelling of a hexadecimal digit is the same digit.
            prop_assert!(records.is_empty() && !damaged.is_empty() || records == [record]);
        }

        #[test]
        fn garbage_is_no_record(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (records, _) = parse(&bytes);
            prop_assert!(records.is_empty());
        }
    }
}
