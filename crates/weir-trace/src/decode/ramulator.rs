//! Ramulator's traces, a line an access or two.
//!
//! | line | of |
//! |---|---|
//! | `LD 0x…`, `ST 0x…` | `LoadStoreTrace` |
//! | `R 0x…`, `W 0x…`, also `0x… R` | older traces of memory requests |
//! | `BUBBLES ADDRESS [STORE]` | `SimpleO3`: this many other instructions, a load, and a line that is written back |
//!
//! `ReadWriteTrace` of Ramulator 2 has vectors of channel, rank and bank in place of addresses, and is refused.

use super::text::{number, shown, words};
use crate::access::{Access, Sink};

/// Bytes of an access: all are of lines.
const LINE: u32 = 64;

pub(super) fn line<S: Sink>(line: &[u8], sink: &mut S) -> Result<(), String> {
    let mut all = words(line);
    let (Some(first), second, third, more) = (all.next(), all.next(), all.next(), all.next())
    else {
        return Ok(());
    };
    if first.starts_with(b"#") {
        return Ok(());
    }
    // The address may be of any byte of its line.
    let access = |address: u64, store| Access {
        address: address / u64::from(LINE) * u64::from(LINE),
        bytes: LINE,
        store,
        from: None,
    };
    let wrong = || format!("`{}` is no line of Ramulator", shown(line));
    let Some(second) = second else {
        return Err(wrong());
    };
    let kind = |word: &[u8]| match word {
        b"LD" | b"R" => Some(false),
        b"ST" | b"W" => Some(true),
        _ => None,
    };
    if more.is_some() {
        return Err(wrong());
    }
    if let (Some(store), None) = (kind(first), third) {
        if second.contains(&b',') {
            return Err(
                "this line has a vector of channel, rank and bank, and no address: such a trace cannot be described"
                    .into(),
            );
        }
        sink.access(access(number(second).ok_or_else(wrong)?, store));
        return Ok(());
    }
    if let (Some(store), None) = (kind(second), third) {
        sink.access(access(number(first).ok_or_else(wrong)?, store));
        return Ok(());
    }
    let bubbles = number(first).ok_or_else(wrong)?;
    let load = number(second).ok_or_else(wrong)?;
    let store = third
        .map(|word| number(word).ok_or_else(wrong))
        .transpose()?;
    sink.instructions(bubbles.min(1 << 40) + 1);
    sink.access(access(load, false));
    if let Some(store) = store {
        sink.access(access(store, true));
    }
    Ok(())
}
