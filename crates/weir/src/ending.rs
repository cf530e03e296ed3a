//! When a command that is followed has to end: after a time, or when the user stops.

use std::time::{Duration, Instant};

use weir_linux::piped::ask_to_end;
use weir_model::units::Nanos;

/// How long a command has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Ends a process, first by request.
#[derive(Debug)]
pub struct Ending {
    process: u32,
    began: Instant,
    limit: Option<Duration>,
    asked: Option<Instant>,
}

impl Ending {
    /// For a process that began now.
    pub fn after(limit: Option<Nanos>, process: u32) -> Self {
        Self {
            process,
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
                ask_to_end(self.process, false);
                self.asked = Some(Instant::now());
            }
            Some(at) if at.elapsed() > GRACE => ask_to_end(self.process, true),
            _ => {}
        }
    }
}
