//! A platform with one value changed, such as another value of an assumed range.

use std::fmt::Write as _;

use super::Library;
use super::assemble::assemble;
use super::library::split_count;
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
    /// What follows a comma in an expression is no change.
    #[error("`{0}` is no KEY=VALUE; write for example `emr2s,uncore.clock=1.6GHz`")]
    Form(String),
    /// One definition with different changes.
    #[error(
        "`{0}` is named twice and not changed alike; copy its file under another name to change one of them"
    )]
    Twice(String),
    /// The value is not possible for the key, or contradicts others.
    #[error(transparent)]
    Value(#[from] Mistakes),
}

/// The key of an expression that sets a clock of mesh and slices, and the key that keeps what was measured.
const CLOCK: (&str, &str) = ("uncore.clock", "uncore.set_clock");

impl Library {
    /// Makes the changes in an expression such as `emr2s,uncore.clock=1.6GHz+cxl-a,channels=1`, and returns the
    /// expression without them. The value of a key is as in a file, but `uncore.clock` is what the clock is set to:
    /// latencies were measured at the file's.
    ///
    /// # Errors
    /// A change is malformed, or as [`vary`](Self::vary).
    pub fn change(&mut self, expression: &str) -> Result<String, VaryError> {
        let mut plain = Vec::new();
        let mut changed: Vec<(&str, Option<&str>)> = Vec::new();
        for term in expression.split('+') {
            let (term, changes) = match term.split_once(',') {
                Some((term, changes)) => (term, Some(changes)),
                None => (term, None),
            };
            plain.push(term);
            let name = term.split('@').next().unwrap_or_default();
            let name = split_count(name).map_or(name, |(_, name)| name).trim();
            let before = changed.iter().find(|(other, _)| *other == name);
            if before.is_some_and(|(_, other)| *other != changes) {
                return Err(VaryError::Twice(quote(name)));
            }
            if before.is_none() {
                changed.push((name, changes));
            }
        }
        for (name, changes) in changed {
            let Some(changes) = changes else { continue };
            let read = |change| -> Result<(&str, &str), VaryError> {
                let (key, value) =
                    str::split_once(change, '=').ok_or_else(|| VaryError::Form(quote(change)))?;
                Ok(match key.trim() {
                    key if key == CLOCK.0 => (CLOCK.1, value),
                    key => (key, value),
                })
            };
            let changes: Vec<_> = changes.split(',').map(read).collect::<Result<_, _>>()?;
            self.vary_all(name, &changes)?;
        }
        Ok(plain.join("+"))
    }

    /// Gives a key of a host or device another value, as it would be written in its file (`16`,
    /// `30 ns`), in place of its own or its default value.
    ///
    /// # Errors
    /// There is no such definition or key, or the key cannot have the value; the library is then as before.
    pub fn vary(&mut self, name: &str, key: &str, value: &str) -> Result<(), VaryError> {
        self.vary_all(name, &[(key, value)])
    }

    /// The same of several keys, whose values may be possible together only: a size of a cache and its slices.
    fn vary_all(&mut self, name: &str, changes: &[(&str, &str)]) -> Result<(), VaryError> {
        let unknown = || VaryError::Unknown(quote(name));
        let mut source = self.sources.get(name).ok_or_else(unknown)?.clone();
        let mut text = String::new();
        for (key, value) in changes {
            let known = source.kind.key(key).ok_or_else(|| VaryError::NoKey {
                platform: quote(name),
                key: quote(key),
            })?;
            let value = known.kind.written(value.trim());
            let _ = writeln!(text, "{} = {value}", known.path);
        }
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
        let builtin = Library::builtin();
        for definition in builtin.list() {
            for row in definition.parameters() {
                let Provenance::Assumed { low, high, .. } = &row.provenance else {
                    continue;
                };
                for end in [low, high] {
                    let mut library = builtin.clone();
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
    fn an_expression_changes_the_parts_that_it_names() {
        let mut library = Library::builtin();
        let plain =
            library.change("emr2s,uncore.tor=40,uncore.clock=1.6GHz+2xcxl-a@remote,idle=300 ns");
        assert_eq!(plain.as_deref(), Ok("emr2s+2xcxl-a@remote"));
        let platform = library.compose("emr2s+2xcxl-a@remote").unwrap();
        assert_eq!(value(&platform, "uncore.tor"), "40");
        assert_eq!(platform.host.uncore.clock.value.get(), 2.5);
        assert_eq!(platform.host.uncore.running_clock().get(), 1.6);
        assert_eq!(platform.devices[1].device.measured.idle.value.get(), 300.0);
        assert_eq!(
            Library::builtin().change("emr2s+cxl-a").as_deref(),
            Ok("emr2s+cxl-a")
        );
        for (expression, said) in [
            ("emr2s,uncore.tor", "no KEY=VALUE"),
            ("emr2s,", "no KEY=VALUE"),
            ("emr2s,,", "no KEY=VALUE"),
            ("emr2s,uncore.no=1", "no key `uncore.no`"),
            (
                "nothing,uncore.tor=1",
                "no platform or device is called `nothing`",
            ),
            ("emr2s,uncore.tor=many", "uncore.tor"),
            ("emr2s,uncore.clock=0 GHz", "uncore.set_clock"),
            ("emr2s,uncore.cluster_tiers=2", "cluster_tiers"),
            ("emr2s+cxl-a,channels=1+cxl-a", "named twice"),
        ] {
            let message = Library::builtin()
                .change(expression)
                .map_err(|e| e.to_string());
            let message = message.err().unwrap_or_default();
            assert!(message.contains(said), "{expression}: {message}");
        }
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
