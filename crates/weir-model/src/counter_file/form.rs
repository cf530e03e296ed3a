//! The form of a file of `perf stat`, and its lines.

use super::line::Lines;
use super::{CounterFileError, csv, json, number, text};

/// Characters that `-x` is given, the usual ones first.
const SEPARATORS: [char; 5] = [',', ';', '\t', '|', ':'];

/// Reads a file in the form that fits most of its lines.
pub(super) fn read(file: &str, content: &str) -> Result<Lines, CounterFileError> {
    let mut lines = Lines::default();
    let rest: Vec<(u32, &str)> = (1..)
        .zip(content.lines())
        .filter(|(n, line)| !header(&mut lines, *n, line))
        .collect();
    if rest
        .iter()
        .any(|(_, line)| line.trim_start().starts_with('{'))
    {
        json::read(file, &rest, &mut lines)?;
    } else {
        let fitting = |separator: char| {
            let fits = |(n, line): &(u32, &str)| csv::read(*n, line, separator).is_some();
            rest.iter().take(200).filter(|line| fits(line)).count()
        };
        let scores = SEPARATORS.map(|separator| (fitting(separator), separator));
        let best = scores
            .into_iter()
            .reduce(|best, next| match next.0 > best.0 {
                true => next,
                false => best,
            });
        let separator = best.filter(|(score, _)| *score > 0).map(|(_, s)| s);
        for (n, line) in rest {
            let read = match separator {
                Some(separator) => csv::read(n, line, separator),
                None => text::read(n, line),
            };
            match read {
                Some(line) => lines.lines.push(line),
                None => lines.others.push(n),
            }
        }
    }
    if lines.lines.is_empty() {
        return Err(CounterFileError::file(
            file,
            "no line has a counter of `perf stat` (text, `-x,` or `-j`), and it is no document of Weir's",
        ));
    }
    let numbers = || lines.lines.iter().map(|line| line.number);
    let (first, last) = (numbers().min(), numbers().max());
    let is_within = |n: &&u32| Some(**n) > first && Some(**n) < last;
    if let Some(&n) = lines.starts.iter().find(is_within) {
        let text = content.lines().nth(n as usize - 1).unwrap_or_default();
        let message = "a run begins here after another: the file holds more than one run";
        return Err(CounterFileError::line(file, n, text, message));
    }
    Ok(lines)
}

/// Takes a line which is not a counter but has information; returns whether it was one.
fn header(lines: &mut Lines, n: u32, line: &str) -> bool {
    let line = line.trim();
    if let Some(comment) = line.strip_prefix('#') {
        if comment.trim_start().starts_with("started on ") {
            lines.starts.push(n);
        }
        let mut words = comment.split_ascii_whitespace();
        if (words.next(), words.next()) == (Some("weir"), Some("cpu")) {
            lines.cpu = words.next().map(str::to_owned);
        }
        return true;
    }
    if let Some(elapsed) = line.split("seconds time elapsed").next()
        && elapsed.len() < line.len()
    {
        let seconds = elapsed.split_ascii_whitespace().next();
        lines.elapsed = seconds.and_then(number::decimal).map(|s| s * 1e9);
        return true;
    }
    if line.contains("NMI watchdog") || line.contains("nmi_watchdog") {
        lines.watchdog = true;
        return true;
    }
    if line.starts_with("Performance counter stats for") {
        lines.starts.push(n);
        return true;
    }
    line.is_empty() || line.ends_with("seconds user") || line.ends_with("seconds sys")
}
