//! Reads lines of CSV, without quotes, as these traces have them, and rows of our own columns from elsewhere.
//!
//! A bad line is counted and left out. A file is refused where its head lacks a column, where nothing of it can be read,
//! or where its memory must be in another unit.

use std::collections::HashMap;
use std::io::{self, BufRead};

use super::intake::Intake;
use super::problems::{Problem, Problems};
use super::{GIB, Machine, STAYS, Trace, UNKNOWN, Vm};

/// The head of our own columns. The last four may be absent.
pub const HEAD: &str =
    "arrival_s,departure_s,cores,memory_gib,customer,type,touched_pct,insensitive";
/// How many columns these are.
const COLUMNS: usize = 8;
/// Columns that a file must have.
const NEEDED: usize = 4;
/// Categories of VMs of the Azure traces (github.com/Azure/AzurePublicDataset, schema of `vmtable`).
const CATEGORIES: [&str; 3] = ["Delay-insensitive", "Interactive", "Unknown"];
/// Least memory and most, in GiB a core, between which the median of a trace is: no cloud sells VMs beyond them, and
/// values in MiB or KiB are a thousand times larger.
const PLAUSIBLE: (f64, f64) = (0.05, 256.0);

/// Traces that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Our own columns, named by the first line.
    Own,
    /// `vmtable` of the Azure VM traces of 2017 and 2019: 11 fields, of which those at 4 and 5 are when the VM began and
    /// ended, in seconds, those at 9, 10 and 11 its category, cores and memory in GB. No head.
    AzureVm,
}

/// Why a file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A column is lacking.
    #[error("{place}: there is no column `{column}`; a trace has the columns {columns}")]
    NoColumn {
        /// The file, with the line that names its columns.
        place: String,
        /// What is not there.
        column: String,
        /// The columns of such a file.
        columns: &'static str,
    },
    /// A column is not known.
    #[error("{place}: `{column}` is not a column of a trace; it has the columns {HEAD}")]
    StrangeColumn {
        /// The file, with the line that names its columns.
        place: String,
        /// What is there.
        column: String,
    },
    /// No line could be read.
    #[error("{file}: no {unit} is a VM{}", first.as_ref().map(|problem| format!("; {problem}")).unwrap_or_default())]
    NoVm {
        /// The file.
        file: String,
        /// What it has: lines or rows.
        unit: String,
        /// The first problem.
        first: Option<String>,
    },
    /// Memory is in another unit.
    #[error(
        "{file}: half of the VMs have {median} GiB a core or more, so that `memory_gib` is in another unit than GiB; write it in GiB"
    )]
    MemoryUnit {
        /// The file.
        file: String,
        /// The median, as a number.
        median: String,
    },
    /// A line is no text.
    #[error("{file}:{line}: not text in UTF-8, and so no trace of lines")]
    NoText {
        /// The file.
        file: String,
        /// Where.
        line: u64,
    },
    /// The file cannot be read on.
    #[error("{file}:{line}: {why}")]
    Io {
        /// The file.
        file: String,
        /// Where.
        line: u64,
        /// The reason.
        why: String,
    },
}

impl ReadError {
    /// Of a line that cannot be read.
    pub(super) fn of(file: &str, line: u64, error: &io::Error) -> Self {
        let file = file.to_owned();
        match error.kind() {
            io::ErrorKind::InvalidData => Self::NoText { file, line },
            _ => Self::Io {
                file,
                line,
                why: error.to_string(),
            },
        }
    }
}

/// Numbers for words: customers and types.
#[derive(Debug, Default)]
struct Names(HashMap<String, u32>);

impl Names {
    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.0.get(word) {
            return *number;
        }
        let number = self.0.len() as u32;
        self.0.insert(word.to_owned(), number);
        number
    }
}

/// Reads a trace, line by line; `file` names it in messages, and VMs have to fit into `machine`.
///
/// # Errors
/// As [`ReadError`] has them.
pub fn read(
    file: &str,
    format: Format,
    machine: Machine,
    lines: impl BufRead,
) -> Result<(Trace, Problems), ReadError> {
    let mut reader = Reader::new(format, machine);
    for (at, line) in lines.lines().enumerate() {
        let number = at as u64 + 1;
        let line = line.map_err(|error| ReadError::of(file, number, &error))?;
        let line = line.trim_end_matches('\r');
        let fields = || line.split(',').map(str::trim).collect::<Vec<_>>();
        if format == Format::Own && number == 1 {
            reader.head(&format!("{file}:1"), &fields())?;
        } else if !line.is_empty() && !line.starts_with('#') {
            reader.take(&fields(), number);
        }
    }
    reader.end(file, "line")
}

/// Reads rows of our own columns, which are named by `columns`; a problem is of a row, from 1.
///
/// # Errors
/// As [`ReadError`] has them, or a row cannot be read.
pub fn rows<E: From<ReadError>>(
    file: &str,
    columns: &[&str],
    machine: Machine,
    rows: impl Iterator<Item = Result<Vec<String>, E>>,
) -> Result<(Trace, Problems), E> {
    let mut reader = Reader::new(Format::Own, machine);
    reader.head(file, columns)?;
    for (row, number) in rows.zip(1..) {
        let row = row?;
        reader.take(&row.iter().map(String::as_str).collect::<Vec<_>>(), number);
    }
    Ok(reader.end(file, "row")?)
}

fn check_unit(file: &str, mut per_core: Vec<f64>) -> Result<(), ReadError> {
    let middle = per_core.len() / 2;
    let (_, median, _) = per_core.select_nth_unstable_by(middle, f64::total_cmp);
    if (PLAUSIBLE.0..=PLAUSIBLE.1).contains(median) {
        return Ok(());
    }
    Err(ReadError::MemoryUnit {
        file: file.to_owned(),
        median: format!("{median:.3}"),
    })
}

struct Reader {
    format: Format,
    /// For each column of ours, its place in a line.
    places: Vec<Option<usize>>,
    customers: Names,
    kinds: Names,
    intake: Intake,
}

impl Reader {
    fn new(format: Format, machine: Machine) -> Self {
        Self {
            format,
            places: Vec::new(),
            customers: Names::default(),
            kinds: Names::default(),
            intake: Intake::new(machine),
        }
    }

    fn end(self, file: &str, unit: &str) -> Result<(Trace, Problems), ReadError> {
        if self.intake.is_empty() {
            let words = self.intake.problems.words(file, unit);
            return Err(ReadError::NoVm {
                first: words.into_iter().next(),
                file: file.to_owned(),
                unit: unit.to_owned(),
            });
        }
        check_unit(file, self.intake.gib_per_core())?;
        Ok(self.intake.end())
    }

    /// Takes the names of the columns, which stand at this place.
    fn head(&mut self, place: &str, named: &[&str]) -> Result<(), ReadError> {
        let known: Vec<&str> = HEAD.split(',').collect();
        if let Some(strange) = named.iter().find(|name| !known.contains(name)) {
            return Err(ReadError::StrangeColumn {
                place: place.to_owned(),
                column: (*strange).to_owned(),
            });
        }
        self.places = known
            .iter()
            .map(|name| named.iter().position(|other| other == name))
            .collect();
        match self.places.iter().take(NEEDED).position(Option::is_none) {
            None => Ok(()),
            Some(lacking) => Err(ReadError::NoColumn {
                place: place.to_owned(),
                column: known[lacking].to_owned(),
                columns: HEAD,
            }),
        }
    }

    /// Takes a line or row.
    fn take(&mut self, fields: &[&str], number: u64) {
        let vm = match self.format {
            Format::Own => self.own(fields),
            Format::AzureVm => self.azure(fields, number),
        };
        match vm {
            Ok(vm) => drop(self.intake.take(vm, number)),
            Err(problem) => self.intake.problems.note(problem, number),
        }
    }

    fn own(&mut self, fields: &[&str]) -> Result<Vm, Problem> {
        let text: [&str; COLUMNS] = std::array::from_fn(|column| {
            let place = self.places.get(column).copied().flatten();
            place
                .and_then(|at| fields.get(at))
                .copied()
                .unwrap_or_default()
        });
        Ok(Vm {
            arrival: self.cell(0, text, |text| seconds(text)?.ok_or(Problem::Unreadable))?,
            departure: self.cell(1, text, seconds)?.unwrap_or(STAYS),
            millicores: self.cell(2, text, |text| scaled(text, 1000.0))?,
            memory_mib: self.cell(3, text, |text| scaled(text, f64::from(GIB)))?,
            touched_pct: self.cell(6, text, |text| match text {
                "" => Ok(UNKNOWN),
                share => (share.parse().ok())
                    .filter(|share: &f64| (0.0..=100.0).contains(share))
                    .map(|share| share.round() as u8)
                    .ok_or(Problem::Unreadable),
            })?,
            insensitive: self.cell(7, text, |text| match text {
                "" => Ok(None),
                "yes" | "true" | "1" => Ok(Some(true)),
                "no" | "false" | "0" => Ok(Some(false)),
                _ => Err(Problem::Unreadable),
            })?,
            customer: self.customers.number(text[4]),
            kind: kind_number(&mut self.kinds, text[5]),
        })
    }

    /// Reads a field of our own columns, and keeps which was the first that it could not read.
    fn cell<T>(
        &mut self,
        column: usize,
        text: [&str; COLUMNS],
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        read(text[column]).inspect_err(|_| {
            let name = HEAD.split(',').nth(column).unwrap_or_default();
            self.intake.problems.unread(|| match text[column] {
                "" => format!("`{name}` is empty"),
                text => format!("`{name}` is `{text}`"),
            });
        })
    }

    fn azure(&mut self, fields: &[&str], number: u64) -> Result<Vm, Problem> {
        let &[
            _,
            customer,
            _,
            began,
            ended,
            _,
            _,
            _,
            category,
            cores,
            memory,
        ] = fields
        else {
            return Err(Problem::Unreadable);
        };
        if cores.starts_with('>') || memory.starts_with('>') {
            self.intake.problems.note(Problem::OpenBucket, number);
        }
        if !CATEGORIES.contains(&category) {
            self.intake.problems.note(Problem::UnknownCategory, number);
        }
        let size = |text: &str, unit| scaled(text.trim_start_matches('>'), unit);
        Ok(Vm {
            arrival: seconds(began)?.ok_or(Problem::Unreadable)?,
            departure: seconds(ended)?.unwrap_or(STAYS),
            millicores: size(cores, 1000.0)?,
            memory_mib: size(memory, f64::from(GIB))?,
            customer: self.customers.number(customer),
            kind: kind_number(&mut self.kinds, category),
            touched_pct: UNKNOWN,
            insensitive: None,
        })
    }
}

/// The number of a type; types beyond 65,535 share the last.
fn kind_number(kinds: &mut Names, word: &str) -> u16 {
    u16::try_from(kinds.number(word)).unwrap_or(u16::MAX)
}

/// Whole seconds, `None` for an empty field. A time before the trace is its beginning.
fn seconds(text: &str) -> Result<Option<u32>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    let number: f64 = text.parse().map_err(|_| Problem::Unreadable)?;
    match number.is_finite() && number < f64::from(STAYS) {
        true => Ok(Some(number.max(0.0) as u32)),
        false => Err(Problem::Unreadable),
    }
}

/// A size in thousandths of cores or in MiB.
fn scaled(text: &str, unit: f64) -> Result<u32, Problem> {
    let number: f64 = text.parse().map_err(|_| Problem::Unreadable)?;
    let scaled = (number * unit).round();
    match scaled.is_finite() && (0.0..=f64::from(u32::MAX)).contains(&scaled) {
        true => Ok(scaled as u32),
        false => Err(Problem::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine::of(96, weir_model::units::Bytes::gib(472)).unwrap()
    }

    fn own(text: &str) -> Result<(Trace, Problems), ReadError> {
        read("t.csv", Format::Own, machine(), text.as_bytes())
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text =
            format!("{HEAD}\n0,100,2,8,0,0,40,yes\n5,,0.5,1.75,1,1,,\n7,9,4,32,0,0,100,no\n");
        let (trace, problems) = own(&text).unwrap();
        let [part] = problems.counts().try_into().unwrap();
        assert_eq!((part.problem, part.first), (Problem::UnevenMemory, vec![3]));
        let mut written = Vec::new();
        trace.write(&mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text);
        let second = trace.get(1).unwrap();
        assert_eq!(
            (second.departure, second.millicores, second.memory_mib),
            (STAYS, 500, 1792)
        );
        assert_eq!((second.touched_pct, second.insensitive), (UNKNOWN, None));
    }

    #[test]
    fn bad_lines_are_counted_by_number_and_left_out() {
        let text = "memory_gib,cores,arrival_s,departure_s\n8,2,0,10\n8,2,50,20\nmuch,2,0,5\n8,0,0,5\n8,2,-5,9\n8,2\n8,2,200000,200001\n";
        let (trace, problems) = own(text).unwrap();
        assert_eq!(trace.len(), 3);
        assert_eq!(trace.get(1).unwrap().arrival, 0);
        let counted = |problem| {
            (
                problems.count(problem),
                problems
                    .counts()
                    .into_iter()
                    .find(|row| row.problem == problem)
                    .map(|row| row.first),
            )
        };
        assert_eq!(counted(Problem::EndsBeforeBeginning), (1, Some(vec![3])));
        assert_eq!(counted(Problem::Unreadable), (2, Some(vec![4, 7])));
        assert!(
            problems.words("t.csv", "line").iter().any(|words| words
                .contains("2 in all, first line 4, 7; in line 4 `memory_gib` is `much`; left out")),
            "{:?}",
            problems.words("t.csv", "line")
        );
        assert_eq!(counted(Problem::Empty), (1, Some(vec![5])));
        assert_eq!(counted(Problem::Gap), (1, Some(vec![8])));
        let words = problems.words("t.csv", "line").join("\n");
        assert!(
            words.contains("t.csv: ends before its beginning: 1 in all, first line 3; left out"),
            "{words}"
        );
    }

    #[test]
    fn what_fits_on_no_machine_is_named_by_line_and_times_from_long_ago_begin_with_the_first_vm() {
        let head = "arrival_s,departure_s,cores,memory_gib,touched_pct\n";
        let text =
            "1700000000,1700000060,400,8,\n1699999990,,4,8,62.4\n1699999995,1700000100,4,800,\n";
        let (trace, problems) = own(&format!("{head}{text}")).unwrap();
        let words = problems.words("t.csv", "line").join("\n");
        assert!(
            words.contains("larger than a machine: 2 in all, first line 2, 4; left out"),
            "{words}"
        );
        assert!(
            words.contains("more than a day: 1 in all, first line 3; times count from"),
            "{words}"
        );
        let vm = trace.get(0).unwrap();
        assert_eq!((vm.arrival, vm.departure, vm.touched_pct), (0, STAYS, 62));
        // A wrong unit is found though no VM fits.
        let mib = own(&format!("{head}0,9,4,8192,\n0,9,4,8192,\n")).unwrap_err();
        assert!(mib.to_string().contains("another unit"), "{mib}");
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused_with_its_place() {
        let message = |text: &str| own(text).unwrap_err().to_string();
        assert!(
            message("arrival_s,departure_s,cores\n")
                .contains("t.csv:1: there is no column `memory_gib`")
        );
        assert!(message("arrival_s,begin\n").contains("`begin` is not a column"));
        let none = message("arrival_s,departure_s,cores,memory_gib\n1,2,x,4\n");
        assert!(
            none.contains(
                "no line is a VM; t.csv: unreadable: 1 in all, first line 2; in line 2 `cores` is `x`"
            ),
            "{none}"
        );
        let unit = message("arrival_s,departure_s,cores,memory_gib\n1,2,2,8192\n1,2,2,4096\n");
        assert!(unit.contains("another unit than GiB"), "{unit}");
    }

    #[test]
    fn azure_tables_are_read_with_their_open_buckets() {
        let text = "a,s1,d,0,2591700,99,1,2,Interactive,4,32\nb,s2,d,300,600,99,1,2,Unknown,>24,>64\nc,s1,d,9\n";
        let (trace, problems) = read("v.csv", Format::AzureVm, machine(), text.as_bytes()).unwrap();
        assert_eq!(trace.get(0).unwrap().memory_mib, 32 * 1024);
        assert_eq!(trace.get(1).unwrap().millicores, 24_000);
        assert_eq!(
            (
                problems.count(Problem::OpenBucket),
                problems.count(Problem::Unreadable),
                problems.count(Problem::UnknownCategory)
            ),
            (1, 1, 0)
        );
        assert_ne!(
            trace.get(0).unwrap().customer,
            trace.get(1).unwrap().customer
        );
        let odd = "a,s1,d,0,2591700,99,1,2,Batch,4,32\n";
        let (trace, problems) = read("v.csv", Format::AzureVm, machine(), odd.as_bytes()).unwrap();
        assert_eq!(
            (trace.len(), problems.count(Problem::UnknownCategory)),
            (1, 1)
        );
    }
}
