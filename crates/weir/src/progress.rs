//! How far a sweep is, on standard error: a bar on a terminal, a line now and then elsewhere.

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
struct Reached {
    done: usize,
    of: usize,
    /// The part of the work that is done; figures may differ in their work.
    share: f64,
}

impl Reached {
    /// The time that is left, if as much work as before is done in a second; `None` before there is any, and once all is done.
    fn left(&self, elapsed: Duration) -> Option<String> {
        let known = self.share > 0.0 && self.share < 1.0 && self.done < self.of;
        known.then(|| seconds(elapsed.as_secs_f64() * (1.0 / self.share - 1.0)))
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
        of: usize,
        every: Duration,
        mut write: impl FnMut(&str) + Send + 'static,
    ) -> Self {
        let reached = Arc::new(Mutex::new(Reached {
            done: 0,
            of,
            share: 0.0,
        }));
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
                write(&format!("{title}: {} of {}, {time}", now.done, now.of));
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
        Self::said((title, Some(&said)), of, quiet)
    }

    /// The same of so few steps that they are not announced: where they take long, lines say how far they are.
    pub fn few(title: &str, of: usize, quiet: bool) -> Self {
        Self::said((title, None), of, quiet)
    }

    /// Begins to show progress in percent.
    pub fn percent(title: &str, quiet: bool) -> Self {
        Self::said((title, Some(title)), 100, quiet)
    }

    fn said((title, first): (&str, Option<&str>), of: usize, quiet: bool) -> Self {
        // A session shows what is announced.
        let shown = if quiet || first.is_none() && session::is_active() {
            Shown::Nothing
        } else if session::is_active() {
            session::reached(title, 0, of);
            Shown::Elsewhere(title.to_owned())
        } else if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(
                Some(of as u64),
                ProgressDrawTarget::stderr_with_hz(5),
            );
            let form = "{prefix:24} {wide_bar} {pos}/{len} {elapsed:>4} {msg:>12}";
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
            Shown::Lines(Lines::begin(title.to_owned(), of, SPARSE, say))
        };
        let began = Instant::now();
        Self { shown, began }
    }

    /// One more is done; `share` is the part of all work that is done now, from 0 to 1.
    pub fn step(&mut self, done: usize, of: usize, share: f64) {
        let now = Reached { done, of, share };
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Elsewhere(title) => session::reached(title, done, of),
            Shown::Bar(bar) => {
                let left = now.left(self.began.elapsed());
                bar.set_message(left.map_or_else(String::new, |left| format!("{left} left")));
                bar.set_length(of as u64);
                bar.set_position(done as u64);
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
        let progress = Lines::begin("bench on a".into(), 4, every, move |line| {
            let _ = lines.send(line.to_owned());
        });
        let before = written.recv().unwrap();
        assert!(
            before.starts_with("bench on a: 0 of 4, ") && before.ends_with(" so far"),
            "{before}"
        );
        let half = Reached {
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
        let reached = Reached {
            done: 3,
            of: 4,
            share: 0.25,
        };
        assert_eq!(reached.left(Duration::from_secs(10)), Some(seconds(30.0)));
        let none = Reached {
            share: 0.0,
            ..reached
        };
        assert_eq!(none.left(Duration::from_secs(10)), None);
        let all = Reached { done: 4, ..reached };
        assert_eq!(all.left(Duration::from_secs(10)), None);
    }
}
