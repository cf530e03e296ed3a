//! Programs whose output is read while they run, and which never outlive the reader.

use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use weir_loops::child::end_with_this_thread;

/// The descriptor on which a tracer writes its records; above those that programs usually have.
pub const RECORDS: i32 = 198;
/// How long a program has to end after a request.
const GRACE: Duration = Duration::from_secs(2);
/// The time between two checks of it.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes of a pipe: fewer switches between writer and reader.
const PIPE: i32 = 1 << 20;

/// A running program, and the pipe that it writes into. It ends with this value.
#[derive(Debug)]
pub struct Piped {
    child: Child,
    pipe: PipeReader,
    ended: Option<ExitStatus>,
}

impl Piped {
    /// Starts a program whose standard output is read.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn by_output(mut command: Command) -> io::Result<Self> {
        let (pipe, writer) = io::pipe()?;
        // Ctrl-C is for Weir, which ends it.
        command
            .stdout(writer)
            .stderr(Stdio::piped())
            .process_group(0);
        Self::start(command, pipe)
    }

    /// Starts a program which writes what is read to the descriptor [`RECORDS`]; its input and output stay its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn by_records(mut command: Command) -> io::Result<Self> {
        let (pipe, writer) = io::pipe()?;
        let from = writer.as_raw_fd();
        // SAFETY: between fork and exec the closure makes one system call and allocates nothing; `writer` is open until
        // the program has been started.
        unsafe {
            command.pre_exec(move || match libc::dup2(from, RECORDS) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        let started = Self::start(command, pipe);
        drop(writer);
        started
    }

    fn start(mut command: Command, pipe: PipeReader) -> io::Result<Self> {
        // SAFETY: the descriptor is open, and the call takes no pointer. A smaller pipe does as well.
        unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE) };
        end_with_this_thread(&mut command);
        let child = command.spawn()?;
        Ok(Self {
            child,
            pipe,
            ended: None,
        })
    }

    /// The number of the process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; how it ended, and the start of what it said of itself.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait(&mut self) -> io::Result<(ExitStatus, String)> {
        let mut said = String::new();
        if let Some(errors) = self.child.stderr.take() {
            // What is not text is no message.
            let _ = errors.take(4096).read_to_string(&mut said);
        }
        let status = self.child.wait()?;
        self.ended = Some(status);
        Ok((status, said.trim().to_owned()))
    }

    /// `exit code 1` or `signal 11`, and how it ended, if it fails by itself within the time that it has before it is ended.
    /// Where it was asked to end, the signals that end a process on request are no failure.
    pub fn failure(&mut self, asked: bool) -> Option<(String, ExitStatus)> {
        let began = Instant::now();
        while self.ended.is_none() && began.elapsed() < GRACE {
            std::thread::sleep(LOOK);
            self.ended = self.child.try_wait().ok().flatten();
        }
        let status = self.ended?;
        let on_request = [libc::SIGINT, libc::SIGTERM, libc::SIGKILL];
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => (code != 0).then(|| format!("exit code {code}")),
            (None, signal) => {
                let signal = signal.filter(|signal| !(asked && on_request.contains(signal)));
                signal.map(|signal| format!("signal {signal}"))
            }
        };
        how.map(|how| (how, status))
    }

    /// Ends it and what it has started, if that still runs.
    pub fn end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let all = family(self.child.id());
        let records = fs::read_link(format!("/proc/self/fd/{}", self.pipe.as_raw_fd())).ok();
        let writers = || writers(records.as_deref());
        send(&all, libc::SIGTERM);
        send(&writers(), libc::SIGTERM);
        let began = Instant::now();
        while began.elapsed() < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        // Children that still run; the number of one that ended is not given away while its parent has not waited.
        send(&all[1..], libc::SIGKILL);
        send(&writers(), libc::SIGKILL);
        // It may have ended since.
        let _ = self.child.kill();
        self.ended = self.child.wait().ok();
    }
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.pipe.read(buffer)
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.end();
    }
}

/// The pipe into which a process writes its records.
pub fn records_of(process: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/fd/{RECORDS}")).ok()
}

/// The processes that write records into a pipe. One that went on after its parent is no child of the command any more.
fn writers(records: Option<&Path>) -> Vec<u32> {
    let Some(records) = records else {
        return Vec::new();
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|one| one.file_name().to_str()?.parse().ok());
    numbers
        .filter(|&process| records_of(process).is_some_and(|own| own == records))
        .collect()
}

/// A process and all that it has started, the process first (`children` of proc(5)).
fn family(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut at = 0;
    while let Some(one) = all.get(at).copied() {
        at += 1;
        let tasks = fs::read_dir(format!("/proc/{one}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(
                children
                    .split_whitespace()
                    .filter_map(|id| id.parse::<u32>().ok()),
            );
        }
    }
    all
}

/// Whether a process has started others that still run.
pub fn has_children(process: u32) -> bool {
    family(process).len() > 1
}

fn send(processes: &[u32], signal: i32) {
    for &process in processes {
        if let Ok(process) = i32::try_from(process) {
            // SAFETY: the call takes no pointer.
            unsafe { libc::kill(process, signal) };
        }
    }
}

/// Asks a process that another thread reads from to end, with all that it has started and all that writes its records.
pub fn ask_to_end(process: u32, records: Option<&Path>, now: bool) {
    let signal = if now { libc::SIGKILL } else { libc::SIGTERM };
    send(&family(process), signal);
    send(&writers(records), signal);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_process_that_goes_on_after_its_parent_ends_with_the_others() {
        // The parent ends after its pipe has been looked at.
        let left = "(sleep 5; echo late > /proc/self/fd/198) & kill -STOP $$; exit 0";
        for is_asked in [true, false] {
            let mut piped = Piped::by_records(shell(left)).unwrap();
            let records = records_of(piped.process());
            assert!(records.is_some());
            let mut pipe = piped.pipe.try_clone().unwrap();
            while piped.child.try_wait().unwrap().is_none() {
                send(&[piped.process()], libc::SIGCONT);
                std::thread::sleep(LOOK);
            }
            match is_asked {
                true => ask_to_end(piped.process(), records.as_deref(), false),
                false => drop(piped),
            }
            let mut read = String::new();
            pipe.read_to_string(&mut read).unwrap();
            assert_eq!(read, "");
        }
    }

    #[test]
    fn output_is_read_to_its_end_and_a_failure_has_words() {
        let mut piped = Piped::by_output(shell("printf abc; echo no >&2; exit 3")).unwrap();
        let mut read = String::new();
        piped.read_to_string(&mut read).unwrap();
        let (status, said) = piped.wait().unwrap();
        assert_eq!(
            (read.as_str(), status.code(), said.as_str()),
            ("abc", Some(3), "no")
        );
    }

    #[test]
    fn records_come_beside_the_output_and_nothing_is_left_running() {
        let script = "exec 3>/proc/self/fd/198; echo one >&3; sleep 1000 & echo $! >&3; wait";
        let mut piped = Piped::by_records(shell(script)).unwrap();
        let mut buffer = [0; 64];
        let mut read = String::new();
        while read.lines().count() < 2 || !read.ends_with('\n') {
            let n = piped.read(&mut buffer).unwrap();
            assert!(n > 0);
            read.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
        }
        let sleeper: u32 = read.lines().nth(1).unwrap().parse().unwrap();
        piped.end();
        let gone = |id: u32| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        assert!(gone(piped.process()));
        // A signal has been sent; when the process has ended by it is for the scheduler.
        let began = Instant::now();
        while !gone(sleeper) && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(LOOK);
        }
        assert!(gone(sleeper));
    }
}
