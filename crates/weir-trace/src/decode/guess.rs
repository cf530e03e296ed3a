//! The format of a trace by its first bytes.

use super::{Format, champsim, drmemtrace, gem5, text};
use crate::decode::{lackey, ramulator};

/// Lines that are looked at.
const LINES: usize = 200;

/// The command that unpacks what begins with these bytes, if it is compressed.
pub fn packed(head: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 5] = [
        (b"\x1f\x8b", "gzip"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh", "bzip2"),
        (b"PK\x03\x04", "unzip"),
    ];
    MAGIC
        .into_iter()
        .find_map(|(magic, tool)| head.starts_with(magic).then_some(tool))
}

/// The format that the first bytes of a trace are of, if they show it.
pub fn guess(head: &[u8]) -> Option<Format> {
    if head.starts_with(gem5::MAGIC) || gem5::turned(head) {
        return Some(Format::Gem5);
    }
    if drmemtrace::begins(head) || drmemtrace::turned(head) || drmemtrace::is_wide(head) {
        return Some(Format::Drmemtrace);
    }
    if head.contains(&0) {
        return (champsim::begins(head) || champsim::turned(head)).then_some(Format::Champsim);
    }
    let whole = head
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(head, |end| &head[..end]);
    let lines: Vec<&[u8]> = (whole.split(|&byte| byte == b'\n'))
        .filter(|line| !line.trim_ascii().is_empty())
        .take(LINES)
        .collect();
    let none = &mut Vec::new();
    // A program that prints into the trace must not decide what it is.
    let mut count = |is: &mut dyn FnMut(&[u8], &mut Vec<_>) -> bool| {
        lines.iter().filter(|line| is(line, none)).count()
    };
    let counts = [
        (Format::Lackey, count(&mut |line, _| lackey::is_line(line))),
        (
            Format::Drmemtrace,
            count(&mut |line, _| drmemtrace::is_view(line)),
        ),
        (
            Format::Gem5,
            count(&mut |line, sink| gem5::line(line, sink).is_ok()),
        ),
        (
            Format::Ramulator,
            count(&mut |line, sink| {
                text::words(line).nth(1).is_some() && ramulator::line(line, sink).is_ok()
            }),
        ),
    ];
    let (format, most) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (most > 0).then_some(format)
}
