//! Recorded machines: one text file each, unfolded into a folder that a root can point at.
//!
//! A line is `PATH: CONTENT`, `PATH <<` with lines up to `>>`, `PATH -> LINK` or `PATH/` for an
//! empty folder. A set of numbers in brackets (`cpu[0-3,8]`) stands for one path for each number;
//! in the content `{}` is that number, `{+n}` and `{-n}` are n more and n less.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weir_linux::Root;
use weir_linux::topology::list;

pub struct Recorded {
    folder: tempfile::TempDir,
}

impl Recorded {
    pub fn named(name: &str) -> Self {
        let file = home().join(format!("{name}.machine"));
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        Self::from_text(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn from_text(text: &str) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            if let Some(path) = line.strip_suffix(" <<") {
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != ">>").collect();
                for (path, n) in paths(path) {
                    write(folder.path(), &path, &numbered(&body.join("\n"), n))?;
                }
            } else if let Some((path, target)) = line.split_once(" -> ") {
                link(folder.path(), path, target)?;
            } else if let Some(path) = line.strip_suffix('/') {
                for (path, _) in paths(path) {
                    fs::create_dir_all(inside(folder.path(), &path))?;
                }
            } else if let Some((path, content)) = split(line) {
                for (path, n) in paths(path) {
                    write(folder.path(), &path, &numbered(content, n))?;
                }
            } else {
                return Err(io::Error::other(format!("`{line}` is no entry")));
            }
        }
        Ok(Self { folder })
    }

    /// Gives every file that a pattern stands for another content.
    pub fn replace(&self, pattern: &str, content: &str) {
        for (path, n) in paths(pattern) {
            write(self.folder.path(), &path, &numbered(content, n)).unwrap();
        }
    }

    pub fn root(&self) -> Root {
        Root::at(self.folder.path())
    }
}

pub fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

/// Every recorded machine, by name.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(home())
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".machine")?.to_owned())
        })
        .collect();
    names.sort();
    names
}

/// Paths have colons of their own (`pci0000:c2`); the one that ends a path has white space behind.
fn split(line: &str) -> Option<(&str, &str)> {
    line.split_once(": ")
        .or_else(|| Some((line.strip_suffix(':')?, "")))
}

fn inside(base: &Path, path: &str) -> PathBuf {
    base.join(path.trim_start_matches('/'))
}

fn write(base: &Path, path: &str, content: &str) -> io::Result<()> {
    let file = inside(base, path);
    fs::create_dir_all(file.parent().unwrap_or(base))?;
    fs::write(file, format!("{content}\n"))
}

fn link(base: &Path, path: &str, target: &str) -> io::Result<()> {
    let from = inside(base, path);
    fs::create_dir_all(from.parent().unwrap_or(base))?;
    std::os::unix::fs::symlink(inside(base, target), from)
}

/// Every path that a pattern stands for, with the number of its first brackets.
fn paths(pattern: &str) -> Vec<(String, u32)> {
    let Some((head, rest)) = pattern.split_once('[') else {
        return vec![(pattern.to_owned(), 0)];
    };
    let (set, tail) = rest.split_once(']').unwrap();
    let mut all = Vec::new();
    for n in list::parse(set).unwrap() {
        all.extend(
            paths(tail)
                .into_iter()
                .map(|(tail, _)| (format!("{head}{n}{tail}"), n)),
        );
    }
    all
}

fn numbered(content: &str, n: u32) -> String {
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
