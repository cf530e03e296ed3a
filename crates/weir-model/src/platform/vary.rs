//! A platform with one value changed, such as another value of an assumed range.

use super::Library;
use super::assemble::assemble;
use crate::diagnostic::{Mistakes, quote};
use crate::toml;

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
    /// The value is not possible for the key, or contradicts others.
    #[error("{0}")]
    Value(#[from] Mistakes),
}

impl Library {
    /// Gives a key of a host or device another value, as it would be written in its file (`16`,
    /// `30 ns`), in place of its own or its default value.
    ///
    /// # Errors
    /// There is no such definition or key, or the key cannot have the value; the library is then as before.
    pub fn vary(&mut self, name: &str, key: &str, value: &str) -> Result<(), VaryError> {
        let unknown = || VaryError::Unknown(quote(name));
        let mut source = self.sources.get(name).ok_or_else(unknown)?.clone();
        let known = source.kind.key(key).ok_or_else(|| VaryError::NoKey {
            platform: quote(name),
            key: quote(key),
        })?;
        let text = format!("{} = {}", known.path, known.kind.written(value.trim()));
        let definition = toml::read(name, &text, "a value", |root| {
            source.read_keys(root, Some("varied"));
            assemble(&source, &self.defaults, root.mistakes())
        })?;
        self.keep(definition);
        self.sources.insert(name.to_string(), source);
        Ok(())
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
            ("unknown", "uncore.tor", "40"),
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
