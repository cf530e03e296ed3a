//! From lines to counters: sums over processors and units, intervals, and what was refused.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Line, Lines, Value};
use super::{
    CountedEvent, CounterFileError, CounterInterval, CountersDocument, KnownBy, ReadOptions,
};
use crate::capability::Unavailable;
use crate::counters::{CounterSet, RunningShare};
use crate::diagnostic::quote;
use crate::events::{Amount, Amounts, EventLibrary, EventTable, Meaning, Spelled};
use crate::units::Nanos;

/// Every counter of today's hardware has this many bits.
const COUNTER_BITS: u32 = 48;

/// A small negative difference that was read modulo 2^48 lies this close below it.
const WRAPPED: i128 = 1 << 40;

/// Weir's own document, which states its processor itself.
pub(super) fn own(
    file: &str,
    document: CountersDocument,
    options: &ReadOptions,
    library: &EventLibrary,
) -> Result<CountersDocument, CounterFileError> {
    let stated = stated(file, options, None, library)?;
    match (stated, &document.cpu) {
        (Some((table, _)), Some(cpu)) if !table.is_called(cpu) => Err(CounterFileError::file(
            file,
            format!("it was counted on {}, not on {}", quote(cpu), table.name),
        )),
        _ => Ok(document),
    }
}

/// The document of a file of `perf stat`.
pub(super) fn document(
    file: &str,
    lines: Lines,
    options: &ReadOptions,
    library: &EventLibrary,
) -> Result<CountersDocument, CounterFileError> {
    let mut notes = Vec::new();
    let kept = of_one_group(file, &lines.lines, options)?;
    let spelled: Vec<(&Line, Spelled)> = kept
        .into_iter()
        .map(|line| (line, Spelled::read(&line.event)))
        .collect();
    for pair in spelled.windows(2) {
        let (earlier, later) = (pair[0].0, pair[1].0);
        if later.end < earlier.end {
            let message = "time goes back here: the file holds more than one run";
            return Err(CounterFileError::line(
                file,
                later.number,
                &later.event,
                message,
            ));
        }
    }
    let stated = stated(file, options, lines.cpu.as_deref(), library)?;
    let (table, known_by) = match stated {
        Some((table, known_by)) => {
            refuse_strangers(file, &spelled, table, library)?;
            (Some(table), known_by)
        }
        None => recognised(file, &spelled, library, &mut notes)?,
    };
    if lines.watchdog {
        notes.push(
            "perf says that the NMI watchdog held a counter: `sysctl kernel.nmi_watchdog=0`".into(),
        );
    }
    if let Some(first) = lines.others.first() {
        let count = lines.others.len();
        notes.push(format!(
            "{count} lines are no counters, the first of them line {first}"
        ));
    }
    // Without events that tell processors apart, cycles and instructions mean the same on all.
    let meant = table.or(library.tables().first());
    let Some(meant) = meant else {
        return Err(CounterFileError::file(
            file,
            "no table of events is there to read it by",
        ));
    };
    let by_time = by_time(&spelled, meant);
    let amounts: Vec<(Option<u64>, Amounts)> = by_time
        .iter()
        .map(|(&end, events)| (end, total_of(events.values())))
        .collect();
    let mut whole: BTreeMap<String, Counted> = BTreeMap::new();
    for counted in by_time.values().flat_map(|events| events.values()) {
        match whole.get_mut(&counted.name) {
            Some(known) => known.and_then(counted),
            None => drop(whole.insert(counted.name.clone(), counted.clone())),
        }
    }
    let mut intervals = Vec::new();
    let mut before = 0;
    for (end, amounts) in &amounts {
        let Some(end) = *end else { continue };
        intervals.push(CounterInterval {
            end: Nanos(end as f64),
            length: Nanos(end.saturating_sub(before) as f64),
            counters: mean(meant, amounts, false),
        });
        before = end;
    }
    let elapsed = lines
        .elapsed
        .map(Nanos)
        .or(intervals.last().map(|last| last.end));
    if elapsed.is_some_and(|elapsed| elapsed < Nanos(1e6)) {
        notes.push("it ended within a millisecond: its start is most of what was counted".into());
    }
    Ok(CountersDocument {
        schema: CountersDocument::SCHEMA.to_owned(),
        cpu: table.map(|table| table.name.clone()),
        cpu_known_by: known_by,
        of: file.to_owned(),
        exit_status: None,
        elapsed,
        total: mean(meant, &total_of(whole.values()), table.is_some()),
        intervals,
        events: whole.into_values().map(Counted::event).collect(),
        notes,
    })
}

/// The hardware's counters and the kernel's.
fn mean(table: &EventTable, amounts: &Amounts, of_all: bool) -> CounterSet {
    let mut set = Meaning { table, of_all }.of(amounts);
    for (name, amount) in amounts {
        if let Some(counter) = Spelled::read(name).software() {
            match &amount.value {
                Ok(value) => set.set_scaled(counter, *value, amount.running),
                Err(why) => set.set_unavailable(counter, why.clone()),
            }
        }
    }
    set
}

/// The table that was stated, in the request or in the file; both must mean the same.
fn stated<'l>(
    file: &str,
    options: &ReadOptions,
    header: Option<&str>,
    library: &'l EventLibrary,
) -> Result<Option<(&'l EventTable, KnownBy)>, CounterFileError> {
    let get = |name: &str| {
        let found = library.get(name);
        found.map_err(|why| CounterFileError::file(file, why.reason))
    };
    match (&options.cpu, header) {
        (Some(cpu), Some(header)) if get(cpu)?.name != get(header)?.name => {
            let message = format!(
                "its header says that it was counted on {}, not on {}",
                get(header)?.name,
                get(cpu)?.name
            );
            Err(CounterFileError::file(file, message))
        }
        (Some(cpu), _) => Ok(Some((get(cpu)?, KnownBy::Stated))),
        (None, Some(header)) => Ok(Some((get(header)?, KnownBy::Header))),
        (None, None) => Ok(None),
    }
}

/// An event that the stated table lacks and another has shows that the statement is wrong.
fn refuse_strangers(
    file: &str,
    lines: &[(&Line, Spelled)],
    table: &EventTable,
    library: &EventLibrary,
) -> Result<(), CounterFileError> {
    for (line, spelled) in lines {
        if spelled.is_generic() || spelled.find(table).is_some() {
            continue;
        }
        let others: Vec<&str> = library
            .tables()
            .iter()
            .filter(|other| spelled.find(other).is_some())
            .map(|other| other.name.as_str())
            .collect();
        if !others.is_empty() {
            return Err(CounterFileError::line(
                file,
                line.number,
                &line.event,
                format!(
                    "the event is one of {}, but the file is said to be of {}",
                    others.join(", "),
                    table.name
                ),
            ));
        }
    }
    Ok(())
}

/// The table whose events these are.
fn recognised<'l>(
    file: &str,
    lines: &[(&Line, Spelled)],
    library: &'l EventLibrary,
    notes: &mut Vec<String>,
) -> Result<(Option<&'l EventTable>, KnownBy), CounterFileError> {
    let known = |spelled: &Spelled| library.tables().iter().any(|t| spelled.find(t).is_some());
    let telling: Vec<&Spelled> = lines
        .iter()
        .map(|(_, spelled)| spelled)
        .filter(|spelled| !spelled.is_generic() && known(spelled))
        .collect();
    if telling.is_empty() {
        return Ok((None, KnownBy::Nothing));
    }
    let fitting: Vec<&EventTable> = library
        .tables()
        .iter()
        .filter(|table| telling.iter().all(|spelled| spelled.find(table).is_some()))
        .collect();
    let Some((&first, others)) = fitting.split_first() else {
        let message = "its events are of several microarchitectures; say which with `--cpu`";
        return Err(CounterFileError::file(file, message));
    };
    // Several fit: they must agree on what was counted.
    let meaning = |table: &EventTable| -> BTreeSet<String> {
        let events = telling.iter().filter_map(|spelled| spelled.find(table));
        let names: BTreeSet<&str> = events.map(|event| event.name.as_str()).collect();
        let rules = table.rules.iter().filter_map(|(counter, rule)| {
            let events = table.events_of(*counter);
            let counted =
                !events.is_empty() && events.iter().all(|e| names.contains(e.name.as_str()));
            counted.then(|| format!("{counter} {rule:?}"))
        });
        rules.collect()
    };
    let names = |tables: &[&EventTable]| -> String {
        tables
            .iter()
            .map(|t| t.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if others.iter().any(|other| meaning(other) != meaning(first)) {
        let message = format!(
            "its events are those of {}, which mean different things by them; say which with `--cpu`",
            names(&fitting)
        );
        return Err(CounterFileError::file(file, message));
    }
    if !others.is_empty() {
        notes.push(format!("the events are those of {} as well", names(others)));
    }
    Ok((Some(first), KnownBy::Events))
}

/// The lines of one control group.
fn of_one_group<'l>(
    file: &str,
    lines: &'l [Line],
    options: &ReadOptions,
) -> Result<Vec<&'l Line>, CounterFileError> {
    let groups: BTreeSet<&str> = lines.iter().filter_map(|l| l.cgroup.as_deref()).collect();
    let names = || {
        groups
            .iter()
            .map(|group| quote(group))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match &options.cgroup {
        Some(wanted) if !groups.contains(wanted.as_str()) => Err(CounterFileError::file(
            file,
            format!(
                "it has no control group `{}`; it has: {}",
                quote(wanted),
                names()
            ),
        )),
        None if groups.len() > 1 => Err(CounterFileError::file(
            file,
            format!(
                "it has several control groups; say which with `--cgroup`: {}",
                names()
            ),
        )),
        wanted => Ok(lines
            .iter()
            .filter(|line| wanted.is_none() || line.cgroup == *wanted)
            .collect()),
    }
}

/// One event of one interval, or of all.
#[derive(Debug, Clone)]
struct Counted {
    /// The table's name of it, or as it was written.
    name: String,
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
                // The same thing counted twice, in two groups: the better one stands.
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
    fn and_then(&mut self, later: &Self) {
        add(&mut self.amount, &later.amount, self.is_idle, later.is_idle);
        self.is_idle &= later.is_idle;
    }

    fn event(self) -> CountedEvent {
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

/// The number of a line, or why it is none.
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
        Value::Quantity(unit) => format!(
            "line {n}: it is a quantity in `{}`, not a count",
            quote(unit)
        ),
    };
    Err(Unavailable::because(why))
}

type ByTime = BTreeMap<Option<u64>, BTreeMap<String, Counted>>;

fn by_time(lines: &[(&Line, Spelled)], table: &EventTable) -> ByTime {
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

fn total_of<'c>(events: impl Iterator<Item = &'c Counted>) -> Amounts {
    events
        .map(|counted| (counted.name.clone(), counted.amount.clone()))
        .collect()
}
