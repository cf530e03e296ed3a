//! Formats of traces: bytes become accesses.
//!
//! A decoder takes whole records from the front of what it is given, and says how many bytes these were. So it needs
//! no more memory than a record, whatever the length of the trace.

mod champsim;
mod drmemtrace;
mod gem5;
mod guess;
mod lackey;
mod ramulator;
mod text;

pub use guess::{guess, packed};

use crate::access::Sink;

weir_model::named! {
    /// A format of traces.
    pub enum Format {
        /// What `valgrind --tool=lackey --trace-mem=yes` prints.
        Lackey = "lackey",
        /// 64-byte records of ChampSim's `input_instr`.
        Champsim = "champsim",
        /// Ramulator: `LD`/`ST`, `R`/`W`, or bubbles with addresses.
        Ramulator = "ramulator",
        /// gem5's packet traces: the protobuf file, or the text of `decode_packet_trace.py`.
        Gem5 = "gem5",
        /// DynamoRIO's drmemtrace: records of `trace_entry_t` of 12 bytes, or what its `view` tool prints.
        Drmemtrace = "drmemtrace",
    }
}

/// Why bytes are not of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A line of text.
    #[error("line {line}: {why}")]
    Line {
        /// From one.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// A place in a binary file.
    #[error("byte {offset}: {why}")]
    Byte {
        /// From zero.
        offset: u64,
        /// What is wrong.
        why: String,
    },
}

/// What reads one trace.
#[derive(Debug)]
pub struct Decoder {
    format: Format,
    reads: Reads,
    /// Lines or bytes that were read.
    at: u64,
}

#[derive(Debug)]
enum Reads {
    Lackey,
    Champsim(champsim::Champsim),
    Ramulator,
    Gem5Text,
    Gem5(gem5::Gem5),
    View(drmemtrace::View),
    Entries(drmemtrace::Entries),
}

impl Decoder {
    /// What reads a trace of a format which begins with these bytes.
    ///
    /// # Errors
    /// They show that it is not of this format, or in the byte order of another machine.
    pub fn new(format: Format, head: &[u8]) -> Result<Self, Wrong> {
        let binary = head.iter().take(4096).any(|&byte| byte == 0);
        let wrong = |why: &str| Wrong::Byte {
            offset: 0,
            why: why.to_owned(),
        };
        if let Some(tool) = packed(head) {
            let why =
                format!("this is compressed by {tool}; it was compressed twice, or is not a trace");
            return Err(wrong(&why));
        }
        let reads = match format {
            Format::Lackey => Reads::Lackey,
            Format::Champsim if champsim::turned(head) => {
                return Err(wrong(
                    "these records are in the byte order of another machine (big endian)",
                ));
            }
            Format::Champsim => Reads::Champsim(champsim::Champsim::default()),
            Format::Ramulator => Reads::Ramulator,
            Format::Gem5 if gem5::turned(head) => {
                return Err(wrong(
                    "this packet trace is in the byte order of another machine (big endian)",
                ));
            }
            Format::Gem5 if head.starts_with(gem5::MAGIC) => Reads::Gem5(gem5::Gem5::default()),
            Format::Gem5 => Reads::Gem5Text,
            Format::Drmemtrace if drmemtrace::turned(head) => {
                return Err(wrong(
                    "these records are in the byte order of another machine (big endian)",
                ));
            }
            Format::Drmemtrace if drmemtrace::is_wide(head) => {
                return Err(wrong(
                    "these are records of 16 bytes, of a version of DynamoRIO before 2016; only those of 12 bytes are read",
                ));
            }
            Format::Drmemtrace if binary || drmemtrace::begins(head) => {
                Reads::Entries(drmemtrace::Entries::default())
            }
            Format::Drmemtrace => Reads::View(drmemtrace::View::default()),
        };
        let is_text = !matches!(
            reads,
            Reads::Champsim(_) | Reads::Gem5(_) | Reads::Entries(_)
        );
        if is_text && binary {
            let at = head.iter().position(|&byte| byte == 0).unwrap_or(0) as u64;
            return Err(Wrong::Byte {
                offset: at,
                why: format!("this is not text, and so no {format} trace"),
            });
        }
        Ok(Self {
            format,
            reads,
            at: 0,
        })
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether instructions can be counted in traces of this kind.
    pub fn has_instructions(&self) -> bool {
        !matches!(self.reads, Reads::Gem5Text | Reads::Gem5(_))
    }

    /// Whether the trace says which load an address comes from.
    pub fn has_dependences(&self) -> bool {
        match &self.reads {
            Reads::Champsim(_) => true,
            Reads::Entries(entries) => entries.has_dependences(),
            _ => false,
        }
    }

    /// Bytes of a record, where all are as long; 1 for lines of text; 0 where a record cannot be found but from the
    /// one before.
    pub fn record(&self) -> u64 {
        match self.reads {
            Reads::Champsim(_) => champsim::RECORD as u64,
            Reads::Entries(_) => drmemtrace::ENTRY as u64,
            Reads::Gem5(_) => 0,
            _ => 1,
        }
    }

    /// Goes on behind bytes that are not looked at: what the decoder knew of earlier records is forgotten. The next
    /// bytes must begin with a record.
    pub fn skip(&mut self, bytes: u64) {
        if let Reads::Champsim(champsim) = &mut self.reads {
            *champsim = champsim::Champsim::default();
        }
        if let Reads::Entries(entries) = &mut self.reads {
            entries.forget();
        }
        if self.record() != 1 {
            self.at += bytes;
        }
    }

    /// Takes whole records from the front of `bytes`; how many bytes these were.
    ///
    /// # Errors
    /// A record is none of this format.
    pub fn decode<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<usize, Wrong> {
        let at = &mut self.at;
        match &mut self.reads {
            Reads::Lackey => lackey::decode(bytes, at, sink),
            Reads::Champsim(champsim) => champsim.decode(bytes, at, sink),
            Reads::Ramulator => text::lines(bytes, at, |line| ramulator::line(line, sink)),
            Reads::Gem5Text => text::lines(bytes, at, |line| gem5::line(line, sink)),
            Reads::Gem5(gem5) => gem5.decode(bytes, at, sink),
            Reads::View(view) => text::lines(bytes, at, |line| view.line(line, sink)),
            Reads::Entries(entries) => entries.decode(bytes, at, sink),
        }
    }

    /// What was left out since it is nothing of this format.
    pub fn left_out(&self) -> Option<String> {
        match &self.reads {
            Reads::View(view) => view.others(),
            _ => None,
        }
    }

    /// Takes what is left at the end of the trace, which has no whole record; what it says of a trace that was cut
    /// off, if it was.
    ///
    /// # Errors
    /// A line of text that is complete is none of this format.
    pub fn end<S: Sink>(&mut self, rest: &[u8], sink: &mut S) -> Result<Option<String>, Wrong> {
        if rest.iter().all(u8::is_ascii_whitespace) && self.record() == 1 {
            return Ok(None);
        }
        if self.record() != 1 {
            return Ok((!rest.is_empty()).then(|| {
                format!(
                    "the trace was cut off in record {}: {} bytes at its end are not a whole record",
                    match &self.reads {
                        Reads::Gem5(gem5) => gem5.records(),
                        _ => self.at / self.record().max(1),
                    } + 1,
                    rest.len()
                )
            }));
        }
        // The last line may lack its end only because the writer was stopped in it.
        let line = [rest, b"\n"].concat();
        match self.decode(&line, sink) {
            Ok(_) => Ok(None),
            Err(_) => Ok(Some(format!(
                "the trace was cut off within its last line, {}, which is left out",
                self.at + 1
            ))),
        }
    }
}
