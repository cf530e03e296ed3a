//! `perf stat -x SEPARATOR`: value, unit, event, then perhaps a control group and a variance, then
//! the time that it was counted and its share, then a metric; before them the time of an interval
//! and what counted (perf-stat(1), "CSV format").

use super::line::{Line, Value, seconds, share, with_unit, without_value};
use super::number;

pub(super) fn read(n: u32, line: &str, separator: char) -> Option<Line> {
    let fields = fields(line, separator);
    let mut fields = fields.iter().map(|field| field.trim()).peekable();
    let is_value = |field: &str| field.starts_with("<not ") || number::decimal(field).is_some();
    let all: Vec<&str> = fields.by_ref().collect();
    let mut at = 0;
    let mut end = None;
    // A time comes before a value or a place; a value comes before a unit.
    let follows = |at: usize| all.get(at).copied().unwrap_or_default();
    if all.len() > 4 && (is_value(follows(1)) || is_place(follows(1))) && !is_place(follows(0)) {
        end = Some(seconds(follows(0))?);
        at = 1;
    }
    let mut place = String::new();
    if is_place(follows(at)) {
        place = follows(at).to_owned();
        at += 1;
        // How many processors were added up; `CPU3` is one.
        if follows(at).parse::<u32>().is_ok() && is_value(follows(at + 1)) {
            at += 1;
        }
    }
    let [value, unit, event] = [follows(at), follows(at + 1), follows(at + 2)];
    let named = event.chars().any(|c| c.is_ascii_alphabetic());
    if !named || !is_value(value) || number::decimal(unit).is_some() {
        return None;
    }
    at += 3;
    // The fields between event and run time: a control group, a variance.
    let mut cgroup = None;
    while number::count(follows(at)).is_none() {
        let field = all.get(at)?;
        if !field.ends_with('%') && !field.is_empty() {
            cgroup = Some((*field).to_owned());
        }
        at += 1;
    }
    let running = share(follows(at + 1))?;
    let value = without_value(value, running)
        .or_else(|| with_unit(value, unit, number::whole))
        .unwrap_or_else(|| Value::Quantity(unit.to_owned()));
    Some(Line {
        number: n,
        end,
        place,
        cgroup,
        event: event.to_owned(),
        value,
        running,
    })
}

/// `CPU0`, `S0`, `S0-D0-C1`, `N1`.
fn is_place(field: &str) -> bool {
    let part = |part: &str| {
        let digits = part.trim_start_matches(|c: char| c.is_ascii_uppercase());
        digits.len() < part.len()
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    !field.is_empty() && field.split('-').all(part)
}

/// Splits at the separator, but not inside `cpu/event=0xa3,umask=0x14/`.
fn fields(line: &str, separator: char) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    let mut open = false;
    for part in line.split(separator) {
        match fields.last_mut().filter(|_| open) {
            Some(last) => {
                last.push(separator);
                last.push_str(part);
            }
            None => fields.push(part.to_owned()),
        }
        open ^= part.matches('/').count() % 2 == 1;
    }
    fields
}
