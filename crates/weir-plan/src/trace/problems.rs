//! What was wrong with lines of a trace, and what was done about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines that are named of each problem.
const NAMED: usize = 3;

weir_model::named! {
    /// What can be wrong with a line.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Problem {
        /// A field is missing or no number.
        Unreadable = "unreadable",
        /// The VM left when or before it arrived.
        EndsBeforeBeginning = "ends before its beginning",
        /// No cores or no memory.
        Empty = "no cores or no memory",
        /// It fits on no machine.
        LargerThanMachine = "larger than a machine",
        /// Its type, or that of the event, is in no list of types.
        UnknownType = "unknown type",
        /// It is the first VM, and arrives more than a day after the beginning of its times.
        LateBeginning = "first arrival after more than a day",
        /// Its memory is no multiple of 1 GiB.
        UnevenMemory = "memory is no multiple of 1 GiB",
        /// The Azure traces do not have its category.
        UnknownCategory = "unknown category",
        /// More than a day without an arrival before it.
        Gap = "after a gap of more than a day",
        /// The size is only given as more than a bound.
        OpenBucket = "size given as more than a bound",
        /// Its time is before that of a line before it.
        OutOfOrder = "earlier than a line before it",
        /// It ends or changes, and did not begin.
        NoBeginning = "end or change without a beginning",
        /// It begins again, and did not end.
        NoEnd = "begins again without an end",
        /// It does not say what it needs.
        NoRequest = "no request for cores and memory",
        /// It needs more or less while it runs.
        Resized = "resized while it ran",
        /// It takes of the resources of another one.
        InsideAnother = "runs inside an alloc instance",
    }
}

impl Problem {
    /// What is done.
    pub fn policy(self) -> &'static str {
        match self {
            Problem::Gap => "kept, the gap is in the replay",
            Problem::LateBeginning => "times count from it",
            Problem::UnevenMemory => "kept, slices are whole GiB and the rest is local",
            Problem::UnknownCategory => "kept as a category of its own",
            Problem::OpenBucket => "kept with the bound",
            Problem::OutOfOrder => "taken where it stands; sort the file by time",
            Problem::NoEnd => "ended where it begins again",
            Problem::Resized => "kept as large as it began",
            Problem::InsideAnother => "left out, it takes of that one",
            _ => "left out",
        }
    }
}

/// Lines with problems, by problem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    found: Vec<(Problem, u64, Vec<u64>)>,
    /// What could not be read in the first line that is unreadable.
    unread: Option<String>,
}

/// How many lines have a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemCount {
    /// What is wrong.
    pub problem: Problem,
    /// How many lines, or VMs in the order of arrival where the trace has no lines.
    pub lines: u64,
    /// The first of them.
    pub first: Vec<u64>,
    /// What could not be read in the first of them, where that is the problem and the file has named columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// What was done.
    pub policy: String,
}

impl ProblemCount {
    /// In words, without the file; `unit` is what `first` counts: line, row or VM.
    pub fn words(&self, unit: &str) -> String {
        let first: Vec<String> = self.first.iter().map(u64::to_string).collect();
        let more = match self.lines > self.first.len() as u64 {
            true => ", …",
            false => "",
        };
        let unread = self.unread.as_ref().zip(self.first.first());
        let unread = unread.map_or(String::new(), |(unread, at)| {
            format!("; in {unit} {at} {unread}")
        });
        format!(
            "{}: {} in all, first {unit} {}{more}{unread}; {}",
            self.problem,
            self.lines,
            first.join(", "),
            self.policy
        )
    }
}

impl Problems {
    /// Counts a line.
    pub fn note(&mut self, problem: Problem, line: u64) {
        let at = self.found.iter().position(|(known, ..)| *known == problem);
        let at = at.unwrap_or_else(|| {
            self.found.push((problem, 0, Vec::new()));
            self.found.len() - 1
        });
        let (_, count, first) = &mut self.found[at];
        *count += 1;
        if first.len() < NAMED {
            first.push(line);
        }
    }

    /// Keeps what could not be read in the first line that is unreadable.
    pub fn unread(&mut self, what: impl FnOnce() -> String) {
        self.unread.get_or_insert_with(what);
    }

    /// How many lines have this problem.
    pub fn count(&self, problem: Problem) -> u64 {
        let found = self.found.iter().find(|(known, ..)| *known == problem);
        found.map_or(0, |(_, count, _)| *count)
    }

    /// Every problem that was found.
    pub fn counts(&self) -> Vec<ProblemCount> {
        let rows = self
            .found
            .iter()
            .map(|(problem, lines, first)| ProblemCount {
                problem: *problem,
                lines: *lines,
                first: first.clone(),
                unread: self
                    .unread
                    .clone()
                    .filter(|_| *problem == Problem::Unreadable),
                policy: problem.policy().into(),
            });
        rows.collect()
    }

    /// The same in words, a sentence for each problem; `unit` is what is counted: line or row.
    pub fn words(&self, file: &str, unit: &str) -> Vec<String> {
        let words = self.counts().into_iter();
        words
            .map(|row| format!("{file}: {}", row.words(unit)))
            .collect()
    }
}
