//! Lines, and the numbers in them.

use super::Wrong;

/// Calls `of` with each whole line, without its end; how many bytes these were. `at` counts lines.
pub(super) fn lines(
    bytes: &[u8],
    at: &mut u64,
    mut of: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<usize, Wrong> {
    let mut from = 0;
    while let Some(length) = bytes[from..].iter().position(|&byte| byte == b'\n') {
        let line = &bytes[from..from + length];
        *at += 1;
        of(line.strip_suffix(b"\r").unwrap_or(line))
            .map_err(|why| Wrong::Line { line: *at, why })?;
        from += length + 1;
    }
    Ok(from)
}

/// The value of a digit in base 16; 16 or more for anything else.
const DIGITS: [u8; 256] = {
    let mut digits = [255; 256];
    let mut n = 0;
    while n < 10 {
        digits[b'0' as usize + n] = n as u8;
        n += 1;
    }
    while n < 16 {
        digits[b'a' as usize + n - 10] = n as u8;
        digits[b'A' as usize + n - 10] = n as u8;
        n += 1;
    }
    digits
};

/// The value of a digit in base 16.
#[inline]
pub(super) fn digit(byte: u8) -> Option<u8> {
    let digit = DIGITS[byte as usize];
    (digit < 16).then_some(digit)
}

/// The value of eight digits in base 16, in lower case as tools print them; all at once.
#[inline]
pub(super) fn eight_digits(digits: [u8; 8]) -> Option<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let text = u64::from_be_bytes(digits);
    // A letter has bit 6, and its value is nine more than its lower half.
    let letters = text >> 6 & ONES;
    let values = (text & (0x0f * ONES)) + 9 * letters;
    // What these values are written as is what was there.
    if values & (0xf0 * ONES) != 0 || values + 0x30 * ONES + 39 * letters != text {
        return None;
    }
    // A letter has a value of ten and more, a digit a smaller one.
    if (values + 6 * ONES) >> 4 & ONES != letters {
        return None;
    }
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) as u32)
}

/// The hexadecimal number at the front, at most 64 bits, and its digits.
#[inline]
pub(super) fn hex(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    let mut length = 0;
    for &byte in bytes {
        let digit = DIGITS[byte as usize];
        if digit > 15 {
            break;
        }
        value = value << 4 | u64::from(digit);
        length += 1;
    }
    (1..=16).contains(&length).then_some((value, length))
}

/// The decimal number at the front, at most 19 digits, and its digits.
#[inline]
pub(super) fn decimal(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    let mut length = 0;
    for &byte in bytes {
        if !byte.is_ascii_digit() || length > 18 {
            break;
        }
        value = value * 10 + u64::from(byte - b'0');
        length += 1;
    }
    (length > 0).then_some((value, length))
}

/// A whole word as a number: decimal, or hexadecimal after `0x`.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    let (value, length) = match word {
        [b'0', b'x' | b'X', digits @ ..] => hex(digits).map(|(value, length)| (value, length + 2)),
        digits => decimal(digits),
    }?;
    (length == word.len()).then_some(value)
}

/// Bytes in which a size ends.
pub(super) const DECIMAL_END: usize = 11;

/// The words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// The front of a line, for messages.
pub(super) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(60)]);
    weir_model::diagnostic::quote(&text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn eight_digits_are_what_is_written(value in any::<u32>()) {
            let text = format!("{value:08x}");
            let digits = text.as_bytes().first_chunk::<8>().unwrap();
            prop_assert_eq!(eight_digits(*digits), Some(value));
        }

        #[test]
        fn nothing_else_is_eight_digits(mut text in prop::array::uniform8(prop::sample::select(&b"0459abf"[..])), at in 0_usize..8, byte in any::<u8>()) {
            text[at] = byte;
            let is_digit = byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            prop_assert_eq!(eight_digits(text).is_some(), is_digit);
        }
    }
}
