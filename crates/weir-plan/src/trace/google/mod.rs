//! Instances of the Borg traces of May 2019 as VMs: the table `instance_events` of "Google cluster-usage traces v3"
//! (github.com/google/cluster-data, `clusterdata_trace_format_v3.proto`), as CSV or newline-delimited JSON, in the order of its times.
//!
//! A VM lives from SCHEDULE to EVICT, FAIL, FINISH, KILL or LOST; an instance that is scheduled again is another VM. Its size is
//! what it requested then, as a share of the largest machine. Times are microseconds, 0 for what was before the trace and
//! 2^63 - 1 for what comes after it; a VM begins in the second of SCHEDULE and has left by the first whole second after its end.
//! Tasks that run inside an alloc instance take of its resources, and are left out.
//!
//! One entry is held for each instance that waits or runs.
//!
//! | module | content |
//! |---|---|
//! | [`lines`] | the fields of a line, in both formats |

pub mod lines;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::BufRead;

use super::intake::Intake;
use super::problems::{Problem, Problems};
use super::read::ReadError;
use super::{Machine, STAYS, Trace, UNKNOWN, Vm};
use lines::{Column, Lines};

/// The least priority of the production tier: 120 to 359, and 360 and more for monitoring (documentation of the traces, v3).
pub const PRODUCTION: u32 = 120;
/// Events by their number.
const EVENTS: [&str; 11] = [
    "SUBMIT",
    "QUEUE",
    "ENABLE",
    "SCHEDULE",
    "EVICT",
    "FAIL",
    "FINISH",
    "KILL",
    "LOST",
    "UPDATE_PENDING",
    "UPDATE_RUNNING",
];
/// The time of what comes after the trace; files that have it as a floating-point number round it up.
const AFTER: u64 = i64::MAX as u64;
/// Microseconds of a second.
const SECOND: u64 = 1_000_000;

/// What an event does to an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// It waits for a machine.
    Waits,
    /// It is scheduled onto one.
    Begins,
    /// It runs there with another request.
    Resized,
    /// It is there no more.
    Ends,
}

impl Event {
    /// By its name, or its number.
    fn of(text: &str) -> Option<Self> {
        let named = EVENTS.iter().position(|name| *name == text);
        match named.or_else(|| text.parse().ok())? {
            0..=2 | 9 => Some(Event::Waits),
            3 => Some(Event::Begins),
            4..=8 => Some(Event::Ends),
            10 => Some(Event::Resized),
            _ => None,
        }
    }
}

/// Shares of the largest machine: cores and memory.
type Request = Option<(f64, f64)>;

/// An instance that has not ended.
#[derive(Debug, Clone, Copy)]
enum Instance {
    /// It waits, or was left out when it began.
    Waits(Request),
    /// It runs: its place in the trace, and when it began.
    Runs {
        at: usize,
        began: u64,
        size: Request,
    },
}

/// A line.
#[derive(Debug, Clone, Copy)]
struct Row {
    time: u64,
    event: Event,
    /// Collection, and index in it.
    id: (u64, u32),
    priority: u32,
    /// Whether it is inside an alloc instance.
    inside: bool,
    request: Request,
}

/// Reads the instances of a trace; `machine` is the largest machine, of which sizes are shares. `low` takes those below
/// production priority too. The customer of a VM is its collection, by 32 bits of its number, and its type its priority.
///
/// # Errors
/// As [`ReadError`] has them.
pub fn read(
    file: &str,
    machine: Machine,
    low: bool,
    source: impl BufRead,
) -> Result<(Trace, Problems), ReadError> {
    let mut lines = Lines::new(file, source)?;
    let mut found = Found::new(machine);
    let mut below = 0_u64;
    while let Some(line) = lines.advance()? {
        match row(&lines) {
            Ok(row) if row.priority < PRODUCTION && !low => below += 1,
            Ok(row) => found.take(row, line),
            Err(problem) => found.intake.problems.note(problem, line),
        }
    }
    let mut intake = found.intake;
    intake.trace.keep(|vm| vm.arrival < vm.departure);
    if intake.is_empty() {
        let first = intake.problems.words(file, "line").into_iter().next();
        let low = || format!("{below} lines are of instances below production priority");
        return Err(ReadError::NoVm {
            first: first.or_else(|| (below > 0).then(low)),
            file: file.to_owned(),
            unit: "line".to_owned(),
        });
    }
    Ok(intake.end())
}

fn row(lines: &Lines<impl BufRead>) -> Result<Row, Problem> {
    let text = |column| lines.field(column);
    let whole = |column| whole(text(column)).ok_or(Problem::Unreadable);
    let index = |column| u32::try_from(whole(column)?).map_err(|_| Problem::Unreadable);
    let share = |column| match text(column) {
        "" => Ok(None),
        number => number
            .parse()
            .ok()
            .filter(|share: &f64| share.is_finite() && *share >= 0.0)
            .map(Some)
            .ok_or(Problem::Unreadable),
    };
    let kind = text(Column::Type);
    Ok(Row {
        time: whole(Column::Time)?,
        event: match kind {
            "" => return Err(Problem::Unreadable),
            kind => Event::of(kind).ok_or(Problem::UnknownType)?,
        },
        id: (whole(Column::Collection)?, index(Column::Instance)?),
        priority: index(Column::Priority)?,
        inside: !matches!(text(Column::Alloc), "" | "0"),
        request: share(Column::Cpus)?.zip(share(Column::Memory)?),
    })
}

/// A number of microseconds or of a collection; some exports write it as a floating-point number.
fn whole(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number as u64)
    })
}

struct Found {
    machine: Machine,
    intake: Intake,
    instances: HashMap<(u64, u32), Instance>,
    /// The latest time.
    latest: u64,
}

impl Found {
    fn new(machine: Machine) -> Self {
        Self {
            machine,
            intake: Intake::new(machine),
            instances: HashMap::new(),
            latest: 0,
        }
    }

    fn take(&mut self, row: Row, line: u64) {
        if row.time < self.latest {
            self.intake.problems.note(Problem::OutOfOrder, line);
        }
        self.latest = self.latest.max(row.time);
        if row.inside {
            if row.event == Event::Begins {
                self.intake.problems.note(Problem::InsideAnother, line);
            }
            return;
        }
        match row.event {
            Event::Waits => self.wait(row),
            Event::Begins => self.begin(row, line),
            Event::Resized => self.resize(row, line),
            Event::Ends => self.end(row, line),
        }
    }

    /// Keeps the last request of an instance that waits.
    fn wait(&mut self, row: Row) {
        let known = self
            .instances
            .entry(row.id)
            .or_insert(Instance::Waits(None));
        if let Instance::Waits(request) = known {
            *request = row.request.or(*request);
        }
    }

    fn begin(&mut self, row: Row, line: u64) {
        let request = match self.instances.insert(row.id, Instance::Waits(None)) {
            Some(Instance::Waits(request)) => row.request.or(request),
            Some(Instance::Runs { at, began, .. }) => {
                self.intake.problems.note(Problem::NoEnd, line);
                self.depart(at, began, row.time, line);
                row.request
            }
            None => row.request,
        };
        match self.vm(row, request) {
            Ok(vm) => {
                if let Some(at) = self.intake.take(vm, line) {
                    let (began, size) = (row.time, request);
                    let running = Instance::Runs { at, began, size };
                    self.instances.insert(row.id, running);
                }
            }
            Err(problem) => self.intake.problems.note(problem, line),
        }
    }

    fn vm(&self, row: Row, request: Request) -> Result<Vm, Problem> {
        let (cores, memory) = request.ok_or(Problem::NoRequest)?;
        let (millicores, memory_mib) = self.machine.share(cores, memory);
        Ok(Vm {
            arrival: second(row.time / SECOND).ok_or(Problem::Unreadable)?,
            departure: STAYS,
            millicores,
            memory_mib,
            customer: (row.id.0 ^ (row.id.0 >> 32)) as u32,
            kind: u16::try_from(row.priority).unwrap_or(u16::MAX),
            touched_pct: UNKNOWN,
            insensitive: None,
        })
    }

    fn resize(&mut self, row: Row, line: u64) {
        match self.instances.get(&row.id) {
            Some(Instance::Runs { size, .. })
                if row.request.is_some_and(|to| Some(to) != *size) =>
            {
                self.intake.problems.note(Problem::Resized, line);
            }
            Some(_) => {}
            None => self.intake.problems.note(Problem::NoBeginning, line),
        }
    }

    fn end(&mut self, row: Row, line: u64) {
        match self.instances.remove(&row.id) {
            Some(Instance::Runs { at, began, .. }) => self.depart(at, began, row.time, line),
            // It never ran.
            Some(Instance::Waits(_)) => {}
            None => self.intake.problems.note(Problem::NoBeginning, line),
        }
    }

    /// Ends a VM. One that ends before its beginning is left with no time, and taken out at last.
    fn depart(&mut self, at: usize, began: u64, time: u64, line: u64) {
        let departure = match time {
            AFTER.. => STAYS,
            time if time <= began => {
                self.intake
                    .problems
                    .note(Problem::EndsBeforeBeginning, line);
                0
            }
            time => second(time.div_ceil(SECOND)).unwrap_or(STAYS),
        };
        self.intake.trace.depart(at, departure);
    }
}

/// A second that a trace can have.
fn second(second: u64) -> Option<u32> {
    u32::try_from(second).ok().filter(|second| *second < STAYS)
}
