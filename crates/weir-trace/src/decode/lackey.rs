//! `valgrind --tool=lackey --trace-mem=yes`: `I  addr,size`, ` L addr,size`, ` S addr,size`, ` M addr,size`.
//!
//! Addresses are hexadecimal and sizes decimal. `M` is a load and a store of one instruction. Lines of valgrind itself
//! begin with `==`, those of its warnings with `--` or `**`.

use super::Wrong;
use super::text::{DECIMAL_END, decimal, hex, shown};
use crate::access::{Access, Sink};

/// Takes whole lines; how many bytes these were. `at` counts lines.
pub(super) fn decode<S: Sink>(bytes: &[u8], at: &mut u64, sink: &mut S) -> Result<usize, Wrong> {
    let mut from = 0;
    let mut instructions = 0;
    while from < bytes.len() {
        let line = &bytes[from..];
        // Most lines are these; the rest is looked at with care.
        let read = match line {
            [b'I', b' ', b' ', rest @ ..] => operand(rest),
            [b' ', b'L' | b'S' | b'M', b' ', rest @ ..] => operand(rest),
            _ => None,
        };
        let Some((address, size, length)) = read else {
            let Some(end) = line.iter().position(|&byte| byte == b'\n') else {
                break;
            };
            *at += 1;
            if !is_remark(&line[..end]) {
                sink.instructions(instructions);
                return Err(Wrong::Line {
                    line: *at,
                    why: format!(
                        "`{}` is no line of lackey; its --log-file keeps what the program prints apart",
                        shown(&line[..end])
                    ),
                });
            }
            from += end + 1;
            continue;
        };
        *at += 1;
        from += 3 + length;
        if line[0] == b'I' {
            instructions += 1;
            continue;
        }
        sink.instructions(instructions);
        instructions = 0;
        let mut access = Access {
            address,
            bytes: size,
            ..Access::default()
        };
        if line[1] != b'S' {
            sink.access(access);
        }
        if line[1] != b'L' {
            access.store = true;
            sink.access(access);
        }
    }
    sink.instructions(instructions);
    Ok(from)
}

/// `addr,size` with the end of its line: both, and the length of all.
#[inline]
fn operand(line: &[u8]) -> Option<(u64, u32, usize)> {
    let (address, digits) = hex(&line[..line.len().min(17)])?;
    let rest = line.get(digits..)?;
    let [b',', rest @ ..] = rest else {
        return None;
    };
    // Nearly all sizes have one digit.
    if let [digit @ b'0'..=b'9', b'\n', ..] = rest {
        return Some((address, u32::from(digit - b'0'), digits + 3));
    }
    let (size, length) = decimal(&rest[..rest.len().min(DECIMAL_END)])?;
    let end = match rest.get(length..)? {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => return None,
    };
    Some((
        address,
        u32::try_from(size).ok()?,
        digits + 1 + length + end,
    ))
}

/// Whether a line is valgrind's own, or empty.
fn is_remark(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"==") || line.starts_with(b"--") || line.starts_with(b"**")
}

/// Whether a line without its end is an access or an instruction.
pub(super) fn is_line(line: &[u8]) -> bool {
    let whole = [line, b"\n"].concat();
    match whole.as_slice() {
        [b'I', b' ', b' ', rest @ ..] | [b' ', b'L' | b'S' | b'M', b' ', rest @ ..] => {
            operand(rest).is_some_and(|(_, _, length)| length == rest.len())
        }
        _ => false,
    }
}
