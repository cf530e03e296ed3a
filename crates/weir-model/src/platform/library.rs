//! The platforms that are known: those that come with Weir, and the files a user adds.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::assemble::{Defaults, Definition, assemble};
use super::embedded;
use super::schema::FileKind;
use super::source_file::{self, SourceFile};
use crate::diagnostic::{Collector, Mistakes};

/// Hosts and devices by name, and the defaults below them.
#[derive(Debug, Clone)]
pub struct Library {
    definitions: BTreeMap<String, Definition>,
    /// What each of them was read from, to be read again with a value changed.
    pub(super) sources: BTreeMap<String, SourceFile>,
    pub(super) defaults: Defaults,
}

impl Library {
    /// The platforms that come with Weir.
    pub fn builtin() -> Self {
        let mut library = Self {
            definitions: BTreeMap::new(),
            sources: BTreeMap::new(),
            defaults: builtin_defaults(),
        };
        for (name, text) in embedded::PLATFORMS {
            // A test reads every embedded file without a mistake.
            let _ = library.add(name, text);
        }
        library
    }

    /// Reads a file without adding it.
    ///
    /// `file` is its name or path, for messages; what stands before the extension names the
    /// platform.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn check(&self, file: &str, text: &str) -> Result<Definition, Mistakes> {
        let mut mistakes = Collector::new(file, text);
        let definition = self.read(file, text, &mut mistakes);
        mistakes
            .finish(definition)
            .map(|(definition, _)| definition)
    }

    /// Reads a file and adds what it describes, in place of what had its name.
    ///
    /// # Errors
    /// Every mistake in the text; the library then is as before.
    pub fn add(&mut self, file: &str, text: &str) -> Result<&Definition, Mistakes> {
        let mut mistakes = Collector::new(file, text);
        let read = self.read(file, text, &mut mistakes);
        let (definition, source) = mistakes.finish(read)?;
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

    fn read(
        &self,
        file: &str,
        text: &str,
        mistakes: &mut Collector<'_>,
    ) -> Option<(Definition, SourceFile)> {
        let source = source_file::read(text, mistakes)?;
        let name = stem(file);
        if let Some(reason) = unusable_name(name) {
            mistakes.report(
                source.head.clone(),
                None,
                format!("the file's name makes no platform name: {reason}"),
                Some("name it in lower case, such as `my-device.toml`".into()),
            );
        }
        if matches!(
            source.kind,
            FileKind::HostDefaults | FileKind::DeviceDefaults
        ) {
            mistakes.report(
                source.head.clone(),
                Some("kind"),
                format!("this file gives {}, not a platform", source.kind.describe()),
                Some("write `kind = \"host\"`, `kind = \"cxl\"` or `kind = \"ssd\"`".into()),
            );
            return None;
        }
        let definition = assemble(&source, name, &self.defaults, mistakes)?;
        Some((definition, source))
    }

    /// Everything known, hosts first and storage last, by name.
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

/// What stands before the extension in the last part of a path.
fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// The name that a file gives what it describes.
///
/// # Errors
/// Why it makes none.
pub(crate) fn name_of_file(file: &str) -> Result<&str, &'static str> {
    let name = stem(file);
    match unusable_name(name) {
        None => Ok(name),
        Some(reason) => Err(reason),
    }
}

/// Why a name cannot stand in an expression, if it cannot.
fn unusable_name(name: &str) -> Option<&'static str> {
    let usable =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '_');
    if name.is_empty() {
        Some("it is empty")
    } else if name.len() > 64 {
        Some("it is longer than 64 characters")
    } else if !name.chars().all(usable) {
        Some("only a-z, 0-9, `-`, `_` and `.` can stand in an expression")
    } else if name == "none" || name == "host" {
        Some("`none` and `host` mean something else in an expression")
    } else if super::compose::split_count(name).is_some() {
        Some("a number and `x` at its start would read as a count")
    } else {
        None
    }
}

fn builtin_defaults() -> Defaults {
    let by_name = |files: &[(&str, &str)]| -> BTreeMap<String, SourceFile> {
        files
            .iter()
            .filter_map(|(name, text)| Some(((*name).to_string(), read_defaults(name, text)?)))
            .collect()
    };
    Defaults {
        cores: by_name(embedded::CORES),
        host: read_defaults("host", embedded::HOST_DEFAULTS),
        controllers: by_name(embedded::CONTROLLERS),
        device: read_defaults("cxl", embedded::DEVICE_DEFAULTS),
    }
}

/// A file of defaults. A test reads every embedded one without a mistake.
fn read_defaults(name: &str, text: &str) -> Option<SourceFile> {
    let mut mistakes = Collector::new(name, text);
    source_file::read(text, &mut mistakes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_comes_with_weir_is_without_mistake() {
        let defaults = embedded::CORES.iter().chain(embedded::CONTROLLERS).chain([
            &("host", embedded::HOST_DEFAULTS),
            &("cxl", embedded::DEVICE_DEFAULTS),
        ]);
        for (name, text) in defaults {
            let mut mistakes = Collector::new(name, text);
            let file = source_file::read(text, &mut mistakes);
            if let Err(mistakes) = mistakes.finish(file) {
                panic!("{mistakes}");
            }
        }
        let library = Library::builtin();
        for (name, text) in embedded::PLATFORMS {
            if let Err(mistakes) = library.check(name, text) {
                panic!("{mistakes}");
            }
            assert_eq!(library.get(name).map(Definition::name), Some(*name));
        }
    }
}
