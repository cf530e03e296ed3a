//! The files of a recorded machine, in memory: nothing from a foreign file is written to the disk.

use std::collections::BTreeMap;
use std::io;

/// The kernel's limit (MAXSYMLINKS).
const MOST_LINKS: usize = 40;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// A folder and its entries.
    Folder(BTreeMap<String, Entry>),
    /// A file's text.
    File(String),
    /// Another absolute path.
    Link(String),
    /// Something that could not be read.
    Refused(Refusal),
}

/// The error of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The kernel's number.
    Errno(i32),
    /// In words, if no call failed.
    Words(String),
}

impl Refusal {
    pub(super) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Refusal::Errno(number),
            None => Refusal::Words(error.to_string()),
        }
    }

    fn error(&self) -> io::Error {
        match self {
            Refusal::Errno(number) => io::Error::from_raw_os_error(*number),
            Refusal::Words(words) => io::Error::other(words.clone()),
        }
    }
}

/// A recorded file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    top: Entry,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            top: Entry::Folder(BTreeMap::new()),
        }
    }
}

enum Walk<'a> {
    There(&'a Entry),
    /// The component at this place is a link to that path.
    Link(usize, &'a str),
    Fails(io::Error),
}

impl Tree {
    /// Adds an entry and the folders above it.
    ///
    /// # Errors
    /// In words: something else is at the path or above it.
    pub(super) fn insert(&mut self, path: &str, entry: Entry) -> Result<(), String> {
        let names = parts(path);
        let Some((last, above)) = names.split_last() else {
            return match entry {
                Entry::Folder(_) => Ok(()),
                _ => Err("the root is a folder".to_owned()),
            };
        };
        let mut folder = &mut self.top;
        for (depth, name) in above.iter().enumerate() {
            let Entry::Folder(entries) = folder else {
                return Err(format!("/{} is not a folder", names[..depth].join("/")));
            };
            folder = entries
                .entry((*name).to_owned())
                .or_insert_with(|| Entry::Folder(BTreeMap::new()));
        }
        let Entry::Folder(entries) = folder else {
            return Err(format!("/{} is not a folder", above.join("/")));
        };
        match (entries.get(*last), &entry) {
            (None, _) => {
                entries.insert((*last).to_owned(), entry);
                Ok(())
            }
            (Some(Entry::Folder(_)), Entry::Folder(_)) => Ok(()),
            (Some(_), _) => Err(format!("{path} already exists")),
        }
    }

    /// Puts an entry at a path, whatever was there.
    pub(super) fn replace(&mut self, path: &str, entry: Entry) {
        let names = parts(path);
        let mut folder = &mut self.top;
        for name in &names {
            if !matches!(folder, Entry::Folder(_)) {
                *folder = Entry::Folder(BTreeMap::new());
            }
            let Entry::Folder(entries) = folder else {
                return;
            };
            folder = entries
                .entry((*name).to_owned())
                .or_insert_with(|| Entry::Folder(BTreeMap::new()));
        }
        if !names.is_empty() {
            *folder = entry;
        }
    }

    /// Replaces the text of a file, whatever was at its path. For tests that break machines.
    pub fn set(&mut self, path: &str, text: &str) {
        self.replace(path, Entry::File(text.trim().to_owned()));
    }

    /// Every entry that is not a folder with something in it, in order of path.
    pub(super) fn entries(&self) -> Vec<(String, &Entry)> {
        fn collect<'a>(path: &str, entry: &'a Entry, all: &mut Vec<(String, &'a Entry)>) {
            match entry {
                Entry::Folder(entries) if !entries.is_empty() => {
                    for (name, entry) in entries {
                        collect(&format!("{path}/{name}"), entry, all);
                    }
                }
                _ if path.is_empty() => {}
                _ => all.push((path.to_owned(), entry)),
            }
        }
        let mut all = Vec::new();
        collect("", &self.top, &mut all);
        all
    }

    /// The paths of every file.
    pub fn files(&self) -> Vec<String> {
        let files = self.entries().into_iter();
        files
            .filter(|(_, entry)| matches!(entry, Entry::File(_)))
            .map(|(path, _)| path)
            .collect()
    }

    pub(crate) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.find(path)?.1 {
            Entry::File(text) => Ok(text.clone().into_bytes()),
            _ => Err(io::Error::other("it is not a file")),
        }
    }

    pub(crate) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        match self.find(path)?.1 {
            Entry::Folder(entries) => Ok(entries.keys().cloned().collect()),
            _ => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        }
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        // A file that cannot be read exists.
        match self.find(path) {
            Ok(_) => true,
            Err(error) => !matches!(
                error.raw_os_error(),
                Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP)
            ),
        }
    }

    pub(crate) fn canonical(&self, path: &str) -> io::Result<String> {
        self.find(path).map(|(path, _)| path)
    }

    /// The target of the link at a path, if there is one.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        match self.walk(&parts(path)) {
            Walk::Link(depth, target) if depth + 1 == parts(path).len() => Some(target.to_owned()),
            _ => None,
        }
    }

    fn find(&self, path: &str) -> io::Result<(String, &Entry)> {
        let mut wanted: Vec<&str> = parts(path);
        for _ in 0..MOST_LINKS {
            match self.walk(&wanted) {
                Walk::There(Entry::Refused(refusal)) => return Err(refusal.error()),
                Walk::There(entry) => return Ok((format!("/{}", wanted.join("/")), entry)),
                Walk::Fails(error) => return Err(error),
                Walk::Link(depth, target) => {
                    let mut next = parts(target);
                    next.extend_from_slice(&wanted[depth + 1..]);
                    wanted = next;
                }
            }
        }
        Err(io::Error::from_raw_os_error(libc::ELOOP))
    }

    fn walk(&self, names: &[&str]) -> Walk<'_> {
        let mut here = &self.top;
        for (depth, name) in names.iter().enumerate() {
            let next = match here {
                Entry::Folder(entries) => entries.get(*name),
                Entry::Refused(refusal) => return Walk::Fails(refusal.error()),
                _ => return Walk::Fails(io::Error::from_raw_os_error(libc::ENOTDIR)),
            };
            match next {
                None => return Walk::Fails(io::Error::from_raw_os_error(libc::ENOENT)),
                Some(Entry::Link(target)) => return Walk::Link(depth, target),
                Some(entry) => here = entry,
            }
        }
        Walk::There(here)
    }
}

/// The names in a path. `.` and `..` are invalid in a recording.
pub(super) fn parts(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|part| !matches!(*part, "" | "." | ".."))
        .collect()
}
