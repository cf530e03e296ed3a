//! `valgrind --tool=lackey --trace-mem=yes`: `I  addr,size`, ` L addr,size`, ` S addr,size`, ` M addr,size`.
//!
//! Addresses are hexadecimal and sizes decimal. `M` is a load and a store of one instruction. Lines of valgrind itself
//! begin with `==`, those of its warnings with `--` or `**`.

use super::Wrong;
use super::text::{DECIMAL_END, decimal, digit, eight_digits, hex, shown};
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
            let Some(taken) = other(line, *at)? else {
                break;
            };
            *at += 1;
            from += taken;
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

/// A line that is no record: its bytes, `None` where it is not whole.
#[cold]
fn other(line: &[u8], before: u64) -> Result<Option<usize>, Wrong> {
    let Some(end) = line.iter().position(|&byte| byte == b'\n') else {
        return Ok(None);
    };
    match is_remark(&line[..end]) {
        true => Ok(Some(end + 1)),
        false => Err(Wrong::Line {
            line: before + 1,
            why: format!(
                "`{}` is no line of lackey; its --log-file keeps what the program prints apart",
                shown(&line[..end])
            ),
        }),
    }
}

/// `addr,size` with the end of its line: both, and the length of all.
#[inline]
fn operand(line: &[u8]) -> Option<(u64, u32, usize)> {
    // Addresses have at least eight digits.
    if let Some((eight, rest)) = line.split_first_chunk::<8>()
        && let Some(high) = eight_digits(*eight)
    {
        let mut address = u64::from(high);
        for (n, &byte) in rest.iter().take(9).enumerate() {
            if byte == b',' {
                return match rest[n + 1..] {
                    [digit @ b'0'..=b'9', b'\n', ..] => {
                        Some((address, u32::from(digit - b'0'), n + 11))
                    }
                    _ => operand_with_care(line),
                };
            }
            let digit = digit(byte)?;
            address = address << 4 | u64::from(digit);
        }
    }
    operand_with_care(line)
}

/// The same for all that is allowed.
fn operand_with_care(line: &[u8]) -> Option<(u64, u32, usize)> {
    let (address, digits) = hex(&line[..line.len().min(17)])?;
    let rest = line.get(digits..)?;
    let [b',', rest @ ..] = rest else {
        return None;
    };
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
