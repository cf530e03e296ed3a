//! A running `fio`: waited for until its requests run, counted while they do, stopped with the run.

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use weir_model::capability::Unavailable;
use weir_model::machine::MachineError;
use weir_model::units::Bytes;

use super::fio::Fio;
use super::process_output::ProcessOutput;
use super::report::{Report, Times};
use super::{Load, system, writes};
use weir_loops::child::end_with_this_thread;

/// The longest time until requests run.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest time until it ends after a request to end.
const GRACE: Duration = Duration::from_secs(5);
/// The time between two checks.
const LOOK: Duration = Duration::from_millis(5);
/// The longest time until it reports its latencies; usually a few milliseconds.
const ANSWER: Duration = Duration::from_secs(5);
/// The largest difference between its own count of bytes and the kernel's: outstanding requests, and the
/// files from which it loads itself.
const AGREE: (f64, u64) = (0.05, 16 << 20);

/// One process, which never outlives this value.
pub(crate) struct Running {
    child: Child,
    said: Option<[ProcessOutput; 2]>,
    tenant: String,
    writes: bool,
    /// The number of bytes after which all threads are at work.
    flow: u64,
    /// Whether its failure was already reported.
    reported: bool,
}

impl Running {
    /// Starts it; its requests run some time later.
    pub(super) fn start(fio: &Fio, target: &Path, load: &Load) -> Result<Self, MachineError> {
        let mut command = Command::new(&fio.program);
        command
            .args(fio.arguments(target, load))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // It may leave files where it runs.
            .current_dir("/")
            // Ctrl-C is for Weir, which ends the run properly.
            .process_group(0);
        end_with_this_thread(&mut command);
        let failed = |error: io::Error| {
            system(
                format!(
                    "tenant `{}`: starting {}",
                    load.tenant,
                    fio.program.display()
                ),
                error,
            )
        };
        let mut child = command.spawn().map_err(failed)?;
        let said = [
            ProcessOutput::on(child.stdout.take()),
            ProcessOutput::on(child.stderr.take()),
        ];
        let threads = load.cores.len() as u64;
        Ok(Self {
            child,
            said: Some(said),
            tenant: load.tenant.clone(),
            writes: writes(load.op),
            flow: threads * u64::from(load.depth) * load.block.get(),
            reported: false,
        })
    }

    /// Waits until requests run.
    pub fn await_flow(&mut self) -> Result<(), MachineError> {
        let began = Instant::now();
        // Its start-up is over when it has a second thread; what it reads then are its requests.
        let mut before = None;
        while began.elapsed() < PATIENCE {
            self.check()?;
            // It may have ended since; the next check says so.
            let bytes = self.bytes().unwrap_or(0);
            match before {
                None if self.threads().len() > 1 => before = Some(bytes),
                Some(before) if bytes >= before + self.flow => return Ok(()),
                _ => {}
            }
            std::thread::sleep(LOOK);
        }
        Err(system(
            format!("tenant `{}`: fio", self.tenant),
            format!("no requests for {} s", PATIENCE.as_secs()),
        ))
    }

    /// The number of the process.
    #[cfg(test)]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// How many processes it has started.
    #[cfg(test)]
    pub fn children(&self) -> usize {
        let id = self.child.id();
        let list = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        list.map_or(0, |list| list.split_whitespace().count())
    }

    /// The numbers of its threads; none if it has ended.
    pub fn threads(&self) -> Vec<u32> {
        let all = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let names = all.into_iter().flatten().flatten();
        names
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }

    /// Bytes of requests that it has sent to the device, including outstanding ones, at most as many as it
    /// keeps outstanding (`read_bytes` and `write_bytes` of proc(5), `/proc/PID/io`).
    pub fn bytes(&self) -> Result<u64, MachineError> {
        let path = format!("/proc/{}/io", self.child.id());
        let text = fs::read_to_string(&path).map_err(|error| system(&path, error))?;
        counted(&text, self.writes).ok_or_else(|| system(path, "it does not report the bytes"))
    }

    /// Latencies of its requests until now. It gets a signal, and answers with a report (fio's documentation,
    /// SIGUSR1).
    ///
    /// # Errors
    /// It does not answer, or its report lacks the times.
    pub fn times(&mut self) -> Result<Times, Unavailable> {
        let Some([out, _]) = &self.said else {
            return Err(Unavailable::because("fio has ended"));
        };
        out.forget();
        signal(&mut self.child, libc::SIGUSR1);
        let report = out.next(ANSWER).ok_or_else(|| {
            Unavailable::because(format!(
                "fio did not report its latencies within {} s",
                ANSWER.as_secs()
            ))
        })?;
        let report = Report::read(&report).map_err(|why| {
            Unavailable::because(format!("the report of fio cannot be read: {why}"))
        })?;
        let times = report.times();
        if report.bytes() > 0 && times == Times::default() {
            return Err(Unavailable::because("fio does not report its latencies"));
        }
        Ok(times)
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// It ended early: its last message.
    pub fn check(&mut self) -> Result<(), MachineError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(error) => Err(system(format!("tenant `{}`: fio", self.tenant), error)),
        }
    }

    fn ended(&mut self, status: ExitStatus) -> MachineError {
        self.reported = true;
        let [(out, _), (err, _)] = self.take_said();
        let how = match status.signal() {
            Some(libc::SIGKILL) => {
                "killed by signal 9; if no user did that, memory ran out: see dmesg".to_owned()
            }
            Some(signal) => format!("killed by signal {signal}"),
            None => format!("exit status {}", status.code().unwrap_or(-1)),
        };
        let cause = match complaint(&err).or_else(|| complaint(&out)) {
            Some(line) => format!("it ended during the run ({how}): {line}"),
            None => format!("it ended during the run ({how}) without a message"),
        };
        system(format!("tenant `{}`: fio", self.tenant), cause)
    }

    /// The text and the last documents of both pipes.
    fn take_said(&mut self) -> [(String, Option<String>); 2] {
        let said = self.said.take();
        said.map_or_else(Default::default, |said| said.map(ProcessOutput::finish))
    }

    /// Stops it and returns the reasons to trust its figures less.
    ///
    /// # Errors
    /// It had failed and this was not reported, or its report cannot be read.
    pub fn end(mut self) -> Result<Option<String>, MachineError> {
        if self.reported {
            return Ok(None);
        }
        self.check()?;
        let counted = self.bytes()?;
        self.quit(GRACE);
        let [(_, report), (err, _)] = self.take_said();
        let named = || format!("tenant `{}`: the report of fio", self.tenant);
        let report = report.ok_or_else(|| "there is no JSON in it".to_owned());
        let report = report.and_then(|text| Report::read(&text)).map_err(|why| {
            let said = complaint(&err).map(|line| format!(" ({line})"));
            system(named(), format!("{why}{}", said.unwrap_or_default()))
        })?;
        if let Some(error) = report.error() {
            let error = i32::try_from(error).map(io::Error::from_raw_os_error);
            let cause = error.map_or("an unknown error".to_owned(), |e| e.to_string());
            return Err(system(named(), cause));
        }
        let (share, least) = AGREE;
        let (own, apart) = (report.bytes(), report.bytes().abs_diff(counted));
        let disagree = apart > least && apart as f64 > share * own as f64;
        Ok(disagree.then(|| {
            format!(
                "fio completed {}, but the kernel counts {} of requests: there may be caches in between",
                Bytes(own),
                Bytes(counted)
            )
        }))
    }

    /// Requests it to end, and kills it after some time.
    fn quit(&mut self, grace: Duration) {
        let asked = Instant::now();
        signal(&mut self.child, libc::SIGTERM);
        while asked.elapsed() < grace {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        // Both fail only for a process that has gone, which is the goal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.quit(Duration::ZERO);
        }
    }
}

/// Sends a signal, if the process still exists.
fn signal(child: &mut Child, signal: libc::c_int) {
    if let Ok(id) = libc::pid_t::try_from(child.id())
        && matches!(child.try_wait(), Ok(None))
    {
        // SAFETY: kill takes no pointers. The child is not yet waited for, so that its number is
        // not reused.
        unsafe { libc::kill(id, signal) };
    }
}

/// The line in which `fio` reports an error, or else the last line.
pub(super) fn complaint(said: &str) -> Option<&str> {
    let lines = || said.lines().map(str::trim).filter(|l| !l.is_empty());
    let own = lines().find(|line| line.starts_with("fio:"));
    own.or_else(|| lines().next_back().filter(|line| *line != "}"))
}

/// The bytes that a process has read from devices, or written to them.
pub(super) fn counted(text: &str, writes: bool) -> Option<u64> {
    let wanted = if writes {
        "write_bytes:"
    } else {
        "read_bytes:"
    };
    let line = text.lines().find_map(|line| line.strip_prefix(wanted))?;
    line.trim().parse().ok()
}
