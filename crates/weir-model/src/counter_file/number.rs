//! Numbers as `perf` prints them in any language.

/// Whether a character groups digits somewhere: `1,234`, `1.234`, `1'234`, `1 234` with one of the
/// spaces that do not break.
fn groups(c: char) -> bool {
    matches!(
        c,
        ',' | '.' | '\'' | '’' | '_' | '\u{a0}' | '\u{2009}' | '\u{202f}'
    )
}

/// A whole number with or without separators of thousands. `perf` prints counts without decimals,
/// so that `1.234` is more than a thousand.
pub(super) fn count(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let parts: Vec<&str> = digits.split(groups).collect();
    let (first, rest) = parts.split_first()?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let grouped = rest.iter().all(|part| part.len() == 3 && is_number(part));
    if !is_number(first) || !grouped || (!rest.is_empty() && first.len() > 3) {
        return None;
    }
    let number: i128 = parts.concat().parse().ok()?;
    Some(sign * number)
}

/// A number with decimals, as a time in milliseconds has.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let plain = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite());
    let Some(point) = text.rfind(['.', ',']) else {
        return count(text).map(|n| n as f64);
    };
    let (whole, rest) = (&text[..point], &text[point + 1..]);
    if rest.is_empty() || !rest.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // A whole part without digits is `.5`; no tool prints that.
    plain(&format!("{}.{rest}", count(whole)?)).map(|x| match whole.starts_with("-0") {
        true => -x,
        false => x,
    })
}

/// A number with a point, as in CSV and JSON, that is whole.
pub(super) fn whole(text: &str) -> Option<i128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let zeros = decimals.bytes().all(|b| b == b'0');
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    (zeros && is_number).then(|| whole.parse().ok()).flatten()
}
