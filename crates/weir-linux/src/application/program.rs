//! Programs that run once from start to end: scripts of databases, and Weir's own graph kernels, each a process of its own
//! that writes a line for each figure.
//!
//! A line is `figure NAME NANOSECONDS ROWS CHECK`, `wrong TEXT`, `version TEXT`, or `look`: all data are in memory, and the
//! program waits for a line until their places are read.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_model::capability::Unavailable;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::Application;

use super::graph::{BYTES_PER_VERTEX, Graph, TOLERANCE, UNREACHED};
use super::residency;
use super::{Trouble, Where};
use crate::root::Root;

const SQLITE: &str = include_str!("sqlite.py");
const DUCKDB: &str = include_str!("duckdb.py");
/// The time between two looks at the user's wish to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Vertices of a graph have numbers of 32 bits.
const LARGEST_SCALE: u32 = 31;

/// What is run.
#[derive(Debug, Clone)]
pub struct Task {
    /// Which application.
    pub application: Application,
    /// Bytes of its data.
    pub bytes: u64,
    /// Bytes of a record, where its records have a size.
    pub record: u64,
    /// Threads.
    pub threads: u32,
    /// How often each figure is taken.
    pub trials: u32,
    /// Of its data.
    pub seed: u64,
    /// This command, whose graph kernels run as processes.
    pub weir: PathBuf,
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What was done: `fill`, `q1`, `trial 2`.
    pub name: String,
    /// How long it took.
    pub time: Nanos,
    /// Rows of the answer, or vertices that were reached.
    pub rows: u64,
    /// A digest of the answer, which depends on no place and no order.
    pub check: String,
}

/// What a program gave.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its version, where it has one.
    pub version: String,
    /// Its figures.
    pub steps: Vec<Step>,
    /// Answers that it found wrong itself.
    pub wrong: Vec<String>,
    /// Where its pages were.
    pub resident: Result<BTreeMap<u32, Bytes>, Unavailable>,
}

impl Task {
    /// The largest graph within its bytes.
    fn scale(&self) -> u32 {
        (self.bytes / BYTES_PER_VERTEX)
            .max(16)
            .ilog2()
            .min(LARGEST_SCALE)
    }

    fn command(&self) -> (Command, &'static str, &'static str) {
        let number = |n: u64| n.to_string();
        let (script, install) = match self.application {
            Application::Sqlite => (SQLITE, "apt-get install python3"),
            Application::DuckDb => (
                DUCKDB,
                "apt-get install python3 python3-pip; pip install duckdb",
            ),
            kernel => {
                let mut command = Command::new(&self.weir);
                command.args([
                    "workload",
                    "kernel",
                    kernel.name(),
                    "--scale",
                    &number(self.scale().into()),
                ]);
                command.args(["--threads", &number(self.threads.into())]);
                command.args([
                    "--trials",
                    &number(self.trials.into()),
                    "--seed",
                    &number(self.seed),
                ]);
                return (command, "weir", "it is this command");
            }
        };
        let mut command = Command::new("python3");
        command.args([
            "-c",
            script,
            &number(self.bytes),
            &number(self.record),
            &number(self.threads.into()),
        ]);
        command.arg(number(self.trials.into()));
        (command, "python3", install)
    }

    /// Runs it, and tells of each figure.
    ///
    /// # Errors
    /// It is not installed, it fails, or the user stops it.
    pub fn run(
        &self,
        root: &Root,
        place: &Where,
        stop: &dyn Fn() -> bool,
        told: &mut dyn FnMut(&Step),
    ) -> Result<Ran, Trouble> {
        let (mut command, named, install) = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Python takes modules from where it runs.
        command.current_dir("/");
        let mut child = Ending(place.start(&mut command, named, install)?);
        let (lines, comes) = channel();
        let (out, err) = (child.0.stdout.take(), child.0.stderr.take());
        thread::spawn(move || {
            let lines_of = out.map(|out| BufReader::new(out).lines());
            for line in lines_of.into_iter().flatten().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let said = thread::spawn(move || {
            let mut text = String::new();
            // What it says is only told if it fails.
            let _ = err.map(|err| err.take(1 << 20).read_to_string(&mut text));
            text
        });
        let mut ran = Ran {
            version: String::new(),
            steps: Vec::new(),
            wrong: Vec::new(),
            resident: Err(Unavailable::because(
                "it did not say when its data were in memory",
            )),
        };
        loop {
            match comes.recv_timeout(LOOK) {
                Ok(line) if line == "look" => {
                    ran.resident = residency::of_process(root, child.0.id());
                    if let Some(input) = &mut child.0.stdin {
                        // A program that has gone is noticed by its exit status.
                        let _ = input.write_all(b"\n");
                    }
                }
                Ok(line) => match line.split_once(' ') {
                    Some(("version", text)) => text.clone_into(&mut ran.version),
                    Some(("lacks", text)) => return Err(Trouble::Lacks(text.to_owned())),
                    Some(("wrong", text)) => ran.wrong.push(text.to_owned()),
                    _ => {
                        let step = step(&line).ok_or_else(|| {
                            Trouble::Failed(format!("{named} wrote `{line}`, which is no figure"))
                        })?;
                        told(&step);
                        ran.steps.push(step);
                    }
                },
                Err(RecvTimeoutError::Timeout) if stop() => return Err(Trouble::Stopped),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child
            .0
            .wait()
            .map_err(|error| Trouble::system(named, error))?;
        if !status.success() {
            let said = said.join().unwrap_or_default();
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            let last = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
            return Err(Trouble::Failed(format!(
                "{named} ended during the run ({status}){last}"
            )));
        }
        Ok(ran)
    }
}

/// A process that ends with this value.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // Both fail only for a process that has gone, which is the goal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads `figure NAME NANOSECONDS ROWS CHECK`.
fn step(line: &str) -> Option<Step> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["figure", name, time, rows, check] = words.as_slice() else {
        return None;
    };
    let time = time
        .parse::<f64>()
        .ok()
        .filter(|time| time.is_finite() && *time >= 0.0)?;
    Some(Step {
        name: name.replace('_', " "),
        time: Nanos(time),
        rows: rows.parse().ok()?,
        check: (*check).to_owned(),
    })
}

/// The body of a graph kernel: makes the graph, runs the trials, checks each, and writes its lines.
///
/// # Errors
/// Its lines cannot be written: the process that reads them is gone.
pub fn kernel(
    application: Application,
    scale: u32,
    threads: u32,
    trials: u32,
    seed: u64,
) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let threads = threads.max(1) as usize;
    let graph = Graph::kronecker(scale.clamp(1, LARGEST_SCALE), threads, seed);
    writeln!(out, "version 2^{scale} vertices, {} arcs", graph.arcs())?;
    let sources = graph.sources(trials as usize, seed);
    for trial in 0..trials {
        let began = Instant::now();
        let (rows, check, wrong) = match (application, sources.get(trial as usize)) {
            (Application::Bfs, Some(&source)) => {
                let depths = graph.depths(source, threads);
                let time = began.elapsed();
                look(&mut out, trial)?;
                let wrong = depths != graph.depths_serial(source);
                let reached = depths.iter().filter(|&&depth| depth != UNREACHED).count();
                let sum: u64 = depths
                    .iter()
                    .filter(|&&d| d != UNREACHED)
                    .map(|&d| u64::from(d))
                    .sum();
                ((reached, time), sum.to_string(), wrong)
            }
            _ => {
                let (scores, sweeps) = graph.pagerank(threads);
                let time = began.elapsed();
                look(&mut out, trial)?;
                let wrong = graph.pagerank_error(&scores) >= TOLERANCE;
                // Threads read scores of one sweep or the next, so that only the vertices are the same each time.
                (
                    (graph.vertices(), time),
                    format!("after-{sweeps}-sweeps"),
                    wrong,
                )
            }
        };
        let (rows, time) = rows;
        if wrong {
            writeln!(
                out,
                "wrong trial {} differs from the serial reference",
                trial + 1
            )?;
        }
        writeln!(
            out,
            "figure trial_{} {} {rows} {check}",
            trial + 1,
            time.as_nanos()
        )?;
        out.flush()?;
    }
    Ok(())
}

/// Waits until the places of its pages are read, once.
fn look(out: &mut impl std::io::Write, trial: u32) -> std::io::Result<()> {
    if trial > 0 {
        return Ok(());
    }
    writeln!(out, "look")?;
    out.flush()?;
    std::io::stdin().read_line(&mut String::new()).map(drop)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_figure_is_read_and_garbage_is_none() {
        let found = step("figure read_random 1500 7 28").unwrap();
        assert_eq!(
            (found.name.as_str(), found.time, found.rows),
            ("read random", Nanos(1500.0), 7)
        );
        for odd in [
            "",
            "figure",
            "figure a b 1 c",
            "figure a -1 1 c",
            "figure a 1 1",
            "figure a 1 -1 c",
        ] {
            assert_eq!(step(odd), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in "(figure|wrong|.)?( [0-9.e-]{0,9}){0,5}") {
            step(&line);
        }
    }
}
