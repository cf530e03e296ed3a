//! Weir's own programs: what they are given, and the lines by which they tell of their figures.
//!
//! A line is `figure NAME NANOSECONDS ROWS CHECK [KEY=VALUE]…`, `failed NAME TEXT`, `wrong TEXT`, `version TEXT`,
//! `lacks TEXT`, or `look`: all data are in memory, and the program waits for a line until their places are read.
//! The keys are `per_s` and `unit`, and in nanoseconds `mean`, `p50`, `p99` and `p999`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use weir_model::latency::LatencyHistogram;
use weir_model::units::Nanos;

/// What a program is given, in the order of its arguments.
#[derive(Debug, Clone)]
pub struct Given {
    /// Which of its variants.
    pub variant: String,
    /// Bytes of its data.
    pub bytes: u64,
    /// Bytes of a record, where its records have a size.
    pub record: u64,
    /// The exponent of the popularity of its records.
    pub skew: f64,
    /// Threads.
    pub threads: usize,
    /// How often each figure is taken.
    pub trials: u32,
    /// How long a figure lasts, where it has no end of its own.
    pub seconds: f64,
    /// Of its data.
    pub seed: u64,
    /// Its private folder.
    pub folder: PathBuf,
}

impl Given {
    /// Its arguments.
    pub fn arguments(&self) -> Vec<String> {
        vec![
            self.variant.clone(),
            self.bytes.to_string(),
            self.record.to_string(),
            self.skew.to_string(),
            self.threads.to_string(),
            self.trials.to_string(),
            self.seconds.to_string(),
            self.seed.to_string(),
            self.folder.display().to_string(),
        ]
    }

    /// The same read again, with what follows.
    pub fn read(arguments: &[String]) -> Option<(Self, &[String])> {
        let [
            variant,
            bytes,
            record,
            skew,
            threads,
            trials,
            seconds,
            seed,
            folder,
            rest @ ..,
        ] = arguments
        else {
            return None;
        };
        let given = Self {
            variant: variant.clone(),
            bytes: bytes.parse().ok()?,
            record: record.parse().ok()?,
            skew: skew.parse().ok()?,
            threads: threads.parse::<usize>().ok()?.clamp(1, 1024),
            trials: trials.parse().ok()?,
            seconds: seconds.parse().ok()?,
            seed: seed.parse().ok()?,
            folder: folder.into(),
        };
        Some((given, rest))
    }
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// What was done: `fill`, `q1`, `trial 2`.
    pub name: String,
    /// How long it took.
    pub time: Nanos,
    /// Rows of the answer, or vertices that were reached.
    pub rows: u64,
    /// A digest of the answer, which depends on no place and no order; `-` where there is none.
    pub check: String,
    /// How many were done in a second.
    pub per_s: Option<f64>,
    /// Of what.
    pub unit: Option<String>,
    /// Mean, median, 99th and 99.9th percentile of the time of one.
    pub latency: [Option<Nanos>; 4],
}

const LATENCY: [&str; 4] = ["mean", "p50", "p99", "p999"];

impl Step {
    /// A repetition.
    pub fn trial(trial: u32, time: Duration, rows: u64, check: impl ToString) -> Self {
        Self {
            name: format!("trial {}", trial + 1),
            time: Nanos(time.as_secs_f64() * 1e9),
            rows,
            check: check.to_string(),
            ..Self::default()
        }
    }

    /// The same with what was done in a second.
    #[must_use]
    pub fn of(self, done: u64, unit: &str) -> Self {
        let per_s = done as f64 / self.time.as_secs().max(1e-9);
        Self {
            per_s: Some(per_s),
            unit: Some(unit.into()),
            ..self
        }
    }

    /// The same with how long each took.
    #[must_use]
    pub fn each(self, latency: &LatencyHistogram) -> Self {
        let seen = latency.summary();
        Self {
            latency: [
                seen.map(|seen| seen.mean),
                seen.map(|seen| seen.p50),
                seen.and_then(|seen| seen.p99),
                seen.and_then(|seen| seen.p999),
            ],
            ..self
        }
    }

    fn line(&self) -> String {
        let words = |text: &str| text.replace(' ', "_");
        let (name, time) = (words(&self.name), self.time.get());
        let mut line = format!("figure {name} {time} {} {}", self.rows, self.check);
        if let (Some(per_s), Some(unit)) = (self.per_s, &self.unit) {
            line += &format!(" per_s={per_s} unit={}", words(unit));
        }
        for (key, value) in LATENCY.iter().zip(self.latency) {
            if let Some(value) = value {
                line += &format!(" {key}={}", value.get());
            }
        }
        line
    }

    /// Reads a line.
    pub fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let ["figure", name, time, rows, check, more @ ..] = words.as_slice() else {
            return None;
        };
        let number = |text: &str| {
            let number = text.parse::<f64>().ok();
            number.filter(|number| number.is_finite() && *number >= 0.0)
        };
        let mut step = Self {
            name: name.replace('_', " "),
            time: Nanos(number(time)?),
            rows: rows.parse().ok()?,
            check: (*check).to_owned(),
            ..Self::default()
        };
        for word in more {
            let (key, value) = word.split_once('=')?;
            match key {
                "per_s" => step.per_s = Some(number(value)?),
                "unit" => step.unit = Some(value.replace('_', " ")),
                _ => {
                    let at = LATENCY.iter().position(|known| *known == key)?;
                    step.latency[at] = Some(Nanos(number(value)?));
                }
            }
        }
        Some(step)
    }
}

/// Tells of figures.
#[derive(Debug)]
pub struct Teller<W> {
    out: W,
    looked: bool,
}

/// The one of a process of its own.
pub type Report<'a> = Teller<io::StdoutLock<'a>>;

impl<W: Write> Teller<W> {
    /// Writes there.
    pub fn new(out: W) -> Self {
        Self { out, looked: false }
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    /// What it is.
    pub fn version(&mut self, text: &str) -> io::Result<()> {
        self.line(&format!("version {text}"))
    }

    /// Waits until the places of its pages are read, the first time.
    pub fn look(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.looked, true) {
            return Ok(());
        }
        self.line("look")?;
        io::stdin().read_line(&mut String::new()).map(drop)
    }

    /// A figure that could not be taken.
    pub fn failed(&mut self, name: &str, why: &str) -> io::Result<()> {
        self.line(&format!("failed {} {why}", name.replace(' ', "_")))
    }

    /// A figure, and whether its answer is right.
    pub fn figure(&mut self, step: &Step, right: bool, otherwise: &str) -> io::Result<()> {
        if !right {
            self.line(&format!("wrong {}: {otherwise}", step.name))?;
        }
        self.line(&step.line())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn garbage_is_no_figure() {
        for odd in [
            "",
            "figure",
            "figure a b 1 c",
            "figure a -1 1 c",
            "figure a 1 1",
            "figure a 1 -1 c",
            "figure a 1 1 c odd",
            "figure a 1 1 c p98=1",
            "figure a 1 1 c p99=-1",
        ] {
            assert_eq!(Step::read(odd), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows: u64, time in 0.0_f64..1e12, per_s in proptest::option::of(0.0_f64..1e9), p99 in proptest::option::of(0.0_f64..1e9)) {
            let step = Step {
                name: "read random".into(),
                time: Nanos(time),
                rows,
                check: "-".into(),
                per_s,
                unit: per_s.map(|_| "look ups".into()),
                latency: [None, None, p99.map(Nanos), None],
            };
            prop_assert_eq!(Step::read(&step.line()), Some(step));
        }

        #[test]
        fn no_line_is_too_odd(line in "(figure|wrong|.)?( [0-9.e=p_-]{0,9}){0,7}") {
            Step::read(&line);
        }

        #[test]
        fn arguments_are_read_again(bytes: u64, threads in 1_usize..1000, seed: u64, skew in 0.0_f64..2.0) {
            let given = Given {
                variant: "kron".into(), bytes, record: 8, skew, threads, trials: 3, seconds: 0.5, seed, folder: "/tmp/a b".into(),
            };
            let mut arguments = given.arguments();
            arguments.push("more".into());
            let (again, rest) = Given::read(&arguments).unwrap();
            prop_assert_eq!(again.arguments(), given.arguments());
            prop_assert_eq!(rest, ["more".to_owned()]);
        }
    }
}
