//! Counting a command, from its first instruction to its end, with all that it starts.

use std::io;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use weir_model::counters::Counter;
use weir_model::events::{Amounts, EventTable};
use weir_model::units::Nanos;

use super::event::Target;
use super::session::Session;
use crate::root::Root;

/// How often a command is asked whether it has ended.
const LONGEST_NAP: Duration = Duration::from_millis(2);

/// What a command left.
#[derive(Debug)]
pub struct Counted {
    /// How it ended.
    pub status: ExitStatus,
    /// From just before it was started until its end was seen.
    pub elapsed: Nanos,
    /// Over the whole time.
    pub total: Amounts,
    /// Interval by interval, each with its end.
    pub intervals: Vec<(Nanos, Amounts)>,
    /// What a reader of the counts should know.
    pub notes: Vec<String>,
}

/// Runs a command and counts the targets meanwhile: the command and its descendants
/// ([`Target::Children`]), tasks, or processors; and the uncore, if counters of it are asked for.
///
/// Those of the command are opened on this thread, which they leave alone: the kernel copies them to the child
/// that the thread forks (`inherit`) and starts them there when it executes its program
/// (`enable_on_exec`), so that nothing of Weir is counted and nothing of the command is missed.
///
/// # Errors
/// The command cannot be started or waited for. That it fails is no error here.
pub fn run(
    root: &Root,
    table: Option<&EventTable>,
    counters: &[Counter],
    targets: &[Target],
    every: Option<Duration>,
    mut command: Command,
) -> io::Result<Counted> {
    let mut session = Session::open(root, table, counters, targets);
    let began = Instant::now();
    let mut child = command.spawn()?;
    let mut intervals = Vec::new();
    let since = |now: Instant| Nanos((now - began).as_nanos() as f64);
    let mut due = every.map(|every| began + every);
    let status = loop {
        if every.is_none() {
            break child.wait()?;
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let now = Instant::now();
        if let (Some(at), Some(every)) = (due, every)
            && now >= at
        {
            intervals.push((since(now), session.window()));
            due = Some(now.max(at + every));
        }
        let left = due.map_or(LONGEST_NAP, |at| at.saturating_duration_since(now));
        std::thread::sleep(left.min(LONGEST_NAP));
    };
    let elapsed = since(Instant::now());
    if every.is_some() {
        intervals.push((elapsed, session.window()));
    }
    Ok(Counted {
        status,
        elapsed,
        total: session.total(),
        intervals,
        notes: session.notes().to_vec(),
    })
}
