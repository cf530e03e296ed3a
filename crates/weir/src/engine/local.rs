//! Workers as processes of this machine.

use std::fs::File;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use weir_loops::child::end_with_this_thread;

use super::round::{Round, Share, TRIES, process, processors};
use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::output::seconds;
use crate::session::say;

/// The time between two looks at the workers.
const LOOK: Duration = Duration::from_millis(5);

/// The time between two looks at what workers have kept.
const SLOW_LOOK: Duration = Duration::from_secs(1);
/// After this time without a figure a worker is named; one figure may take long.
const QUIET: Duration = Duration::from_secs(600);

/// When the files of a worker changed last.
struct Kept {
    times: [Option<SystemTime>; 2],
    seen: Instant,
}

impl Kept {
    fn new() -> Self {
        Self {
            times: [None; 2],
            seen: Instant::now(),
        }
    }

    /// How long ago a change of these times was seen. A clock that is set in between does not matter.
    fn quiet(&mut self, times: [Option<SystemTime>; 2]) -> Duration {
        if times != self.times {
            (self.times, self.seen) = (times, Instant::now());
        }
        self.seen.elapsed()
    }
}

/// A worker at work.
struct Worker {
    place: usize,
    child: Child,
    ending: Ending,
    kept: Kept,
    /// For how long it had kept nothing when that was said last.
    said: Duration,
}

impl Worker {
    /// Says, ever more rarely, that it keeps nothing, and that it is stopped.
    fn tell(&mut self, share: &Share) {
        let quiet = self.kept.quiet(["sqlite", "sqlite-wal"].map(|end| {
            let file = std::fs::metadata(share.store.with_extension(end));
            file.and_then(|file| file.modified()).ok()
        }));
        let id = self.child.id();
        let is_stopped = is_stopped(id);
        let due = if is_stopped { SLOW_LOOK } else { QUIET };
        if quiet < due.max(2 * self.said) {
            return;
        }
        self.said = quiet;
        say(&format!(
            "weir: the worker of part {}, process {id}, has kept no figure for {}{}",
            share.name,
            seconds(quiet.as_secs_f64()),
            match is_stopped {
                true => format!(": it is stopped; `kill -CONT {id}` lets it go on"),
                false => String::new(),
            }
        ));
    }
}

/// Starts as many workers as there may be, and a new one as one ends. They end with this process.
pub(super) fn carry_out(round: &mut Round<'_>) -> Result<()> {
    let most = round.workers.unwrap_or_else(processors);
    let threads = (processors() / most).max(1);
    let mut waiting: Vec<usize> = (0..round.shares.len()).rev().collect();
    let mut tries = vec![0; waiting.len()];
    let mut at_work: Vec<Worker> = Vec::new();
    let mut failure = None;
    let mut looked = Instant::now();
    loop {
        let ends = failure.is_some() || round.context.stop.requested();
        while !ends && at_work.len() < most {
            let Some(place) = waiting.pop() else { break };
            tries[place] += 1;
            match start(round, place, threads) {
                Ok(child) => at_work.push(Worker {
                    place,
                    ending: Ending::after(None, child.id()),
                    child,
                    kept: Kept::new(),
                    said: Duration::ZERO,
                }),
                Err(cannot) => {
                    failure = Some(cannot);
                    break;
                }
            }
        }
        if at_work.is_empty() {
            return failure.map_or(Ok(()), Err);
        }
        for worker in &mut at_work {
            worker.ending.look(ends);
        }
        if !ends && looked.elapsed() >= SLOW_LOOK {
            looked = Instant::now();
            for worker in &mut at_work {
                worker.tell(&round.shares[worker.place]);
            }
        }
        thread::sleep(LOOK);
        let mut left = Vec::new();
        for mut worker in at_work {
            let place = worker.place;
            match worker.child.try_wait() {
                Ok(None) => left.push(worker),
                Ok(Some(status)) if status.success() => round.is_done(),
                Ok(Some(_)) if ends => {}
                ended => {
                    let code = ended.as_ref().ok().and_then(|status| (*status)?.code());
                    let said = std::fs::read_to_string(log(round, place)).unwrap_or_default();
                    let share = &round.shares[place];
                    let how = match (&ended, code) {
                        (_, Some(code)) => format!("ended with exit code {code}"),
                        (Ok(Some(status)), None) => format!("was ended ({status})"),
                        _ => "is lost".into(),
                    };
                    match round.failure(share, code, &said) {
                        None if tries[place] < TRIES => waiting.push(place),
                        found => {
                            failure =
                                Some(found.unwrap_or_else(|| round.gave_up(share, &how, &said)));
                        }
                    }
                }
            }
        }
        at_work = left;
    }
}

/// Whether a process is stopped (proc(5), the third field of `stat`).
fn is_stopped(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    rest.is_some_and(|rest| rest.starts_with('T'))
}

fn log(round: &Round<'_>, place: usize) -> std::path::PathBuf {
    round.shares[place].store.with_extension("log")
}

fn start(round: &Round<'_>, place: usize, threads: usize) -> Result<Child> {
    let share = &round.shares[place];
    let cannot = |what: String| {
        move |error: std::io::Error| {
            Failure::Work(anyhow::Error::new(error).context(format!("cannot {what}")))
        }
    };
    let log = log(round, place);
    let log = File::create(&log).map_err(cannot(format!("write {}", log.display())))?;
    let mut command = process(share);
    command
        .env("WEIR_THREADS", threads.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    end_with_this_thread(&mut command);
    let start = format!("start the worker of part {}", share.name);
    command.spawn().map_err(cannot(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_makes_no_worker_quiet_or_busy() {
        let day = Duration::from_secs(86_400);
        let now = SystemTime::now();
        let mut kept = Kept::new();
        // What was written before the clock went a day ahead.
        assert!(kept.quiet([Some(now - day), None]) < day / 2);
        // What was written before it was set back by a day is as old as it is.
        let ahead = [Some(now + day), None];
        kept.quiet(ahead);
        thread::sleep(LOOK);
        assert!(kept.quiet(ahead) >= LOOK);
    }
}
