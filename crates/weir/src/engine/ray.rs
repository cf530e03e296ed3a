//! Workers as tasks of Ray, which a program in Python starts.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use weir_linux::piped::ask_to_end;
use weir_loops::child::end_with_this_thread;

use super::round::{Round, TRIES};
use crate::failure::{Failure, Result};

const DRIVER: &str = include_str!("ray_driver.py");

/// The time between two looks at what the user wants.
const LOOK: Duration = Duration::from_millis(20);

/// How a command ended.
#[derive(Deserialize)]
struct Ended {
    place: usize,
    code: i32,
    said: String,
}

/// Starts the program, and follows the ends of tasks.
pub(super) fn carry_out(round: &mut Round<'_>) -> Result<()> {
    let python = std::env::var("WEIR_PYTHON").unwrap_or_else(|_| "python3".into());
    let failed = |error| {
        Failure::Work(anyhow::Error::new(error).context(format!("cannot run Ray with {python}")))
    };
    let here = std::env::current_dir().map_err(failed)?;
    let commands = round.shares.iter().map(|share| {
        let words = share.command.iter().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>()
    });
    let asked = json!({
        "commands": commands.collect::<Vec<_>>(),
        "workers": round.workers,
        "folder": here,
        "tries": TRIES,
    });
    let mut command = Command::new(&python);
    command
        .args(["-c", DRIVER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    end_with_this_thread(&mut command);
    let mut driver = command
        .spawn()
        .map_err(|error| missing(&python, &error.to_string()))?;
    if let Some(mut to) = driver.stdin.take() {
        // A program that ends at once says why.
        let _ = to.write_all(asked.to_string().as_bytes());
    }
    let from = driver.stdout.take();
    let (errors, id) = (driver.stderr.take(), driver.id());
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = errors.map(|mut errors| errors.read_to_string(&mut text));
        text
    });
    let context = round.context;
    let stop = &context.stop;
    let (over, ends) = channel::<()>();
    let (failure, status) = std::thread::scope(|scope| {
        // The program may be silent for as long as a task takes.
        scope.spawn(move || {
            while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if stop.requested() {
                    return ask_to_end(id, None, false);
                }
            }
        });
        let failure = follow(round, from);
        if failure.as_ref().is_ok_and(Option::is_some) {
            ask_to_end(id, None, false);
        }
        let status = driver.wait();
        drop(over);
        (failure, status)
    });
    let (failure, status) = (failure.map_err(failed)?, status.map_err(failed)?);
    let said = said.join().unwrap_or_default();
    match (failure, status.code()) {
        (Some(failure), _) => Err(failure),
        (None, Some(0)) => Ok(()),
        (None, Some(3)) => Err(missing(&python, said.trim())),
        (None, _) if round.context.stop.requested() => Ok(()),
        (None, _) => {
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            Err(Failure::work(format!(
                "Ray failed: {}",
                last.unwrap_or("it said nothing")
            )))
        }
    }
}

/// Follows the ends of tasks until the program has no more, one fails, or the user stops.
fn follow(round: &mut Round<'_>, from: Option<ChildStdout>) -> io::Result<Option<Failure>> {
    for line in from
        .into_iter()
        .flat_map(|from| BufReader::new(from).lines())
    {
        let Ok(ended) = serde_json::from_str::<Ended>(&line?) else {
            continue;
        };
        match (ended.code, round.shares.get(ended.place)) {
            (0, _) => round.is_done(),
            _ if round.context.stop.requested() => break,
            (code, Some(share)) => {
                let how = format!("ended with exit code {code}");
                let found = round.failure(share, Some(code), &ended.said);
                let gave_up = || round.gave_up(share, &how, &ended.said);
                return Ok(Some(found.unwrap_or_else(gave_up)));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn missing(python: &str, why: &str) -> Failure {
    Failure::Missing(anyhow::anyhow!(
        "Ray cannot be used with {python} ({why}): `pip install ray` installs it, and WEIR_PYTHON names another Python"
    ))
}
