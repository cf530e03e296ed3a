//! What a move did to a process: a measure before it and after it, with how much of the difference may be chance.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::{Severity, Verdict};
use weir_linux::Root;
use weir_linux::memory::objects::started;
use weir_linux::perf::Instructions;
use weir_model::number::figure;
use weir_model::statistics::student_t975;
use weir_model::units::Nanos;

use crate::context::Context;
use crate::ending;
use crate::failure::{Failure, Result};

/// Between two looks for a stop request.
const LOOK: Duration = Duration::from_millis(20);

/// What is measured, and how.
#[derive(Debug, Clone, Args)]
pub struct Verify {
    /// Measure the process before and after the move, and say the change.
    #[arg(long)]
    verify: bool,
    /// A command that prints a number, such as requests per second; the process is $WEIR_PID. Without it: instructions per
    /// second of the process, which the processor counts.
    #[arg(long, value_name = "CMD", requires = "verify")]
    measure: Option<String>,
    /// A lower number of the command is better, such as a latency.
    #[arg(long, requires = "measure")]
    lower: bool,
    /// Measurements before the move, and as many after it.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "verify", value_parser = clap::value_parser!(u32).range(2..=1000))]
    repeats: u32,
    /// How long instructions are counted each time.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "verify")]
    window: Nanos,
    /// Wait this long after the move before the first measurement.
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "verify")]
    settle: Nanos,
}

/// A measure of a process, before a move and after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// What was measured: `instructions/s`, or a command.
    pub measure: String,
    /// Whether a lower number is better.
    pub lower_is_better: bool,
    /// The measurements before the move.
    pub before: Vec<f64>,
    /// The measurements after it.
    pub after: Vec<f64>,
    /// The change of their mean, in percent; absent where it was 0 before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_pct: Option<f64>,
    /// Half of the 95 % interval of the change (Welch), in percent of the mean before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_pct: Option<f64>,
}

impl Verified {
    fn of(measure: String, lower_is_better: bool, before: Vec<f64>, after: Vec<f64>) -> Self {
        let change = change(&before, &after);
        Self {
            measure,
            lower_is_better,
            before,
            after,
            change_pct: change.map(|change| change.0),
            half_pct: change.map(|change| change.1),
        }
    }

    /// The change in words, and whether it is within noise.
    pub fn verdict(&self) -> Verdict {
        let runs = self.before.len().min(self.after.len());
        let (Some(change), Some(half)) = (self.change_pct, self.half_pct) else {
            let text = format!("{}: it was 0 before the move", self.measure);
            return Verdict::new(Severity::Doubt, "verify", text);
        };
        let interval = format!("{change:+.1} ±{} %, {runs} times each", figure(half));
        let (severity, said) = match change.abs() > half {
            false => (Severity::Note, "no change that is more than noise"),
            true if (change < 0.0) == self.lower_is_better => (Severity::Note, "better"),
            true => (Severity::Doubt, "worse"),
        };
        let text = format!("{}: {said} ({interval})", self.measure);
        Verdict::new(severity, "verify", text)
    }
}

/// The change of the mean, and half of its 95 % interval, both in percent of the mean before. Measurements are taken as
/// independent, with a variance of their own before and after (B. L. Welch, Biometrika 34, 1947).
fn change(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    // The variance of the mean, and the degrees of freedom.
    let spread = |values: &[f64]| {
        let (mean, freedom) = (mean(values), values.len() as f64 - 1.0);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / freedom / values.len() as f64, freedom)
    };
    if before.len() < 2 || after.len() < 2 || mean(before) == 0.0 {
        return None;
    }
    let ((a, a_freedom), (b, b_freedom)) = (spread(before), spread(after));
    let freedom = match a + b > 0.0 {
        true => (a + b).powi(2) / (a.powi(2) / a_freedom + b.powi(2) / b_freedom),
        false => a_freedom + b_freedom,
    };
    let half = student_t975(freedom.max(1.0) as u32) * (a + b).sqrt();
    let percent = 100.0 / mean(before).abs();
    Some(((mean(after) - mean(before)) * percent, half * percent))
}

/// What measures a process.
#[derive(Debug)]
pub(super) struct Gauge {
    root: Root,
    process: u32,
    began: Option<u64>,
    wanted: Verify,
    /// Without a command.
    instructions: Option<Instructions>,
}

impl Gauge {
    /// What was asked for; `None` where nothing is to be measured.
    ///
    /// # Errors
    /// The processor counts no instructions of the process.
    pub fn open(wanted: &Verify, root: &Root, process: u32) -> Result<Option<Self>> {
        if !wanted.verify {
            return Ok(None);
        }
        let instructions = match &wanted.measure {
            Some(_) => None,
            None => Some(Instructions::open(root, process).map_err(|why| {
                Failure::Missing(anyhow::anyhow!(
                    "instructions of process {process} are not counted: {why}; name a command that prints what it gets done, \
                     with --measure"
                ))
            })?),
        };
        Ok(Some(Self {
            root: root.clone(),
            process,
            began: started(root, process),
            wanted: wanted.clone(),
            instructions,
        }))
    }

    /// Measures as often as was asked for.
    ///
    /// # Errors
    /// The process or the command has ended, or a stop was requested.
    pub fn measure(&mut self, context: &Context) -> Result<Vec<f64>> {
        (0..self.wanted.repeats)
            .map(|_| self.once(context))
            .collect()
    }

    /// Waits for what a move disturbs for a moment only.
    pub fn settle(&self, context: &Context) {
        wait(self.wanted.settle, context);
    }

    /// Measures again, and compares.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn compared(&mut self, before: &[f64], context: &Context) -> Result<Verified> {
        let after = self.measure(context)?;
        let what = self.wanted.measure.as_deref().unwrap_or("instructions/s");
        Ok(Verified::of(
            what.to_owned(),
            self.wanted.lower,
            before.to_vec(),
            after,
        ))
    }

    fn once(&mut self, context: &Context) -> Result<f64> {
        let value = match &self.instructions {
            Some(counter) => {
                let (began, before) = (Instant::now(), counter.total());
                wait(self.wanted.window, context);
                Ok((counter.total() - before) / began.elapsed().as_secs_f64())
            }
            None => self.command(context),
        };
        if context.stop.requested() {
            return Err(Failure::Partial("stopped while it was measured".into()));
        }
        let value = value?;
        match started(&self.root, self.process) == self.began {
            true => Ok(value),
            false => Err(Failure::work(format!(
                "process {} has ended while it was measured",
                self.process
            ))),
        }
    }

    /// The last number that the command prints.
    fn command(&self, context: &Context) -> Result<f64> {
        let text = self.wanted.measure.as_deref().unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command.env("WEIR_PID", self.process.to_string());
        let ran = ending::output(command.stderr(Stdio::inherit()), &context.stop);
        let ran = ran.map_err(|error| Failure::work(format!("`{text}`: {error}")))?;
        if !ran.status.success() {
            return Err(Failure::work(format!(
                "`{text}` has ended with {}",
                ran.status
            )));
        }
        let said = String::from_utf8_lossy(&ran.stdout);
        let last = said.split_ascii_whitespace().next_back().unwrap_or("");
        let number = last.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| {
            Failure::request(format!(
                "`{text}` prints `{}`, which does not end with a number",
                said.trim()
            ))
        })
    }
}

fn wait(time: Nanos, context: &Context) {
    let (began, time) = (
        Instant::now(),
        Duration::from_nanos(time.get().max(0.0) as u64),
    );
    while !context.stop.requested() {
        let rest = time.saturating_sub(began.elapsed());
        if rest.is_zero() {
            return;
        }
        std::thread::sleep(LOOK.min(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lower: bool, before: &[f64], after: &[f64]) -> String {
        let verified = Verified::of("rate".into(), lower, before.to_vec(), after.to_vec());
        verified.verdict().text.to_string()
    }

    #[test]
    fn a_change_is_distinguished_from_noise_and_has_its_direction() {
        let (low, high) = ([99.0, 101.0, 100.0], [119.0, 121.0, 120.0]);
        assert!(said(false, &low, &high).contains("better (+20.0 ±2.27 %, 3 times each"));
        assert!(said(true, &low, &high).contains("worse"));
        assert!(said(false, &high, &low).contains("worse (-16.7"));
        assert!(said(true, &high, &low).contains("better"));
        let wide = [80.0, 100.0, 125.0];
        assert!(said(false, &low, &wide).contains("no change that is more than noise"));
        // Equal numbers have no spread at all.
        assert!(said(false, &[5.0; 3], &[5.0; 3]).contains("no change"));
        assert!(said(false, &[0.0; 3], &[5.0; 3]).contains("it was 0"));
    }

    /// By hand: 24.167 more, its standard error 3.898, and 4.96 degrees of freedom, of which 4 are taken: t is 2.776.
    #[test]
    fn the_interval_is_that_of_welch() {
        let (change, half) = change(&[99.0, 104.0, 95.0], &[120.0, 125.0, 118.0, 131.0]).unwrap();
        assert!((change - 24.33).abs() < 0.01, "{change}");
        assert!((half - 10.89).abs() < 0.01, "{half}");
    }
}
