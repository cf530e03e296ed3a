//! A `fio` at work: awaited until its requests flow, counted while they do, ended with the run.

use std::fs;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_model::machine::MachineError;
use weir_model::units::Bytes;

use super::fio::Fio;
use super::report::Report;
use super::{Load, system, writes};

/// How long it may take until requests flow.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to end when asked to.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(5);
/// The most that is kept of what it says.
const MOST_SAID: u64 = 1 << 20;
/// By how much its own count of bytes and the kernel's may differ: requests under way, and files
/// that it loads itself from.
const AGREE: (f64, u64) = (0.05, 16 << 20);

/// One process, which never outlives this.
pub(crate) struct Running {
    child: Child,
    said: Option<[JoinHandle<String>; 2]>,
    tenant: String,
    writes: bool,
    /// Bytes of requests that tell that all threads are at work.
    flow: u64,
    /// Whether it was told already that it failed.
    told: bool,
}

impl Running {
    /// Starts it; its requests flow some time after.
    pub(super) fn start(fio: &Fio, target: &Path, load: &Load) -> Result<Self, MachineError> {
        let mut command = Command::new(&fio.program);
        command
            .args(fio.arguments(target, load))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // It may leave files of its own where it runs.
            .current_dir("/")
            // Ctrl-C is for Weir, which ends the run in order.
            .process_group(0);
        let parent = std::process::id();
        // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
        unsafe {
            command.pre_exec(move || die_with(parent));
        }
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
        let said = [collect(child.stdout.take()), collect(child.stderr.take())];
        let threads = load.cores.len() as u64;
        Ok(Self {
            child,
            said: Some(said),
            tenant: load.tenant.clone(),
            writes: writes(load.op),
            flow: threads * u64::from(load.depth) * load.block.get(),
            told: false,
        })
    }

    /// Waits until requests flow.
    pub fn await_flow(&mut self) -> Result<(), MachineError> {
        let began = Instant::now();
        // Loading itself is over once it has a second thread; what it reads then is its requests.
        let mut before = None;
        while began.elapsed() < PATIENCE {
            self.check()?;
            // It may have ended since; the next look says so.
            let bytes = self.bytes().unwrap_or(0);
            match before {
                None if self.threads() > 1 => before = Some(bytes),
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

    fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.child.id())).map_or(0, Iterator::count)
    }

    /// Bytes of requests that it has put to the device. Those under way are in it, at most as many
    /// as it keeps under way (`read_bytes` and `write_bytes` of proc(5), `/proc/PID/io`).
    pub fn bytes(&self) -> Result<u64, MachineError> {
        let path = format!("/proc/{}/io", self.child.id());
        let text = fs::read_to_string(&path).map_err(|error| system(&path, error))?;
        counted(&text, self.writes).ok_or_else(|| system(path, "it does not tell the bytes"))
    }

    /// Whether it is still at work.
    ///
    /// # Errors
    /// It ended by itself: what it said last.
    pub fn check(&mut self) -> Result<(), MachineError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(error) => Err(system(format!("tenant `{}`: fio", self.tenant), error)),
        }
    }

    fn ended(&mut self, status: ExitStatus) -> MachineError {
        self.told = true;
        let [out, err] = self.take_said();
        let how = match status.signal() {
            Some(signal) => format!("killed by signal {signal}"),
            None => format!("exit status {}", status.code().unwrap_or(-1)),
        };
        let cause = match complaint(&err).or_else(|| complaint(&out)) {
            Some(line) => format!("it ended during the run ({how}): {line}"),
            None => format!("it ended during the run ({how}) and said nothing"),
        };
        system(format!("tenant `{}`: fio", self.tenant), cause)
    }

    fn take_said(&mut self) -> [String; 2] {
        let said = self.said.take();
        said.map_or_else(Default::default, |said| {
            said.map(|thread| thread.join().unwrap_or_default())
        })
    }

    /// Ends it and says what makes its figures less than trustworthy.
    ///
    /// # Errors
    /// It had failed and nobody was told, or its report cannot be read.
    pub fn end(mut self) -> Result<Option<String>, MachineError> {
        if self.told {
            return Ok(None);
        }
        self.check()?;
        let counted = self.bytes()?;
        self.quit(GRACE);
        let [out, err] = self.take_said();
        let named = || format!("tenant `{}`: the report of fio", self.tenant);
        let report = Report::read(&out).map_err(|why| {
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
                "fio completed {}, but the kernel counts {} of requests: caches may stand between",
                Bytes(own),
                Bytes(counted)
            )
        }))
    }

    /// Asks it to end, and after some time makes it.
    fn quit(&mut self, grace: Duration) {
        let asked = Instant::now();
        if let Ok(id) = libc::pid_t::try_from(self.child.id())
            && matches!(self.child.try_wait(), Ok(None))
        {
            // SAFETY: kill takes no pointers. The child is not yet waited for, so that its number
            // is nobody else's.
            unsafe { libc::kill(id, libc::SIGTERM) };
            while asked.elapsed() < grace {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(LOOK);
            }
        }
        // Both fail only for a process that is gone, which is what is wanted.
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

/// Has the kernel kill the calling process when the thread that made it ends, however that happens
/// (prctl(2)). A run starts and stops in one thread, so that it never ends before.
fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: neither call takes a pointer.
    let (result, now) = unsafe {
        (
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
            libc::getppid(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // Whoever died before the call is not noticed by it.
    if u32::try_from(now) != Ok(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

/// Reads all that is said, so that nobody waits for a full pipe; keeps the beginning.
fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe that breaks has nothing more to say.
            let _ = pipe.by_ref().take(MOST_SAID).read_to_end(&mut said);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// The line in which `fio` complains, or else the last one.
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
