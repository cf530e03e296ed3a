//! Events as `perf` spells them, found in a table.

use std::collections::BTreeMap;

use super::{Event, EventTable};
use crate::counters::Counter;

/// What `perf` printed in place of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelled {
    /// The unit without its number, where it was printed: `uncore_cha`.
    pub pmu: Option<String>,
    /// The unit's number: 3 of `uncore_cha_3`.
    pub unit: Option<u32>,
    /// The event itself.
    pub event: Spelling,
}

/// How an event was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spelling {
    /// By name: `mem_load_retired.l1_hit`, `cycles`.
    Name(String),
    /// By its fields: `event=0xa3,umask=0x14,cmask=20`.
    Fields(BTreeMap<String, u64>),
    /// As the number that the hardware takes: `r14a3`.
    Raw(u64),
}

impl Spelled {
    /// Reads an event's text: a name with or without modifiers, `pmu/…/`, `rHEX`, and the unit that
    /// `perf` appends in brackets. Whatever is not understood is a name.
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        let (text, bracket) = match text.strip_suffix(']').and_then(|t| t.rsplit_once(" [")) {
            Some((event, unit)) => (event.trim_end(), Some(unit)),
            None => (text, None),
        };
        let (pmu, event) = match text.split_once('/') {
            Some((pmu, rest)) if !pmu.is_empty() => {
                let terms = rest.rsplit_once('/').map_or(rest, |(terms, _)| terms);
                (Some(pmu), terms_of(terms))
            }
            _ => (None, name_or_raw(without_modifiers(text))),
        };
        let (pmu, unit) = match pmu.or(bracket).map(numbered) {
            Some((pmu, unit)) => (Some(pmu.to_owned()), unit),
            None => (None, None),
        };
        Self { pmu, unit, event }
    }

    /// The table's event that this is.
    pub fn find<'t>(&self, table: &'t EventTable) -> Option<&'t Event> {
        let mut known = table.events.values().filter(|event| {
            let pmu = self.pmu.as_deref();
            pmu.is_none_or(|pmu| same_pmu(pmu, &event.pmu))
        });
        match &self.event {
            Spelling::Name(name) => match generic(name) {
                Some(counter) => table.events_of(counter).first().copied(),
                None => known.find(|event| event.name.eq_ignore_ascii_case(name)),
            },
            Spelling::Fields(fields) => {
                let matches = |event: &Event| {
                    let is_set = |(_, value): &(&String, &u64)| **value != 0;
                    fields
                        .iter()
                        .filter(is_set)
                        .eq(event.fields.iter().filter(is_set))
                };
                // Without its unit, an encoding means a core's event.
                known.find(|event| (self.pmu.is_some() || event.is_core()) && matches(event))
            }
            Spelling::Raw(config) => {
                known.find(|event| event.is_core() && raw(event) == Some(*config))
            }
        }
    }

    /// The counter that the kernel keeps, if it is one.
    pub fn software(&self) -> Option<Counter> {
        let Spelling::Name(name) = &self.event else {
            return None;
        };
        match name.to_ascii_lowercase().as_str() {
            "task-clock" => Some(Counter::TaskClock),
            "page-faults" | "faults" => Some(Counter::PageFaults),
            "context-switches" | "cs" => Some(Counter::ContextSwitches),
            "cpu-migrations" | "migrations" => Some(Counter::CpuMigrations),
            _ => None,
        }
    }

    /// Whether every processor has this event under this name, so that it does not identify a processor.
    pub fn is_generic(&self) -> bool {
        self.software().is_some()
            || matches!(&self.event, Spelling::Name(name) if generic(name).is_some())
    }
}

/// Events that the kernel maps itself.
fn generic(name: &str) -> Option<Counter> {
    match name.to_ascii_lowercase().as_str() {
        "cycles" | "cpu-cycles" => Some(Counter::Cycles),
        "instructions" => Some(Counter::Instructions),
        _ => None,
    }
}

/// The terms between the slashes.
fn terms_of(terms: &str) -> Spelling {
    let mut fields = BTreeMap::new();
    let mut name = None;
    for term in terms
        .split(',')
        .map(str::trim)
        .filter(|term| !term.is_empty())
    {
        match term.split_once('=') {
            Some(("name", alias)) => name = Some(alias.to_owned()),
            // How often to sample, and what to call it, is not what is counted.
            Some(("period" | "freq" | "metric-id" | "percore", _)) => {}
            Some((field, value)) => match number(value) {
                Some(value) => drop(fields.insert(field.to_owned(), value)),
                None => return Spelling::Name(terms.to_owned()),
            },
            None => match flag(term) {
                Some(field) => drop(fields.insert(field.to_owned(), 1)),
                None => return name_or_raw(term),
            },
        }
    }
    match name {
        Some(name) if fields.is_empty() => Spelling::Name(name),
        None if fields.is_empty() => Spelling::Name(terms.to_owned()),
        _ => Spelling::Fields(fields),
    }
}

/// Fields of one bit, which have no value.
fn flag(term: &str) -> Option<&str> {
    matches!(term, "inv" | "edge" | "any" | "pc").then_some(term)
}

fn name_or_raw(text: &str) -> Spelling {
    let digits = text.strip_prefix('r').filter(|digits| digits.len() >= 2);
    let raw = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    raw.map_or_else(|| Spelling::Name(text.to_owned()), Spelling::Raw)
}

/// Cuts `:u`, `:ppp` and the like.
fn without_modifiers(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((name, modifiers))
            if !name.is_empty() && modifiers.chars().all(|c| "ukhIGHpPSDWeb".contains(c)) =>
        {
            name
        }
        _ => text,
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `uncore_cha_3` is the third of `uncore_cha`.
fn numbered(pmu: &str) -> (&str, Option<u32>) {
    match pmu.rsplit_once('_').map(|(pmu, n)| (pmu, n.parse())) {
        Some((pmu, Ok(n))) => (pmu, Some(n)),
        _ => (pmu, None),
    }
}

/// Hybrid processors call the cores of servers `cpu_core`; `perf` may leave `uncore_` out.
fn same_pmu(written: &str, known: &str) -> bool {
    written == known
        || (written == "cpu_core" && known == "cpu")
        || known.strip_prefix("uncore_") == Some(written)
}

/// A core event as the number that `rHEX` writes, if it has no field beyond those of every x86
/// processor (Intel SDM volume 3, figure 20-1; AMD APM volume 2, 13.2.1), or on Arm its number.
fn raw(event: &Event) -> Option<u64> {
    let mut config = 0;
    for (field, &value) in &event.fields {
        config |= match field.as_str() {
            "event" if event.pmu == "cpu" => (value & 0xff) | (value >> 8) << 32,
            "event" => value,
            "umask" => value << 8,
            "edge" => value << 18,
            "inv" => value << 23,
            "cmask" => value << 24,
            _ => return None,
        };
    }
    Some(config)
}
