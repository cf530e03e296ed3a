//! How far a sweep is, on standard error: a bar on a terminal, a line now and then elsewhere.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{count, seconds};
use crate::session;
use crate::session::say;

/// The longest title of a bar, in columns.
const TITLE: usize = 40;
/// How often a line is written where there is no terminal, also while one figure takes long.
const SPARSE: Duration = Duration::from_secs(10);

/// Progress of one sweep.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
    began: Instant,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Bar(ProgressBar),
    Lines(Lines),
    /// The program that embeds the command shows it, under this title.
    Elsewhere(String),
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
enum Reached {
    /// Steps, and the part of the work that they are; figures may differ in their work.
    Steps { done: usize, of: usize, share: f64 },
    /// A part of the work.
    Share(f64),
    /// So many of what this says, where the end is not known.
    Count(u64, &'static str),
}

impl Reached {
    /// The time that is left, if as much work as before is done in a second; `None` before there is any, once all is done,
    /// and where the end is not known.
    fn left(&self, elapsed: Duration) -> Option<String> {
        let share = match *self {
            Self::Steps { done, of, share } => (done < of).then_some(share)?,
            Self::Share(share) => share,
            Self::Count(..) => return None,
        };
        let known = share > 0.0 && share < 1.0;
        known.then(|| seconds(elapsed.as_secs_f64() * (1.0 / share - 1.0)))
    }

    /// In hundredths, where it has no steps.
    fn percent(share: f64) -> usize {
        (share * 100.0) as usize
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps { done, of, .. } => write!(f, "{done} of {of}"),
            Self::Share(share) => write!(f, "{} %", Self::percent(*share)),
            Self::Count(count, what) => write!(f, "{count} {what}"),
        }
    }
}

/// A thread that writes a line at intervals, until it is dropped.
#[derive(Debug)]
struct Lines {
    reached: Arc<Mutex<Reached>>,
    end: Option<Sender<()>>,
    writer: Option<JoinHandle<()>>,
}

impl Lines {
    fn begin(
        title: String,
        none: Reached,
        every: Duration,
        mut write: impl FnMut(&str) + Send + 'static,
    ) -> Self {
        let reached = Arc::new(Mutex::new(none));
        let (end, ends) = channel();
        let (seen, began) = (Arc::clone(&reached), Instant::now());
        let written = move || {
            while ends.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let now = *seen.lock().unwrap_or_else(PoisonError::into_inner);
                let elapsed = began.elapsed();
                let time = match now.left(elapsed) {
                    Some(left) => format!("{left} left"),
                    None => format!("{} so far", seconds(elapsed.as_secs_f64())),
                };
                write(&format!("{title}: {now}, {time}"));
            }
        };
        let thread = std::thread::Builder::new().name("weir-progress".into());
        Self {
            reached,
            end: Some(end),
            // Without a thread there is no progress to see, and the work goes on.
            writer: thread.spawn(written).ok(),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.end = None;
        if let Some(writer) = self.writer.take() {
            // A writer that panicked writes nothing more.
            let _ = writer.join();
        }
    }
}

impl Progress {
    /// Begins to show progress over `of` steps, unless asked to be quiet. A step need not be a figure of the result.
    pub fn begin(title: &str, of: usize, quiet: bool) -> Self {
        let said = format!("{title}: {}", count(of as u64, "step"));
        Self::said((title, Some(&said)), Self::steps(of), quiet)
    }

    /// The same of so few steps that they are not announced: where they take long, lines say how far they are.
    pub fn few(title: &str, of: usize, quiet: bool) -> Self {
        Self::said((title, None), Self::steps(of), quiet)
    }

    /// Begins to show progress in percent.
    pub fn percent(title: &str, quiet: bool) -> Self {
        Self::said((title, Some(title)), Reached::Share(0.0), quiet)
    }

    /// Begins to show how many of what `what` says there are, where the end is not known.
    pub fn open(title: &str, what: &'static str, quiet: bool) -> Self {
        Self::said((title, Some(title)), Reached::Count(0, what), quiet)
    }

    fn steps(of: usize) -> Reached {
        let (done, share) = (0, 0.0);
        Reached::Steps { done, of, share }
    }

    fn said((title, first): (&str, Option<&str>), none: Reached, quiet: bool) -> Self {
        // A session shows what is announced.
        let shown = if quiet || first.is_none() && session::is_active() {
            Shown::Nothing
        } else if session::is_active() {
            Shown::Elsewhere(title.to_owned())
        } else if io::stderr().is_terminal() {
            let bar =
                ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr_with_hz(5));
            let form = match none {
                Reached::Steps { .. } => {
                    "{prefix:24} {wide_bar} {pos}/{len} {elapsed:>4} {msg:>12}"
                }
                Reached::Share(_) => "{prefix:24} {wide_bar} {pos} % {elapsed:>4} {msg:>12}",
                Reached::Count(..) => "{prefix:24} {msg}, {elapsed}",
            };
            if let Ok(style) = ProgressStyle::with_template(form) {
                bar.set_style(style.progress_chars("━╸ "));
            }
            bar.set_prefix(console::truncate_str(title, TITLE, "…").into_owned());
            bar.enable_steady_tick(Duration::from_secs(1));
            Shown::Bar(bar)
        } else {
            if let Some(first) = first {
                say(first);
            }
            Shown::Lines(Lines::begin(title.to_owned(), none, SPARSE, say))
        };
        let began = Instant::now();
        let mut progress = Self { shown, began };
        progress.show(none);
        progress
    }

    /// One more is done; `share` is the part of all work that is done now, from 0 to 1.
    pub fn step(&mut self, done: usize, of: usize, share: f64) {
        self.show(Reached::Steps { done, of, share });
    }

    /// This part of the work is done now, from 0 to 1.
    pub fn share(&mut self, share: f64) {
        self.show(Reached::Share(share));
    }

    /// So many there are now.
    pub fn count(&mut self, count: u64, what: &'static str) {
        self.show(Reached::Count(count, what));
    }

    fn show(&mut self, now: Reached) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Elsewhere(title) => match now {
                Reached::Steps { done, of, .. } => session::reached(title, done, of),
                Reached::Share(share) => session::reached(title, Reached::percent(share), 100),
                Reached::Count(..) => {}
            },
            Shown::Bar(bar) => {
                let left = now.left(self.began.elapsed());
                bar.set_message(left.map_or_else(String::new, |left| format!("{left} left")));
                match now {
                    Reached::Steps { done, of, .. } => {
                        bar.set_length(of as u64);
                        bar.set_position(done as u64);
                    }
                    Reached::Share(share) => bar.set_position(Reached::percent(share) as u64),
                    Reached::Count(..) => bar.set_message(now.to_string()),
                }
            }
            Shown::Lines(lines) => {
                *lines.reached.lock().unwrap_or_else(PoisonError::into_inner) = now;
            }
        }
    }

    /// Takes the bar off the screen.
    pub fn end(self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_takes_long_is_not_silent() {
        let (lines, written) = channel();
        let every = Duration::from_millis(1);
        let progress = Lines::begin(
            "bench on a".into(),
            Progress::steps(4),
            every,
            move |line| {
                let _ = lines.send(line.to_owned());
            },
        );
        let before = written.recv().unwrap();
        assert!(
            before.starts_with("bench on a: 0 of 4, ") && before.ends_with(" so far"),
            "{before}"
        );
        let half = Reached::Steps {
            done: 1,
            of: 4,
            share: 0.5,
        };
        *progress.reached.lock().unwrap() = half;
        assert!(
            written
                .iter()
                .any(|line| line.starts_with("bench on a: 1 of 4, ") && line.ends_with(" left"))
        );
        drop(progress);
        // The sender has gone with the thread.
        assert!(written.iter().all(|line| line.starts_with("bench on a: ")));
    }

    #[test]
    fn what_is_left_follows_from_the_work_and_not_from_the_number() {
        let left = |done, share| {
            let reached = Reached::Steps { done, of: 4, share };
            reached.left(Duration::from_secs(10))
        };
        assert_eq!(left(3, 0.25), Some(seconds(30.0)));
        assert_eq!((left(3, 0.0), left(4, 0.25)), (None, None));
    }

    #[test]
    fn a_part_is_said_in_percent_and_what_has_no_known_end_by_what_there_is() {
        assert_eq!(Reached::Share(0.127).to_string(), "12 %");
        let read = Reached::Count(1240, "million accesses");
        assert_eq!(read.to_string(), "1240 million accesses");
        assert_eq!(read.left(Duration::from_secs(10)), None);
    }
}
