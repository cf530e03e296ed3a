//! A platform file that Weir writes: values, each with its provenance, and what else one of them could be.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toml_edit::Value;

use super::key::{FileKind, Key};
use super::library::Library;
use super::scalar::{Kind, Scalar};
use super::{MeasuredLog, ParameterRow, Provenance};

/// The values of a file that is not written yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// What it describes.
    pub kind: FileKind,
    /// The name in expressions, which is that of the file.
    pub name: String,
    /// One line for lists.
    pub summary: String,
    /// Devices that a host comes with.
    pub default_devices: Vec<String>,
    /// The log of this machine, where the file it was taken from names one.
    pub log: Option<MeasuredLog>,
    values: BTreeMap<&'static str, (String, Provenance)>,
}

impl Draft {
    /// No values.
    pub fn new(kind: FileKind, name: &str, summary: &str) -> Self {
        Self {
            kind,
            name: name.into(),
            summary: summary.into(),
            default_devices: Vec::new(),
            log: None,
            values: BTreeMap::new(),
        }
    }

    /// What the file of a host or device says itself, without its defaults; `None` if there is none of this name.
    pub fn of(library: &Library, name: &str) -> Option<Self> {
        let source = library.sources.get(name)?;
        let mut draft = Self::new(source.kind, name, &source.summary);
        draft.default_devices.clone_from(&source.default_devices);
        draft.log.clone_from(&source.log);
        for key in source.kind.keys() {
            if let Some(entry) = source.entries.get(key.path) {
                let value = key.kind.show(&entry.sourced.value);
                draft
                    .values
                    .insert(key.path, (value, entry.sourced.provenance.clone()));
            }
        }
        Some(draft)
    }

    /// The value of a key, if it has one.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(|(value, _)| value.as_str())
    }

    /// Gives a key a value, as it is written in a file without quotes. Returns whether there is such a key.
    pub fn set(&mut self, key: &str, value: impl Into<String>, provenance: Provenance) -> bool {
        let known = self.kind.key(key);
        if let Some(key) = known {
            self.values.insert(key.path, (value.into(), provenance));
        }
        known.is_some()
    }

    /// Every key that has a value, in the order of the reference.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &str, &Provenance)> {
        self.kind.keys().iter().filter_map(|key| {
            let (value, provenance) = self.values.get(key.path)?;
            Some((key.path, value.as_str(), provenance))
        })
    }

    /// Keys that every file of the kind must have, and that have no value here.
    pub fn missing(&self) -> Vec<&'static Key> {
        let required = |key: &&Key| key.need == super::Need::Required;
        let keys = self.kind.keys().iter().filter(required);
        keys.filter(|key| !self.values.contains_key(key.path))
            .collect()
    }

    /// The file.
    pub fn text(&self) -> String {
        let mut text = format!(
            "kind = {}\nsummary = {}\n",
            quoted(self.kind.name()),
            quoted(&self.summary)
        );
        if !self.default_devices.is_empty() {
            let names: Vec<String> = self.default_devices.iter().map(|d| quoted(d)).collect();
            let _ = writeln!(text, "default_devices = [{}]", names.join(", "));
        }
        let section = |key: &Key| key.path.rsplit_once('.').map_or("", |(section, _)| section);
        let mut sections: Vec<&str> = Vec::new();
        for key in self.kind.keys() {
            if self.values.contains_key(key.path) && !sections.contains(&section(key)) {
                sections.push(section(key));
            }
        }
        // Keys of the file itself come before any section.
        sections.sort_by_key(|section| !section.is_empty());
        for name in sections {
            match name {
                "" => text.push('\n'),
                name => {
                    let _ = writeln!(text, "\n[{name}]");
                }
            }
            for key in self.kind.keys().iter().filter(|key| section(key) == name) {
                let Some((value, provenance)) = self.values.get(key.path) else {
                    continue;
                };
                let is = key.kind.written(value);
                let origin = match provenance {
                    Provenance::Source(source) => format!("source = {}", quoted(source)),
                    Provenance::Assumed { low, high, why } => format!(
                        "assumed = [{}, {}], why = {}",
                        quoted(low),
                        quoted(high),
                        quoted(why)
                    ),
                };
                let _ = writeln!(text, "{} = {{ is = {is}, {origin} }}", key.last());
            }
        }
        text
    }
}

/// A text as TOML has it: a string of JSON is one, but for the one control character that JSON leaves as it is.
fn quoted(text: &str) -> String {
    let text = text.replace('\u{7f}', " ");
    serde_json::to_string(&text).unwrap_or_default()
}

/// Values of an assumed parameter from one end of its range to the other, `count` at most; powers of two where only
/// they are possible. Empty for a value with a source.
pub fn steps(kind: FileKind, row: &ParameterRow, count: u32) -> Vec<String> {
    let (Provenance::Assumed { low, high, .. }, Some(key)) = (&row.provenance, kind.key(&row.key))
    else {
        return Vec::new();
    };
    if let Some(words) = key.kind.words() {
        let words = words.into_iter().map(str::to_owned);
        return match key.kind {
            // A speed grade is known from the machine, and its timings go with others.
            Kind::Media => Vec::new(),
            _ => words.collect(),
        };
    }
    let number = |text: &str| match key.kind.read_end(&Value::from(text)) {
        Ok(Scalar::Number(n)) => Some(n),
        _ => None,
    };
    let (Some(low), Some(high)) = (number(low), number(high)) else {
        return Vec::new();
    };
    if key.last() == "ranks" || key.last() == "clusters" {
        let powers = (0..5).map(|bit| f64::from(1_u32 << bit));
        let within = powers.filter(|n| (low..=high).contains(n));
        return within.map(|n| n.to_string()).collect();
    }
    let mut steps: Vec<String> = (0..count)
        .map(|step| {
            let share = f64::from(step) / f64::from(count.max(2) - 1);
            // Counts and times by equal factors, shares by equal steps.
            let n = match key.kind {
                Kind::Share | Kind::Number => low + (high - low) * share,
                _ if low > 0.0 => low * (high / low).powf(share),
                _ => low + (high - low) * share,
            };
            let n = match key.kind {
                Kind::Count | Kind::Size => n.round(),
                _ => (n * 1000.0).round() / 1000.0,
            };
            key.kind.show(&Scalar::Number(n))
        })
        .collect();
    steps.dedup();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_written_reads_as_the_one_it_was_taken_from() {
        let library = Library::builtin();
        for definition in library.list() {
            let draft = Draft::of(&library, definition.name()).expect("it has a file");
            let mut again = Library::builtin();
            let text = draft.text();
            again
                .add(&format!("{}.toml", definition.name()), &text)
                .unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
            let rows = |l: &Library| l.get(definition.name()).map(|d| d.parameters());
            assert_eq!(rows(&library), rows(&again));
        }
    }

    #[test]
    fn steps_go_from_one_end_of_the_range_to_the_other() {
        let library = Library::builtin();
        let rows = library
            .get("cxl-a")
            .map(|d| d.parameters())
            .unwrap_or_default();
        let row = |key: &str| rows.iter().find(|row| row.key == key).expect("a key");
        let of = |key: &str| steps(FileKind::Device, row(key), 3);
        assert_eq!(of("reorder_window"), ["8", "23", "64"]);
        assert_eq!(of("drain_at"), ["0.4", "0.65", "0.9"]);
        assert_eq!(of("idle"), Vec::<String>::new());
    }
}
