//! The Azure packing trace of 2020: an SQLite file with VMs whose sizes are shares of a machine.
//!
//! Its table of VMs (`vm` or `requests`) has `tenantId`, `vmTypeId`, `priority` (0 is high), `starttime` and `endtime` in
//! days, below zero for what was there before; `vmType` has `vmTypeId`, `machineId`, `core` and `memory`, the latter two as
//! shares of that machine. See github.com/Azure/AzurePublicDataset.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use weir_model::stop;
use weir_plan::trace::intake::Intake;
use weir_plan::trace::problems::{Problem, Problems};
use weir_plan::trace::{Machine, STAYS, Trace, UNKNOWN, Vm};

use crate::failure::{Failure, Result};

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Reads the VMs of one kind of machine: the one that is named, or the one that takes most types. Sizes are multiplied by
/// those of `machine`.
///
/// # Errors
/// The file is no such trace.
pub(super) fn read(
    file: &Path,
    machine: Machine,
    (kind, low): (Option<i64>, bool),
) -> Result<(Trace, Problems)> {
    let name = file.display();
    let open = || Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let load = || -> anyhow::Result<(Trace, Problems)> {
        let database = open()?;
        let table: Option<String> = database
            .query_row(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('vm', 'requests')",
                [],
                |row| row.get(0),
            )
            .optional()?;
        let table = table.context("it has no table `vm` or `requests`")?;
        let most = "SELECT machineId FROM vmType GROUP BY machineId ORDER BY count(*) DESC, machineId LIMIT 1";
        let kind = match kind {
            Some(kind) => kind,
            None => database
                .query_row(most, [], |row| row.get(0))
                .context("its table `vmType` names no machine")?,
        };
        let mut rows = database.prepare(&format!(
            "SELECT v.rowid, v.tenantId, v.vmTypeId, v.starttime, v.endtime, t.core, t.memory FROM {table} v \
             LEFT JOIN vmType t ON t.vmTypeId = v.vmTypeId AND t.machineId = ?1 \
             WHERE v.priority = 0 OR ?2 ORDER BY v.starttime"
        ))?;
        let mut rows = rows.query(rusqlite::params![kind, low])?;
        let mut found = Found {
            machine,
            intake: Intake::new(machine),
            tenants: HashMap::new(),
            kinds: HashMap::new(),
        };
        while let Some(row) = rows.next()? {
            anyhow::ensure!(!stop::requested(), "a stop was requested");
            let line = u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default();
            let times: (Option<f64>, Option<f64>) = (number(row, 3), number(row, 4));
            let size = (number(row, 5), number(row, 6));
            let words = (word(row, 1), word(row, 2));
            found.add(line, words, times, size);
        }
        anyhow::ensure!(
            !found.intake.is_empty(),
            "no VM of it runs on the machine {kind}"
        );
        Ok(found.intake.end())
    };
    load()
        .with_context(|| match stop::requested() {
            true => format!("{name} was not read to its end"),
            false => format!("{name} is no Azure packing trace that can be read"),
        })
        .map_err(Failure::reading)
}

fn number(row: &rusqlite::Row<'_>, column: usize) -> Option<f64> {
    row.get(column).ok()
}

/// A name, which some versions have as a number.
fn word(row: &rusqlite::Row<'_>, column: usize) -> String {
    match row.get_ref(column) {
        Ok(rusqlite::types::ValueRef::Integer(number)) => number.to_string(),
        Ok(rusqlite::types::ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

struct Found {
    machine: Machine,
    intake: Intake,
    tenants: HashMap<String, u32>,
    kinds: HashMap<String, u16>,
}

impl Found {
    fn add(
        &mut self,
        line: u64,
        (tenant, kind): (String, String),
        (start, end): (Option<f64>, Option<f64>),
        size: (Option<f64>, Option<f64>),
    ) {
        let Some(start) = start else {
            return self.intake.problems.note(Problem::Unreadable, line);
        };
        let (Some(core), Some(memory)) = size else {
            return self.intake.problems.note(Problem::UnknownType, line);
        };
        let (millicores, memory_mib) = self.machine.share(core, memory);
        let seconds = |days: f64| (days * DAY).clamp(0.0, f64::from(STAYS - 1)) as u32;
        let next = (
            self.tenants.len() as u32,
            u16::try_from(self.kinds.len()).unwrap_or(u16::MAX),
        );
        let vm = Vm {
            arrival: seconds(start),
            departure: end.map_or(STAYS, seconds),
            millicores,
            memory_mib,
            customer: *self.tenants.entry(tenant).or_insert(next.0),
            kind: *self.kinds.entry(kind).or_insert(next.1),
            touched_pct: UNKNOWN,
            insensitive: None,
        };
        self.intake.take(vm, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vms_of_high_priority_on_the_commonest_machine_are_read_and_bad_ones_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("packing.sqlite");
        let database = Connection::open(&file).unwrap();
        database
            .execute_batch(
                "CREATE TABLE vmType (id INTEGER, vmTypeId INTEGER, machineId INTEGER, core REAL, memory REAL);
                 INSERT INTO vmType VALUES (1, 10, 3, 0.25, 0.5), (2, 11, 3, 0.5, 0.125), (3, 10, 4, 0.1, 0.1), (4, 13, 3, 1.5, 0.5);
                 CREATE TABLE vm (vmId INTEGER, tenantId INTEGER, vmTypeId INTEGER, priority INTEGER, starttime REAL, endtime REAL);
                 INSERT INTO vm VALUES (1, 7, 10, 0, -2.5, 1.0), (2, 7, 11, 0, 0.5, NULL), (3, 8, 10, 1, 0.1, 0.2),
                   (4, 8, 12, 0, 0.1, 0.2), (5, 8, 10, 0, 0.3, 0.1), (9, 8, 13, 0, 3.0, 4.0);",
            )
            .unwrap();
        drop(database);
        let machine = Machine::of(96, weir_model::units::Bytes::gib(768)).unwrap();
        let (trace, problems) = read(&file, machine, (None, false)).unwrap();
        let vms: Vec<Vm> = trace.vms().collect();
        let shown: Vec<_> = vms
            .iter()
            .map(|vm| (vm.arrival, vm.departure, vm.millicores, vm.memory_mib))
            .collect();
        let gib = 1024;
        assert_eq!(
            shown,
            [
                (0, 86_400, 24_000, 384 * gib),
                (43_200, STAYS, 48_000, 96 * gib)
            ]
        );
        let named = problems.counts();
        let rows = |problem| {
            named
                .iter()
                .find(|row| row.problem == problem)
                .map(|row| &row.first)
        };
        assert_eq!(rows(Problem::UnknownType), Some(&vec![4]));
        assert_eq!(rows(Problem::EndsBeforeBeginning), Some(&vec![5]));
        assert_eq!(rows(Problem::LargerThanMachine), Some(&vec![6]));
        assert_eq!(read(&file, machine, (None, true)).unwrap().0.len(), 3);
        let output = read(&file, machine, (Some(9), false))
            .unwrap_err()
            .message()
            .unwrap_or_default();
        assert!(
            output.contains("no VM of it runs on the machine 9"),
            "{output}"
        );
    }
}
