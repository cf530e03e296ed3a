//! A platform with one value changed: what if an assumed number lies elsewhere in its range?

use toml_edit::{Item, Value};

use super::Library;
use super::assemble::assemble;
use super::entry::{self, Outcome};
use crate::diagnostic::{Collector, Mistakes, quote};

/// Why a value could not be changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum VaryError {
    /// No host or device has this name.
    #[error("no platform or device is called `{0}`")]
    Unknown(String),
    /// Files of its kind have no such key.
    #[error("`{platform}` has no key `{key}`")]
    NoKey {
        /// The host or device.
        platform: String,
        /// What was asked for.
        key: String,
    },
    /// The value cannot stand there, or contradicts others.
    #[error("{0}")]
    Value(#[from] Mistakes),
}

impl Library {
    /// Gives a key of a host or device another value, as it would be written in its file (`16`,
    /// `30 ns`), whatever it or the defaults below it say.
    ///
    /// # Errors
    /// There is no such definition or key, or the value is none for it; the library is then as
    /// before.
    pub fn vary(&mut self, name: &str, key: &str, value: &str) -> Result<(), VaryError> {
        let unknown = || VaryError::Unknown(quote(name));
        let mut source = self.sources.get(name).ok_or_else(unknown)?.clone();
        let known = source.kind.key(key).ok_or_else(|| VaryError::NoKey {
            platform: quote(name),
            key: quote(key),
        })?;
        let mut mistakes = Collector::new(name, value);
        let item = Item::Value(written(value));
        match entry::read(known, &item, 0..value.len(), Some("varied"), &mut mistakes) {
            Outcome::Read(entry) => {
                source.entries.insert(known.path, entry);
            }
            Outcome::WithoutSource(_) | Outcome::Unreadable => {}
        }
        let definition = assemble(&source, name, &self.defaults, &mut mistakes);
        let definition = mistakes.finish(definition)?;
        self.keep(definition);
        self.sources.insert(name.to_string(), source);
        Ok(())
    }
}

/// A bare number or a text, as a file would have it.
fn written(value: &str) -> Value {
    let value = value.trim();
    if let Ok(whole) = value.parse::<i64>() {
        whole.into()
    } else if let Ok(number) = value.parse::<f64>() {
        number.into()
    } else {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Platform, Provenance};

    fn value(platform: &Platform, key: &str) -> String {
        let rows = platform.describe();
        let row = rows.iter().find(|row| row.key == key);
        row.map(|row| row.value.clone()).expect("the key is known")
    }

    #[test]
    fn assumed_values_can_be_taken_to_both_ends_of_their_ranges() {
        let (mut varied, mut bound) = (0, Vec::new());
        for definition in Library::builtin().list() {
            for row in definition.parameters() {
                let Provenance::Assumed { low, high, .. } = &row.provenance else {
                    continue;
                };
                for end in [low, high] {
                    let mut library = Library::builtin();
                    match library.vary(definition.name(), &row.key, end) {
                        Ok(()) => varied += 1,
                        Err(_) => bound.push(row.key.clone()),
                    }
                }
            }
        }
        assert!(varied > 50, "only {varied} ends can be taken");
        // Size, ways and slices of a cache go together, and so do a limit and its bandwidth.
        bound.retain(|key| !key.starts_with("llc.") && key != "read_limit");
        assert!(bound.is_empty(), "{bound:?}");
    }

    #[test]
    fn a_change_holds_and_changes_nothing_else() {
        let before = Library::builtin();
        let mut library = Library::builtin();
        library.vary("emr2s", "uncore.tor", "40").unwrap();
        let [old, new] = [&before, &library].map(|l| l.compose("emr2s+cxl-a").unwrap());
        assert_eq!(value(&new, "uncore.tor"), "40");
        assert_ne!(old.digest(), new.digest());
        let changed = old
            .describe()
            .into_iter()
            .zip(new.describe())
            .filter(|(a, b)| a.value != b.value);
        assert_eq!(changed.count(), 1);
    }

    #[test]
    fn what_cannot_be_changed_leaves_the_library_as_it_was() {
        let mut library = Library::builtin();
        let before = library.compose("emr2s+cxl-a").unwrap();
        for (name, key, value) in [
            ("nobody", "uncore.tor", "40"),
            ("emr2s", "uncore.nothing", "40"),
            ("emr2s", "uncore.tor", "many"),
            ("emr2s", "uncore.tor", "-1"),
            ("emr2s", "uncore.tor", ""),
        ] {
            assert!(
                library.vary(name, key, value).is_err(),
                "{name} {key} {value}"
            );
        }
        assert_eq!(library.compose("emr2s+cxl-a").unwrap(), before);
    }
}
