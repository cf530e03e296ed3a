//! Sums of one event over processors, units and time, and what was refused on the way.

use std::collections::BTreeMap;

use super::CountedEvent;
use super::line::{Line, Value};
use crate::capability::Unavailable;
use crate::counters::RunningShare;
use crate::diagnostic::quote;
use crate::events::{Amount, Amounts, EventTable, Spelled};

/// Every counter of today's hardware has this many bits.
const COUNTER_BITS: u32 = 48;

/// A small negative difference that was read modulo 2^48 is at most this far below it.
const WRAPPED: i128 = 1 << 40;

/// One event of one interval, or of all.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    /// The table's name of it, or as it was written.
    pub name: String,
    written: String,
    is_known: bool,
    line: u32,
    /// Nothing yet but intervals in which nothing ran.
    is_idle: bool,
    amount: Amount,
    /// What counted: processors and units, each once.
    places: BTreeMap<(String, Option<u32>), RunningShare>,
    is_core: bool,
}

impl Counted {
    fn new(line: &Line, spelled: &Spelled, table: &EventTable) -> Self {
        let event = spelled.find(table);
        let software = spelled.software();
        let value = value(line);
        Self {
            name: match (event, software) {
                (Some(event), _) => event.name.clone(),
                (None, Some(counter)) => counter.name().to_owned(),
                (None, None) => line.event.clone(),
            },
            written: line.event.clone(),
            is_known: event.is_some() || software.is_some(),
            line: line.number,
            is_idle: line.value == Value::Idle,
            amount: Amount {
                value,
                running: line.running,
                units: spelled.unit.map(|_| 1),
            },
            places: BTreeMap::from([((line.place.clone(), spelled.unit), line.running)]),
            is_core: event.is_none_or(crate::events::Event::is_core),
        }
    }

    /// Adds what another processor or unit counted in the same time.
    fn beside(&mut self, other: Self) {
        let (place, running) = match other.places.into_iter().next() {
            Some(place) => place,
            None => return,
        };
        if let Some(known) = self.places.get(&place).copied() {
            if self.is_core {
                // The same thing counted twice, in two groups: the better one is kept.
                if running > known && self.places.len() == 1 {
                    self.amount = other.amount;
                    self.places.insert(place, running);
                }
                return;
            }
            // Units that `perf` lists under one name.
            self.amount.units = Some(self.amount.units.unwrap_or(1) + 1);
        } else {
            self.amount.units = match (self.amount.units, other.amount.units) {
                (Some(a), Some(b)) => Some(a + b),
                _ => None,
            };
            self.places.insert(place, running);
        }
        add(&mut self.amount, &other.amount, self.is_idle, other.is_idle);
        self.is_idle &= other.is_idle;
    }

    /// Adds a later interval.
    pub fn and_then(&mut self, later: &Self) {
        add(&mut self.amount, &later.amount, self.is_idle, later.is_idle);
        self.is_idle &= later.is_idle;
    }

    pub fn event(self) -> CountedEvent {
        let (value, why) = match self.amount.value {
            Ok(value) => (Some(value), None),
            Err(why) => (None, Some(why.reason)),
        };
        CountedEvent {
            known_as: self.is_known.then_some(self.name),
            event: self.written,
            value,
            running: self.amount.running,
            why,
            line: Some(self.line),
        }
    }
}

/// Where nothing ran there is nothing to add; where nothing was counted there is no sum.
fn add(sum: &mut Amount, other: &Amount, sum_idle: bool, other_idle: bool) {
    match (&sum.value, &other.value) {
        _ if other_idle => return,
        _ if sum_idle => sum.value = other.value.clone(),
        (Err(_), _) => return,
        (Ok(_), Err(why)) => sum.value = Err(why.clone()),
        (Ok(a), Ok(b)) => {
            let beyond = || Unavailable::because("the sum is beyond 64 bits");
            sum.value = a.checked_add(*b).ok_or_else(beyond);
        }
    }
    if other.running < sum.running {
        sum.running = other.running;
    }
}

/// The number of a line, or why there is no number.
fn value(line: &Line) -> Result<u64, Unavailable> {
    let n = line.number;
    let why = match &line.value {
        Value::Counted(value) => {
            let (top, bits) = (1_i128 << COUNTER_BITS, COUNTER_BITS);
            if *value < 0 || *value >= 1 << 63 {
                format!("line {n}: {value} is a negative difference")
            } else if (top - WRAPPED..top).contains(value) {
                format!("line {n}: {value} is just below 2^{bits}: the counter wrapped")
            } else {
                return u64::try_from(*value).map_err(|_| {
                    Unavailable::because(format!("line {n}: {value} has too many bits"))
                });
            }
        }
        Value::Idle => format!("line {n}: nothing ran that it could count"),
        Value::NotCounted => format!("line {n}: it was never on a hardware counter"),
        Value::NotSupported => format!("line {n}: the machine that counted does not support it"),
        Value::Quantity(unit) if unit.is_empty() => {
            format!("line {n}: it is no whole number, as a count is")
        }
        Value::Quantity(unit) => format!(
            "line {n}: it is a quantity in `{}`, not a count",
            quote(unit)
        ),
    };
    Err(Unavailable::because(why))
}

pub(super) type ByTime = BTreeMap<Option<u64>, BTreeMap<String, Counted>>;

pub(super) fn by_time(lines: &[(&Line, Spelled)], table: &EventTable) -> ByTime {
    let mut times = ByTime::new();
    for (line, spelled) in lines {
        let counted = Counted::new(line, spelled, table);
        let events = times.entry(line.end).or_default();
        match events.get_mut(&counted.name) {
            Some(known) => known.beside(counted),
            None => drop(events.insert(counted.name.clone(), counted)),
        }
    }
    times
}

pub(super) fn total_of<'c>(events: impl Iterator<Item = &'c Counted>) -> Amounts {
    events
        .map(|counted| (counted.name.clone(), counted.amount.clone()))
        .collect()
}
