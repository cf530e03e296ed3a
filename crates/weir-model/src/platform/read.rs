//! Reading a platform file: its values with their provenance.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::Value;

use super::key::{FileKind, Key};
use super::scalar::Scalar;
use super::source_file::{Entry, SourceFile};
use super::{MeasuredLog, Provenance, Sourced};
use crate::diagnostic::{Collector, closest, did_you_mean, quote};
use crate::toml::{Field, Table};

/// Devices that a host can come with.
const MOST_DEVICES: usize = 64;

/// Help for a file of no or another kind.
pub(super) const KINDS: &str = "write `kind = \"host\"`, `kind = \"cxl\"` or `kind = \"ssd\"`";

impl SourceFile {
    /// Reads a file. `None` where not even its kind is known; then there is a mistake.
    pub(crate) fn read(name: &str, root: &Table<'_>) -> Option<Self> {
        let Some(field) = root.get("kind") else {
            root.missing("kind", KINDS.into());
            return None;
        };
        let kind = field.word(&FileKind::ALL, FileKind::name)?;
        let mut file = SourceFile {
            kind,
            name: name.to_owned(),
            summary: String::new(),
            default_devices: Vec::new(),
            log: None,
            entries: BTreeMap::new(),
            unreadable: Vec::new(),
            without_source: Vec::new(),
            is_whole: root.is_whole(),
            head: field.span(),
        };
        file.read_keys(root, None);
        if file.is_whole {
            file.report_missing_sources(root.mistakes());
        }
        if file.is_whole && !root.has("summary") {
            root.mistakes().report(
                file.head.clone(),
                Some("summary"),
                "missing key `summary`",
                Some("add `summary = \"…\"`, one line for lists".into()),
            );
        }
        Some(file)
    }

    /// Reads the keys of the file or of a section; `inherited` is the source above it.
    pub(super) fn read_keys(&mut self, table: &Table<'_>, inherited: Option<&str>) {
        let source = match table.get("source") {
            // A source that cannot be read is one mistake, and not one for each value.
            Some(field) => Some(field.text().unwrap_or("unreadable")),
            None => inherited,
        };
        for (name, field) in table.fields() {
            let can_have_log = matches!(self.kind, FileKind::Host | FileKind::Device);
            match field.path() {
                "kind" => {}
                _ if name == "source" => {}
                "summary" => self.summary = field.text().unwrap_or_default().to_owned(),
                "default_devices" if self.kind == FileKind::Host => {
                    let devices = field.texts("device names", MOST_DEVICES);
                    self.default_devices = devices.unwrap_or_default();
                }
                "measured" if can_have_log => self.log = read_log(&field),
                path => match self.kind.key(path) {
                    Some(key) => self.read_value(key, &field, source),
                    None if self.kind.sections().any(|section| section == path) => {
                        if let Some(section) = field.table() {
                            self.read_keys(&section, source);
                        }
                    }
                    None => self.unknown(&field),
                },
            }
        }
    }

    /// Reads a value, plain or with its own provenance.
    fn read_value(&mut self, key: &'static Key, field: &Field<'_>, inherited: Option<&str>) {
        let read = match field.as_table() {
            Some(table) => read_with_provenance(key, field, &table, inherited),
            None => key.read(field).map(|value| {
                let provenance = inherited.map(|source| Provenance::Source(source.to_owned()));
                (value, field.span(), provenance)
            }),
        };
        match read {
            Some((value, span, Some(provenance))) => {
                let sourced = Sourced { value, provenance };
                self.entries.insert(key.path, Entry { sourced, span });
            }
            Some((_, span, None)) => {
                self.without_source.push((key, span));
                self.unreadable.push(key.path);
            }
            None => self.unreadable.push(key.path),
        }
    }

    fn unknown(&self, field: &Field<'_>) {
        let (keys, path) = (self.kind.keys(), field.path());
        let last = path.rsplit('.').next().unwrap_or(path);
        let with_last = |names: &[&str]| -> Vec<&'static str> {
            let same = keys.iter().filter(|key| names.contains(&key.last()));
            same.map(|key| key.path).take(3).collect()
        };
        // A key in the wrong section first, then one with a similar name.
        let mut candidates = with_last(&[last]);
        if candidates.is_empty() {
            let header = ["kind", "summary", "source", "measured"];
            let names = keys.iter().map(|key| key.path).chain(header);
            candidates = closest(path, names.chain(self.kind.sections()));
            candidates.dedup();
        }
        if candidates.is_empty() {
            candidates = with_last(&closest(last, keys.iter().map(Key::last)));
        }
        field.unknown(self.kind.describe(), &candidates);
    }

    /// Reports all values without a source as one mistake, at the first of them: they share one remedy.
    fn report_missing_sources(&mut self, mistakes: &Collector<'_>) {
        self.without_source.sort_by_key(|(_, span)| span.start);
        let Some(((first, span), others)) = self.without_source.split_first() else {
            return;
        };
        let message = match others {
            [] => format!("`{}` has no source", first.path),
            [(other, _)] => format!("`{}` and `{}` have no source", first.path, other.path),
            _ => format!(
                "`{}` and {} other values have no source",
                first.path,
                others.len()
            ),
        };
        let example = first.written_example();
        let help = format!(
            "add `source = \"…\"` to the file or the section, or write `{{ is = {example}, source = \"…\" }}`, \
             or `{{ is = {example}, assumed = [lowest, highest], why = \"…\" }}`"
        );
        mistakes.report(span.clone(), Some(first.path), message, Some(help));
    }
}

/// `measured = { log = "…", name = "…" }`: which curves of which log are this machine's.
fn read_log(field: &Field<'_>) -> Option<MeasuredLog> {
    let table = field.table()?;
    table.only("`measured`", ["log", "name"]);
    let log = table.need("log", "\"eurosys24_mlc.csv\"");
    let name = table.need("name", "\"cxl\"");
    Some(MeasuredLog {
        log: log?.text()?.to_owned(),
        name: name?.text()?.to_owned(),
    })
}

/// A value with its place, and its provenance if it has one.
type Read = (Scalar, Range<usize>, Option<Provenance>);

/// Reads `{ is = …, source = "…" }`, or the same with `assumed` and `why`. `None` after a mistake.
fn read_with_provenance(
    key: &'static Key,
    field: &Field<'_>,
    table: &Table<'_>,
    inherited: Option<&str>,
) -> Option<Read> {
    const PARTS: [&str; 4] = ["is", "source", "assumed", "why"];
    for (name, part) in table.fields() {
        if !PARTS.contains(&name) {
            part.report_key(
                format!(
                    "a value takes `is`, `source`, `assumed` and `why`, not `{}`",
                    quote(name)
                ),
                did_you_mean(&closest(name, PARTS)),
            );
        }
    }
    let Some(is) = table.get("is") else {
        field.report(
            format!("`{}` has no `is`", key.path),
            Some(format!(
                "write `{{ is = {}, source = \"…\" }}`",
                key.written_example()
            )),
        );
        return None;
    };
    let text = |name: &str| {
        let text = table.get(name)?.as_text()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let value = key.read(&is.called(key.path));
    let Some(assumed) = table.get("assumed") else {
        let source = match table.has("source") {
            true => text("source"),
            false => inherited.map(str::to_owned),
        };
        return Some((value?, is.span(), source.map(Provenance::Source)));
    };
    let assumed = assumed.called(key.path);
    if table.has("source") {
        assumed.report(
            format!("`{}` is both `assumed` and has a `source`", key.path),
            Some("keep the source if it prints this value, else `assumed` and `why`".into()),
        );
    }
    let Some(why) = text("why") else {
        let message = format!("`{}` is assumed, but there is no reason", key.path);
        assumed.report(message, Some("add `why = \"…\"`".into()));
        return None;
    };
    let (low, high) = read_range(key, &assumed, value.as_ref())?;
    let provenance = Provenance::Assumed { low, high, why };
    Some((value?, is.span(), Some(provenance)))
}

/// Reads the range of an assumed value, both ends as written. `None` after a mistake.
fn read_range(key: &Key, field: &Field<'_>, value: Option<&Scalar>) -> Option<(String, String)> {
    let ends = field.value().and_then(Value::as_array);
    let ends: Vec<&Value> = ends.map_or_else(Vec::new, |array| array.iter().collect());
    let [low, high] = ends[..] else {
        let help = "write the lowest and the highest plausible value: `assumed = [\"20\", \"48\"]`";
        field.report("`assumed` must be a pair of values", Some(help.into()));
        return None;
    };
    let read = |end: &Value| {
        let scalar = key.kind.read_end(end);
        let wrong = match &scalar {
            Ok(scalar) => key
                .out_of_bounds(scalar, key.path)
                .map(|(message, _)| message),
            Err(message) => Some(message.clone()),
        };
        if let Some(message) = wrong {
            field.report_at(end.span(), message, None);
            return None;
        }
        let scalar = scalar.ok()?;
        let written = match end.as_str() {
            Some(text) => quote(text.trim()),
            None => key.kind.show(&scalar),
        };
        Some((scalar, written))
    };
    let (low, high) = (read(low), read(high));
    let ((low, low_text), (high, high_text)) = (low?, high?);
    let (Scalar::Number(low), Scalar::Number(high)) = (low, high) else {
        return Some((low_text, high_text));
    };
    let (message, help) = match value {
        _ if low > high => (
            format!(
                "the range of `{}` starts at {low_text} and ends at {high_text}",
                key.path
            ),
            Some("write the lowest value first".into()),
        ),
        Some(value @ Scalar::Number(n)) if !(low..=high).contains(n) => (
            format!(
                "`{}` is {}, which is outside its own range of {low_text} to {high_text}",
                key.path,
                key.kind.show(value)
            ),
            None,
        ),
        _ => return Some((low_text, high_text)),
    };
    field.report(message, help);
    None
}
