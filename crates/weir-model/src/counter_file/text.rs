//! `perf stat` for people: `1,234,567 cycles # 3.2 GHz (24.98%)`.

use super::line::{Line, seconds, share, with_unit, without_value};
use super::number;
use crate::counters::RunningShare;

/// Units between a value and its event.
const UNITS: [&str; 11] = [
    "msec", "nsec", "ns", "Joules", "MiB", "GiB", "KiB", "Bytes", "bytes", "C", "B",
];

pub(super) fn read(n: u32, line: &str) -> Option<Line> {
    let (line, running) = running(line);
    // A metric and a variance follow the event.
    let line = line.split('#').next()?;
    let line = line.split("( +-").next()?;
    let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
    // `<not counted>` is one word.
    let joined;
    if let Some(at) = words.iter().position(|word| *word == "<not") {
        joined = format!("<not {}", words.get(at + 1)?);
        words.splice(at..at + 2, [joined.as_str()]);
    }
    let is_value = |word: &str| word.starts_with("<not ") || number::decimal(word).is_some();
    let value_at = |at: usize| words.get(at).is_some_and(|word| is_value(word));
    let mut at = 0;
    let mut end = None;
    // A time has nine decimals, and comes before something else that begins a line.
    let nine = |word: &str| word.rsplit(['.', ',']).next().is_some_and(|d| d.len() == 9);
    if nine(words.first()?) && (value_at(1) || value_at(2) || value_at(3)) {
        end = Some(seconds(words[0])?);
        at = 1;
    }
    let mut place = String::new();
    if !value_at(at) {
        let word = words.get(at)?;
        if !word.starts_with(|c: char| c.is_ascii_uppercase())
            || !word.contains(|c: char| c.is_ascii_digit())
        {
            return None;
        }
        place = (*word).to_owned();
        at += 1;
        if value_at(at) && value_at(at + 1) {
            at += 1;
        }
    }
    let value = words.get(at).filter(|word| is_value(word))?;
    let unit = match words.get(at + 1) {
        Some(unit) if UNITS.contains(unit) && words.len() > at + 2 => {
            at += 1;
            unit
        }
        _ => "",
    };
    let mut event = (*words.get(at + 1)?).to_owned();
    let mut rest = &words[at + 2..];
    if let [unit, others @ ..] = rest
        && unit.starts_with('[')
    {
        event = format!("{event} {unit}");
        rest = others;
    }
    let named = |c: char| c.is_ascii_alphabetic();
    if !event.starts_with(named) || rest.len() > 1 {
        return None;
    }
    let value = without_value(value, running).or_else(|| with_unit(value, unit, number::count))?;
    Some(Line {
        number: n,
        end,
        place,
        cgroup: rest.first().map(|group| (*group).to_owned()),
        event,
        value,
        running,
    })
}

/// Cuts the share off a line's end; a line without one was counted all the time.
fn running(line: &str) -> (&str, RunningShare) {
    let line = line.trim_end();
    let found = line.strip_suffix("%)").and_then(|rest| {
        let (before, percent) = rest.rsplit_once('(')?;
        Some((before, share(percent.trim())?))
    });
    found.unwrap_or((line, RunningShare::WHOLE))
}
