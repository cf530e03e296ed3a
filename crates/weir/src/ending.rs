//! When a command that is followed has to end: after a time, or when the user stops.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use weir_linux::piped::{ask_to_end, records_of};
use weir_loops::child::end_with_this_thread;
use weir_model::units::Nanos;

use crate::interrupt::Stop;

/// How long a command has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// The time between two looks at what the user wants.
const LOOK: Duration = Duration::from_millis(20);

/// Ends a process, first by request.
#[derive(Debug)]
pub struct Ending {
    process: u32,
    /// Where it writes its records.
    records: Option<PathBuf>,
    began: Instant,
    limit: Option<Duration>,
    asked: Option<Instant>,
}

impl Ending {
    /// For a process that began now.
    pub fn after(limit: Option<Nanos>, process: u32) -> Self {
        Self {
            process,
            records: records_of(process),
            began: Instant::now(),
            limit: limit.map(|time| Duration::from_secs_f64(time.as_secs())),
            asked: None,
        }
    }

    /// Whether it is to end now, or was asked to.
    pub fn is_due(&self, stopped: bool) -> bool {
        let is_over = |limit| self.began.elapsed() >= limit;
        stopped || self.asked.is_some() || self.limit.is_some_and(is_over)
    }

    /// Ends it, if that is due; called at intervals.
    pub fn look(&mut self, stopped: bool) {
        match self.asked {
            None if self.is_due(stopped) => {
                ask_to_end(self.process, self.records.as_deref(), false);
                self.asked = Some(Instant::now());
            }
            Some(at) if at.elapsed() > GRACE => {
                ask_to_end(self.process, self.records.as_deref(), true)
            }
            _ => {}
        }
    }
}

/// Runs a command to its end, or until the user stops. Its exit code says nothing after a stop, which has ended it.
///
/// # Errors
/// It cannot be started, or prints more than 64 MiB, at which it is ended.
pub fn output(command: &mut Command, stop: &Stop) -> io::Result<Output> {
    // Ctrl-C is for Weir, which ends it.
    command.process_group(0).stdin(Stdio::null());
    end_with_this_thread(command);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let (process, prints_too_much) = (child.id(), AtomicBool::new(false));
    let (own_output, own_errors) = (child.stdout.take(), child.stderr.take());
    let (ended, ends) = channel::<()>();
    let (stdout, stderr, status) = std::thread::scope(|scope| {
        let much = &prints_too_much;
        scope.spawn(move || {
            let mut ending = Ending::after(None, process);
            while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                ending.look(stop.requested() || much.load(Ordering::Relaxed));
            }
        });
        let errors = scope.spawn(move || printed(own_errors, much));
        let output = printed(own_output, much);
        let errors = errors.join().unwrap_or_default();
        let status = child.wait();
        drop(ended);
        (output, errors, status)
    });
    if prints_too_much.into_inner() {
        return Err(io::Error::other("it prints more than 64 MiB"));
    }
    Ok(Output {
        status: status?,
        stdout,
        stderr,
    })
}

/// What a command prints, which is read to its end; it is not kept whole if it is too much.
fn printed(from: Option<impl Read>, is_too_much: &AtomicBool) -> Vec<u8> {
    const MOST: u64 = 64 << 20;
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return bytes };
    // A pipe that cannot be read has said what it has.
    let _ = from.by_ref().take(MOST).read_to_end(&mut bytes);
    if io::copy(&mut from.by_ref().take(1), &mut io::sink()).is_ok_and(|more| more > 0) {
        is_too_much.store(true, Ordering::Relaxed);
        let _ = io::copy(&mut from, &mut io::sink());
    }
    bytes
}
