//! The reference of every key, for `docs/platforms.md`.

use std::collections::BTreeMap;

use super::key::{FileKind, Need};
use super::library::Library;
use super::scalar::Scalar;
use super::source_file::SourceFile;

/// One key with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceRow {
    /// The dotted key.
    pub key: &'static str,
    /// What it takes, in words.
    pub takes: String,
    /// Whether a file must have it.
    pub need: Need,
    /// A value as it is written.
    pub example: String,
    /// Default values as shown, each with the names of the defaults that give it: a
    /// microarchitecture, a kind of controller, or nothing where it holds for all.
    pub defaults: Vec<(String, Vec<String>)>,
    /// What it means.
    pub meaning: &'static str,
}

impl Library {
    /// Every key of files of this kind, in the order of the reference.
    pub fn reference(&self, kind: FileKind) -> Vec<ReferenceRow> {
        let none = BTreeMap::new();
        let (special, general): (&BTreeMap<String, SourceFile>, _) = match kind {
            FileKind::Host | FileKind::HostDefaults => {
                (&self.defaults.cores, self.defaults.host.as_ref())
            }
            FileKind::Device | FileKind::DeviceDefaults => {
                (&self.defaults.controllers, self.defaults.device.as_ref())
            }
            FileKind::Storage => (&none, None),
        };
        kind.keys()
            .iter()
            .map(|key| {
                let shown = |file: &SourceFile| {
                    let entry = file.entries.get(key.path)?;
                    Some(key.kind.show(&entry.sourced.value))
                };
                let mut defaults: Vec<(String, Vec<String>)> = Vec::new();
                for (name, file) in special {
                    let Some(value) = shown(file) else { continue };
                    match defaults.iter_mut().find(|(known, _)| *known == value) {
                        Some((_, names)) => names.push(name.clone()),
                        None => defaults.push((value, vec![name.clone()])),
                    }
                }
                if let Some(value) = general.and_then(shown) {
                    defaults.push((value, Vec::new()));
                }
                let takes = match (key.kind.words(), key.bounds) {
                    (Some(words), _) => format!("{}: {}", key.kind.describe(), words.join(", ")),
                    (None, Some((low, high))) => format!(
                        "{}, {} to {}",
                        key.kind.describe(),
                        key.kind.show(&Scalar::Number(low)),
                        key.kind.show(&Scalar::Number(high))
                    ),
                    (None, None) => format!(
                        "{}: {}",
                        key.kind.describe(),
                        self.microarchitectures().join(", ")
                    ),
                };
                ReferenceRow {
                    key: key.path,
                    takes,
                    need: key.need,
                    example: key.written_example(),
                    defaults,
                    meaning: key.meaning,
                }
            })
            .collect()
    }
}
