//! From text to a tree.

use std::collections::BTreeMap;

use super::tree::{Entry, Refusal, Tree};
use super::{RecordingError, SCHEMA};
use crate::topology::list;

/// A few bytes of text can expand to this many entries, and no more.
const MOST_ENTRIES: usize = 1 << 18;

/// Nor to more bytes than this.
const MOST_CONTENT: usize = 64 << 20;

/// Reads a recording's text; `file` is its name in errors.
///
/// # Errors
/// Another schema, no `end`, or an invalid line, with its number and what is wrong.
pub fn parse(file: &str, text: &str) -> Result<Tree, RecordingError> {
    let wrong = |line: usize, what: String| RecordingError::Wrong {
        file: file.to_owned(),
        line: line + 1,
        what,
    };
    let lines: Vec<&str> = text.lines().collect();
    check_schema(lines.first().copied().unwrap_or_default()).map_err(|what| wrong(0, what))?;
    let mut growing = Growing::default();
    let mut at = 1;
    while let Some(&line) = lines.get(at) {
        if line == "end" {
            return match lines[at + 1..].iter().position(|l| !l.trim().is_empty()) {
                None => Ok(growing.tree),
                Some(more) => Err(wrong(
                    at + 1 + more,
                    "there is more behind `end`".to_owned(),
                )),
            };
        }
        let start = at;
        at += 1;
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let added = if let Some(path) = line.strip_suffix(" <<") {
            let body = &lines[at..];
            let Some(length) = body.iter().position(|line| *line == ">>") else {
                let what = "the text that begins here has no `>>`: the recording was cut";
                return Err(wrong(start, what.to_owned()));
            };
            at += length + 1;
            growing.files(path, &body[..length].join("\n"))
        } else {
            growing.line(line)
        };
        added.map_err(|what| wrong(start, what))?;
    }
    Err(wrong(
        lines.len().saturating_sub(1),
        "the recording ends here without `end`: it was cut".to_owned(),
    ))
}

fn check_schema(first: &str) -> Result<(), String> {
    let stem = SCHEMA.rsplit_once('/').map_or(SCHEMA, |(stem, _)| stem);
    match first.strip_prefix(stem) {
        _ if first == SCHEMA => Ok(()),
        Some(version) if version.starts_with('/') => Err(format!(
            "this is version `{}` of a recording, and this Weir reads `{SCHEMA}`; record the machine again with this Weir, or use the one that wrote it",
            shown(first)
        )),
        _ => Err(format!(
            "a recording starts with the line `{SCHEMA}`, and this one with `{}`",
            shown(first)
        )),
    }
}

fn shown(text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    text.replace(char::is_control, " ")
}

#[derive(Default)]
struct Growing {
    tree: Tree,
    entries: usize,
    bytes: usize,
}

impl Growing {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some((path, target)) = line.split_once(" -> ") {
            if !target.starts_with('/') {
                return Err(format!(
                    "a link leads to a whole path, not to `{}`",
                    shown(target)
                ));
            }
            return self.each(path, |n| Entry::Link(numbered(target, n)));
        }
        if let Some((path, why)) = line.split_once(" ! ") {
            let refusal = refusal(why);
            return self.each(path, |_| Entry::Refused(refusal.clone()));
        }
        if let Some((path, content)) = split(line) {
            return self.files(path, content);
        }
        match line.strip_suffix('/') {
            Some(path) => self.each(path, |_| Entry::Folder(BTreeMap::new())),
            None => Err(format!("`{}` is no entry", shown(line))),
        }
    }

    fn files(&mut self, path: &str, content: &str) -> Result<(), String> {
        let content = content.trim();
        self.each(path, |n| Entry::File(numbered(content, n)))
    }

    fn each(&mut self, pattern: &str, entry: impl Fn(Option<u32>) -> Entry) -> Result<(), String> {
        if !pattern.starts_with('/') || pattern.contains("//") {
            return Err(format!("`{}` is not a whole path", shown(pattern)));
        }
        let left = MOST_ENTRIES - self.entries;
        for (path, n) in paths(pattern, left)? {
            if path.split('/').any(|part| matches!(part, "." | "..")) {
                return Err(format!("`{}` is not a whole path", shown(&path)));
            }
            let entry = entry(n);
            self.entries += 1;
            self.bytes += path.len()
                + match &entry {
                    Entry::File(text) | Entry::Link(text) => text.len(),
                    _ => 0,
                };
            if self.bytes > MOST_CONTENT {
                return Err("the recording unfolds to more than 64 MiB".to_owned());
            }
            self.tree.insert(&path, entry)?;
        }
        Ok(())
    }
}

/// Paths contain colons (`pci0000:c2`); a colon that ends a path is followed by white space.
fn split(line: &str) -> Option<(&str, &str)> {
    line.split_once(": ")
        .or_else(|| Some((line.strip_suffix(':')?, "")))
}

fn refusal(why: &str) -> Refusal {
    let number = why.split(' ').next().and_then(|n| n.parse().ok());
    match number {
        Some(number) if number > 0 => Refusal::Errno(number),
        _ => Refusal::Words(why.to_owned()),
    }
}

/// Every path of a pattern, with the number of its first brackets.
fn paths(pattern: &str, most: usize) -> Result<Vec<(String, Option<u32>)>, String> {
    let Some((head, rest)) = pattern.split_once('[') else {
        return Ok(vec![(pattern.to_owned(), None)]);
    };
    let Some((set, tail)) = rest.split_once(']') else {
        return Err(format!(
            "`{}` opens a bracket and does not close it",
            shown(pattern)
        ));
    };
    let numbers = list::parse(set).map_err(|why| why.reason)?;
    let tails = paths(tail, most)?;
    if numbers.len().saturating_mul(tails.len()) > most {
        return Err(format!(
            "the recording has more than {MOST_ENTRIES} entries"
        ));
    }
    let mut all = Vec::with_capacity(numbers.len() * tails.len());
    for n in numbers {
        for (tail, _) in &tails {
            all.push((format!("{head}{n}{tail}"), Some(n)));
        }
    }
    Ok(all)
}

fn numbered(content: &str, n: Option<u32>) -> String {
    let Some(n) = n else {
        return content.to_owned();
    };
    let (mut text, mut rest) = (String::new(), content);
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let place = after.split_once('}').and_then(|(offset, after)| {
            let offset: i64 = if offset.is_empty() {
                0
            } else {
                offset.parse().ok()?
            };
            Some((i64::from(n).checked_add(offset)?, after))
        });
        match place {
            Some((number, after)) => {
                text.push_str(&number.to_string());
                rest = after;
            }
            None => {
                text.push('{');
                rest = after;
            }
        }
    }
    text + rest
}
