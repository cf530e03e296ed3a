//! Private facts that a recording must not contain: the user, the host, and serial numbers.

use std::collections::BTreeMap;
use std::fs;

/// Something that was removed from a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scrubbed {
    /// What.
    pub what: String,
    /// The path.
    pub paths: Vec<String>,
}

/// Shorter words are too likely to mean something else.
const SHORTEST_NAME: usize = 4;

/// The replacement for removed text.
const GONE: &str = "(scrubbed)";

/// The words that name this computer and its user, and what was removed so far.
#[derive(Debug, Default)]
pub(super) struct Scrubber {
    names: Vec<(&'static str, String)>,
    done: BTreeMap<&'static str, Vec<String>>,
}

impl Scrubber {
    /// A scrubber with the names of the computer on which it runs.
    pub(super) fn of_this_computer() -> Self {
        let mut names = Vec::new();
        let files = [
            ("host name", "/proc/sys/kernel/hostname"),
            ("domain name", "/proc/sys/kernel/domainname"),
            ("machine id", "/etc/machine-id"),
            ("boot id", "/proc/sys/kernel/random/boot_id"),
        ];
        for (what, path) in files {
            let text = fs::read_to_string(path).unwrap_or_default();
            names.push((what, text.trim().to_owned()));
            if let Some((short, _)) = text.trim().split_once('.') {
                names.push((what, short.to_owned()));
            }
        }
        for variable in ["USER", "LOGNAME", "SUDO_USER", "HOME"] {
            let value = std::env::var(variable).unwrap_or_default();
            names.push(("user name", value));
        }
        Self::that_knows(names)
    }

    /// A scrubber with these names.
    pub(super) fn that_knows(mut names: Vec<(&'static str, String)>) -> Self {
        let common = ["root", "/root", "none", "(none)", "localhost"];
        names.retain(|(_, name)| name.len() >= SHORTEST_NAME && !common.contains(&name.as_str()));
        // The longest first: a short name may be a part of a long one.
        names.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        Self {
            names,
            done: BTreeMap::new(),
        }
    }

    /// A file's text without private facts.
    pub(super) fn clean(&mut self, path: &str, text: &str) -> String {
        let mut text = match path {
            "/proc/self/status" => self.keep_lines(
                path,
                text,
                "name, numbers and groups of the process and its user",
                |line| {
                    ["Cpus_allowed_list:", "Mems_allowed_list:", "CapEff:"]
                        .iter()
                        .any(|kept| line.starts_with(kept))
                },
            ),
            "/proc/cpuinfo" => self.keep_lines(path, first_block(text), "serial number", |line| {
                !line.to_ascii_lowercase().starts_with("serial")
            }),
            "/proc/swaps" => self.swaps(path, text),
            _ => text.to_owned(),
        };
        for (what, name) in self.names.clone() {
            if let Some(clean) = without_word(&text, &name) {
                text = clean;
                self.note(what, path);
            }
        }
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let clean: Vec<String> = words
            .into_iter()
            .map(|word| match kind_of(&word) {
                Some(what) => {
                    self.note(what, path);
                    GONE.to_owned()
                }
                None => word,
            })
            .collect();
        clean.join(" ")
    }

    /// What was removed, and from which path.
    pub(super) fn report(self) -> Vec<Scrubbed> {
        let entries = self.done.into_iter();
        entries
            .map(|(what, paths)| Scrubbed {
                what: what.to_owned(),
                paths,
            })
            .collect()
    }

    fn keep_lines(
        &mut self,
        path: &str,
        text: &str,
        what: &'static str,
        kept: impl Fn(&str) -> bool,
    ) -> String {
        let lines: Vec<&str> = text.lines().filter(|line| kept(line)).collect();
        if lines.len() < text.lines().count() {
            self.note(what, path);
        }
        lines.join("\n")
    }

    /// Names of swap files and devices.
    fn swaps(&mut self, path: &str, text: &str) -> String {
        let line = |(i, line): (usize, &str)| match line.split_once(char::is_whitespace) {
            Some((_, rest)) if i > 0 => format!("swap{i} {}", rest.trim_start()),
            _ => line.to_owned(),
        };
        if text.lines().count() > 1 {
            self.note("names of swap files", path);
        }
        let lines: Vec<String> = text.lines().enumerate().map(line).collect();
        lines.join("\n")
    }

    fn note(&mut self, what: &'static str, path: &str) {
        let paths = self.done.entry(what).or_default();
        if !paths.iter().any(|p| p == path) {
            paths.push(path.to_owned());
        }
    }
}

/// One processor stands for all.
fn first_block(text: &str) -> &str {
    text.split_once("\n\n").map_or(text, |(first, _)| first)
}

/// The text without a word, or `None` if it does not contain the word.
fn without_word(text: &str, word: &str) -> Option<String> {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    let (mut clean, mut rest, mut found) = (String::new(), text, false);
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        clean.push_str(before);
        let whole = !clean.ends_with(inside) && !after.starts_with(inside);
        clean.push_str(if whole { GONE } else { word });
        found |= whole;
        rest = after;
    }
    clean.push_str(rest);
    found.then_some(clean)
}

/// The kind of a word by its form, if it identifies a specimen.
fn kind_of(word: &str) -> Option<&'static str> {
    let word = word.trim_matches(|c: char| !c.is_ascii_hexdigit());
    let hexadecimal = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let octets: Vec<&str> = word.split(':').collect();
    if octets.len() == 6 && octets.iter().all(|part| hexadecimal(part, 2)) {
        return Some("network address");
    }
    let groups: Vec<&str> = word.split('-').collect();
    let shape = [8, 4, 4, 4, 12];
    let is_uuid = groups.len() == shape.len()
        && groups
            .iter()
            .zip(shape)
            .all(|(part, n)| hexadecimal(part, n));
    is_uuid.then_some("unique identifier")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scrubber() -> Scrubber {
        Scrubber::that_knows(vec![
            ("host name", "db-prod-17".to_owned()),
            ("user name", "alice".to_owned()),
            ("user name", "root".to_owned()),
        ])
    }

    #[test]
    fn a_process_and_its_user_stay_unnamed() {
        let status =
            "Name:\tweir\nUid:\t1000\nCapEff:\t0\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0";
        let mut scrubber = scrubber();
        assert_eq!(
            scrubber.clean("/proc/self/status", status),
            "CapEff:\t0\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0"
        );
        assert_eq!(scrubber.report()[0].paths, ["/proc/self/status"]);
    }

    #[test]
    fn specimens_are_known_by_their_shape() {
        let mut scrubber = scrubber();
        let text = "mac 52:54:00:12:34:56 id 123e4567-e89b-12d3-a456-426614174000 pci 0000:0c:00.0";
        assert_eq!(
            scrubber.clean("/x", text),
            "mac (scrubbed) id (scrubbed) pci 0000:0c:00.0"
        );
        let swaps = "Filename Type Size\n/home/alice/swapfile file 1024";
        assert_eq!(
            scrubber.clean("/proc/swaps", swaps),
            "Filename Type Size\nswap1 file 1024"
        );
    }

    proptest! {
        #[test]
        fn no_known_name_survives(before in ".{0,20}", after in ".{0,20}", which in 0usize..2) {
            let name = ["db-prod-17", "alice"][which];
            let text = format!("{before} {name} {after}");
            let mut scrubber = scrubber();
            let clean = scrubber.clean("/proc/sys/kernel/osrelease", &text);
            prop_assert!(!clean.split(' ').any(|word| word == name), "{clean}");
            prop_assert!(!scrubber.report().is_empty());
        }
    }
}
