//! Every question to a machine, and its answer.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::tree::{Entry, Refusal};

/// Answers by path. Absent files are not recorded: they are absent in a recording too.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<BTreeMap<String, Entry>>);

impl Trace {
    /// A file's text, or why there is none.
    pub(crate) fn file(&self, path: &str, text: &io::Result<String>) {
        match text {
            Ok(text) => self.note(path, Entry::File(text.clone())),
            Err(error) => self.refused(path, error),
        }
    }

    /// The names in a folder, or why there are none.
    pub(crate) fn folder(&self, path: &str, names: &io::Result<Vec<String>>) {
        match names {
            Ok(names) => {
                self.there(path);
                for name in names {
                    self.there(&format!("{}/{name}", path.trim_end_matches('/')));
                }
            }
            Err(error) => self.refused(path, error),
        }
    }

    /// That there is something.
    pub(crate) fn there(&self, path: &str) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(path.to_owned())
            .or_insert_with(|| Entry::Folder(BTreeMap::new()));
    }

    fn refused(&self, path: &str, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            _ => self.note(path, Entry::Refused(Refusal::of(error))),
        }
    }

    fn note(&self, path: &str, entry: Entry) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(path.to_owned(), entry);
    }

    pub(super) fn entries(&self) -> Vec<(String, Entry)> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().map(|(p, e)| (p.clone(), e.clone())).collect()
    }
}
