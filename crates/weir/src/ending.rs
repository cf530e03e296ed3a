//! When a command that is followed has to end: after a time, or when the user stops.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
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

    /// Ends it, if that is due; called at intervals.
    pub fn look(&mut self, stopped: bool) {
        let is_over = stopped || (self.limit).is_some_and(|limit| self.began.elapsed() >= limit);
        match self.asked {
            None if is_over => {
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
/// It cannot be started.
pub fn output(command: &mut Command, stop: &Stop) -> io::Result<Output> {
    // Ctrl-C is for Weir, which ends it.
    command.process_group(0).stdin(Stdio::null());
    end_with_this_thread(command);
    let child = command.stdout(Stdio::piped()).spawn()?;
    let process = child.id();
    let (ended, ends) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut ending = Ending::after(None, process);
            while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                ending.look(stop.requested());
            }
        });
        let output = child.wait_with_output();
        drop(ended);
        output
    })
}
