//! Workers as processes of this machine.

use std::fs::File;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use weir_loops::child::end_with_this_thread;

use super::round::{Round, TRIES, process, processors};
use crate::ending::Ending;
use crate::failure::{Failure, Result};

/// The time between two looks at the workers.
const LOOK: Duration = Duration::from_millis(5);

/// A worker at work.
struct Worker {
    place: usize,
    child: Child,
    ending: Ending,
}

/// Starts as many workers as there may be, and a new one as one ends. They end with this process.
pub(super) fn carry_out(round: &mut Round<'_>) -> Result<()> {
    let most = round.workers.unwrap_or_else(processors);
    let threads = (processors() / most).max(1);
    let mut waiting: Vec<usize> = (0..round.shares.len()).rev().collect();
    let mut tries = vec![0; waiting.len()];
    let mut at_work: Vec<Worker> = Vec::new();
    let mut failure = None;
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
