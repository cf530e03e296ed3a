//! Reading a workload file. Every mistake is collected.

use std::ops::Range;

use toml_edit::{Item, TableLike, Value};

use super::schema::{FILE_KEYS, PHASE_KEYS, REGION_KEYS};
use super::{Order, Phase, Region, Workload, usual_slice};
use crate::diagnostic::{Collector, closest, did_you_mean, quote};
use crate::platform::{Key, MOST_BYTES, Need, known_words, name_of_file, read_scalar};
use crate::recover;
use crate::units::Bytes;

/// Elements of one line or less take this where the file says nothing.
const ELEMENT: f64 = 8.0;
/// Phases and regions that a file may have.
const MOST_PHASES: usize = 64;
const MOST_REGIONS: usize = 16;

/// Reads a file. `None` where it describes nothing; then there is a mistake.
pub(super) fn read(file: &str, text: &str, mistakes: &mut Collector<'_>) -> Option<Workload> {
    if text.len() > MOST_BYTES {
        mistakes.report(0..0, None, "the file is larger than 1 MiB", None);
        return None;
    }
    let name = match name_of_file(file) {
        Ok(name) => name.to_string(),
        Err(reason) => {
            let message = format!("the file's name makes no workload name: {reason}");
            mistakes.report(0..0, None, message, None);
            return None;
        }
    };
    let parsed = recover::parse(text, mistakes)?;
    let root: &dyn TableLike = parsed.document.as_table();
    let mut part = Part {
        table: root,
        span: 0..0,
        prefix: String::new(),
        is_whole: parsed.is_whole,
        mistakes,
    };
    part.expect_kind()?;
    part.refuse_others(
        FILE_KEYS,
        &["kind", "summary", "source", "assumed", "phase"],
    );
    let workload = Workload {
        name,
        summary: part.text("summary", Need::Required).unwrap_or_default(),
        source: part.text("source", Need::Required).unwrap_or_default(),
        assumed: part.text("assumed", Need::Optional),
        threads: part.number(FILE_KEYS, "threads").unwrap_or(1.0) as u32,
        phases: part.list("phase", MOST_PHASES, read_phase),
    };
    (!workload.phases.is_empty()).then_some(workload)
}

fn read_phase(part: &mut Part<'_, '_>, number: usize) -> Option<Phase> {
    part.refuse_others(PHASE_KEYS, &["name", "regions"]);
    let name = part.text("name", Need::Optional);
    let instructions = part.number(PHASE_KEYS, "instructions");
    let (cpi, apki) = (
        part.number(PHASE_KEYS, "cpi"),
        part.number(PHASE_KEYS, "apki"),
    );
    let slice = part.number(PHASE_KEYS, "slice");
    let vector = part.number(PHASE_KEYS, "vector");
    let mispredicts = part.number(PHASE_KEYS, "mispredicts");
    let regions = part.list("regions", MOST_REGIONS, read_region);
    let phase = Phase {
        name: name.unwrap_or_else(|| format!("phase {}", number + 1)),
        instructions: instructions.unwrap_or(1e9) as u64,
        cpi: cpi?,
        apki: apki?,
        slice: slice.unwrap_or_else(usual_slice),
        vector: vector.unwrap_or(0.0),
        mispredicts: mispredicts.unwrap_or(0.0),
        regions,
    };
    part.check_regions(&phase)?;
    Some(phase)
}

fn read_region(part: &mut Part<'_, '_>, number: usize) -> Option<Region> {
    part.refuse_others(REGION_KEYS, &["name", "order", "indexed_by"]);
    let order = part.order();
    let bytes = part.number(REGION_KEYS, "bytes");
    let element = part.number(REGION_KEYS, "element");
    let element = element.unwrap_or(ELEMENT);
    let order = order?;
    let region = Region {
        name: (part.text("name", Need::Optional)).unwrap_or_else(|| format!("r{}", number + 1)),
        bytes: Bytes(bytes? as u64),
        order,
        share: part.number(REGION_KEYS, "share").unwrap_or(1.0),
        element: Bytes(element as u64),
        stride: Bytes(part.number(REGION_KEYS, "stride").unwrap_or(element) as u64),
        stores: part.number(REGION_KEYS, "stores").unwrap_or(0.0),
        non_temporal: part.number(REGION_KEYS, "non_temporal").unwrap_or(0.0),
        streams: part.number(REGION_KEYS, "streams").unwrap_or(1.0) as u32,
        skew: part.number(REGION_KEYS, "skew").unwrap_or(0.99),
        dependent: match order {
            Order::Chase => 1.0,
            _ => part.number(REGION_KEYS, "dependent").unwrap_or(0.0),
        },
        indexed_by: part.text("indexed_by", Need::Optional),
        mispredicted: part.number(REGION_KEYS, "mispredicted").unwrap_or(0.0),
    };
    part.check_region(&region);
    Some(region)
}

/// A table and where it stands.
type Placed<'d> = (&'d dyn TableLike, Option<Range<usize>>);

/// The tables of a list, written either way; `None` where it is none.
fn tables(item: &Item) -> Option<Vec<Placed<'_>>> {
    if let Some(tables) = item.as_array_of_tables() {
        let tables = tables.iter().map(|t| (t as &dyn TableLike, t.span()));
        return Some(tables.collect());
    }
    let tables = item.as_array()?.iter().map(|value| match value {
        Value::InlineTable(table) => Some((table as &dyn TableLike, table.span())),
        _ => None,
    });
    tables.collect()
}

/// A table of the file, and what its keys are called in messages.
struct Part<'p, 't> {
    table: &'p dyn TableLike,
    span: Range<usize>,
    prefix: String,
    is_whole: bool,
    mistakes: &'p mut Collector<'t>,
}

impl Part<'_, '_> {
    fn path(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Where a key stands, or its table where it does not.
    fn place(&self, key: &str) -> Range<usize> {
        let item = self.table.get(key).and_then(Item::span);
        item.unwrap_or_else(|| self.span.clone())
    }

    fn report(&mut self, key: &str, message: String, help: Option<String>) {
        let (span, path) = (self.place(key), self.path(key));
        self.mistakes.report(span, Some(&path), message, help);
    }

    fn missing(&mut self, key: &str, example: &str) {
        if self.is_whole {
            let message = format!("missing key `{}`", self.path(key));
            self.report(key, message, Some(format!("add `{key} = {example}`")));
        }
    }

    fn expect_kind(&mut self) -> Option<()> {
        let help = || Some("write `kind = \"workload\"`".to_string());
        match self.table.get("kind").map(Item::as_str) {
            Some(Some("workload")) => return Some(()),
            None => self.missing("kind", "\"workload\""),
            Some(Some(other)) => {
                let message = format!("this file is of kind `{}`, not a workload", quote(other));
                self.report("kind", message, help());
            }
            Some(None) => self.report("kind", "`kind` is not text in quotes".into(), help()),
        }
        None
    }

    fn refuse_others(&mut self, keys: &'static [Key], more: &[&'static str]) {
        let table = self.table;
        for (name, item) in table.iter() {
            if more.contains(&name) || keys.iter().any(|key| key.path == name) {
                continue;
            }
            let key = table.get_key_value(name).and_then(|(key, _)| key.span());
            let span = key.or(item.span()).unwrap_or_else(|| self.span.clone());
            let names = keys.iter().map(|key| key.path).chain(more.iter().copied());
            let path = self.path(name);
            let message = format!("`{}` is not a key of a workload", quote(&path));
            let help = did_you_mean(&closest(name, names));
            self.mistakes.report(span, Some(&path), message, help);
        }
    }

    fn text(&mut self, key: &str, need: Need) -> Option<String> {
        let Some(item) = self.table.get(key) else {
            if need == Need::Required {
                self.missing(key, "\"…\"");
            }
            return None;
        };
        match item.as_str().map(str::trim) {
            Some(text) if !text.is_empty() => Some(text.to_string()),
            _ => {
                let message = format!("`{}` is not text in quotes", self.path(key));
                self.report(key, message, None);
                None
            }
        }
    }

    /// A number of one of the tables' keys; `None` where it is not there or is wrong.
    fn number(&mut self, keys: &'static [Key], name: &str) -> Option<f64> {
        let key = keys.iter().find(|key| key.path == name)?;
        let Some(item) = self.table.get(name) else {
            if key.need == Need::Required {
                self.missing(name, key.example);
            }
            return None;
        };
        let Some(value) = item.as_value() else {
            let message = format!("`{}` is not {}", self.path(name), key.kind.describe());
            self.report(
                name,
                message,
                Some(format!("write `{name} = {}`", key.example)),
            );
            return None;
        };
        read_scalar(key, value, &self.place(name), self.mistakes)
    }

    fn order(&mut self) -> Option<Order> {
        let word = self.text("order", Need::Required)?;
        let order = Order::ALL.into_iter().find(|o| o.name() == word);
        if order.is_none() {
            let message = format!("no order is called `{}`", quote(&word));
            let help = known_words(&word, &Order::ALL.map(Order::name));
            self.report("order", message, Some(help));
        }
        order
    }

    /// Every table of a list, written `[[key]]` or as tables in brackets.
    fn list<T>(
        &mut self,
        key: &'static str,
        most: usize,
        read: impl Fn(&mut Part<'_, '_>, usize) -> Option<T>,
    ) -> Vec<T> {
        let Some(item) = self.table.get(key) else {
            self.missing(key, "[…]");
            return Vec::new();
        };
        let tables = tables(item);
        let why = match &tables {
            None => Some("is not a list of tables".to_string()),
            Some(tables) if tables.is_empty() => Some("is empty".into()),
            Some(tables) if tables.len() > most => Some(format!("has more than {most} entries")),
            Some(_) => None,
        };
        if let Some(why) = why {
            self.report(key, format!("`{}` {why}", self.path(key)), None);
            return Vec::new();
        }
        let mut all = Vec::new();
        for (i, (table, span)) in tables.unwrap_or_default().into_iter().enumerate() {
            let mut part = Part {
                table,
                span: span.unwrap_or_else(|| self.span.clone()),
                prefix: format!("{}{key}.", self.prefix),
                is_whole: self.is_whole,
                mistakes: &mut *self.mistakes,
            };
            all.extend(read(&mut part, i));
        }
        all
    }

    /// What a region's keys say together.
    fn check_region(&mut self, region: &Region) {
        if region.element.get() > region.bytes.get() {
            let message = format!("an element of {} is larger than its region", region.element);
            self.report("element", message, None);
        }
        if region.stride.get() < region.element.get() {
            let message = format!("a stride of {} is less than the element", region.stride);
            self.report("stride", message, None);
        }
        if region.stride != region.element && !region.order.is_run() {
            let message = format!("a {} order has no stride", region.order.name());
            self.report("stride", message, None);
        }
        if region.order == Order::Chase && region.stores == 1.0 {
            let message = "a chase of nothing but stores loads no address".into();
            self.report("stores", message, None);
        }
    }

    /// What the regions of a phase say of each other.
    fn check_regions(&mut self, phase: &Phase) -> Option<()> {
        let regions = &phase.regions;
        if regions.is_empty() {
            return None;
        }
        let total: f64 = regions.iter().map(|r| r.share).sum();
        if total <= 0.0 {
            self.report(
                "regions",
                "no region has a share of the accesses".into(),
                None,
            );
            return None;
        }
        let names: Vec<&str> = regions.iter().map(|r| r.name.as_str()).collect();
        for (i, region) in regions.iter().enumerate() {
            if names[..i].contains(&names[i]) {
                let message = format!("two regions are called `{}`", quote(names[i]));
                self.report("regions", message, None);
            }
            if let Some(by) = &region.indexed_by
                && !names.contains(&by.as_str())
            {
                let message = format!(
                    "`{}` is indexed by `{}`, which is no region of its phase",
                    quote(names[i]),
                    quote(by)
                );
                let help = known_words(by, &names);
                self.report("regions", message, Some(help));
            }
        }
        Some(())
    }
}
