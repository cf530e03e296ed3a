//! The platforms that are known: those that come with Weir, and the files a user adds.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::LazyLock;

use super::assemble::{Defaults, assemble};
use super::definition::Definition;
use super::key::FileKind;
use super::read::KINDS;
use super::source_file::SourceFile;
use crate::diagnostic::Mistakes;
use crate::embedded::PLATFORMS;
use crate::toml::{self, Table};

/// What the files are, in messages.
const WHAT: &str = "a platform file";

/// Hosts and devices by name, and the defaults below them.
#[derive(Debug, Clone)]
pub struct Library {
    definitions: BTreeMap<String, Definition>,
    /// The file of each, to read it again with a value changed.
    pub(super) sources: BTreeMap<String, SourceFile>,
    pub(super) defaults: Defaults,
}

impl Library {
    /// The platforms that come with Weir. They are read once.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Library> = LazyLock::new(Library::read_builtin);
        BUILTIN.clone()
    }

    fn read_builtin() -> Self {
        let mut library = Self {
            definitions: BTreeMap::new(),
            sources: BTreeMap::new(),
            defaults: builtin_defaults(),
        };
        for (name, text) in PLATFORMS.files("") {
            // A test reads every embedded file without a mistake.
            let _ = library.add(name, text);
        }
        library
    }

    /// Reads a file without adding it.
    ///
    /// `file` is its name or path, for messages; without its extension it names the platform.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn check(&self, file: &str, text: &str) -> Result<Definition, Mistakes> {
        Ok(self.read(file, text)?.0)
    }

    /// Reads a file and adds what it describes, in place of what had its name.
    ///
    /// # Errors
    /// Every mistake in the text; the library then is as before.
    pub fn add(&mut self, file: &str, text: &str) -> Result<&Definition, Mistakes> {
        let (definition, source) = self.read(file, text)?;
        self.sources.insert(definition.name().to_string(), source);
        Ok(self.keep(definition))
    }

    /// Puts a definition in place of what had its name.
    pub(super) fn keep(&mut self, definition: Definition) -> &Definition {
        match self.definitions.entry(definition.name().to_string()) {
            Entry::Vacant(place) => place.insert(definition),
            Entry::Occupied(mut place) => {
                place.insert(definition);
                place.into_mut()
            }
        }
    }

    fn read(&self, file: &str, text: &str) -> Result<(Definition, SourceFile), Mistakes> {
        toml::read(file, text, WHAT, |root| self.read_file(stem(file), root))
    }

    fn read_file(&self, name: &str, root: &Table<'_>) -> Option<(Definition, SourceFile)> {
        let source = SourceFile::read(name, root)?;
        if let Some(reason) = unusable_name(name) {
            root.mistakes().report(
                source.head.clone(),
                None,
                format!("the file's name cannot be a platform's name: {reason}"),
                Some("give it another name, in lower case, such as `our-card.toml`".into()),
            );
        }
        if matches!(
            source.kind,
            FileKind::HostDefaults | FileKind::DeviceDefaults
        ) {
            root.mistakes().report(
                source.head.clone(),
                Some("kind"),
                format!("this file gives {}, not a platform", source.kind.describe()),
                Some(KINDS.into()),
            );
            return None;
        }
        let definition = assemble(&source, &self.defaults, root.mistakes())?;
        Some((definition, source))
    }

    /// Every host, device and storage device, in this order, by name.
    pub fn list(&self) -> Vec<&Definition> {
        let kinds = [FileKind::Host, FileKind::Device, FileKind::Storage];
        let of = |kind| self.definitions.values().filter(move |d| d.kind() == kind);
        kinds.into_iter().flat_map(of).collect()
    }

    /// The host or device of this name.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        self.definitions.get(name)
    }

    /// The microarchitectures whose defaults are known.
    pub fn microarchitectures(&self) -> Vec<&str> {
        self.defaults.cores.keys().map(String::as_str).collect()
    }
}

/// The last part of a path without its extension.
fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// The name of what a file describes.
///
/// # Errors
/// Why the file's name cannot be that name.
pub fn name_of_file(file: &str) -> Result<&str, &'static str> {
    let name = stem(file);
    match unusable_name(name) {
        None => Ok(name),
        Some(reason) => Err(reason),
    }
}

/// Why a name cannot be in an expression, if it cannot.
fn unusable_name(name: &str) -> Option<&'static str> {
    let usable =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '_');
    if name.is_empty() {
        Some("it is empty")
    } else if name.len() > 64 {
        Some("it is longer than 64 characters")
    } else if !name.chars().all(usable) {
        Some("only a-z, 0-9, `-`, `_` and `.` are possible in an expression")
    } else if name == "none" || name == "host" {
        Some("`none` and `host` mean something else in an expression")
    } else if split_count(name).is_some() {
        Some("a number and `x` at its start would read as a count")
    } else {
        None
    }
}

/// `2xcxl-a` into 2 and `cxl-a`; `None` without a count.
pub(super) fn split_count(term: &str) -> Option<(&str, &str)> {
    let (count, name) = term.split_once('x')?;
    let is_count = !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
    is_count.then_some((count, name))
}

fn builtin_defaults() -> Defaults {
    let by_name = |folder| -> BTreeMap<String, SourceFile> {
        PLATFORMS
            .files(folder)
            .filter_map(|(name, text)| Some((name.to_string(), read_defaults(name, text).ok()?)))
            .collect()
    };
    Defaults {
        cores: by_name("cores/"),
        host: read_defaults("host", PLATFORMS.text("defaults/host.toml")).ok(),
        controllers: by_name("controllers/"),
        device: read_defaults("cxl", PLATFORMS.text("defaults/cxl.toml")).ok(),
    }
}

/// A file of defaults. A test reads every embedded one without a mistake.
fn read_defaults(name: &str, text: &str) -> Result<SourceFile, Mistakes> {
    toml::read(name, text, WHAT, |root| SourceFile::read(name, root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_comes_with_weir_is_without_mistake() {
        let folders = ["cores/", "controllers/", "defaults/"];
        let defaults: Vec<_> = folders
            .into_iter()
            .flat_map(|at| PLATFORMS.files(at))
            .collect();
        assert!(defaults.len() >= 8);
        for (name, text) in defaults {
            if let Err(mistakes) = read_defaults(name, text) {
                panic!("{mistakes}");
            }
        }
        let library = Library::builtin();
        for (name, text) in PLATFORMS.files("") {
            if let Err(mistakes) = library.check(name, text) {
                panic!("{mistakes}");
            }
            assert_eq!(library.get(name).map(Definition::name), Some(name));
        }
    }
}
