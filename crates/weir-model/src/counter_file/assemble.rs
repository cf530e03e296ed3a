//! From lines to the document: intervals, their sum, and what a reader should know.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Line, Lines};
use super::processor::{recognised, refuse_strangers, stated};
use super::sum::{Counted, by_time, total_of};
use super::{CounterFileError, CounterInterval, CountersDocument, ReadOptions};
use crate::counters::CounterSet;
use crate::diagnostic::quote;
use crate::events::{Amounts, Event, EventLibrary, EventTable, Meaning, Spelled};
use crate::units::Nanos;

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
        notes.push(match lines.others.len() {
            1 => format!("line {first} is no counter"),
            count => format!("{count} lines are no counters, the first of them line {first}"),
        });
    }
    // Without events of one processor only, cycles and instructions mean the same on all.
    let meant = table.or(library.tables().first());
    let Some(meant) = meant else {
        return Err(CounterFileError::file(
            file,
            "no table of events is there to read it by",
        ));
    };
    if let Some(line) = counted_again(&spelled, meant) {
        let message =
            "all that was counted is counted again from here on: the file holds more than one run";
        return Err(CounterFileError::line(
            file,
            line.number,
            &line.event,
            message,
        ));
    }
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
        notes.push("it ended within a millisecond: most of the counts belong to its start".into());
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

/// The first line of a second run that was appended without its heading: all lines of the first come again.
fn counted_again<'l>(lines: &[(&'l Line, Spelled)], table: &EventTable) -> Option<&'l Line> {
    let key = |line: &'l Line| (&line.event, &line.place, line.end);
    let (first, _) = lines.first()?;
    let length = 1 + (lines.iter().skip(1)).position(|(line, _)| key(line) == key(first))?;
    // One event comes again where it is of two groups, and those of a unit for each unit.
    let is_of_cores = |spelled: &Spelled| {
        spelled.software().is_some() || spelled.find(table).is_some_and(Event::is_core)
    };
    let again = lines.len() >= 2 * length
        && (lines.iter().zip(&lines[length..])).all(|((a, _), (b, _))| key(a) == key(b));
    let is_run = length > 1 && lines.iter().any(|(_, spelled)| is_of_cores(spelled));
    (is_run && again).then(|| lines[length].0)
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
                "it has several control groups; choose one with `--cgroup`: {}",
                names()
            ),
        )),
        wanted => Ok(lines
            .iter()
            .filter(|line| wanted.is_none() || line.cgroup == *wanted)
            .collect()),
    }
}
