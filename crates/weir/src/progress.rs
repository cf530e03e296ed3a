//! How far a sweep is, on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::context::say;
use crate::output::seconds;

/// How often a line is written where there is no terminal.
const SPARSE: Duration = Duration::from_secs(10);

/// Progress of one sweep.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
    title: String,
    began: Instant,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Bar(ProgressBar),
    Lines { last: Instant },
}

impl Progress {
    /// Begins to show progress over `of` figures, unless asked to be quiet.
    pub fn begin(title: &str, of: usize, quiet: bool) -> Self {
        let began = Instant::now();
        let shown = if quiet {
            Shown::Nothing
        } else if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(
                Some(of as u64),
                ProgressDrawTarget::stderr_with_hz(5),
            );
            if let Ok(style) =
                ProgressStyle::with_template("{prefix:24!} {wide_bar} {pos}/{len} {msg:>12}")
            {
                bar.set_style(style.progress_chars("━╸ "));
            }
            bar.set_prefix(title.to_owned());
            bar.tick();
            Shown::Bar(bar)
        } else {
            say(&format!("{title}: {of} figures"));
            Shown::Lines { last: began }
        };
        Self {
            shown,
            title: title.to_owned(),
            began,
        }
    }

    /// One more is done.
    pub fn step(&mut self, done: usize, of: usize) {
        let left = self.left(done, of);
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.set_message(format!("{left} left"));
                bar.set_position(done as u64);
            }
            Shown::Lines { last } => {
                if last.elapsed() >= SPARSE && done < of {
                    *last = Instant::now();
                    say(&format!("{}: {done} of {of}, {left} left", self.title));
                }
            }
        }
    }

    fn left(&self, done: usize, of: usize) -> String {
        let each = self.began.elapsed().as_secs_f64() / done.max(1) as f64;
        seconds(each * of.saturating_sub(done) as f64)
    }

    /// Takes the bar off the screen.
    pub fn end(self) {
        if let Shown::Bar(bar) = self.shown {
            bar.finish_and_clear();
        }
    }
}
