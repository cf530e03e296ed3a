//! Commands and processes of this host, counted: what the verbs share that do.

use std::cell::OnceCell;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use weir_linux::memory::ProgramPolicy;
use weir_linux::perf::Target;
use weir_linux::perf::command::{Counted, Work};
use weir_linux::{Root, perf};
use weir_model::counter_file::{
    self, CountedEvent, CounterInterval, CountersDocument, KnownBy, ReadOptions,
};
use weir_model::counters::Counter;
use weir_model::events::{Amounts, EventLibrary, EventTable};
use weir_model::units::Nanos;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::files;
use crate::interrupt::Stop;
use crate::machine::is_host;
use crate::session::say;
use crate::stored;

/// A command that is shorter is mostly its own start.
const SHORT: Nanos = Nanos(1e6);

/// What is counted, and while what.
#[derive(Debug, Clone, Copy)]
pub struct Count<'a> {
    /// The command to run; it is what is counted unless others are named. Empty to wait for the process.
    pub command: &'a [String],
    /// A process to count.
    pub pid: Option<u32>,
    /// Processes that are counted together with `pid`.
    pub others: &'a [u32],
    /// Of a process: stop after this time.
    pub lasts: Option<Duration>,
    /// Whether to count all that runs on this machine.
    pub all: bool,
    /// How often, for phases.
    pub every: Option<Duration>,
    /// Which counters.
    pub counters: &'a [Counter],
    /// Where the command's memory lies, if not where the kernel puts it.
    pub policy: Option<&'a ProgramPolicy>,
}

/// Refuses another machine for a verb that works on this one.
///
/// # Errors
/// It is not this host.
pub fn on_this_host(context: &Context, verb: &str) -> Result<()> {
    if is_host(&context.global.on) {
        return Ok(());
    }
    Err(Failure::request(format!(
        "`{verb}` works on this host alone; remove `--on`"
    )))
}

impl Count<'_> {
    /// Counts until the command or the process ends, or the user says that it is enough.
    ///
    /// # Errors
    /// The command cannot be started, or there is no such process. That the command fails is in the
    /// document, and [`passed_on`] makes it a failure.
    pub fn run(&self, stop: &Stop) -> Result<CountersDocument> {
        let (root, library) = (Root::live(), EventLibrary::builtin());
        let table = perf::table(&root, &library);
        let mut notes = Vec::new();
        if let Err(why) = &table {
            notes.push(format!("only the kernel's counters are available: {why}"));
        }
        let table = table.ok();
        let targets = match (self.all, self.pid) {
            (true, _) => perf::every_cpu(&root),
            (false, Some(pid)) => perf::threads_of(&root, pid).map(|mut all| {
                // Of the others, one that has ended meanwhile has no threads.
                let others = self.others.iter();
                all.extend(
                    others.flat_map(|&pid| perf::threads_of(&root, pid).unwrap_or_default()),
                );
                all
            }),
            (false, None) => Ok(vec![Target::Children]),
        };
        let targets = targets.map_err(|why| Failure::request(why.reason))?;
        // From the first look on, when counting has begun.
        let began = OnceCell::new();
        let is_over = || {
            let passed = began.get_or_init(Instant::now).elapsed();
            self.lasts.is_some_and(|lasts| passed >= lasts)
        };
        let enough = || stop.requested() || is_over();
        stop.waits_for(match (self.command, self.pid) {
            ([], Some(pid)) => format!("process {pid} to end"),
            (command, _) => format!("`{}` to end", command.join(" ")),
        });
        // A command that handles Ctrl-C itself ends as it sees fit.
        let stopped = || stop.requested_here();
        let work = match (self.command.split_first(), self.pid) {
            (Some((program, arguments)), _) => {
                let mut command = Command::new(program);
                command.args(arguments);
                Work::Command(Box::new(command), self.policy, &stopped)
            }
            (None, Some(pid)) => Work::Process(pid, &enough),
            (None, None) => return Err(Failure::request("name a command after `--`")),
        };
        let counted = perf::command::run(&root, table, self.counters, &targets, self.every, work);
        let counted = counted.map_err(|error| {
            let name = self.command.first().map_or("", String::as_str);
            Failure::request(format!("cannot run `{name}`: {error}"))
        })?;
        notes.extend(counted.notes.iter().cloned());
        let code = counted.status.map(code_of);
        if counted.elapsed < SHORT && self.pid.is_none() {
            let note = "it ended within a millisecond: most of the counts belong to its start";
            notes.push(note.into());
        }
        if code.is_some() && stop.requested() {
            notes.push("it was asked to end: the counts are of what it did until then".into());
        }
        if let Some(signal) = counted.status.and_then(|status| status.signal()) {
            notes.push(format!("the command was killed by signal {signal}"));
        } else if let Some(code) = code.filter(|&code| code != 0) {
            notes.push(format!("the command failed: exit status {code}"));
        }
        Ok(self.document(table, &counted, code, notes))
    }

    fn document(
        &self,
        table: Option<&EventTable>,
        counted: &Counted,
        exit_status: Option<i32>,
        notes: Vec<String>,
    ) -> CountersDocument {
        let set = |amounts: &Amounts, of_all| perf::Session::counters(table, amounts, of_all);
        let mut before = Nanos(0.0);
        let intervals = counted.intervals.iter().map(|(end, amounts)| {
            let length = Nanos(end.get() - before.get());
            before = *end;
            CounterInterval {
                end: *end,
                length,
                counters: set(amounts, false),
            }
        });
        let events = counted.total.iter().map(|(name, amount)| CountedEvent {
            event: name.clone(),
            known_as: Some(name.clone()),
            value: amount.value.clone().ok(),
            running: amount.running,
            why: amount.value.as_ref().err().map(|why| why.reason.clone()),
            line: None,
        });
        // Of what was not asked for nothing is said but what this processor cannot count at all.
        let of_all = self.counters.len() == Counter::ALL.len();
        CountersDocument {
            schema: CountersDocument::SCHEMA.to_owned(),
            cpu: table.map(|table| table.name.clone()),
            cpu_known_by: match table {
                Some(_) => KnownBy::Processor,
                None => KnownBy::Nothing,
            },
            of: self.of(),
            exit_status,
            elapsed: Some(counted.elapsed),
            total: set(&counted.total, of_all),
            intervals: intervals.collect(),
            events: events.collect(),
            notes,
        }
    }

    /// What was counted, in words.
    fn of(&self) -> String {
        let words = self.command.join(" ");
        match (self.all, self.pid) {
            (true, _) => format!("this machine, during {words}"),
            (false, Some(pid)) if words.is_empty() => format!("process {pid}"),
            (false, Some(pid)) => format!("process {pid}, during {words}"),
            (false, None) => words,
        }
    }
}

/// The exit code of a command, as a shell has it: 128 and the signal's number if one ended it.
pub fn code_of(status: ExitStatus) -> i32 {
    (status.code()).unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Tells the user what was noticed while counting.
pub fn tell(document: &CountersDocument) {
    for note in &document.notes {
        say(&format!("note: {note}"));
    }
}

/// Passes a command's exit code on.
///
/// # Errors
/// It failed.
pub fn passed_on(exit_status: Option<i32>) -> Result<()> {
    match exit_status.map(u8::try_from) {
        None | Some(Ok(0)) => Ok(()),
        Some(Ok(code)) => Err(Failure::Command(code)),
        Some(Err(_)) => Err(Failure::Command(1)),
    }
}

/// Reads a file of counters for any verb that takes one; `-` is standard input.
///
/// # Errors
/// It cannot be read, or is not a file of counters.
pub fn read_file(file: &Path, options: &ReadOptions) -> Result<CountersDocument> {
    let name = file.display().to_string();
    let text = files::text(file, "file of counters", counter_file::MOST_BYTES)?;
    // One command may read thousands of files.
    static LIBRARY: LazyLock<EventLibrary> = LazyLock::new(EventLibrary::builtin);
    counter_file::read(&name, &text, options, &LIBRARY)
        .map_err(|error| Failure::Request(error.into()))
}

/// Counters from a file that `perf stat` or Weir wrote, or from an imported run where a run's number is named.
///
/// # Errors
/// It cannot be read, or is none.
pub fn counters(context: &Context, path: &Path, cpu: Option<&str>) -> Result<CountersDocument> {
    if let Some(kept) = stored::counters(context, path)? {
        return Ok(kept);
    }
    let options = ReadOptions {
        cpu: cpu.map(str::to_owned),
        cgroup: None,
    };
    read_file(path, &options)
}
