//! From a tree to text; equal entries of numbered folders share one line.

use std::collections::BTreeMap;
use std::io;

use super::SCHEMA;
use super::tree::{Entry, Refusal, Tree};
use crate::topology::list;

/// The text of a recording. `notes` become comments below the first line.
pub(super) fn write(tree: &Tree, notes: &[String]) -> String {
    let mut text = format!("{SCHEMA}\n");
    for line in notes.iter().flat_map(|note| note.lines()) {
        text.push_str(&format!("# {line}\n"));
    }
    for (path, line) in folded(tree) {
        text.push_str(&path);
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str("end\n");
    text
}

/// Entries that differ only in one number of their path, as one. In the order of the first of each.
fn folded(tree: &Tree) -> Vec<(String, String)> {
    let mut order: Vec<(String, String, String)> = Vec::new();
    let mut sets: BTreeMap<(String, String, String), Vec<u32>> = BTreeMap::new();
    let mut lines = Vec::new();
    for (path, entry) in tree.entries() {
        let numbered = split(&path, matches!(entry, Entry::File(_) | Entry::Refused(_)));
        let Some((head, n, tail)) = numbered else {
            lines.push((path, line(entry)));
            continue;
        };
        let line = match entry {
            Entry::Link(target) => match target.strip_suffix(&n.to_string()) {
                Some(stem) if !stem.ends_with(|c: char| c.is_ascii_digit()) => {
                    format!(" -> {stem}{{}}")
                }
                _ => line(entry),
            },
            _ => line(entry),
        };
        // A literal brace would be taken for the number.
        if line.contains('{') && !matches!(entry, Entry::Link(_)) {
            lines.push((path, line));
            continue;
        }
        let key = (head, tail, line);
        let set = sets.entry(key.clone()).or_default();
        if set.is_empty() {
            order.push(key);
        }
        set.push(n);
    }
    for key in order {
        let mut numbers = sets.remove(&key).unwrap_or_default();
        numbers.sort_unstable();
        let (head, tail, line) = key;
        lines.push(match numbers.as_slice() {
            [one] => (
                format!("{head}{one}{tail}"),
                line.replace("{}", &one.to_string()),
            ),
            _ => (format!("{head}[{}]{tail}", list::format(&numbers)), line),
        });
    }
    lines.sort();
    lines
}

/// A path around the number in one of its parts: the first part below a folder of processors, nodes or memory
/// blocks, or otherwise the last part.
fn split(path: &str, file: bool) -> Option<(String, u32, String)> {
    let system = ["cpu/cpu", "node/node", "memory/memory"];
    let start = system.iter().find_map(|folder| {
        let prefix = format!("/sys/devices/system/{folder}");
        path.starts_with(&prefix).then_some(prefix.len())
    });
    let start = match start {
        Some(start) if file => start,
        _ if file => return None,
        _ => path.trim_end_matches(|c: char| c.is_ascii_digit()).len(),
    };
    let digits = path[start..].bytes().take_while(u8::is_ascii_digit).count();
    let (number, tail) = path[start..].split_at(digits);
    // A leading zero would be lost.
    if number.is_empty() || (number.len() > 1 && number.starts_with('0')) {
        return None;
    }
    let n = number.parse().ok().filter(|n| *n < 1 << 16)?;
    Some((path[..start].to_owned(), n, tail.to_owned()))
}

fn line(entry: &Entry) -> String {
    match entry {
        Entry::Folder(_) => "/".to_owned(),
        Entry::Link(target) => format!(" -> {target}"),
        Entry::Refused(Refusal::Errno(number)) => {
            let words = io::Error::from_raw_os_error(*number).to_string();
            let words = words.split(" (os error").next().unwrap_or_default();
            format!(" ! {number} {words}")
        }
        Entry::Refused(Refusal::Words(words)) => format!(" ! {words}"),
        Entry::File(text) if text.is_empty() => ":".to_owned(),
        Entry::File(text) if text.contains('\n') => format!(" <<\n{text}\n>>"),
        Entry::File(text) => format!(": {text}"),
    }
}
