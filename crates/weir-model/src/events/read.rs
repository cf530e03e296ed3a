//! Reading a table of events: the vendor's events, and what each portable counter is made of.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{Confidence, Counted, CpuMatch, Event, EventTable, Formula, Rule};
use crate::counters::Counter;
use crate::diagnostic::{Mistakes, closest, did_you_mean, quote};
use crate::toml::{self, Field, Table};

/// Entries that a list of names, processors or formulas may have.
const MOST: usize = 256;

/// Reads a table.
pub(super) fn table(file: &str, text: &str) -> Result<EventTable, Mistakes> {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let name = name.strip_suffix(".toml").unwrap_or(name);
    toml::read(file, text, "a table of events", |root| read(name, root))
}

fn read(name: &str, root: &Table<'_>) -> Option<EventTable> {
    let title = need_text(root, "title");
    let source = need_text(root, "source");
    let short = root.need("short", "[\"spr\"]");
    let cpus = root.need(
        "cpus",
        "[{ vendor = \"…\", family = 6, models = \"0x8f\" }]",
    );
    let per_thread = root.need("counters_per_thread", "4");
    let events = (root.need("events", "{ … }")).map(|field| read_events(&field));
    let events = events.unwrap_or_default();
    let rules = (root.need("counters", "{ … }")).map(|field| read_rules(&field, &events));
    root.done("a table of events");
    let cpus = cpus.and_then(|field| field.tables(MOST));
    let cpus = cpus.unwrap_or_default();
    Some(EventTable {
        name: name.to_owned(),
        short: (short.and_then(|field| field.texts("names", MOST))).unwrap_or_default(),
        cpus: cpus.iter().filter_map(read_cpu).collect(),
        counters_per_thread: per_thread?.whole(1..=64)? as u32,
        events,
        rules: rules?,
        title: title?,
        source: source?,
    })
}

fn need_text(table: &Table<'_>, key: &str) -> Option<String> {
    Some(table.need(key, "\"…\"")?.text()?.to_owned())
}

fn read_cpu(table: &Table<'_>) -> Option<CpuMatch> {
    let vendor = need_text(table, "vendor");
    let family = table.need("family", "6");
    let models = table.need("models", "\"0x10-0x1f, 0x60\"");
    let steppings = table.get("steppings");
    table.done("a processor");
    Some(CpuMatch {
        vendor: vendor?,
        family: family?.whole(0..=0xffff)? as u32,
        models: ranges(&models?)?,
        steppings: match steppings {
            Some(field) => ranges(&field)?,
            None => Vec::new(),
        },
    })
}

/// `"0x10-0x1f, 0x60"`: numbers and ranges, at least one.
fn ranges(field: &Field<'_>) -> Option<Vec<RangeInclusive<u32>>> {
    let ranges: Option<Vec<_>> = field.text()?.split(',').map(range).collect();
    ranges.or_else(|| field.must_be("a list such as `\"0x10-0x1f, 0x60\"`"))
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

fn read_events(section: &Field<'_>) -> BTreeMap<String, Event> {
    let events = section.table().map(|table| table.fields());
    let events = events.unwrap_or_default().into_iter();
    events
        .filter_map(|(name, field)| Some((name.to_owned(), read_event(name, &field)?)))
        .collect()
}

fn read_event(name: &str, field: &Field<'_>) -> Option<Event> {
    let Some(table) = field.as_table() else {
        return field.must_be("an event such as `{ pmu = \"cpu\", event = 0xd1 }`");
    };
    let is_possible = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    if name.is_empty() || !name.chars().all(is_possible) {
        field.report(
            "an event's name has only letters, digits, `.` and `_`",
            None,
        );
    }
    let mut event = Event {
        name: name.to_owned(),
        pmu: need_text(&table, "pmu")?,
        fields: BTreeMap::new(),
        fixed: false,
        on: None,
    };
    table.need("event", "0xd1")?;
    for (key, field) in table.fields() {
        match key {
            "pmu" => {}
            "fixed" => event.fixed = field.flag()?,
            "on" => event.on = ranges(&field)?.into_iter().next(),
            _ if key.chars().all(|c| c.is_ascii_lowercase() || c == '_') => {
                let value = field.whole(0..=i64::MAX)?;
                event.fields.insert(key.to_owned(), value as u64);
            }
            _ => field.unknown("an event", &[]),
        }
    }
    Some(event)
}

fn read_rules(section: &Field<'_>, events: &BTreeMap<String, Event>) -> BTreeMap<Counter, Rule> {
    let mut rules = BTreeMap::new();
    let Some(table) = section.table() else {
        return rules;
    };
    let is_hardware = |counter: &Counter| counter.is_event();
    for (name, field) in table.fields() {
        let Some(counter) = Counter::named(name).filter(is_hardware) else {
            let names = Counter::ALL.iter().map(|counter| counter.name());
            field.report(
                format!("`{}` is not a counter of the hardware", quote(name)),
                did_you_mean(&closest(name, names)),
            );
            continue;
        };
        if let Some(rule) = read_rule(&field, events) {
            rules.insert(counter, rule);
        }
    }
    for counter in Counter::ALL.iter().copied().filter(is_hardware) {
        if !table.has(counter.name()) {
            section.report(
                format!("there is no entry for `{counter}`"),
                Some(format!(
                    "write `\"{counter}\" = {{ missing = \"…\" }}` if it cannot be counted"
                )),
            );
        }
    }
    rules
}

fn read_rule(field: &Field<'_>, events: &BTreeMap<String, Event>) -> Option<Rule> {
    if field.as_text().is_some() {
        return Some(Rule::Counted(Counted {
            formula: read_formula(field, events)?,
            or: Vec::new(),
            divided_by: 1,
            mean_of_units: false,
            confidence: Confidence::High,
            why: None,
        }));
    }
    let Some(table) = field.as_table() else {
        return field.must_be("a formula, or `{ missing = \"…\" }`");
    };
    if let Some(missing) = table.get("missing") {
        table.done("a counter that is `missing`");
        return Some(Rule::Missing(missing.text()?.to_owned()));
    }
    let [is, or, divided_by, mean_of_units, confidence, why] = [
        "is",
        "or",
        "divided_by",
        "mean_of_units",
        "confidence",
        "why",
    ]
    .map(|key| table.get(key));
    table.done("a counter");
    let Some(is) = is else {
        field.report(
            format!("`{}` has neither `is` nor `missing`", field.path()),
            None,
        );
        return None;
    };
    let confidence = match confidence {
        Some(field) => field.word(&Confidence::ALL, Confidence::name)?,
        None => Confidence::High,
    };
    let why = match why {
        Some(field) => Some(field.text()?.to_owned()),
        None => None,
    };
    if why.is_none() && confidence != Confidence::High {
        let message = format!("`{}` is not certain, but has no `why`", field.path());
        field.report(message, None);
    }
    let or = or.and_then(|field| field.list("formulas", MOST));
    Some(Rule::Counted(Counted {
        formula: read_formula(&is, events)?,
        or: (or.iter().flatten())
            .filter_map(|field| read_formula(field, events))
            .collect(),
        divided_by: match divided_by {
            Some(field) => field.whole(1..=1 << 20)? as u64,
            None => 1,
        },
        mean_of_units: match mean_of_units {
            Some(field) => field.flag()?,
            None => false,
        },
        confidence,
        why,
    }))
}

fn read_formula(field: &Field<'_>, events: &BTreeMap<String, Event>) -> Option<Formula> {
    let formula = field.read("a formula such as `\"A + B\"`", Formula::parse)?;
    let known: Vec<&Event> = (formula.terms().filter_map(|(_, name)| events.get(name))).collect();
    if let Some(strange) = known.iter().find(|event| event.pmu != known[0].pmu) {
        let message = format!("another unit counts `{}`", quote(&strange.name));
        field.report(message, None);
    }
    let names = formula.terms().map(|(_, name)| name);
    let unknown: Vec<&str> = names.filter(|name| !events.contains_key(*name)).collect();
    for name in &unknown {
        field.report(
            format!("no event is called `{}`", quote(name)),
            did_you_mean(&closest(name, events.keys().map(String::as_str))),
        );
    }
    match unknown.is_empty() {
        true => Some(formula),
        false => None,
    }
}
