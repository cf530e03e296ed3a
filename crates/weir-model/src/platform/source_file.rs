//! One platform file, read into values with their provenance. Every mistake is collected.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::{Item, Key as TomlKey, TableLike};

use super::MeasuredLog;
use super::entry::{self, Entry, Outcome};
use super::schema::{FileKind, Key};
use crate::diagnostic::{Collector, closest, did_you_mean, quote};
use crate::recover;

/// Larger files are refused unread: a platform file has a few kilobytes.
pub const MOST_BYTES: usize = 1 << 20;

/// What a file says, before defaults.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub kind: FileKind,
    pub summary: String,
    pub default_devices: Vec<String>,
    pub log: Option<MeasuredLog>,
    pub entries: BTreeMap<&'static str, Entry>,
    /// Keys that are there but could not be read; they are not missing.
    pub unreadable: Vec<&'static str>,
    /// Values that stand under no source, and where.
    without_source: Vec<(&'static Key, Range<usize>)>,
    /// Whether every line is TOML; where not, nothing is said to be missing.
    pub is_whole: bool,
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
    let parsed = recover::parse(text, mistakes)?;
    let root: &dyn TableLike = parsed.document.as_table();
    let (kind, head) = read_kind(root, parsed.is_whole, mistakes)?;
    let mut file = SourceFile {
        kind,
        summary: String::new(),
        default_devices: Vec::new(),
        log: None,
        entries: BTreeMap::new(),
        unreadable: Vec::new(),
        without_source: Vec::new(),
        is_whole: parsed.is_whole,
        head,
    };
    file.read_table(root, "", None, mistakes);
    if file.is_whole {
        file.report_missing_sources(mistakes);
    }
    if file.is_whole && file.summary.is_empty() && root.get("summary").is_none() {
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
    is_whole: bool,
    mistakes: &mut Collector<'_>,
) -> Option<(FileKind, Range<usize>)> {
    let names = FileKind::ALL.map(FileKind::name);
    let help = || Some("write `kind = \"host\"`, `kind = \"cxl\"` or `kind = \"ssd\"`".to_string());
    let Some((key, item)) = root.get_key_value("kind") else {
        if is_whole {
            mistakes.report(0..0, Some("kind"), "missing key `kind`", help());
        }
        return None;
    };
    let span = item.span().or(key.span()).unwrap_or(0..0);
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

impl SourceFile {
    fn read_table(
        &mut self,
        table: &dyn TableLike,
        prefix: &str,
        inherited: Option<&str>,
        mistakes: &mut Collector<'_>,
    ) {
        let own = self.text(table, "source", prefix, mistakes);
        let source = match (&own, table.contains_key("source")) {
            (Some(own), _) => Some(own.as_str()),
            // It was reported; the values below it are not without source.
            (None, true) => Some("unreadable"),
            (None, false) => inherited,
        };
        for (name, item) in table.iter() {
            let path = if prefix.is_empty() {
                name.to_string()
            } else {
                format!("{prefix}.{name}")
            };
            let toml_key = table.get_key_value(name).map(|(key, _)| key);
            let key_span = toml_key.and_then(TomlKey::span).unwrap_or(0..0);
            let span = item.span().unwrap_or_else(|| key_span.clone());
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
                "measured" if matches!(self.kind, FileKind::Host | FileKind::Device) => {
                    self.read_log(item, span, mistakes);
                }
                _ if name == "source" => {}
                _ => {
                    if let Some(key) = self.kind.key(&path) {
                        match entry::read(key, item, span, source, mistakes) {
                            Outcome::Read(entry) => {
                                self.entries.insert(key.path, entry);
                            }
                            Outcome::WithoutSource(span) => {
                                self.without_source.push((key, span));
                                self.unreadable.push(key.path);
                            }
                            Outcome::Unreadable => self.unreadable.push(key.path),
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
                    item.span().unwrap_or(0..0),
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

    /// `measured = { log = "…", name = "…" }`: which curves of which log are this machine's.
    fn read_log(&mut self, item: &Item, span: Range<usize>, mistakes: &mut Collector<'_>) {
        let table = item.as_table_like();
        let text = |key: &str| {
            let text = table?.get(key)?.as_str()?.trim();
            (!text.is_empty()).then(|| text.to_string())
        };
        let others = table.is_some_and(|t| t.iter().any(|(key, _)| key != "log" && key != "name"));
        self.log = text("log")
            .zip(text("name"))
            .filter(|_| !others)
            .map(|(log, name)| MeasuredLog { log, name });
        if self.log.is_none() {
            mistakes.report(
                span,
                Some("measured"),
                "`measured` does not name a log and the machine's name in it, and nothing else",
                Some(
                    "write for example `measured = { log = \"eurosys24_mlc.csv\", name = \"cxl\" }`"
                        .into(),
                ),
            );
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
            let header = ["kind", "summary", "source", "measured"];
            let names = keys.iter().map(|key| key.path).chain(header);
            candidates = closest(path, names.chain(self.kind.sections()));
            candidates.dedup();
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

    /// One mistake for all values without a source, at the first of them: they share one remedy.
    fn report_missing_sources(&mut self, mistakes: &mut Collector<'_>) {
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
        let example = first.example;
        mistakes.report(
            span.clone(),
            Some(first.path),
            message,
            Some(format!(
                "add `source = \"…\"` to the file or the section, or write `{{ is = {example}, \
                 source = \"…\" }}`, or `{{ is = {example}, assumed = [lowest, highest], why = \"…\" }}`"
            )),
        );
    }
}
