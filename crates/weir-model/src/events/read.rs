//! One file of events, with every mistake at its place.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml_edit::{Item, TableLike, Value};

use super::{CpuMatch, Event, EventTable};
use crate::diagnostic::{Collector, Mistakes, closest, did_you_mean, quote};
use crate::recover;

/// Larger files are refused unread: a table has a few kilobytes.
pub const MOST_BYTES: usize = 1 << 20;

const HEADER: [&str; 7] = [
    "title",
    "short",
    "cpus",
    "source",
    "counters_per_thread",
    "events",
    "counters",
];

/// Reads a table.
pub(super) fn table(file: &str, text: &str) -> Result<EventTable, Mistakes> {
    let mut mistakes = Collector::new(file, text);
    let table = Reader {
        mistakes: &mut mistakes,
    }
    .file(file, text);
    mistakes.finish(table)
}

pub(super) struct Reader<'m, 't> {
    pub(super) mistakes: &'m mut Collector<'t>,
}

impl Reader<'_, '_> {
    fn file(&mut self, file: &str, text: &str) -> Option<EventTable> {
        if text.len() > MOST_BYTES {
            self.wrong(
                0..0,
                "",
                "the file is larger than the 1 MiB of a table of events",
            );
            return None;
        }
        let parsed = recover::parse(text, self.mistakes)?;
        let root: &dyn TableLike = parsed.document.as_table();
        self.only(root, "", &HEADER);
        let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let name = name.strip_suffix(".toml").unwrap_or(name);
        let events = self.events(root);
        let rules = self.rules(root, &events);
        if parsed.is_whole {
            for key in HEADER.iter().filter(|key| !root.contains_key(key)) {
                self.wrong(0..0, key, &format!("missing key `{key}`"));
            }
        }
        Some(EventTable {
            name: name.to_owned(),
            title: self.text(root, "title", "")?,
            short: self.short(root),
            cpus: self.cpus(root),
            source: self.text(root, "source", "")?,
            counters_per_thread: self.number(root, "counters_per_thread", "", 1, 64)? as u32,
            events,
            rules,
        })
    }

    fn short(&mut self, root: &dyn TableLike) -> Vec<String> {
        let Some(item) = root.get("short") else {
            return Vec::new();
        };
        let names: Option<Vec<String>> = item.as_array().and_then(|list| {
            let names = list.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect()
        });
        names.unwrap_or_else(|| {
            self.wrong(at(item), "short", "`short` is not a list of names");
            Vec::new()
        })
    }

    fn cpus(&mut self, root: &dyn TableLike) -> Vec<CpuMatch> {
        let Some(item) = root.get("cpus") else {
            return Vec::new();
        };
        let tables: Vec<&dyn TableLike> = match item.as_array() {
            Some(list) => list
                .iter()
                .filter_map(Value::as_inline_table)
                .map(|table| table as &dyn TableLike)
                .collect(),
            None => Vec::new(),
        };
        if tables.is_empty() {
            self.wrong(at(item), "cpus", "`cpus` is not a list of processors");
        }
        tables
            .into_iter()
            .filter_map(|table| {
                self.only(table, "cpus", &["vendor", "family", "models", "steppings"]);
                Some(CpuMatch {
                    vendor: self.text(table, "vendor", "cpus")?,
                    family: self.number(table, "family", "cpus", 0, 0xffff)? as u32,
                    models: self.ranges(table, "models", "cpus")?,
                    steppings: match table.contains_key("steppings") {
                        true => self.ranges(table, "steppings", "cpus")?,
                        false => Vec::new(),
                    },
                })
            })
            .collect()
    }

    fn events(&mut self, root: &dyn TableLike) -> BTreeMap<String, Event> {
        let mut events = BTreeMap::new();
        for (name, item) in self.section(root, "events") {
            let path = format!("events.{name}");
            let Some(table) = item.as_table_like() else {
                self.wrong(
                    at(item),
                    &path,
                    "an event is written `{ pmu = \"cpu\", event = 0xd1 }`",
                );
                continue;
            };
            let spelled = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
            if name.is_empty() || !name.chars().all(spelled) {
                self.wrong(
                    at(item),
                    &path,
                    "an event's name has letters, digits, `.` and `_`",
                );
            }
            if let Some(event) = self.event(name, table, &path) {
                events.insert(name.to_owned(), event);
            }
        }
        events
    }

    fn event(&mut self, name: &str, table: &dyn TableLike, path: &str) -> Option<Event> {
        let pmu = self.text(table, "pmu", path)?;
        let mut event = Event {
            name: name.to_owned(),
            pmu,
            fields: BTreeMap::new(),
            fixed: false,
            on: None,
        };
        for (key, item) in table.iter() {
            match key {
                "pmu" => {}
                "fixed" => match item.as_bool() {
                    Some(fixed) => event.fixed = fixed,
                    None => self.wrong(at(item), path, "`fixed` is true or false"),
                },
                "on" => {
                    event.on = self.ranges(table, "on", path)?.into_iter().next();
                }
                _ if key.chars().all(|c| c.is_ascii_lowercase() || c == '_') => {
                    let value = self.number(table, key, path, 0, i64::MAX)?;
                    event.fields.insert(key.to_owned(), value as u64);
                }
                _ => self.wrong(
                    at(item),
                    path,
                    &format!("`{}` is no field of an encoding", quote(key)),
                ),
            }
        }
        if event.fields.contains_key("event") {
            return Some(event);
        }
        self.wrong(0..0, path, &format!("`{path}` has no `event`"));
        None
    }

    /// The entries of a section.
    pub(super) fn section<'r>(
        &mut self,
        root: &'r dyn TableLike,
        name: &str,
    ) -> Vec<(&'r str, &'r Item)> {
        match root.get(name).map(|item| (item, item.as_table_like())) {
            Some((_, Some(table))) => table.iter().collect(),
            Some((item, None)) => {
                self.wrong(
                    at(item),
                    name,
                    &format!("`{name}` is a section: `[{name}]`"),
                );
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Reports every key that does not belong into a table.
    pub(super) fn only(&mut self, table: &dyn TableLike, path: &str, keys: &[&str]) {
        for (key, item) in table.iter().filter(|(key, _)| !keys.contains(key)) {
            let place = table.get_key_value(key).and_then(|(key, _)| key.span());
            self.mistakes.report(
                place.unwrap_or_else(|| at(item)),
                Some(&join(path, key)),
                format!("`{}` is not a key here", quote(key)),
                did_you_mean(&closest(key, keys.iter().copied())),
            );
        }
    }

    pub(super) fn text(&mut self, table: &dyn TableLike, key: &str, path: &str) -> Option<String> {
        let path = join(path, key);
        let Some(item) = table.get(key) else {
            // A missing key of the header is reported with the others.
            if path != key {
                self.wrong(0..0, &path, &format!("`{path}` is missing"));
            }
            return None;
        };
        match item.as_str().map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong(at(item), &path, &format!("`{path}` is not text in quotes"));
                None
            }
        }
    }

    pub(super) fn number(
        &mut self,
        table: &dyn TableLike,
        key: &str,
        path: &str,
        low: i64,
        high: i64,
    ) -> Option<i64> {
        let path = join(path, key);
        let item = table.get(key)?;
        let number = item.as_integer().filter(|n| (low..=high).contains(n));
        if number.is_none() {
            let message = format!("`{path}` is not a whole number from {low} to {high}");
            self.wrong(at(item), &path, &message);
        }
        number
    }

    /// `"0x10-0x1f, 0x60"`: numbers and ranges, at least one.
    fn ranges(
        &mut self,
        table: &dyn TableLike,
        key: &str,
        path: &str,
    ) -> Option<Vec<RangeInclusive<u32>>> {
        let text = self.text(table, key, path)?;
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        if ranges.is_none() {
            let path = join(path, key);
            let span = table.get(key).map_or(0..0, at);
            self.wrong(
                span,
                &path,
                &format!("`{path}` is not a list such as `\"0x10-0x1f, 0x60\"`"),
            );
        }
        ranges
    }

    pub(super) fn wrong(&mut self, span: Range<usize>, key: &str, message: &str) {
        let key = (!key.is_empty()).then_some(key);
        self.mistakes.report(span, key, message, None);
    }
}

fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    }
}

pub(super) fn at(item: &Item) -> Range<usize> {
    item.span().unwrap_or(0..0)
}

/// `0x10-0x1f`, or one number.
fn range(text: &str) -> Option<RangeInclusive<u32>> {
    let number = |text: &str| {
        let text = text.trim();
        match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    };
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (number(low)?, number(high)?);
    (low <= high).then_some(low..=high)
}
