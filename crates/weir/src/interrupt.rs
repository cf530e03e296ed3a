//! Signals. Ctrl-C: once to give up what is under way and keep what is finished, twice to leave at once.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::{flag, low_level};
use weir_linux::second_signal::{Noted, end_at_second};

use crate::session::say;

/// What a shell reports for a process that Ctrl-C ended.
const EXIT_BY_INTERRUPT: i32 = 130;
/// A command that has not ended this long after the request says what it waits for.
const AT_ONCE: Duration = Duration::from_millis(300);

/// Signals that would end the process without a reason to end the work. What exceeds a limit on file size is an error
/// of the write.
const IGNORED: [i32; 7] = [
    SIGALRM, SIGIO, SIGPROF, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXFSZ,
];

/// Whether the user wants the work to end.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    noted: Noted,
    /// What an end waits for, in words.
    waits_for: Arc<Mutex<String>>,
}

impl Stop {
    /// Listens for signals from now on.
    ///
    /// # Errors
    /// The system refuses a signal handler.
    pub fn on_signals() -> std::io::Result<Self> {
        let stop = Self {
            noted: Noted {
                requested: weir_model::stop::flag(),
                ..Noted::default()
            },
            ..Self::default()
        };
        let (signals, sender) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the shutdown sees the flag of the first signal only at the second.
            end_at_second(signal, EXIT_BY_INTERRUPT, stop.noted.clone())?;
            flag::register(signal, stop.flag())?;
            low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        // These come more than once: the kernel and the shell both send SIGHUP when a terminal closes, and the kernel
        // sends SIGXCPU every second until the hard limit.
        for signal in [SIGHUP, SIGXCPU] {
            if !is_ignored(signal) {
                flag::register(signal, stop.flag())?;
            }
        }
        for signal in IGNORED {
            flag::register(signal, Arc::default())?;
        }
        let own = stop.clone();
        std::thread::spawn(move || say_what_is_waited_for(signals, &own));
        Ok(stop)
    }

    /// For a program that embeds the command and has signal handlers of its own.
    pub fn of_process() -> Self {
        Self {
            noted: Noted {
                requested: weir_model::stop::flag(),
                ..Noted::default()
            },
            ..Self::default()
        }
    }

    /// Notes what an end has to wait for, in words: `figure 3 of 27`.
    pub fn waits_for(&self, what: impl Into<String>) {
        *self.waits() = what.into();
    }

    /// Notes what to do after an end that does not wait, in words that follow `and`.
    pub fn then(&self, what: &'static str) {
        // The first one stays: a signal handler reads it.
        let _ = self.noted.then.set(what);
    }

    /// What a user is told who waits for the end.
    fn words(&self) -> String {
        let waits = self.waits();
        let what = match waits.as_str() {
            "" => "what is under way",
            words => words,
        };
        let then = self.noted.then.get();
        let then = then.map_or_else(String::new, |then| format!(", and {then}"));
        format!("weir: stopping: this waits for {what}; a second Ctrl-C does not wait{then}")
    }

    fn waits(&self) -> MutexGuard<'_, String> {
        (self.waits_for.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the work to end, as a signal would.
    pub fn request(&self) {
        self.noted.requested.store(true, Ordering::Relaxed);
    }

    /// What a signal sets, for a machine that waits.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.noted.requested)
    }

    /// Whether a signal has come.
    pub fn requested(&self) -> bool {
        self.noted.requested.load(Ordering::Relaxed)
    }

    /// Whether a signal has come that commands of this process, in its group, have not got from the terminal as well.
    pub fn requested_here(&self) -> bool {
        self.requested() && !self.noted.typed.load(Ordering::Relaxed)
    }
}

fn say_what_is_waited_for(mut signals: UnixStream, stop: &Stop) {
    if signals.read_exact(&mut [0]).is_err() {
        return;
    }
    std::thread::sleep(AT_ONCE);
    say(&stop.words());
}

/// Whether this process was started with a signal ignored, as `nohup` does (proc(5), `SigIgn` of `status`).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_for_what_and_what_is_left_without_it() {
        let stop = Stop::of_process();
        let ends = |words: &str| assert!(stop.words().ends_with(words), "{}", stop.words());
        ends("for what is under way; a second Ctrl-C does not wait");
        stop.waits_for("the limits");
        stop.then("`restore` removes them");
        ends("for the limits; a second Ctrl-C does not wait, and `restore` removes them");
    }
}
