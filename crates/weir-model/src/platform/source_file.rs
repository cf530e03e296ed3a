//! What a platform file says, and what it says with the defaults below it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::key::{FileKind, Key};
use super::scalar::{Parameter, Scalar};
use super::{MeasuredLog, Provenance, Sourced};

/// One value of a file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub sourced: Sourced<Scalar>,
    /// Where the value is in its file.
    pub span: Range<usize>,
}

/// What a file says, before defaults.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub kind: FileKind,
    /// The name in expressions.
    pub name: String,
    pub summary: String,
    pub default_devices: Vec<String>,
    pub log: Option<MeasuredLog>,
    pub entries: BTreeMap<&'static str, Entry>,
    /// Keys that are there but could not be read; they are not missing.
    pub unreadable: Vec<&'static str>,
    /// Values without a source, and their places.
    pub(super) without_source: Vec<(&'static Key, Range<usize>)>,
    /// Whether every line is TOML; where not, nothing is reported as missing.
    pub is_whole: bool,
    /// Where `kind` is: the place of mistakes that have no other.
    pub head: Range<usize>,
}

/// The values of a file with the defaults below it; the first one that has a key gives it.
pub(crate) struct Values<'f> {
    pub(super) layers: Vec<&'f SourceFile>,
    pub(super) file: &'f SourceFile,
    /// Values that are calculated from others.
    pub(super) derived: BTreeMap<&'static str, Sourced<Scalar>>,
}

impl<'f> Values<'f> {
    pub(crate) fn file(&self) -> &'f SourceFile {
        self.file
    }

    pub(crate) fn get<T: Parameter>(&self, path: &str) -> Option<Sourced<T>> {
        let in_files = || self.layers.iter().find_map(|l| l.entries.get(path));
        let sourced = match self.derived.get(path) {
            Some(derived) => derived,
            None => &in_files()?.sourced,
        };
        Some(Sourced {
            value: T::from_scalar(&sourced.value)?,
            provenance: sourced.provenance.clone(),
        })
    }

    pub(super) fn derive(&mut self, path: &'static str, value: Scalar, provenance: Provenance) {
        self.derived.insert(path, Sourced { value, provenance });
    }

    /// Where the file itself gives this key; else where its `kind` is.
    pub(crate) fn span(&self, path: &str) -> Range<usize> {
        let entry = self.file.entries.get(path);
        entry.map_or_else(|| self.file.head.clone(), |entry| entry.span.clone())
    }

    /// Whether the file itself gives this key, readable or not.
    pub(crate) fn is_given(&self, path: &str) -> bool {
        self.file.entries.contains_key(path) || self.file.unreadable.contains(&path)
    }
}
