//! Which microarchitecture a file was counted on: stated, or given away by its events.

use std::collections::BTreeSet;

use super::line::Line;
use super::{CounterFileError, KnownBy, ReadOptions};
use crate::events::{EventLibrary, EventTable, Spelled};

/// The table that was stated, in the request or in the file; both must mean the same.
pub(super) fn stated<'l>(
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
pub(super) fn refuse_strangers(
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
                    "the event is one of {}, but the chosen processor is {}",
                    others.join(", "),
                    table.name
                ),
            ));
        }
    }
    Ok(())
}

/// The table whose events these are.
pub(super) fn recognised<'l>(
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
        let message = "its events are of several microarchitectures; choose one with `--cpu`";
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
            "its events are those of {}, which give them different meanings; choose one with `--cpu`",
            names(&fitting)
        );
        return Err(CounterFileError::file(file, message));
    }
    if !others.is_empty() {
        notes.push(format!("the events are those of {} as well", names(others)));
    }
    Ok((Some(first), KnownBy::Events))
}
