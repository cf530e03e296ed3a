//! One platform file, read into values with their provenance. Every mistake is collected.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::{Document, Item, Key as TomlKey, TableLike, Value};

use super::scalar::{Kind, Scalar};
use super::schema::{FileKind, Key};
use super::{Provenance, Sourced};
use crate::diagnostic::{Collector, closest, did_you_mean, quote};

/// Larger files are refused unread: a platform file has a few kilobytes.
pub const MOST_BYTES: usize = 1 << 20;

/// One value of a file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub sourced: Sourced<Scalar>,
    /// Where the value stands in its file.
    pub span: Range<usize>,
}

/// What a file says, before defaults.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub kind: FileKind,
    pub summary: String,
    pub default_devices: Vec<String>,
    pub entries: BTreeMap<&'static str, Entry>,
    /// Keys that are there but could not be read; they are not missing.
    pub unreadable: Vec<&'static str>,
    /// Where `kind` stands: the place of mistakes that have no other.
    pub head: Range<usize>,
}

/// Reads a file. `None` where not even its kind is known; then there is a mistake.
pub(crate) fn read(text: &str, mistakes: &mut Collector<'_>) -> Option<SourceFile> {
    if text.len() > MOST_BYTES {
        mistakes.report(
            0..0,
            None,
            "the file is larger than the 1 MiB that a platform file may have",
            Some("is this the right file?".into()),
        );
        return None;
    }
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            mistakes.report_syntax(&error);
            return None;
        }
    };
    let root: &dyn TableLike = document.as_table();
    let (kind, head) = read_kind(root, mistakes)?;
    let mut file = SourceFile {
        kind,
        summary: String::new(),
        default_devices: Vec::new(),
        entries: BTreeMap::new(),
        unreadable: Vec::new(),
        head,
    };
    file.read_table(root, "", None, mistakes);
    if file.summary.is_empty() && root.get("summary").is_none() {
        mistakes.report(
            file.head.clone(),
            Some("summary"),
            "missing key `summary`",
            Some("add `summary = \"…\"`, one line for lists".into()),
        );
    }
    Some(file)
}

fn read_kind(
    root: &dyn TableLike,
    mistakes: &mut Collector<'_>,
) -> Option<(FileKind, Range<usize>)> {
    let names = FileKind::ALL.map(FileKind::name);
    let help = || Some("write `kind = \"host\"` or `kind = \"cxl\"`".to_string());
    let Some((key, item)) = root.get_key_value("kind") else {
        mistakes.report(0..0, Some("kind"), "missing key `kind`", help());
        return None;
    };
    let span = span_of(item).or(key.span()).unwrap_or(0..0);
    let Some(written) = item.as_str() else {
        mistakes.report(span, Some("kind"), "`kind` is not text in quotes", help());
        return None;
    };
    match FileKind::ALL.into_iter().find(|k| k.name() == written) {
        Some(kind) => Some((kind, span)),
        None => {
            mistakes.report(
                span,
                Some("kind"),
                format!("no kind of platform file is called `{}`", quote(written)),
                did_you_mean(&closest(written, names)).or_else(help),
            );
            None
        }
    }
}

fn span_of(item: &Item) -> Option<Range<usize>> {
    item.span()
}

impl SourceFile {
    fn read_table(
        &mut self,
        table: &dyn TableLike,
        prefix: &str,
        inherited: Option<&str>,
        mistakes: &mut Collector<'_>,
    ) {
        let own = self.text(table, "source", prefix, mistakes);
        let source = own.as_deref().or(inherited);
        for (name, item) in table.iter() {
            let path = if prefix.is_empty() {
                name.to_string()
            } else {
                format!("{prefix}.{name}")
            };
            let toml_key = table.get_key_value(name).map(|(key, _)| key);
            let key_span = toml_key.and_then(TomlKey::span).unwrap_or(0..0);
            let span = span_of(item).unwrap_or_else(|| key_span.clone());
            match path.as_str() {
                "kind" => {}
                "summary" => {
                    self.summary = self
                        .text(table, "summary", "", mistakes)
                        .unwrap_or_default();
                }
                "default_devices" if self.kind == FileKind::Host => {
                    self.read_default_devices(item, span, mistakes);
                }
                _ if name == "source" => {}
                _ => {
                    if let Some(key) = self.kind.key(&path) {
                        match read_entry(key, item, span, source, mistakes) {
                            Some(entry) => {
                                self.entries.insert(key.path, entry);
                            }
                            None => self.unreadable.push(key.path),
                        }
                    } else if self.kind.is_section(&path) {
                        match item.as_table_like() {
                            Some(section) => self.read_table(section, &path, source, mistakes),
                            None => mistakes.report(
                                key_span,
                                Some(&path),
                                format!("`{path}` is a section, not a value"),
                                Some(format!("write `[{path}]` and its keys below")),
                            ),
                        }
                    } else {
                        self.unknown(&path, key_span, mistakes);
                    }
                }
            }
        }
    }

    /// A text that is neither empty nor anything else, if it is there.
    fn text(
        &self,
        table: &dyn TableLike,
        name: &str,
        prefix: &str,
        mistakes: &mut Collector<'_>,
    ) -> Option<String> {
        let item = table.get(name)?;
        match item.as_str().map(str::trim) {
            Some(text) if !text.is_empty() => Some(text.to_string()),
            found => {
                let path = if prefix.is_empty() {
                    name.to_string()
                } else {
                    format!("{prefix}.{name}")
                };
                let what = if found.is_some() {
                    "empty"
                } else {
                    "not text in quotes"
                };
                mistakes.report(
                    span_of(item).unwrap_or(0..0),
                    Some(&path),
                    format!("`{path}` is {what}"),
                    None,
                );
                None
            }
        }
    }

    fn read_default_devices(
        &mut self,
        item: &Item,
        span: Range<usize>,
        mistakes: &mut Collector<'_>,
    ) {
        let names: Option<Vec<String>> = item.as_array().and_then(|array| {
            array
                .iter()
                .map(|name| name.as_str().map(str::to_string))
                .collect()
        });
        match names {
            Some(names) => self.default_devices = names,
            None => mistakes.report(
                span,
                Some("default_devices"),
                "`default_devices` is not a list of device names",
                Some("write for example `default_devices = [\"cxl-a\"]`".into()),
            ),
        }
    }

    fn unknown(&self, path: &str, span: Range<usize>, mistakes: &mut Collector<'_>) {
        let keys = self.kind.keys();
        let last = path.rsplit('.').next().unwrap_or(path);
        // A key in the wrong section first, then one that is spelled alike.
        let mut candidates: Vec<&str> = keys
            .iter()
            .filter(|key| key.path != path && key.last() == last)
            .map(|key| key.path)
            .collect();
        if candidates.is_empty() {
            let header = ["kind", "summary", "source"];
            let names = keys.iter().map(|key| key.path).chain(header);
            candidates = closest(path, names);
        }
        if candidates.is_empty() {
            let close = closest(last, keys.iter().map(|key| key.last()));
            candidates = keys
                .iter()
                .filter(|key| close.contains(&key.last()))
                .map(|key| key.path)
                .collect();
        }
        candidates.truncate(3);
        mistakes.report(
            span,
            Some(path),
            format!("`{}` is not a key of {}", quote(path), self.kind.describe()),
            did_you_mean(&candidates),
        );
    }
}

/// Reads what stands behind a key, plain or with its own provenance.
fn read_entry(
    key: &'static Key,
    item: &Item,
    span: Range<usize>,
    inherited: Option<&str>,
    mistakes: &mut Collector<'_>,
) -> Option<Entry> {
    let Some(table) = item.as_table_like() else {
        let value = item.as_value()?;
        let scalar = read_scalar(key, value, &span, mistakes)?;
        let provenance = match inherited {
            Some(source) => Provenance::Source(source.to_string()),
            None => {
                report_missing_source(key, &span, Some(value), mistakes);
                return None;
            }
        };
        return Some(Entry {
            sourced: Sourced {
                value: scalar,
                provenance,
            },
            span,
        });
    };
    const PARTS: [&str; 4] = ["is", "source", "assumed", "why"];
    for (name, item) in table.iter() {
        if !PARTS.contains(&name) {
            let at = table.get_key_value(name).and_then(|(key, _)| key.span());
            mistakes.report(
                at.or(span_of(item)).unwrap_or_else(|| span.clone()),
                Some(key.path),
                format!(
                    "`{}` does not belong in the value of `{}`, which takes `is`, `source`, `assumed` and `why`",
                    quote(name),
                    key.path
                ),
                did_you_mean(&closest(name, PARTS)),
            );
        }
    }
    let Some(value) = table.get("is").and_then(Item::as_value) else {
        mistakes.report(
            span,
            Some(key.path),
            format!("`{}` has no `is`", key.path),
            Some(format!(
                "write `{{ is = {}, source = \"…\" }}`",
                key.kind.example()
            )),
        );
        return None;
    };
    let value_span = value.span().unwrap_or_else(|| span.clone());
    let scalar = read_scalar(key, value, &value_span, mistakes);
    let provenance = read_provenance(key, table, scalar.as_ref(), &span, inherited, mistakes);
    Some(Entry {
        sourced: Sourced {
            value: scalar?,
            provenance: provenance?,
        },
        span: value_span,
    })
}

fn read_scalar(
    key: &Key,
    value: &Value,
    span: &Range<usize>,
    mistakes: &mut Collector<'_>,
) -> Option<Scalar> {
    let scalar = match key.kind.read(value) {
        Ok(scalar) => scalar,
        Err(message) => {
            mistakes.report(span.clone(), Some(key.path), message, None);
            return None;
        }
    };
    match within_bounds(key, &scalar) {
        Ok(()) => Some(scalar),
        Err((message, help)) => {
            mistakes.report(span.clone(), Some(key.path), message, help);
            None
        }
    }
}

fn within_bounds(key: &Key, scalar: &Scalar) -> Result<(), (String, Option<String>)> {
    match scalar {
        Scalar::Number(n) if (key.low..=key.high).contains(n) => Ok(()),
        Scalar::Number(_) => Err((
            format!("`{}` cannot be {}", key.path, key.kind.show(scalar)),
            Some(format!(
                "it lies between {} and {}",
                key.kind.show(&Scalar::Number(key.low)),
                key.kind.show(&Scalar::Number(key.high))
            )),
        )),
        Scalar::Word(word) => match key.kind.words() {
            Some(words) if !words.contains(&word.as_str()) => Err((
                format!(
                    "`{}` is not {} that is known here",
                    quote(word),
                    key.kind.describe()
                ),
                Some(known(word, &words)),
            )),
            _ => Ok(()),
        },
    }
}

/// Names the known words, the likely one first.
pub(crate) fn known(written: &str, words: &[&str]) -> String {
    let list = format!("known are {}", words.join(", "));
    match did_you_mean(&closest(written, words.iter().copied())) {
        Some(question) => format!("{question} {list}"),
        None => list,
    }
}

fn read_provenance(
    key: &Key,
    table: &dyn TableLike,
    scalar: Option<&Scalar>,
    span: &Range<usize>,
    inherited: Option<&str>,
    mistakes: &mut Collector<'_>,
) -> Option<Provenance> {
    let text = |name: &str| {
        table
            .get(name)
            .and_then(Item::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_string)
    };
    let Some(assumed) = table.get("assumed") else {
        let source = text("source").or_else(|| match table.contains_key("source") {
            true => None,
            false => inherited.map(str::to_string),
        });
        if source.is_none() {
            report_missing_source(key, span, None, mistakes);
        }
        return source.map(Provenance::Source);
    };
    let at = span_of(assumed).unwrap_or_else(|| span.clone());
    if table.contains_key("source") {
        mistakes.report(
            at.clone(),
            Some(key.path),
            format!("`{}` is both `assumed` and has a `source`", key.path),
            Some("keep the source if it prints this value, else `assumed` and `why`".into()),
        );
    }
    let Some(why) = text("why") else {
        mistakes.report(
            at,
            Some(key.path),
            format!("`{}` is assumed, but not why", key.path),
            Some("add `why = \"…\"`".into()),
        );
        return None;
    };
    let ends: Option<Vec<&Value>> = assumed.as_array().map(|array| array.iter().collect());
    let Some([low, high]) = ends.as_deref() else {
        mistakes.report(
            at,
            Some(key.path),
            "`assumed` is not a pair of values",
            Some(
                "write the lowest and the highest plausible value: `assumed = [\"20\", \"48\"]`"
                    .into(),
            ),
        );
        return None;
    };
    let mut read = |value: &Value| -> Option<Scalar> {
        match key.kind.read_end(value).and_then(|scalar| {
            within_bounds(key, &scalar).map_err(|(message, _)| message)?;
            Ok(scalar)
        }) {
            Ok(scalar) => Some(scalar),
            Err(message) => {
                let span = value.span().unwrap_or_else(|| at.clone());
                mistakes.report(span, Some(key.path), message, None);
                None
            }
        }
    };
    let written = |value: &Value, scalar: &Scalar| match value.as_str() {
        Some(text) => quote(text.trim()),
        None => key.kind.show(scalar),
    };
    let (low_scalar, high_scalar) = (read(low), read(high));
    let (low_scalar, high_scalar) = (low_scalar?, high_scalar?);
    let low_text = written(low, &low_scalar);
    let high_text = written(high, &high_scalar);
    if let (Scalar::Number(low_n), Scalar::Number(high_n)) = (&low_scalar, &high_scalar) {
        if low_n > high_n {
            mistakes.report(
                at,
                Some(key.path),
                format!(
                    "the range of `{}` starts at {low_text} and ends at {high_text}",
                    key.path
                ),
                Some("the lowest value stands first".into()),
            );
            return None;
        }
        if let Some(value @ Scalar::Number(n)) = scalar
            && !(low_n..=high_n).contains(&n)
        {
            mistakes.report(
                at,
                Some(key.path),
                format!(
                    "`{}` is {}, which its own range of {low_text} to {high_text} leaves out",
                    key.path,
                    key.kind.show(value)
                ),
                None,
            );
            return None;
        }
    }
    Some(Provenance::Assumed {
        low: low_text,
        high: high_text,
        why,
    })
}

fn report_missing_source(
    key: &Key,
    span: &Range<usize>,
    value: Option<&Value>,
    mistakes: &mut Collector<'_>,
) {
    let example = match value {
        Some(value) if key.kind != Kind::Count => value.as_str().map_or_else(
            || key.kind.example().into(),
            |text| format!("\"{}\"", quote(text)),
        ),
        Some(Value::Integer(n)) => n.value().to_string(),
        _ => key.kind.example().into(),
    };
    mistakes.report(
        span.clone(),
        Some(key.path),
        format!("`{}` has no source", key.path),
        Some(format!(
            "add `source = \"…\"` to the table or the file, or write `{{ is = {example}, source = \"…\" }}` or `{{ is = {example}, assumed = [low, high], why = \"…\" }}`",
        )),
    );
}
