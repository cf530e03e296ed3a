//! Programs that run once from start to end: scripts of databases, and Weir's own programs, each a process of its own that
//! writes a line for each figure ([`Step`]).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_model::capability::Unavailable;
use weir_model::units::Bytes;
use weir_model::workload::{Application, RealProgram};

use super::folder::Folder;
use super::table::{How, entry};
use super::{Trouble, Where, end_of, ended_for_memory, residency, server};
use crate::root::Root;
use weir_loops::programs::report::{Given, Step};

/// The time between two looks at the user's wish to stop.
const LOOK: Duration = Duration::from_millis(100);
/// The longest time that a program has to end what it started.
const PATIENCE: Duration = Duration::from_secs(10);
/// That of a program of ours: whatever it started ends with it.
const PATIENCE_WITH_OURS: Duration = Duration::from_millis(300);

/// What is run.
#[derive(Debug, Clone)]
pub struct Task {
    /// Which program; its bytes are those of its data here.
    pub program: RealProgram,
    /// How often each figure is taken.
    pub trials: u32,
    /// How long a figure lasts, where it has no end of its own.
    pub seconds: f64,
    /// Of its data.
    pub seed: u64,
    /// This command, whose programs run as processes.
    pub weir: PathBuf,
}

/// What a program gave.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its version, where it has one.
    pub version: String,
    /// Answers that it found wrong itself.
    pub wrong: Vec<String>,
    /// Where its pages were.
    pub resident: Result<BTreeMap<u32, Bytes>, Unavailable>,
}

/// A line of a program that the caller keeps.
#[derive(Debug)]
pub enum Line {
    /// Its data are in memory, and it goes on.
    Loaded,
    /// A figure.
    Figure(Step),
    /// One that could not be taken: its name, and why.
    Failed(String, String),
}

impl Task {
    fn command(&self, folder: &Folder) -> (Command, &'static str) {
        let program = &self.program;
        let given = Given {
            variant: program.variant.to_owned(),
            bytes: program.bytes.get(),
            record: program.record.get(),
            skew: program.skew,
            threads: program.threads as usize,
            trials: self.trials,
            seconds: self.seconds,
            seed: self.seed,
            folder: folder.path().to_owned(),
        };
        let (mut command, named) = match entry(program.application).how {
            How::Script(script) => {
                let mut command = Command::new("python3");
                command.args(["-c", script]);
                (command, "python3")
            }
            How::Kernel(_) | How::Server(_) => {
                let mut command = Command::new(&self.weir);
                command.args(["workload", "kernel", program.application.name()]);
                (command, "weir")
            }
        };
        command.args(given.arguments());
        (command, named)
    }

    /// Whether all that it needs is here. Weir's own programs need nothing.
    ///
    /// # Errors
    /// It is not installed, with what installs it.
    pub fn check(&self) -> Result<(), Trouble> {
        let needs = entry(self.program.application);
        if !matches!(needs.how, How::Script(_)) {
            return Ok(());
        }
        let folder = Folder::make()?;
        let (mut command, named) = self.command(&folder);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .current_dir("/");
        let mut child = Ending(
            Where::default().start(&mut command, named, needs.install)?,
            PATIENCE,
        );
        let mut said = String::new();
        if let Some(out) = child.0.stdout.take() {
            BufReader::new(out)
                .read_line(&mut said)
                .map_err(|error| Trouble::system(named, error))?;
        }
        match said.trim().split_once(' ') {
            Some(("lacks", what)) => Err(Trouble::Lacks(what.to_owned())),
            _ => Ok(()),
        }
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
        report: &mut dyn FnMut(Line),
    ) -> Result<Ran, Trouble> {
        let folder = Folder::make()?;
        let (mut command, named) = self.command(&folder);
        let entry = entry(self.program.application);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Python takes modules from where it runs.
        command.current_dir("/");
        let patience = match entry.how {
            How::Kernel(_) => PATIENCE_WITH_OURS,
            How::Server(_) | How::Script(_) => PATIENCE,
        };
        let ended = ended_for_memory(root);
        let mut child = Ending(place.start(&mut command, named, entry.install)?, patience);
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
            // What it says is only reported if it fails.
            let _ = err.map(|err| err.take(1 << 20).read_to_string(&mut text));
            text
        });
        let mut ran = Ran {
            version: String::new(),
            wrong: Vec::new(),
            resident: Err(Unavailable::because(
                "it did not say when its data were in memory",
            )),
        };
        loop {
            match comes.recv_timeout(LOOK) {
                // Lines may follow each other without a pause.
                Ok(_) | Err(RecvTimeoutError::Timeout) if stop() => return Err(Trouble::Stopped),
                Ok(line) if line == "look" => {
                    ran.resident = residency::of_tree(root, child.0.id());
                    report(Line::Loaded);
                    if let Some(input) = &mut child.0.stdin {
                        // A program that has gone is noticed by its exit status.
                        let _ = input.write_all(b"\n");
                    }
                }
                Ok(line) => match line.split_once(' ') {
                    Some(("version", text)) => text.clone_into(&mut ran.version),
                    Some(("lacks", text)) => return Err(Trouble::Lacks(text.to_owned())),
                    Some(("wrong", text)) => ran.wrong.push(text.to_owned()),
                    Some(("failed", text)) => {
                        let (name, why) = text.split_once(' ').unwrap_or((text, "no reason"));
                        report(Line::Failed(name.replace('_', " "), why.to_owned()));
                    }
                    _ => report(Line::Figure(Step::read(&line).ok_or_else(|| {
                        Trouble::Failed(format!("{named} wrote `{line}`, which is no figure"))
                    })?)),
                },
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
            let how = end_of(status, root, ended);
            return Err(Trouble::Failed(format!(
                "{named} ended during the run ({how}){last}"
            )));
        }
        Ok(ran)
    }
}

/// Whether what a program needs is installed. Nothing of it stays.
///
/// # Errors
/// It is not, with the line that installs it; or the variant is none of the application.
pub fn ready(program: &RealProgram) -> Result<(), Trouble> {
    if (program.application, program.variant) == (Application::Memcached, "e") {
        return Err(Trouble::Request(
            "memcached has no scans, of which YCSB E consists; redis-ycsb-e scans by a sorted set"
                .into(),
        ));
    }
    match entry(program.application).how {
        How::Server(_) => server::installed(program.application).map(drop),
        How::Kernel(_) => Ok(()),
        How::Script(_) => Task {
            program: RealProgram {
                bytes: Bytes::mib(1),
                ..program.clone()
            },
            trials: 1,
            seconds: 1.0,
            seed: 1,
            weir: PathBuf::new(),
        }
        .check(),
    }
}

/// A process that ends with this value, after what it started; the time that it has for that.
struct Ending(Child, Duration);

impl Drop for Ending {
    fn drop(&mut self) {
        let process = libc::pid_t::try_from(self.0.id()).ok();
        if let (Ok(None), Some(process)) = (self.0.try_wait(), process) {
            // SAFETY: the call takes no pointer, and the process is not reaped, so that the number is its own.
            unsafe { libc::kill(process, libc::SIGTERM) };
        }
        let began = Instant::now();
        while began.elapsed() < self.1 && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(2));
        }
        // Both fail only for a process that has gone, which is the goal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
