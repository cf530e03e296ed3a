//! Counts a command, from its first instruction to its end, with all its children; or given targets while a
//! process runs.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use weir_loops::child::end_with_this_thread;
use weir_model::counters::Counter;
use weir_model::events::{Amounts, EventTable};
use weir_model::units::Nanos;

use super::event::Target;
use super::session::Session;
use crate::memory::ProgramPolicy;
use crate::piped::ask_to_end;
use crate::root::Root;

/// How often a command is checked for its end.
const LONGEST_NAP: Duration = Duration::from_millis(2);
/// How often the caller is asked while the kernel waits for that end, in milliseconds.
const ASK: i32 = 100;

/// The process that runs while events are counted.
pub enum Work<'a> {
    /// A command, started for it, until it ends; when the caller stops, it is asked to end, and it never outlives this thread.
    /// Its memory is placed by the policy, if there is one.
    Command(
        Box<Command>,
        Option<&'a ProgramPolicy>,
        &'a dyn Fn() -> bool,
    ),
    /// A process that already runs, until it ends or the caller stops.
    Process(u32, &'a dyn Fn() -> bool),
}

/// The result.
#[derive(Debug)]
pub struct Counted {
    /// How the command ended; unknown for a process that was not started here.
    pub status: Option<ExitStatus>,
    /// From just before its start until its end was seen.
    pub elapsed: Nanos,
    /// Over the whole time.
    pub total: Amounts,
    /// Interval by interval, each with its end.
    pub intervals: Vec<(Nanos, Amounts)>,
    /// Notes for a reader of the counts.
    pub notes: Vec<String>,
}

/// Runs a command, or waits for a process, and counts the targets in the meantime: the command and its
/// descendants ([`Target::Children`]), tasks, or processors; and the uncore, if its counters are requested.
///
/// Events of the command are opened on this thread, which they do not count: the kernel copies them to the
/// child that the thread forks (`inherit`) and starts them there when it executes its program
/// (`enable_on_exec`). So nothing of Weir is counted and nothing of the command is missed.
///
/// # Errors
/// The command cannot be started or waited for. A command that fails is no error here.
pub fn run(
    root: &Root,
    table: Option<&EventTable>,
    counters: &[Counter],
    targets: &[Target],
    every: Option<Duration>,
    work: Work<'_>,
) -> io::Result<Counted> {
    let mut session = Session::open(root, table, counters, targets);
    let began = Instant::now();
    let mut running = match work {
        Work::Command(mut command, policy, enough) => {
            end_with_this_thread(&mut command);
            let child = match policy {
                None => command.spawn()?,
                Some(policy) => policy.around(|| command.spawn())?,
            };
            let end = end_of(&child);
            Running::Child(child, end, Some(enough))
        }
        Work::Process(pid, enough) => Running::Process(pid, enough),
    };
    let mut intervals = Vec::new();
    let since = |now: Instant| Nanos((now - began).as_nanos() as f64);
    let mut due = every.map(|every| began + every);
    let status = loop {
        if let Some(status) = running.ended(root)? {
            break status;
        }
        let now = Instant::now();
        if let (Some(at), Some(every)) = (due, every)
            && now >= at
        {
            intervals.push((since(now), session.window()));
            due = Some(now.max(at + every));
        }
        match (&running, due) {
            (Running::Child(_, Some(end), _), None) => wait_for(end),
            (_, due) => {
                let left = due.map_or(LONGEST_NAP, |at| at.saturating_duration_since(now));
                std::thread::sleep(left.min(LONGEST_NAP));
            }
        }
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

/// The process for which the caller waits.
enum Running<'a> {
    /// With what the kernel tells of its end, and what asks whether it is to end until it was asked.
    Child(Child, Option<OwnedFd>, Option<&'a dyn Fn() -> bool>),
    Process(u32, &'a dyn Fn() -> bool),
}

impl Running<'_> {
    /// Whether it has ended, and how if that is known.
    fn ended(&mut self, root: &Root) -> io::Result<Option<Option<ExitStatus>>> {
        match self {
            Running::Child(child, _, enough) => {
                let ended = child.try_wait()?;
                if ended.is_none() && enough.take_if(|enough| enough()).is_some() {
                    ask_to_end(child.id(), None, false);
                }
                Ok(ended.map(Some))
            }
            Running::Process(pid, enough) => {
                Ok((enough() || has_ended(root, *pid)).then_some(None))
            }
        }
    }
}

/// A descriptor that can be read once a process has ended (pidfd_open(2)); none on a kernel without.
fn end_of(child: &Child) -> Option<OwnedFd> {
    // SAFETY: the call takes no pointer.
    let number = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    let number = i32::try_from(number).ok().filter(|&number| number >= 0)?;
    // SAFETY: the kernel has just made the descriptor for this function alone.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Waits for such a descriptor, or for the next time that the caller is asked.
fn wait_for(end: &OwnedFd) {
    let mut end = libc::pollfd {
        fd: end.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which outlives the call.
    unsafe { libc::poll(&raw mut end, 1, ASK) };
}

/// Whether a process has gone, or has ended and waits for its parent.
fn has_ended(root: &Root, pid: u32) -> bool {
    let stat = root.text(&format!("/proc/{pid}/stat"));
    // The state comes after the name, which may contain anything, parentheses too.
    let state = stat.known().and_then(|stat| stat.rsplit_once(')'));
    state.is_none_or(|(_, rest)| matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}
