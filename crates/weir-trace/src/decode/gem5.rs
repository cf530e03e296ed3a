//! gem5's packet traces.
//!
//! As a file: `gem5`, then messages behind their length as a varint, first a `PacketHeader`, then `Packet`s with
//! tick (1), cmd (2), addr (3), size (4), flags (5), pkt_id (6), pc (7). As text: lines of `util/decode_packet_trace.py`,
//! `[pkt_id,]r|w|u,addr,size[,flags],tick[,pc]`. Commands 1 and 4 are reads and writes (`ReadReq` and `WriteReq` of
//! `src/mem/packet.hh`); others move no data for the program and are left out.

use super::Wrong;
use super::text::{number, shown};
use crate::access::{Access, Sink};

/// The first bytes of a file.
pub(super) const MAGIC: &[u8] = b"gem5";
/// More bytes than a message has.
const MOST: u64 = 1 << 20;

/// Whether the magic number is in the byte order of another machine.
pub(super) fn turned(head: &[u8]) -> bool {
    head.starts_with(b"5meg")
}

/// Reads a file.
#[derive(Debug, Default)]
pub(super) struct Gem5 {
    begun: bool,
    /// Messages that were read; the first is a header.
    records: u64,
}

/// A varint at the front, and its length; `None` where it is not whole.
fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, &'static str> {
    let mut value = 0_u64;
    for (n, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 127).checked_shl(7 * n as u32).unwrap_or(0);
        if byte < 128 {
            return Ok(Some((value, n + 1)));
        }
    }
    match bytes.len() {
        0..10 => Ok(None),
        _ => Err("a number is longer than 64 bits"),
    }
}

impl Gem5 {
    /// Messages that were read.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn decode<S: Sink>(
        &mut self,
        bytes: &[u8],
        at: &mut u64,
        sink: &mut S,
    ) -> Result<usize, Wrong> {
        let mut from = 0;
        if !self.begun {
            if bytes.len() < MAGIC.len() {
                return Ok(0);
            }
            from = MAGIC.len();
            self.begun = true;
        }
        let start = *at;
        let wrong = |from: usize, why: &str| Wrong::Byte {
            offset: start + from as u64,
            why: format!("{why}: this is no packet trace of gem5"),
        };
        while let Some((length, taken)) = varint(&bytes[from..]).map_err(|why| wrong(from, why))? {
            if length > MOST {
                return Err(wrong(from, &format!("a message of {length} bytes")));
            }
            let end = from + taken + length as usize;
            let Some(message) = bytes.get(from + taken..end) else {
                break;
            };
            self.records += 1;
            if self.records > 1 {
                packet(message, sink).map_err(|why| {
                    wrong(from + taken, &format!("message {}: {why}", self.records))
                })?;
            }
            from = end;
        }
        *at += from as u64;
        Ok(from)
    }
}

fn packet<S: Sink>(mut message: &[u8], sink: &mut S) -> Result<(), &'static str> {
    let (mut command, mut address, mut size) = (0, 0, 0);
    const CUT: &str = "a packet ends within a field";
    while !message.is_empty() {
        let (key, taken) = varint(message)?.ok_or(CUT)?;
        message = &message[taken..];
        if key & 7 != 0 {
            return Err("a field of a packet is not a number");
        }
        let (value, taken) = varint(message)?.ok_or(CUT)?;
        message = &message[taken..];
        match key >> 3 {
            2 => command = value,
            3 => address = value,
            4 => size = value,
            _ => {}
        }
    }
    take(command, address, size, sink);
    Ok(())
}

fn take<S: Sink>(command: u64, address: u64, size: u64, sink: &mut S) {
    if matches!(command, 1 | 4) {
        sink.access(Access {
            address,
            bytes: u32::try_from(size).unwrap_or(u32::MAX),
            store: command == 4,
            from: None,
        });
    }
}

pub(super) fn line<S: Sink>(line: &[u8], sink: &mut S) -> Result<(), String> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(());
    }
    let wrong = || {
        format!(
            "`{}` is no line of gem5's decode_packet_trace.py",
            shown(line)
        )
    };
    let mut fields = line
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .peekable();
    let mut command = fields.next().ok_or_else(wrong)?;
    if number(command).is_some() {
        command = fields.next().ok_or_else(wrong)?;
    }
    let command = match command {
        b"r" => 1,
        b"w" => 4,
        b"u" => 0,
        _ => return Err(wrong()),
    };
    let mut next = || fields.next().and_then(number).ok_or_else(wrong);
    // A tick follows in every form.
    let (address, size, _) = (next()?, next()?, next()?);
    take(command, address, size, sink);
    Ok(())
}
