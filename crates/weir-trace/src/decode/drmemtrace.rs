//! DynamoRIO's drmemtrace.
//!
//! A trace is a sequence of `trace_entry_t` (`clients/drcachesim/common/trace_entry.h`): type and size of 2 bytes, and
//! an address of 8, packed to 12 bytes. Its first entry is a header, whose address is the version. The instruction comes
//! before its accesses. The files of threads that the tracer writes first (`offline_entry_t`, in `raw/`) are not this:
//! `drrun -t drmemtrace -indir DIR` converts them. The `view` tool prints a line an entry, `read  8 byte(s) @ 0x…`.

use weir_model::number::count;
use weir_model::units::LINE_BYTES;

use super::Wrong;
use super::champsim::FLIGHT;
use super::text::{decimal, hex, shown, words};
use crate::access::{Access, Sink};

/// Bytes of an entry.
pub(super) const ENTRY: usize = 12;

const READ: u16 = 0;
const WRITE: u16 = 1;
const INSTRUCTIONS: [u16; 10] = [10, 11, 12, 13, 14, 15, 16, 31, 48, 49];
const BUNDLE: u16 = 17;
/// What follows is of the thread that is named.
const THREAD: u16 = 22;
const HEADER: u16 = 25;
/// The last type that is known; later versions may add some, but not many.
const LAST: u16 = 49 + 32;
/// The next load's address was computed from what was loaded at this address. Weir's plugin of QEMU writes it, and DynamoRIO
/// does not.
const FROM: u16 = 0x7757;
/// Lines that left L1 lately.
const LATELY: usize = 1024;
/// Versions that a header may have.
const VERSIONS: std::ops::RangeInclusive<u64> = 1..=64;

fn parts(entry: &[u8; ENTRY]) -> (u16, u16, u64) {
    let [a, b, c, d, address @ ..] = *entry;
    (
        u16::from_le_bytes([a, b]),
        u16::from_le_bytes([c, d]),
        u64::from_le_bytes(address),
    )
}

/// Whether the first entry is a header.
pub(super) fn begins(head: &[u8]) -> bool {
    head.first_chunk::<ENTRY>().is_some_and(|entry| {
        let (kind, _, version) = parts(entry);
        kind == HEADER && VERSIONS.contains(&version)
    })
}

/// Whether it is a header of a big-endian machine.
pub(super) fn turned(head: &[u8]) -> bool {
    head.first_chunk::<ENTRY>().is_some_and(|entry| {
        let (kind, _, version) = parts(entry);
        kind.swap_bytes() == HEADER && VERSIONS.contains(&version.swap_bytes())
    })
}

/// Whether it is a header of 16 bytes, as before entries were packed.
pub(super) fn is_wide(head: &[u8]) -> bool {
    head.first_chunk::<16>().is_some_and(|entry| {
        u16::from_le_bytes([entry[0], entry[1]]) == HEADER
            && entry[4..8] == [0; 4]
            && (1..=64).contains(&entry[8])
            && entry[9..16] == [0; 7]
    })
}

/// What is known of the entries before.
#[derive(Debug)]
pub(super) struct Entries {
    instructions: u64,
    /// Lines whose loads left L1, and in which instruction, by their number; instruction 0 for none.
    lately: Box<[(u64, u64); LATELY]>,
    /// Where the address of the next load was loaded.
    from: Option<u64>,
    has_dependences: bool,
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            instructions: 0,
            lately: Box::new([(0, 0); LATELY]),
            from: None,
            has_dependences: false,
        }
    }
}

impl Entries {
    /// Whether an entry said where an address was loaded.
    pub(super) fn has_dependences(&self) -> bool {
        self.has_dependences
    }

    /// What follows does not follow what was seen.
    pub(super) fn forget(&mut self) {
        *self = Self {
            has_dependences: self.has_dependences,
            ..Self::default()
        };
    }

    fn began<S: Sink>(&mut self, instructions: u64, sink: &mut S) {
        self.instructions += instructions;
        sink.instructions(instructions);
    }

    #[inline]
    fn load<S: Sink>(&mut self, address: u64, size: u16, sink: &mut S) {
        let of = |address: u64| {
            (
                address / LINE_BYTES,
                (address / LINE_BYTES) as usize % LATELY,
            )
        };
        let is_in_flight = |from: &u64| {
            let (line, at) = of(*from);
            let (known, instruction) = self.lately[at];
            known == line && instruction > 0 && self.instructions - instruction <= FLIGHT
        };
        let from = self.from.take().filter(is_in_flight);
        let left = sink.access(Access {
            address,
            bytes: u32::from(size),
            store: false,
            from,
        });
        if left {
            let (line, at) = of(address);
            self.lately[at] = (line, self.instructions.max(1));
        }
    }

    pub(super) fn decode<S: Sink>(
        &mut self,
        bytes: &[u8],
        at: &mut u64,
        sink: &mut S,
    ) -> Result<usize, Wrong> {
        let (entries, rest) = bytes.as_chunks::<ENTRY>();
        if let (0, Some(entry)) = (*at, entries.first())
            && parts(entry).0 != HEADER
        {
            return Err(Wrong::Byte {
                offset: 0,
                why: "the first entry is no header of drmemtrace".into(),
            });
        }
        for (n, entry) in entries.iter().enumerate() {
            let (kind, size, address) = parts(entry);
            match kind {
                READ => self.load(address, size, sink),
                WRITE => drop(sink.access(Access {
                    address,
                    bytes: u32::from(size),
                    store: true,
                    from: None,
                })),
                BUNDLE => self.began(u64::from(size), sink),
                THREAD => sink.thread(address),
                FROM => (self.from, self.has_dependences) = (Some(address), true),
                kind if kind > LAST => {
                    let offset = *at + (n * ENTRY) as u64;
                    return Err(Wrong::Byte {
                        offset,
                        why: format!(
                            "entry {}: of type {kind}, which drmemtrace does not have",
                            offset / ENTRY as u64 + 1
                        ),
                    });
                }
                kind if INSTRUCTIONS.contains(&kind) => self.began(1, sink),
                _ => {}
            }
        }
        *at += (entries.len() * ENTRY) as u64;
        Ok(bytes.len() - rest.len())
    }
}

/// What the view tool prints.
#[derive(Debug, Default)]
pub(super) struct View {
    lines: u64,
    /// Lines that are none of the tool, and the first of them.
    others: u64,
    first: String,
}

impl View {
    pub(super) fn line<S: Sink>(&mut self, line: &[u8], sink: &mut S) -> Result<(), String> {
        self.lines += 1;
        if !self::line(line, sink)? && !is_remark(line) {
            if self.others == 0 {
                self.first = format!("line {}: `{}`", self.lines, shown(line));
            }
            self.others += 1;
        }
        Ok(())
    }

    /// What is left out.
    pub(super) fn others(&self) -> Option<String> {
        (self.others > 0).then(|| {
            let lines = count(self.others, "line");
            let first = &self.first;
            format!("{lines} left out that `view` does not print; the first is {first}")
        })
    }
}

/// Whether a line is a remark of the tool: a marker, a heading, a total, or what is left of a long instruction.
fn is_remark(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let has = |part: &[u8]| line.windows(part.len()).any(|here| here == part);
    let is_byte = |word: &[u8]| word.len() == 2 && word.iter().all(u8::is_ascii_hexdigit);
    line.iter().all(|&byte| byte == b'-')
        || line.starts_with(b"Output format:")
        || line.starts_with(b"View tool results:")
        || has(b"<")
        || has(b" : total ")
        || words(line).all(is_byte)
}

/// A line that is an instruction or an access; whether it is one.
fn line<S: Sink>(line: &[u8], sink: &mut S) -> Result<bool, String> {
    const MARK: &[u8] = b" byte(s) @ 0x";
    let Some(place) = line.windows(MARK.len()).position(|part| part == MARK) else {
        // Earlier versions print an instruction as `T12   0x0000000000467c45  4c 8b 54 …`.
        let mut all = words(line);
        let thread = all.next().and_then(|word| word.strip_prefix(b"T"));
        if let Some(thread) = thread
            && all.next().is_some_and(|word| word.starts_with(b"0x"))
        {
            in_thread(thread, sink);
            sink.instructions(1);
            return Ok(true);
        }
        return Ok(false);
    };
    let wrong = |what: &str| format!("an access without {what}");
    let mut before = words(&line[..place]).collect::<Vec<_>>();
    let size = before
        .pop()
        .and_then(decimal)
        .ok_or_else(|| wrong("a size"))?;
    let (address, _) = hex(&line[place + MARK.len()..]).ok_or_else(|| wrong("an address"))?;
    let kind = before.pop().ok_or_else(|| wrong("a kind"))?;
    // `RECORD INSTRUCTION: THREAD kind`, or in earlier versions `TTHREAD kind`.
    if let Some(thread) = before.pop() {
        in_thread(thread.strip_prefix(b"T").unwrap_or(thread), sink);
    }
    match kind {
        b"ifetch" => sink.instructions(1),
        b"read" | b"write" => drop(sink.access(Access {
            address,
            bytes: u32::try_from(size.0).unwrap_or(u32::MAX),
            store: kind == b"write",
            from: None,
        })),
        _ => {}
    }
    Ok(true)
}

/// What follows is of a thread, if this is the number of one.
fn in_thread<S: Sink>(word: &[u8], sink: &mut S) {
    if let Some((thread, length)) = decimal(word)
        && length == word.len()
    {
        sink.thread(thread);
    }
}

/// Whether a line is an access or an instruction of the view tool.
pub(super) fn is_view(line: &[u8]) -> bool {
    line.windows(9).any(|part| part == b"byte(s) @")
}
